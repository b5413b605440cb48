//! Lines from the supervisor to a seat: orders. The first one starts the seat.
//!
//! No frame waits for a line. A seat waits for none but its [`Start`], and the end of the socket is the end of the seat.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::grant::{Grant, NewCable};
use crate::source::Source;

/// Line from the supervisor to a seat.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Starts the seat. The first line to each seat.
    Start(Box<Start>),
    /// Starts the successor of a process that died. The first line to it; descriptors of its wires are sent with the line.
    Follow(Box<Joined>),
    /// Requests [`crate::notice::Notice::Waiting`].
    SayWaiting,
    /// Requests [`crate::notice::Notice::Status`].
    SayStatus {
        /// True without paths.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
    },
    /// Reports that a process has taken a vacant seat.
    Seated {
        /// Number of the member in the plan.
        member: u16,
        /// Process that holds the seat now.
        process: u32,
        /// True if the process follows one that died. It does not run the job of the rack, and its memory is not mapped.
        #[serde(default)]
        is_successor: bool,
    },
    /// Reports which members have no process now, because one has ended while this seat started. Links to them need not come up.
    Free {
        /// Numbers of these members in the plan.
        members: Vec<u16>,
    },
    /// Replaces the cable of a port: another process holds the seat at its other end from now on.
    Plug(NewCable),
    /// Adds faults. Their times count from now.
    Inject {
        /// Number of the first event.
        first: usize,
        /// Text of the fault script.
        text: String,
    },
    /// Ends all faults that are in effect or still to come. Deaths and revocations are not undone.
    EndFaults,
    /// Reports that another seat has seen the trigger of an event of the fault script.
    SetOff {
        /// Index of the event in the script.
        event: usize,
    },
    /// Ends all faults of the script, because the job is over. The seat reads eight bytes from each live neighbour and reports
    /// [`crate::notice::Notice::Rested`], after each such order.
    Heal {
        /// Members whose processes run, by number in the plan.
        living: Vec<u16>,
    },
    /// Makes the member leave a standing rack: it sends a departure to each neighbour, then reports as for [`Order::Report`].
    Leave,
    /// Requests [`crate::notice::Notice::Report`]. The seat serves its neighbours until the end of the socket.
    Report,
    /// Order that this version does not have.
    #[serde(other)]
    Unknown,
}

/// Start order of a seat.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Start {
    /// Request from which the seat builds the plan again.
    pub source: Source,
    /// Number of this member in the plan.
    pub member: u16,
    /// Incarnation of the member.
    pub incarnation: u64,
    /// Seed of the keys of the job's regions.
    pub key_seed: u64,
    /// Origin of the rack's clock, on the host's monotonic clock, in nanoseconds.
    pub origin_monotonic_ns: u64,
    /// Wires of its ports.
    pub grant: Grant,
    /// Members whose seats are vacant, by number in the plan. Links to them need not come up.
    pub vacant: Vec<u16>,
    /// Process of each member that runs on this host, by number in the plan. Neighbours check whether it runs before they report it dead.
    #[serde(default)]
    pub processes: Vec<Option<u32>>,
    /// Directory through which seats of one server map each other's memory. `None` if all data goes in frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SharedServer>,
    /// True for a standing rack: the seat reports each event at once, and cables may be replaced.
    pub stays: bool,
    /// True if the seat follows a process that died. It serves the others and runs no job.
    pub is_successor: bool,
    /// Bytes that the node may register with the fabric, if a submitted job holds the seat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_max_bytes: Option<u64>,
    /// Descriptor of the status page, which the process has inherited; absent if the seat has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_page: Option<i32>,
}

/// Memory that seats of one server share by mapping it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SharedServer {
    /// Private directory of the rack, with the sockets of the owners.
    pub directory: PathBuf,
}

/// Seat that a process takes: its start, and the descriptors that are sent with it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Joined {
    /// Numbers under which `start` names the descriptors, in the order in which they are sent.
    pub descriptors: Vec<i32>,
    /// Start order of the seat.
    pub start: Start,
}
