//! What neighbours say to each other, as fields: Hello, heartbeat, link report, credit, link-level retry, pause.

use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::control::{Heartbeat, Hello, LinkReport, numbering, pause_quanta};
use serde::Serialize;

/// The body of a frame that is not routed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Who I am.
    Hello {
        /// Member.
        node: u16,
        /// Its port.
        port: u16,
        /// The link's plane.
        plane: u8,
        /// The sender wants to be answered.
        answer_wanted: bool,
        /// Largest frame that it takes.
        frame_bytes_max: u16,
        /// Its life.
        life: u64,
        /// The life of the neighbour that it has heard.
        heard: u64,
        /// What both must agree on.
        options: u32,
    },
    /// I live.
    Heartbeat {
        /// Counts the sender's.
        number: u32,
        /// The neighbour's last.
        heard: u32,
        /// The link's state.
        state: &'static str,
        /// Until the sender's next, at most.
        intervals: u16,
        /// Of all link reports.
        digest: u32,
    },
    /// Which links of a member are up.
    Report {
        /// The member.
        origin: u16,
        /// Its life.
        life: u64,
        /// Counts its reports.
        number: u32,
        /// Its links.
        edges: Vec<Edge>,
    },
    /// Credits freed.
    Credit {
        /// The sender wants to be answered.
        answer_wanted: bool,
    },
    /// Link-level retry: my numbers stand where the link header says.
    Init {
        /// What they are called.
        number: u32,
    },
    /// Link-level retry: I follow these numbers of yours.
    Echo {
        /// What they are called.
        number: u32,
    },
    /// Send no data of the channel for a while, or go on.
    Pause {
        /// For how long: in units of 512 bits of the link; 0 is to go on.
        quanta: u16,
    },
}

/// One link of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Its number in the plan.
    pub edge: u16,
    /// Whether it carries data.
    pub up: bool,
}

impl Control {
    /// Read a body; `None` if it is malformed, or the kind is routed or has none.
    pub(super) fn of(kind: FrameKind, body: &[u8]) -> Option<Self> {
        Some(match kind {
            FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck | FrameKind::LinkNack => return None,
            FrameKind::Hello => {
                let hello = Hello::read(body)?;
                Self::Hello {
                    node: hello.node.0,
                    port: hello.port.0,
                    plane: hello.plane.0,
                    answer_wanted: hello.answer_wanted,
                    frame_bytes_max: hello.frame_bytes_max,
                    life: hello.incarnation.0,
                    heard: hello.heard.0,
                    options: hello.options,
                }
            }
            FrameKind::Heartbeat => {
                let Heartbeat { number, heard, state, intervals, digest } = Heartbeat::read(body)?;
                Self::Heartbeat { number, heard, state: state.name(), intervals, digest }
            }
            FrameKind::Report => {
                let report = LinkReport::read(body)?;
                let edges =
                    report.edges.into_iter().map(|(edge, life)| Edge { edge, up: life.is_some() }).collect();
                let (origin, life, number) = (report.origin.0, report.incarnation.0, report.number);
                Self::Report { origin, life, number, edges }
            }
            FrameKind::Credit => Self::Credit { answer_wanted: *body.first()? == 1 },
            FrameKind::LinkInit => Self::Init { number: numbering(body)? },
            FrameKind::LinkInitEcho => Self::Echo { number: numbering(body)? },
            FrameKind::Pause => Self::Pause { quanta: pause_quanta(body)? },
        })
    }
}
