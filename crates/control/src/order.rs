//! Lines from the supervisor to a seat: orders. The first one starts the seat.
//!
//! No frame waits for a line. A seat waits for none but its [`Start`], and the end of the socket is the end of the seat.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::grant::{Grant, NewCable};
use crate::source::Source;

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
    /// An order that this version does not have.
    #[serde(other)]
    Unknown,
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

/// A seat that a process takes: its start, and the descriptors that are sent with it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Joined {
    /// Numbers under which `start` names the descriptors, in the order in which they are sent.
    pub descriptors: Vec<i32>,
    /// Start order of the seat.
    pub start: Start,
}
