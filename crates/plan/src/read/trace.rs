//! Traces of traffic: time, source, destination, size and kind of each operation, as comma-separated values.
//!
//! ```text
//! time, source, destination, bytes, kind
//! 0ns,  n0,     n1,          4KiB,  put
//! 1us,  n1,     n0,          64,    store
//! ```
//!
//! The first line names the columns. A time without a unit is in nanoseconds and a size without one in bytes, as other
//! tools write them. Lines may have any order of times. Empty lines, and lines that begin with `#`, are skipped.
//!
//! This file reads traces. It moves no data.

use rackloom_protocol::{MemberRole, NodeId};

use crate::model::plan::Plan;
use crate::read::mistake::{Complaint, Mistake, PlanError, Position, Source, nearest, quoted};
use crate::setting::named_value::named_values;
use crate::setting::quantity::{bytes, nanoseconds, whole};

const COLUMNS: [&str; 5] = ["time", "source", "destination", "bytes", "kind"];
/// A file with more mistakes is probably no trace.
const MISTAKES_MAX: usize = 20;
const BYTES_MAX: u64 = 1 << 30;
const FETCH_ADD_BYTES: u64 = 8;

named_values! {
    /// Operation of a line of a trace.
    pub enum TraceKind {
        /// The source writes to the destination, which counts it. For any size.
        #[default]
        Put = "put",
        /// The source writes to the destination in one acknowledged store.
        Store = "store",
        /// The source reads from the destination in one load.
        Load = "load",
        /// The source reads from the destination. For large sizes.
        Get = "get",
        /// The source adds one to a word of the destination.
        FetchAdd = "fetch-add",
    }
}

/// Describes one line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Start time, counted from the moment at which all nodes are connected, in nanoseconds.
    pub at_ns: u64,
    /// Node that performs the operation.
    pub source: NodeId,
    /// Node whose memory is accessed.
    pub destination: NodeId,
    /// Number of bytes.
    pub bytes: u64,
    /// Kind of operation.
    pub kind: TraceKind,
}

/// Reads a trace. `origin` is the name of the file in messages. Returns lines in the order of their times.
///
/// # Errors
/// Returns the mistakes of the text, with line, column and hint. If there are more than twenty, returns the first twenty.
pub fn read(text: &str, origin: &str, plan: &Plan) -> Result<Vec<TraceLine>, PlanError> {
    let file = Source::new(origin, text);
    let mut mistakes = Vec::new();
    let mut lines = Vec::new();
    let mut has_columns = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let read = if has_columns {
            one(number, line, plan).map(|line| lines.push(line))
        } else {
            columns(number, line)
        };
        has_columns = true;
        mistakes.extend(read.err().map(|(position, complaint)| file.mistake(Some(position), complaint)));
        if mistakes.len() == MISTAKES_MAX {
            break;
        }
    }
    if lines.is_empty() && mistakes.is_empty() {
        mistakes.push(nothing(&file));
    }
    if !mistakes.is_empty() {
        return Err(file.error(mistakes));
    }
    lines.sort_by_key(|line| line.at_ns);
    Ok(lines)
}

fn nothing(file: &Source<'_>) -> Mistake {
    let hint = format!("the first line is `{}`, and each further line is one operation", COLUMNS.join(","));
    file.mistake(None, Complaint::about("the trace has no line that does anything").hint(hint))
}

type MistakeAt = (Position, Complaint);

/// Returns the values of a line with their positions, without the blanks around them.
fn values(number: u32, line: &str) -> Vec<(Position, &str)> {
    let mut column = 1;
    let position = |value: &str, column: usize| {
        let blanks = value.chars().take_while(|character| character.is_whitespace()).count();
        let value = value.trim();
        let length = value.chars().count().max(1) as u32;
        Position { line: number, column: (column + blanks) as u32, length }
    };
    let mut values = Vec::new();
    for value in line.split(',') {
        values.push((position(value, column), value.trim()));
        column += value.chars().count() + 1;
    }
    values
}

fn columns(number: u32, line: &str) -> Result<(), MistakeAt> {
    let found = values(number, line);
    for ((position, value), expected) in found.iter().zip(COLUMNS) {
        if *value != expected {
            let message = format!("{} is not the column `{expected}`", quoted(value));
            let hint = format!("the first line is `{}`", COLUMNS.join(","));
            return Err((*position, Complaint::about(message).hint(hint)));
        }
    }
    five(number, line, found.len())
}

fn five(number: u32, line: &str, found: usize) -> Result<(), MistakeAt> {
    if found == COLUMNS.len() {
        return Ok(());
    }
    let position = Position { line: number, column: 1, length: line.chars().count().max(1) as u32 };
    let message = format!("a line has {} values, found {found}", COLUMNS.len());
    Err((position, Complaint::about(message).hint(format!("write `{}`", COLUMNS.join(",")))))
}

fn one(number: u32, line: &str, plan: &Plan) -> Result<TraceLine, MistakeAt> {
    let found = values(number, line);
    five(number, line, found.len())?;
    let at = |index: usize| found[index];
    let positions: Vec<Position> = found.iter().map(|(position, _)| *position).collect();
    let read = |index: usize| {
        let position = positions[index];
        move |complaint: Complaint| (position, complaint.at(COLUMNS[index]))
    };
    let is_bare = |text: &str| !text.is_empty() && text.chars().all(|character| character.is_ascii_digit());
    let at_ns = if is_bare(at(0).1) { whole(at(0).1) } else { nanoseconds(at(0).1) }.map_err(read(0))?;
    let source = node(plan, at(1).1).map_err(read(1))?;
    let destination = node(plan, at(2).1).map_err(read(2))?;
    let bytes = if is_bare(at(3).1) { whole(at(3).1) } else { bytes(at(3).1) }.map_err(read(3))?;
    let kind = kind(at(4).1).map_err(read(4))?;
    if source == destination {
        let message = format!("{} moves bytes to itself, which no fabric sees", quoted(at(2).1));
        return Err(read(2)(Complaint::about(message).hint("name another node")));
    }
    sizes(kind, bytes, plan).map_err(read(3))?;
    Ok(TraceLine { at_ns, source, destination, bytes, kind })
}

fn node(plan: &Plan, name: &str) -> Result<NodeId, Complaint> {
    let known = (0_u16..).zip(&plan.members).find(|(_, member)| member.name == name);
    match known {
        Some((number, member)) if member.role == MemberRole::Endpoint => Ok(NodeId(number)),
        Some(_) => Err(Complaint::about(format!("{} is a switch, which has no memory", quoted(name)))
            .hint("name a node")),
        None => {
            let names = plan.members.iter().map(|member| member.name.as_str());
            let hint = match nearest(name, names.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "the rack has {} members, the first of them {}",
                    plan.members.len(),
                    names.take(4).collect::<Vec<_>>().join(", ")
                ),
            };
            Err(Complaint::about(format!("the rack has no node {}", quoted(name))).hint(hint))
        }
    }
}

fn kind(name: &str) -> Result<TraceKind, Complaint> {
    TraceKind::from_name(name).ok_or_else(|| {
        let hint = format!("write one of {}", TraceKind::NAMES.join(", "));
        Complaint::about(format!("{} is nothing that a node does", quoted(name))).hint(hint)
    })
}

/// Checks that an operation of this kind can move this number of bytes.
fn sizes(kind: TraceKind, bytes: u64, plan: &Plan) -> Result<(), Complaint> {
    let straight = u64::from(plan.settings.rdma_threshold_bytes);
    let (least, most, hint) = match kind {
        TraceKind::Put | TraceKind::Get if bytes == 0 => {
            (1, BYTES_MAX, "leave the line out, or write 1 byte at least".to_owned())
        }
        TraceKind::Put | TraceKind::Get => (1, BYTES_MAX, "split it into several lines".to_owned()),
        TraceKind::Store => (1, straight, "write `put` for more".to_owned()),
        TraceKind::Load => (1, straight, "write `get` for more".to_owned()),
        TraceKind::FetchAdd => (FETCH_ADD_BYTES, FETCH_ADD_BYTES, format!("write {FETCH_ADD_BYTES}")),
    };
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    let message = match (least, most) {
        (least, most) if least == most => format!("a {kind} moves {least} bytes, not {bytes}"),
        (least, most) => format!("a {kind} moves {least} to {most} bytes, not {bytes}"),
    };
    Err(Complaint::about(message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMN_LINE: &str = "time,source,destination,bytes,kind\n";

    fn trace(text: &str) -> Result<Vec<TraceLine>, PlanError> {
        let plan = Plan::parse("name: r\nshape: {star: {nodes: 4}}\n", "rack").unwrap();
        read(text, "trace.csv", &plan)
    }

    #[test]
    fn lines_are_read_with_and_without_units_and_come_in_the_order_of_their_times() {
        let text = format!(
            "# made by hand\n{COLUMN_LINE}\n1.5us, n1, n0, 4KiB, put\n20,n0,n3,64,store\n0ns,n2,n1,8,fetch-add\n"
        );
        let lines = trace(&text).unwrap();
        let line = |at_ns, source, destination, bytes, kind| TraceLine {
            at_ns,
            source: NodeId(source),
            destination: NodeId(destination),
            bytes,
            kind,
        };
        let expected = [
            line(0, 2, 1, 8, TraceKind::FetchAdd),
            line(20, 0, 3, 64, TraceKind::Store),
            line(1_500, 1, 0, 4_096, TraceKind::Put),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn every_bad_line_is_reported_with_line_and_column() {
        for (line, position, words) in [
            ("5,n0,n1,64", (2, 1), "a line has 5 values, found 4"),
            ("5,n0,n1,64,put,now", (2, 1), "found 6"),
            ("soon,n0,n1,64,put", (2, 1), "`time`: `soon`"),
            ("5, n0, m1, 64, put", (2, 8), "no node `m1`"),
            ("5,s0,n1,64,put", (2, 3), "a switch"),
            ("5,n0,n0,64,put", (2, 6), "to itself"),
            ("5,n0,n1,64XB,put", (2, 9), "`bytes`"),
            ("5,n0,n1,0,put", (2, 9), "not 0"),
            ("5,n0,n1,0,fetch-add", (2, 9), "moves 8 bytes"),
            ("5,n0,n1,5000,store", (2, 9), "1 to 4096 bytes"),
            ("5,n0,n1,4,fetch-add", (2, 9), "moves 8 bytes"),
            ("5,n0,n1,64,push", (2, 12), "`push`"),
        ] {
            let error = trace(&format!("{COLUMN_LINE}{line}\n")).unwrap_err();
            let [mistake] = &error.mistakes[..] else { panic!("{error}") };
            assert_eq!((mistake.line, mistake.column), position, "{error}");
            assert!(mistake.message.contains(words), "{error}");
            assert!(!mistake.hint.is_empty() && mistake.snippet.is_some());
        }
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_without_a_flood() {
        assert!(trace("a,b\n").unwrap_err().to_string().contains("not the column `time`"));
        assert!(trace("").unwrap_err().to_string().contains("no line"));
        assert!(trace(COLUMN_LINE).unwrap_err().to_string().contains("no line"));
        let flood = format!("{COLUMN_LINE}{}", "x\n".repeat(1_000));
        assert_eq!(trace(&flood).unwrap_err().mistakes.len(), MISTAKES_MAX);
    }
}
