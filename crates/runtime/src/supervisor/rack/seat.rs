//! State of one seat, and of its successor.

use rackloom_jobs::Portion;
use rackloom_jobs::report::{EventRecord, MemberReport};
use rackloom_jobs::rest::Rest;

use rackloom_control::notice::SeatStatus;

/// State of a member's successor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Successor {
    /// No successor is expected, or its links are up.
    #[default]
    None,
    /// A successor starts after this time. The record then ends the death.
    Expected { after_ns: u64, ends: Box<EventRecord> },
    /// A successor holds the seat. The run waits until its links are up, at most this time.
    Starting { left_ns: u64 },
}

/// One member as the supervisor sees it.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) is_endpoint: bool,
    /// True if no process holds the seat.
    pub(crate) is_vacant: bool,
    /// True if another host runs the member. The seat is vacant here.
    pub(crate) is_elsewhere: bool,
    pub(crate) pid: u32,
    /// Time at which the seat was taken, on the rack's clock.
    pub(crate) taken_at_ns: u64,
    /// Description of the end of a process that had not reported.
    pub(crate) death: Option<String>,
    /// Ends of earlier processes, oldest first.
    pub(crate) earlier_deaths: Vec<String>,
    /// Error of writing its log.
    pub(crate) log_error: Option<String>,
    /// Pending conditions that the seat reported to the watchdog.
    pub(crate) waiting: Option<Vec<String>>,
    /// Latest status.
    pub(crate) status: Option<SeatStatus>,
    /// Final report.
    pub(crate) report: Option<MemberReport>,
    /// Latest state at rest.
    pub(crate) rest: Option<Rest>,
    pub(crate) ended: bool,
    /// True if the supervisor killed the process because it sent no report at the end.
    pub(crate) is_hung: bool,
    /// True if the seat has announced that the fault script kills it.
    pub(crate) dies_by_script: bool,
    pub(super) successor: Successor,
    /// True if the member leaves. It ends once it has reported.
    pub(super) leaves: bool,
    pub(super) ready: bool,
    pub(super) mapped: bool,
    pub(super) links_up: bool,
    pub(super) finished: bool,
    /// GPU nodes that the member has lost.
    pub(super) lost: Vec<usize>,
    pub(super) progress: u64,
    pub(super) portion: Option<Portion>,
}

impl Seat {
    /// Returns true if a process holds the seat.
    pub(crate) fn is_alive(&self) -> bool {
        !self.ended && !self.is_vacant
    }

    /// Returns true if the run waits for the successor.
    pub(super) fn is_awaited(&self) -> bool {
        match self.successor {
            Successor::None => false,
            Successor::Expected { .. } => true,
            Successor::Starting { .. } => !self.links_up,
        }
    }

    /// Returns true if every link that can be up has been up.
    pub(crate) fn is_up(&self) -> bool {
        self.links_up
    }
}
