//! Lines from a seat to the supervisor: notices.

use serde::{Deserialize, Serialize};

use crate::portion::Portion;
use crate::report::{EventRecord, MemberReport, MemoryReport, PathReport, PortReport, Verdict};
use crate::rest::Rest;

/// From a seat to the supervisor.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// Wires and memory are open.
    Ready,
    /// Every port of this member has been up.
    LinksUp,
    /// It is decided whom of its server this member reaches directly, and what it needs for that is mapped.
    Mapped,
    /// Grows whenever the job gets further.
    Progress {
        /// The job's own count.
        count: u64,
        /// How far the job is, where it can tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        portion: Option<Portion>,
    },
    /// The job is over; the member goes on serving others.
    Finished,
    /// No live path leads to this GPU node any more.
    Lost {
        /// Its number in the plan.
        member: u16,
    },
    /// The log cannot be written; the member goes on without it. Said once.
    LogFailed {
        /// The first error.
        what: String,
    },
    /// The answer to [`crate::order::Order::SayWaiting`].
    Waiting {
        /// One line per thing.
        lines: Vec<String>,
    },
    /// The answer to [`crate::order::Order::SayStatus`].
    Status(SeatStatus),
    /// Something happened, and the supervisor wants to hear of it.
    Happened(EventRecord),
    /// An event of the fault script begins or ends here.
    Fault(EventRecord),
    /// What sets an event of the fault script off was seen here, and others have a part in it.
    SetOff {
        /// Its place in the script.
        event: usize,
    },
    /// It is about to stop itself, and wants to be set going again.
    Pausing {
        /// After how long.
        for_ns: u64,
    },
    /// It is about to kill itself, because the fault script says so.
    Dying,
    /// It is about to kill itself, and somebody is to sit in its place.
    Returning {
        /// After how long.
        after_ns: u64,
        /// The line that then says that the fault is over, but for its time.
        ends: EventRecord,
    },
    /// The answer to [`crate::order::Order::Heal`].
    Rested(Rest),
    /// The answer to [`crate::order::Order::Report`].
    Report(Box<MemberReport>),
    /// The seat could not begin, or cannot go on; it ends.
    Failed {
        /// Why.
        what: String,
    },
}

/// How a seat is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct SeatStatus {
    /// Links that carry data now.
    pub links_up: u16,
    /// Links that carry no data now, by place in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links_down: Vec<u16>,
    /// How its memory is held and used; switches have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<MemoryReport>>,
    /// Whether its job is over.
    pub finished: bool,
    /// Of a job that is over: whether everything about it was right so far. Switches have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// When `ports` were read, on the run's clock.
    #[serde(default)]
    pub at_ns: u64,
    /// Counters of its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortReport>,
    /// Live shortest paths by destination, in the plan's order of members: the ports at which they begin. Switches have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Vec<u16>>,
    /// Operations of its job over shared memory and in frames, where it could share memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<PathReport>,
}
