//! Notices of a taken seat to its supervisor. Sending one never blocks.
//!
//! The thread that polls the node sends notices about faults, and the attendant's thread answers orders, on one socket. What the
//! socket has no room for is kept, up to a bound, and is sent before the next notice.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use rackloom_plan::Plan;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use serde_json::{Value, json};

use crate::seat::{FaultLine, FaultNotices};

/// Most bytes that wait for a supervisor that does not read. It is stopped then; a lost answer can be requested again.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// The sending half of the control socket of a seat.
#[derive(Debug)]
pub(in crate::fabric) struct NoticeSender {
    stream: UnixStream,
    waiting: Mutex<Vec<u8>>,
}

impl NoticeSender {
    pub(in crate::fabric) const fn new(stream: UnixStream) -> Self {
        Self { stream, waiting: Mutex::new(Vec::new()) }
    }

    /// Send a notice, or keep it until there is room. A notice beyond the bound is dropped.
    pub(in crate::fabric) fn say(&self, notice: &Value) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_BYTES_MAX {
            waiting.extend_from_slice(format!("{notice}\n").as_bytes());
        }
        self.send(&mut waiting)
    }

    /// Send what waits. Returns whether nothing waits any more.
    pub(in crate::fabric) fn flush(&self) -> io::Result<bool> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(&mut waiting)?;
        Ok(waiting.is_empty())
    }

    fn send(&self, waiting: &mut Vec<u8>) -> io::Result<()> {
        let mut sent = 0;
        while sent < waiting.len() {
            match send(&self.stream, &waiting[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        waiting.drain(..sent);
        Ok(())
    }
}

impl FaultNotices for &NoticeSender {
    fn fault(&mut self, line: FaultLine<'_>) -> io::Result<()> {
        let mut notice = record(line);
        notice["notice"] = "fault".into();
        self.say(&notice)
    }

    fn set_off(&mut self, event: usize) -> io::Result<()> {
        self.say(&json!({ "notice": "set-off", "event": event }))
    }

    fn pausing(&mut self, for_ns: u64) -> io::Result<()> {
        self.say(&json!({ "notice": "pausing", "for_ns": for_ns }))
    }

    fn dying(&mut self) -> io::Result<()> {
        self.say(&json!({ "notice": "dying" }))
    }

    fn returning(&mut self, after_ns: u64, ends: FaultLine<'_>) -> io::Result<()> {
        self.say(&json!({ "notice": "returning", "after_ns": after_ns, "ends": record(ends) }))
    }
}

/// The event as a line of the report (`docs/cli.md`).
fn record(line: FaultLine<'_>) -> Value {
    let FaultLine { at, member, number, event, time, begins } = line;
    let fields: serde_json::Map<_, _> = event
        .line_fields(number, time, begins)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    json!({
        "at_ns": at.0, "member": member, "kind": "fault", "text": event.line_text(begins),
        "fields": fields,
    })
}

/// That a fault script could not be read for this seat's plan.
pub(in crate::fabric) fn unplayed(plan: &Plan, member: usize, at_ns: u64, why: &str) -> Value {
    let name = plan.members.get(member).map_or("", |member| member.name.as_str());
    json!({ "notice": "happened", "at_ns": at_ns, "member": name, "kind": "fault",
            "text": format!("the faults are not played here: {why}") })
}
