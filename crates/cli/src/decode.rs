//! `rackloom decode`: prints the contents of a capture, frame by frame, for people and for programs.
//!
//! It reads pcapng and classic pcap, from a file or from standard input. It streams: the file may be larger than memory, and may still grow. Frames before a damaged part are
//! printed before the error.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::SocketAddr;

use rackloom_capture::foreign::{Datagram, datagram_of_ours};
use rackloom_capture::heading::members_of;
use rackloom_capture::line::Line;
use rackloom_capture::{Described, Direction, ReadError, Reader, Record, describe};
use rackloom_plan::printable;
use serde::Serialize;

use crate::arguments::DecodeArguments;
use crate::exit::Exit;
use crate::failure::{Failure, cannot_print};
use crate::terminal;

/// Name of standard input in place of a file.
const STANDARD_INPUT: &str = "-";

/// Kinds of operations that `--kind` accepts. `ack` is a kind of frame as well.
const OPERATIONS: [&str; 16] = [
    "select",
    "store",
    "load",
    "atomic",
    "signal",
    "put",
    "get",
    "message",
    "offer",
    "pull",
    "load-reply",
    "atomic-reply",
    "get-data",
    "refusal",
    "received",
    "void",
];

/// Returns the values of `--kind`: kinds of frames, then kinds of operations.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    describe::kinds().into_iter().chain(OPERATIONS)
}

/// One frame as JSON.
#[derive(Serialize)]
struct Object<'a> {
    number: u64,
    time_ns: u64,
    interface: &'a str,
    direction: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_bytes: Option<u32>,
    #[serde(flatten)]
    datagram: Option<Ends>,
    #[serde(flatten)]
    frame: &'a Described,
    comments: &'a [String],
}

/// Source and destination of a datagram.
#[derive(Serialize)]
struct Ends {
    udp_source: SocketAddr,
    udp_destination: SocketAddr,
}

/// Selection of the frames that are printed.
struct Choice<'a> {
    node: Option<&'a str>,
    kind: Option<&'a str>,
}

/// Prints a capture.
pub(crate) fn run(arguments: &DecodeArguments) -> Result<Exit, Failure> {
    let input: Box<dyn Read> = match arguments.file.as_os_str() == STANDARD_INPUT {
        true => Box::new(io::stdin().lock()),
        false => Box::new(
            File::open(&arguments.file).map_err(|error| failure_of(&ReadError::Io(error), arguments))?,
        ),
    };
    // Frames that arrive one by one are shown one by one.
    let mut output: Box<dyn Write> = match arguments.file.as_os_str() == STANDARD_INPUT {
        true => Box::new(io::stdout().lock()),
        false => Box::new(BufWriter::new(io::stdout().lock())),
    };
    let shown = show(arguments, Reader::new(BufReader::new(input)), &mut output);
    let flushed = output.flush();
    match shown.and_then(|()| flushed.map_err(PrintError::Output)) {
        Ok(()) => Ok(Exit::Pass),
        Err(PrintError::Input(error)) => Err(failure_of(&error, arguments)),
        Err(PrintError::UnknownNode(node, members)) => Err(unknown(&node, &members)),
        // `rackloom decode ...
        //
        // head` is no error.
        Err(PrintError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Pass),
        Err(PrintError::Output(error)) => Err(cannot_print(error)),
    }
}

enum PrintError {
    Input(ReadError),
    Output(io::Error),
    UnknownNode(String, Vec<String>),
}

fn show<R: io::Read>(
    arguments: &DecodeArguments,
    mut reader: Reader<R>,
    output: &mut impl Write,
) -> Result<(), PrintError> {
    let choice = Choice { node: arguments.node.as_deref(), kind: arguments.kind.as_deref() };
    let mut left = arguments.first.unwrap_or(u64::MAX);
    let (mut number, mut section, mut members) = (0, 0, Vec::new());
    'records: while left > 0 {
        let Some(record) = reader.next_record().map_err(PrintError::Input)? else { break };
        if section != record.section.number {
            section = record.section.number;
            members = members_of(&record.section.comments);
            choice.check(&members)?;
        }
        number += 1;
        let datagram = datagram_of_ours(record.frame);
        let inside = datagram.iter().flat_map(Datagram::frames);
        let itself = datagram.is_none().then_some(record.frame);
        for frame in inside.chain(itself).map(describe) {
            if choice.takes(&frame, record.interface_name(), &members) {
                let printed = match arguments.json {
                    true => print_object(number, &record, datagram, &frame, output),
                    false => print_line(&record, datagram, &frame, &members, output),
                };
                printed.map_err(PrintError::Output)?;
                left -= 1;
                if left == 0 {
                    break 'records;
                }
            }
        }
    }
    Ok(())
}

fn print_line(
    record: &Record<'_>,
    datagram: Option<Datagram<'_>>,
    frame: &Described,
    members: &[String],
    output: &mut impl Write,
) -> io::Result<()> {
    let line = Line {
        timestamp_ns: record.timestamp_ns,
        interface: record.interface_name(),
        direction: record.direction,
        frame,
        datagram,
        members,
        comments: &record.comments,
    };
    let line = line.to_string();
    let line = printable(&line);
    match terminal::output_columns() {
        Some(columns) => writeln!(output, "{}", terminal::wrap(&line, columns)),
        None => writeln!(output, "{line}"),
    }
}

fn print_object(
    number: u64,
    record: &Record<'_>,
    datagram: Option<Datagram<'_>>,
    frame: &Described,
    output: &mut impl Write,
) -> io::Result<()> {
    let is_cut = record.original_bytes as usize > record.frame.len();
    let object = Object {
        number,
        time_ns: record.timestamp_ns,
        interface: record.interface_name(),
        direction: match record.direction {
            Direction::Outbound => "outbound",
            Direction::Inbound => "inbound",
            Direction::Unknown => "unknown",
        },
        original_bytes: is_cut.then_some(record.original_bytes),
        datagram: datagram.map(|Datagram { source, destination, .. }| Ends {
            udp_source: source,
            udp_destination: destination,
        }),
        frame,
        comments: &record.comments,
    };
    serde_json::to_writer(&mut *output, &object)?;
    writeln!(output)
}

impl Choice<'_> {
    /// Checks `--node` against the members that the capture names, if it names them.
    fn check(&self, members: &[String]) -> Result<(), PrintError> {
        match self.node {
            Some(node) if !members.is_empty() && !members.iter().any(|member| member == node) => {
                Err(PrintError::UnknownNode(node.to_owned(), members.to_vec()))
            }
            _ => Ok(()),
        }
    }

    fn takes(&self, frame: &Described, interface: &str, members: &[String]) -> bool {
        self.takes_node(frame, interface, members) && self.takes_kind(frame)
    }

    fn takes_node(&self, frame: &Described, interface: &str, members: &[String]) -> bool {
        let Some(node) = self.node else { return true };
        if let Some(header) = &frame.fabric {
            let is_named = |number: u16| match members.get(usize::from(number)) {
                Some(name) => name == node,
                None => format!("m{number}") == node,
            };
            if is_named(header.source) || is_named(header.destination) {
                return true;
            }
        }
        // The name of an interface begins with its member and port.
        interface.rsplit_once("-p").is_some_and(|(member, _)| member == node)
    }

    fn takes_kind(&self, frame: &Described) -> bool {
        let Some(kind) = self.kind else { return true };
        frame.link.as_ref().is_some_and(|link| link.kind == kind)
            || frame.operations.iter().any(|operation| operation.op == kind)
    }
}

fn failure_of(error: &ReadError, arguments: &DecodeArguments) -> Failure {
    let path = match arguments.file.as_os_str() == STANDARD_INPUT {
        true => "standard input".into(),
        false => arguments.file.display().to_string(),
    };
    let location = error.offset().map_or_else(|| path.clone(), |offset| format!("{path}, byte {offset}"));
    Failure::bad_input(error.to_string()).at(location).hint(error.hint())
}

fn unknown(node: &str, members: &[String]) -> Failure {
    Failure::bad_input(format!("--node: the rack of this capture has no {node}"))
        .hint(format!("its members are {}", members.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_frame_can_be_selected() {
        assert!(rackloom_capture::describe::kinds().iter().all(|kind| kinds().any(|one| one == *kind)));
    }
}
