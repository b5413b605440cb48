//! A frame as one line: time, interface, kind, operations, sequence numbers, acks, credits, comments.
//!
//! ```text
//!        12.345678901  n0-p0 > n1-p0  data n0 to n1 request  seq 7 psn 3  [4 store r1+0x40 64B]  ack request psn 2 op 9  credits 31/28
//! ```
//!
//! Names of members come from the capture's heading; a member without a name is shown by number.

use std::fmt::{self, Display, Formatter, Write};

use crate::describe::{Control, Described, FabricFields, LinkFields, MemberLinks, OperationFields};
use crate::foreign::Datagram;
use crate::reader::Direction;

/// One line of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Time of the frame, in nanoseconds.
    pub timestamp_ns: u64,
    /// Interface that saw the frame.
    pub interface: &'a str,
    /// Direction of the frame at the interface.
    pub direction: Direction,
    /// Fields of the frame.
    pub frame: &'a Described,
    /// Datagram that carries the frame, on the udp wire.
    pub datagram: Option<Datagram<'a>>,
    /// Names by member.
    pub members: &'a [String],
    /// Comments of the capture on the frame.
    pub comments: &'a [String],
}

/// Member by name, or by number.
struct Name<'a>(&'a [String], u16);

impl Display for Name<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.0.get(usize::from(self.1)) {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "m{}", self.1),
        }
    }
}

impl Display for Line<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.timestamp_ns / 1_000_000_000, self.timestamp_ns % 1_000_000_000);
        let arrow = match self.direction {
            Direction::Outbound => '>',
            Direction::Inbound => '<',
            Direction::Unknown => '-',
        };
        write!(formatter, "{seconds:5}.{nanoseconds:09}  {} {arrow}  ", self.interface)?;
        if let Some(link) = &self.frame.link {
            self.what(formatter, link)?;
        } else {
            let Described { source_mac, destination_mac, ether_type, frame_bytes, foreign, .. } = self.frame;
            match foreign {
                Some(words) => write!(formatter, "{words}  {frame_bytes}B")?,
                None => write!(
                    formatter,
                    "{source_mac} to {destination_mac} type {ether_type:#06x} {frame_bytes}B"
                )?,
            }
        }
        if let Some(problem) = self.frame.problem {
            write!(formatter, "  ({})", if self.frame.is_ours() { problem } else { "not ours" })?;
        }
        if let Some(Datagram { source, destination, .. }) = self.datagram {
            write!(formatter, "  udp {source} to {destination}")?;
        }
        self.comments.iter().try_for_each(|comment| write!(formatter, "  # {comment}"))
    }
}

impl Line<'_> {
    fn what(&self, formatter: &mut Formatter<'_>, link: &LinkFields) -> fmt::Result {
        formatter.write_str(link.kind)?;
        if let Some(header) = &self.frame.fabric {
            self.routed(formatter, link, header)?;
        }
        if let Some(control) = &self.frame.control {
            self.control(formatter, control)?;
        }
        match link.kind {
            "link-ack" | "link-nack" => write!(formatter, " {}", link.link_ack)?,
            "link-init" => write!(formatter, " at {}", link.seq)?,
            _ => {}
        }
        write!(formatter, "  credits {}/{}", link.consumed, link.freed)
    }

    fn routed(&self, formatter: &mut Formatter<'_>, link: &LinkFields, header: &FabricFields) -> fmt::Result {
        let name = |member| Name(self.members, member);
        write!(formatter, " {} to {} {}", name(header.source), name(header.destination), header.class)?;
        if link.kind == "data" {
            write!(formatter, "  seq {} psn {}", link.seq, header.psn)?;
        }
        if header.ack_now {
            formatter.write_str(" ack-now")?;
        }
        if header.again {
            formatter.write_str(" again")?;
        }
        if let Some(demand) = header.demand {
            write!(formatter, " demand {demand}")?;
        }
        if link.marked == Some(true) {
            formatter.write_str(" marked")?;
        }
        for operation in &self.frame.operations {
            formatter.write_str("  [")?;
            describe(formatter, operation)?;
            formatter.write_char(']')?;
        }
        match &header.ack {
            Some(ack) => write!(formatter, "  ack {} psn {} op {}", ack.class, ack.psn, ack.op),
            None => Ok(()),
        }
    }

    fn control(&self, formatter: &mut Formatter<'_>, control: &Control) -> fmt::Result {
        match control {
            Control::Hello { node, port, plane, incarnation, received_incarnation, .. } => {
                let node = Name(self.members, *node);
                write!(
                    formatter,
                    " {node} port {port} plane {plane} incarnation {incarnation:x} received {received_incarnation:x}"
                )
            }
            Control::Heartbeat { number, received_number, state, .. } => {
                write!(formatter, " {number} received {received_number} {state}")
            }
            Control::Report { reports } => {
                for (index, MemberLinks { origin, number, edges, .. }) in reports.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ";" };
                    let up = edges.iter().filter(|edge| edge.up).count();
                    let origin = Name(self.members, *origin);
                    write!(formatter, "{separator} {number} of {origin}, {up} of {} links up", edges.len())?;
                }
                Ok(())
            }
            Control::Credit { requests_answer: true } => formatter.write_str(" answer requested"),
            Control::Credit { .. } => Ok(()),
            Control::Pause { quanta: 0 } => formatter.write_str(" over"),
            Control::Pause { quanta } => write!(formatter, " {quanta} quanta"),
            Control::Init { number } | Control::Echo { number } => write!(formatter, " {number}"),
        }
    }
}

fn describe(formatter: &mut Formatter<'_>, fields: &OperationFields) -> fmt::Result {
    if let Some(number) = fields.number {
        write!(formatter, "{number} ")?;
    }
    formatter.write_str(fields.op)?;
    match (fields.region, fields.offset) {
        (Some(region), Some(offset)) => write!(formatter, " r{region}+{offset:#x}")?,
        (Some(region), None) => write!(formatter, " r{region}")?,
        (None, Some(offset)) => write!(formatter, " {offset:#x}")?,
        (None, None) => {}
    }
    let numbers = [
        ("of", fields.of.map(u64::from)),
        ("tag", fields.tag),
        ("at", fields.position.map(u64::from)),
        ("value", fields.value),
        ("compare", fields.compare.filter(|_| fields.atomic == Some("compare-swap"))),
        ("budget", fields.budget),
        ("psn", fields.next_psn.map(u64::from)),
        ("op", fields.next_op.map(u64::from)),
    ];
    for word in [fields.atomic, fields.signal, fields.of_class, fields.reason].into_iter().flatten() {
        write!(formatter, " {word}")?;
    }
    for (name, number) in numbers {
        if let Some(number) = number {
            write!(formatter, " {name} {number}")?;
        }
    }
    if let Some(length) = fields.length.or(fields.width) {
        write!(formatter, " {length}B")?;
    }
    if let Some(total) = fields.total.filter(|total| Some(*total) != fields.length) {
        write!(formatter, " of {total}B")?;
    }
    if fields.hole == Some(true) {
        formatter.write_str(" hole")?;
    }
    if fields.marked == Some(true) {
        formatter.write_str(" marked")?;
    }
    fields.bitmap.as_ref().map_or(Ok(()), |bitmap| write!(formatter, " has {bitmap}"))
}
