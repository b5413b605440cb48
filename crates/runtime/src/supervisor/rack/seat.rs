//! State of one seat, and of its successor.

use rackloom_jobs::Portion;
use rackloom_jobs::report::{EventRecord, MemberReport};
use rackloom_jobs::rest::Rest;

use rackloom_control::notice::SeatStatus;

/// State of a member's successor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Followed {
    /// No successor is expected, or the successor is complete.
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
    /// True if no process has taken it yet.
    pub(crate) is_vacant: bool,
    /// Vacant here, because another host runs it.
    pub(crate) is_elsewhere: bool,
    pub(crate) pid: u32,
    /// Time at which it was taken, on the rack's clock.
    pub(crate) taken_at_ns: u64,
    /// End of a process that had not reported.
    pub(crate) death: Option<String>,
    /// Ends of earlier processes, oldest first.
    pub(crate) earlier_deaths: Vec<String>,
    /// Why its log cannot be written.
    pub(crate) log_error: Option<String>,
    /// Pending conditions that it reported to the watchdog.
    pub(crate) waiting: Option<Vec<String>>,
    /// Latest status.
    pub(crate) status: Option<SeatStatus>,
    /// Final report.
    pub(crate) report: Option<MemberReport>,
    /// Latest state at rest.
    pub(crate) rest: Option<Rest>,
    pub(crate) ended: bool,
    /// The supervisor killed it, because it gave no report at the end.
    pub(crate) is_hung: bool,
    /// True if it has announced that the fault script kills it.
    pub(crate) dies_by_script: bool,
    pub(super) followed: Followed,
    /// True if it leaves. It ends once it has reported.
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
    /// Returns whether a process holds the seat.
    pub(crate) fn is_alive(&self) -> bool {
        !self.ended && !self.is_vacant
    }

    /// Returns whether the run waits for the successor.
    pub(super) fn is_awaited(&self) -> bool {
        match self.followed {
            Followed::No => false,
            Followed::Later { .. } => true,
            Followed::Awaited { .. } => !self.links_up,
        }
    }

    /// Returns whether every link that can be up has been up.
    pub(crate) fn is_up(&self) -> bool {
        self.links_up
    }
}
