//! Frames between neighbours as fields: Hello, heartbeat, link report, credit, link-level retry, pause.

use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::control::{Heartbeat, Hello, LinkReport, numbering, pause_quanta};
use serde::Serialize;

/// Body of a frame that is not routed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Announces the sender and its parameters.
    Hello {
        /// Number of the sending member.
        node: u16,
        /// Port of the sending member.
        port: u16,
        /// Plane of the link.
        plane: u8,
        /// True if the sender expects an answer.
        requests_answer: bool,
        /// Largest frame that the sender accepts, in bytes.
        frame_bytes_max: u16,
        /// Incarnation of the sender.
        incarnation: u64,
        /// Incarnation of the neighbour that the sender last received.
        received_incarnation: u64,
        /// Options on which both ends must agree.
        options: u32,
    },
    /// Shows that the sender is alive.
    Heartbeat {
        /// Number of the sender's heartbeat.
        number: u32,
        /// Number of the neighbour's last heartbeat.
        received_number: u32,
        /// State of the link.
        state: &'static str,
        /// Maximum time until the sender's next heartbeat, in intervals.
        intervals: u16,
        /// Digest of all link reports.
        digest: u32,
    },
    /// States of the links of one member or several.
    Report {
        /// Reports in the order of the frame.
        reports: Vec<MemberLinks>,
    },
    /// Returns credits.
    Credit {
        /// True if the sender expects an answer.
        requests_answer: bool,
    },
    /// Link-level retry: sets the sender's sequence numbers to those of the link header.
    Init {
        /// Number of the initialisation.
        number: u32,
    },
    /// Link-level retry: accepts the neighbour's sequence numbers.
    Echo {
        /// Number of the initialisation.
        number: u32,
    },
    /// Stops or resumes the data of the channel.
    Pause {
        /// Duration in units of 512 bits of the link; 0 resumes.
        quanta: u16,
    },
}

/// Report about the links of one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberLinks {
    /// Member whose links are reported.
    pub origin: u16,
    /// Incarnation of that member.
    pub incarnation: u64,
    /// Number of the report.
    pub number: u32,
    /// Links of the member.
    pub edges: Vec<Edge>,
}

impl MemberLinks {
    fn of(report: LinkReport) -> Self {
        let edges = report.edges.into_iter().map(|(edge, mark)| Edge { edge, up: mark.is_some() }).collect();
        Self { origin: report.origin.0, incarnation: report.incarnation.0, number: report.number, edges }
    }
}

/// One link of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Number of the link in the plan.
    pub edge: u16,
    /// True if the link carries data.
    pub up: bool,
}

impl Control {
    /// Parses a body; `None` if it is malformed, or the kind is routed or has none.
    pub(super) fn of(kind: FrameKind, body: &[u8]) -> Option<Self> {
        Some(match kind {
            FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck | FrameKind::LinkNack => return None,
            FrameKind::Hello => {
                let hello = Hello::read(body)?;
                Self::Hello {
                    node: hello.node.0,
                    port: hello.port.0,
                    plane: hello.plane.0,
                    requests_answer: hello.requests_answer,
                    frame_bytes_max: hello.frame_bytes_max,
                    incarnation: hello.incarnation.0,
                    received_incarnation: hello.received_incarnation.0,
                    options: hello.options,
                }
            }
            FrameKind::Heartbeat => {
                let Heartbeat { number, received_number, state, intervals, digest } = Heartbeat::read(body)?;
                Self::Heartbeat { number, received_number, state: state.name(), intervals, digest }
            }
            FrameKind::Report => {
                let reports = LinkReport::read_all(body)?;
                Self::Report { reports: reports.into_iter().map(MemberLinks::of).collect() }
            }
            FrameKind::Credit => Self::Credit { requests_answer: *body.first()? == 1 },
            FrameKind::LinkInit => Self::Init { number: numbering(body)? },
            FrameKind::LinkInitEcho => Self::Echo { number: numbering(body)? },
            FrameKind::Pause => Self::Pause { quanta: pause_quanta(body)? },
        })
    }
}
