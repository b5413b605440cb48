//! One line of text per frame, for captures and tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::control::{Heartbeat, Hello, LinkReport, numbering, pause_quanta};
use super::frame::{Frame, FrameKind};
use super::packed::{Operation, Operations};

/// Returns a description of a checked frame in one line.
#[must_use]
pub fn line(frame: &Frame<'_>) -> String {
    match frame.link.kind {
        FrameKind::Data | FrameKind::Ack => routed(frame),
        FrameKind::Hello => match Hello::read(frame.body()) {
            Some(hello) => format!(
                "hello from {} {} {} incarnation {:x} received {:x}",
                hello.node, hello.port, hello.plane, hello.incarnation.0, hello.received_incarnation.0
            ),
            None => String::from("hello, malformed"),
        },
        FrameKind::Heartbeat => match Heartbeat::read(frame.body()) {
            Some(heartbeat) => {
                format!(
                    "heartbeat {} received {} {}",
                    heartbeat.number,
                    heartbeat.received_number,
                    heartbeat.state.name()
                )
            }
            None => String::from("heartbeat, malformed"),
        },
        FrameKind::Report => match LinkReport::read_all(frame.body()) {
            Some(reports) => reports.iter().map(of_report).collect::<Vec<_>>().join("; "),
            None => String::from("report, malformed"),
        },
        FrameKind::Credit if frame.link.channel.0 > 0 => {
            format!("credit of {} freed {}", frame.link.channel, frame.link.freed)
        }
        FrameKind::Credit => format!("credit freed {}", frame.link.freed),
        FrameKind::LinkAck => format!("link-ack {}", frame.link.link_ack),
        FrameKind::LinkNack => format!("link-nack {}", frame.link.link_ack),
        FrameKind::LinkInit => match numbering(frame.body()) {
            Some(number) => format!("link-init {number} at {}", frame.link.sequence),
            None => String::from("link-init, malformed"),
        },
        FrameKind::LinkInitEcho => match numbering(frame.body()) {
            Some(number) => format!("link-init-echo {number}"),
            None => String::from("link-init-echo, malformed"),
        },
        FrameKind::Pause => match pause_quanta(frame.body()) {
            Some(0) => format!("resume ch{}", frame.link.channel.0),
            Some(quanta) => format!("pause ch{} {quanta} quanta", frame.link.channel.0),
            None => String::from("pause, malformed"),
        },
    }
}

fn of_report(report: &LinkReport) -> String {
    let up = report.edges.iter().filter(|(_, incarnation)| incarnation.is_some()).count();
    format!("report {} of {}: {up}/{} links up", report.number, report.origin, report.edges.len())
}

fn routed(frame: &Frame<'_>) -> String {
    let Ok(header) = frame.fabric() else { return String::from("routed, malformed") };
    let kind = if frame.link.kind == FrameKind::Data { "data" } else { "ack" };
    let mut text = format!("{kind} {}->{} {}", header.source, header.destination, header.class.name());
    if frame.link.kind == FrameKind::Data {
        let _ = write!(text, " psn {}", header.psn);
        if frame.link.channel.0 > 0 {
            let _ = write!(text, " on {}", frame.link.channel);
        }
    }
    if frame.link.is_marked {
        text.push_str(" marked");
    }
    if let Some(ack) = header.ack {
        let _ = write!(text, " acks {} psn {} op {}", ack.class.name(), ack.psn, ack.operation);
    }
    for operation in Operations::new(frame.operations()) {
        text.push_str("; ");
        match operation {
            Ok(operation) => describe(&mut text, &operation),
            Err(_) => text.push_str("malformed"),
        }
    }
    text
}

fn describe(text: &mut String, operation: &Operation<'_>) {
    let _ = match operation {
        Operation::Select { region, .. } => write!(text, "select {region}"),
        Operation::Store { offset, data } => write!(text, "store {} at {offset:#x}", data.len()),
        Operation::Load { offset, length } => write!(text, "load {length} at {offset:#x}"),
        Operation::Atomic { offset, atomic } => write!(text, "{:?} at {offset:#x}", atomic.kind),
        Operation::Signal { offset, value, counted, .. } => {
            write!(text, "signal {value} at {offset:#x} after {counted}")
        }
        Operation::Put { offset, data, total, .. } => {
            write!(text, "put {} of {total} at {offset:#x}", data.len())
        }
        Operation::Message { tag, data } => write!(text, "message {} tag {tag:#x}", data.len()),
        Operation::Offer { tag, length } => write!(text, "offer {length} tag {tag:#x}"),
        Operation::Pull { offer, length } => write!(text, "pull {length} of offer {offer}"),
        Operation::Received { operation, .. } => write!(text, "received {operation}"),
        Operation::Get { offset, length } => write!(text, "get {length} at {offset:#x}"),
        Operation::LoadReply { operation, data } => write!(text, "load-reply {operation} {}", data.len()),
        Operation::AtomicReply { operation, value } => write!(text, "atomic-reply {operation} {value}"),
        Operation::GetData { operation, position, data } => {
            write!(text, "get-data {operation} {} at {position}", data.len())
        }
        Operation::Refusal { operation, class, code } => {
            write!(text, "refusal of {} {operation} code {code}", class.name())
        }
        Operation::Void { length, .. } => write!(text, "void {length}"),
        Operation::Ack { class, psn, operation, hole, marked, bitmap } => write!(
            text,
            "ack {} psn {psn} op {operation}{}{}{}",
            class.name(),
            if *hole { " hole" } else { "" },
            if *marked { " marked" } else { "" },
            if bitmap.is_empty() { "" } else { " bitmap" }
        ),
        Operation::Grant { class, psn } => write!(text, "grant {} up to {psn}", class.name()),
    };
}
