//! What supervisor and seats say to each other: JSON, one message per line, over a socket pair.
//!
//! The supervisor gives [`Order`]s, a seat gives [`Notice`]s. Nothing said here is needed to move a frame, and there is
//! nothing a seat waits for except its [`Start`]. The end of the socket means the end of the seat.

mod bounded;
mod line;
pub mod links;
pub mod request;

use std::path::PathBuf;

use rackloom_jobs::Portion;
use rackloom_jobs::report::{EventRecord, MemberReport, MemoryReport, PathReport, PortReport, Verdict};
use rackloom_jobs::rest::Rest;
use serde::{Deserialize, Serialize};

pub(crate) use bounded::BoundedLines;
pub(crate) use line::{Channel, Heard};
pub(crate) use rackloom::seat::{Grant, NewCable, SharedMemoryPort, descriptors};

use self::request::Joined;
use crate::request::source::Source;

/// From the supervisor to a seat.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// The first line: everything a seat needs to begin.
    Start(Box<Start>),
    /// The first line to who follows somebody that died: the same, with the wires attached.
    Follow(Box<Joined>),
    /// Say what you wait for.
    SayWaiting,
    /// Say how you are.
    SayStatus,
    /// A process has taken a seat that was vacant.
    Seated {
        /// Its number in the plan.
        member: u16,
        /// Who sits there now.
        process: u32,
        /// Whether it follows a process that died: it does not do the rack's job, and its memory is not mapped.
        #[serde(default)]
        is_successor: bool,
    },
    /// Somebody else sits at the other end of this port from now on: exchange the cable.
    Plug(NewCable),
    /// More faults, from now on.
    Inject {
        /// The number of the first.
        first: usize,
        /// The script.
        text: String,
    },
    /// Another seat has seen what sets this event of the fault script off.
    SetOff {
        /// Its place in the script.
        event: usize,
    },
    /// The job is over: no fault of the script holds any longer. Ask your living neighbours for a word, and say how you are; asked again,
    /// say it again.
    Heal {
        /// Members whose processes run, by place in the plan.
        living: Vec<u16>,
    },
    /// Leave a rack that stays: send a departure to every neighbour, then report as for [`Order::Report`].
    Leave,
    /// Report, and go on serving your neighbours until the socket ends: they may still have something to say.
    Report,
}

/// Everything a seat needs to begin.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Start {
    /// The rack file's text and what the command line says instead: the seat builds the plan again, so nothing of it
    /// is lost on the way.
    pub source: Source,
    /// Place of this member in the plan.
    pub member: u16,
    /// Which life of the member this is.
    pub incarnation: u64,
    /// Seed of the keys of the job's regions.
    pub key_seed: u64,
    /// The moment from which all members count, on the host's monotonic clock.
    pub origin_monotonic_ns: u64,
    /// What its ports are plugged into.
    pub grant: Grant,
    /// Seats that nobody has taken yet, by place in the plan: links to them need not come up.
    pub vacant: Vec<u16>,
    /// By place in the plan: the process of each member that runs on this host. Its neighbours look at it before they call it dead.
    #[serde(default)]
    pub processes: Vec<Option<u32>>,
    /// Where seats of one server find each other's memory; nothing if everything goes through frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SharedServer>,
    /// Whether the rack stays: the supervisor then hears of every event as it happens, and not only in the report, and
    /// cables may be exchanged.
    pub stays: bool,
    /// Whether somebody sat here before. The others have done the job without this member or failed at it; who comes
    /// after serves them and does nothing of its own.
    pub is_successor: bool,
}

/// Memory that seats of one server share by mapping it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SharedServer {
    /// The rack's private directory, in which owners listen.
    pub directory: PathBuf,
}

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
    /// The answer to [`Order::SayWaiting`].
    Waiting {
        /// One line per thing.
        lines: Vec<String>,
    },
    /// The answer to [`Order::SayStatus`].
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
    /// The answer to [`Order::Heal`].
    Rested(Rest),
    /// The answer to [`Order::Report`].
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
