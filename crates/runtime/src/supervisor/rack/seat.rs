//! One member as the supervisor sees it, and whether somebody follows it in its place.

use rackloom_jobs::Portion;
use rackloom_jobs::report::{EventRecord, MemberReport};
use rackloom_jobs::rest::Rest;

use rackloom_control::notice::SeatStatus;

/// Whether somebody follows a member in its seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Followed {
    /// Nobody, as far as is known, or somebody has been taken back already.
    #[default]
    No,
    /// After so long; this line then says so.
    Later { after_ns: u64, ends: Box<EventRecord> },
    /// Somebody sits there, and is waited for until its links are up, but not for longer than this.
    Awaited { left_ns: u64 },
}

/// One member as the supervisor sees it.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) is_endpoint: bool,
    /// Nobody has taken it yet.
    pub(crate) is_vacant: bool,
    /// Vacant here, because another host runs it.
    pub(crate) is_elsewhere: bool,
    pub(crate) pid: u32,
    /// When it was taken, on the run's clock.
    pub(crate) taken_at_ns: u64,
    /// How the process ended before it had reported, if it did.
    pub(crate) death: Option<String>,
    /// How those ended who sat here before, oldest first.
    pub(crate) earlier_deaths: Vec<String>,
    /// Why its log cannot be written.
    pub(crate) log_error: Option<String>,
    /// What it waited for when the watchdog asked.
    pub(crate) waiting: Option<Vec<String>>,
    /// How it was when it was asked last.
    pub(crate) status: Option<SeatStatus>,
    /// What it said last.
    pub(crate) report: Option<MemberReport>,
    /// How it was, once everything was healed, when it was asked last.
    pub(crate) rest: Option<Rest>,
    pub(crate) ended: bool,
    /// The supervisor killed it, because it gave no report at the end.
    pub(crate) is_hung: bool,
    /// It has said that a fault script makes it kill itself.
    pub(in crate::supervisor) dies_by_script: bool,
    pub(super) followed: Followed,
    /// It was asked to leave; it goes once it has reported.
    pub(super) leaves: bool,
    pub(super) ready: bool,
    pub(super) mapped: bool,
    pub(super) links_up: bool,
    pub(super) finished: bool,
    /// GPU nodes that it has lost.
    pub(super) lost: Vec<usize>,
    pub(super) progress: u64,
    pub(super) portion: Option<Portion>,
}

impl Seat {
    /// Whether somebody sits in it.
    pub(crate) fn is_alive(&self) -> bool {
        !self.ended && !self.is_vacant
    }

    /// Whether the run may not end yet because of who follows here.
    pub(super) fn is_awaited(&self) -> bool {
        match self.followed {
            Followed::No => false,
            Followed::Later { .. } => true,
            Followed::Awaited { .. } => !self.links_up,
        }
    }

    /// Whether every link that can be up has been up.
    pub(crate) fn is_up(&self) -> bool {
        self.links_up
    }
}
