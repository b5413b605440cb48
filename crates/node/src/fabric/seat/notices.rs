//! Notices of a taken seat to its supervisor. Sending one never blocks.
//!
//! The thread that polls the node sends notices about faults, and the seat's control thread answers orders, on one socket. A notice
//! that the full socket does not take is kept, up to a bound, and is sent before the next notice.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use rackloom_control::notice::Notice;
use rackloom_control::report::EventRecord;
use rackloom_plan::Plan;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

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

    /// Sends a notice, or keeps it while the socket is full. A notice beyond the bound is dropped.
    pub(in crate::fabric) fn send(&self, notice: &Notice) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_BYTES_MAX {
            serde_json::to_writer(&mut *waiting, notice)?;
            waiting.push(b'\n');
        }
        self.send_waiting(&mut waiting)
    }

    /// Send what waits. Returns whether nothing waits any more.
    pub(in crate::fabric) fn flush(&self) -> io::Result<bool> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_waiting(&mut waiting)?;
        Ok(waiting.is_empty())
    }

    fn send_waiting(&self, waiting: &mut Vec<u8>) -> io::Result<()> {
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
        self.send(&Notice::Fault(record(line)))
    }

    fn set_off(&mut self, event: usize) -> io::Result<()> {
        self.send(&Notice::SetOff { event })
    }

    fn pausing(&mut self, for_ns: u64) -> io::Result<()> {
        self.send(&Notice::Pausing { for_ns })
    }

    fn dying(&mut self) -> io::Result<()> {
        self.send(&Notice::Dying)
    }

    fn returning(&mut self, after_ns: u64, ends: FaultLine<'_>) -> io::Result<()> {
        self.send(&Notice::Returning { after_ns, ends: record(ends) })
    }
}

/// Returns the event as a line of the report (`docs/cli.md`).
fn record(line: FaultLine<'_>) -> EventRecord {
    EventRecord::of_fault(line.at, line.member, line.number, line.time, line.event, line.begins)
}

/// Returns the notice that a fault script could not be read for this seat's plan.
pub(in crate::fabric) fn unplayed(plan: &Plan, member: usize, at_ns: u64, reason: &str) -> Notice {
    let name = plan.members.get(member).map_or("", |member| member.name.as_str());
    Notice::Happened(EventRecord {
        at_ns,
        member: name.to_owned(),
        kind: "fault".to_owned(),
        text: format!("the faults are not played here: {reason}"),
        fields: BTreeMap::new(),
    })
}
