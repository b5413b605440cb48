//! Lines from a seat to the supervisor: notices.

use serde::{Deserialize, Serialize};

use crate::portion::Portion;
use crate::report::{EventRecord, MemberReport, MemoryReport, PathReport, PortReport, Verdict};
use crate::rest::Rest;
use crate::zero::is_zero;

/// Line from a seat to the supervisor.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// Wires and memory are open.
    Ready,
    /// Every port of this member has been up.
    LinksUp,
    /// The member has mapped the memory of the peers that it reaches directly.
    Mapped,
    /// The job has made progress.
    Progress {
        /// Counter of the job. It grows with each progress.
        count: u64,
        /// Progress in pieces, if the job has pieces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        portion: Option<Portion>,
    },
    /// The job is over. The member serves others until the end of the socket.
    Finished,
    /// The last live path to a GPU node is gone.
    Lost {
        /// Number of the GPU node in the plan.
        member: u16,
    },
    /// The log cannot be written, and the member runs without it. Sent once.
    LogFailed {
        /// The first error.
        what: String,
    },
    /// The answer to [`crate::order::Order::SayWaiting`].
    Waiting {
        /// One line per pending condition.
        lines: Vec<String>,
    },
    /// The answer to [`crate::order::Order::SayStatus`].
    Status(SeatStatus),
    /// An event happened. Sent in standing racks.
    Happened(EventRecord),
    /// An event of the fault script begins or ends at this member.
    Fault(EventRecord),
    /// This member has seen the trigger of an event that other members take part in.
    SetOff {
        /// Index of the event in the script.
        event: usize,
    },
    /// The process is about to stop itself, as the fault script requires. The supervisor resumes it.
    Pausing {
        /// Time until it must be resumed, in nanoseconds.
        for_ns: u64,
    },
    /// The process is about to kill itself, as the fault script requires.
    Dying,
    /// The process is about to kill itself, as the fault script requires. The supervisor starts a successor.
    Returning {
        /// Time until the successor starts, in nanoseconds.
        after_ns: u64,
        /// Event of the end of the fault, without its time.
        ends: EventRecord,
    },
    /// The answer to [`crate::order::Order::Heal`].
    Rested(Rest),
    /// The answer to [`crate::order::Order::Report`].
    Report(Box<MemberReport>),
    /// The seat cannot start or continue, and ends.
    Failed {
        /// Cause.
        what: String,
    },
}

/// Frames of IP over the fabric, at one seat.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct IpCounters {
    /// Frames that the other node has. Up to 64 KiB of a stream are one frame.
    pub frames_sent: u64,
    /// Their bytes, with a header of 10 bytes each.
    pub bytes_sent: u64,
    /// Frames that the program was given.
    pub frames_received: u64,
    /// Their bytes, with a header of 10 bytes each.
    pub bytes_received: u64,
    /// Frames that were dropped because their node had too many in flight.
    pub queue_full: u64,
    /// Frames that were dropped because their node was not reached, or does not exist.
    pub unreached: u64,
    /// Received frames that the kernel of the program had no space for, or refused.
    pub refused: u64,
}

/// Status of a seat.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct SeatStatus {
    /// Number of links that carry data now.
    pub links_up: u16,
    /// Links that carry no data now, by index in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links_down: Vec<u16>,
    /// Memory of a GPU node; absent for switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<MemoryReport>>,
    /// True if its job is over.
    pub finished: bool,
    /// Verdict about its part of a job that is over; absent for switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Time at which `ports` were read, on the rack's clock.
    #[serde(default)]
    pub at_ns: u64,
    /// Counters of its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortReport>,
    /// Ports at which live shortest paths begin, by destination in the plan's order; empty for switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Vec<u16>>,
    /// Operations of its job over mapped memory and in frames; absent if it shares no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<PathReport>,
    /// Frames of IP over the fabric; absent without an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpCounters>,
    /// Processor time of its process so far, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processor_ns: u64,
    /// Incarnation of the member.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incarnation: u64,
    /// Bytes that a program on the seat has moved through mapped memory of other nodes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub direct_bytes: u64,
}

impl SeatStatus {
    /// Returns the bytes that the member has moved: in data frames that it sent, and through mapped memory.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        let sent = self.ports.iter().map(|port| port.data_bytes_sent);
        sent.fold(self.direct_bytes, u64::saturating_add)
    }
}
