//! Notices about faults. A seat sends them to the supervisor over its control socket.
//!
//! [`rackloom::seat::FaultPlayer`] performs the faults, here and in the library.

use std::io;

use rackloom::seat::{FaultLine, FaultNotices};
use rackloom_control::notice::Notice;
use rackloom_jobs::report::EventRecord;

use crate::channel::seat::Channel;

/// Sender of notices about faults.
pub(super) struct Notices<'a>(pub(super) &'a mut Channel);

impl FaultNotices for Notices<'_> {
    fn fault(&mut self, line: FaultLine<'_>) -> io::Result<()> {
        let record = record(line);
        tracing::info!(at_ns = record.at_ns, "fault: {}", record.text);
        self.0.send(&Notice::Fault(record))
    }

    fn set_off(&mut self, event: usize) -> io::Result<()> {
        self.0.send(&Notice::SetOff { event })
    }

    fn pausing(&mut self, for_ns: u64) -> io::Result<()> {
        self.0.send(&Notice::Pausing { for_ns })
    }

    fn returning(&mut self, after_ns: u64, ends: FaultLine<'_>) -> io::Result<()> {
        self.0.send(&Notice::Returning { after_ns, ends: record(ends) })
    }

    fn dying(&mut self) -> io::Result<()> {
        self.0.send(&Notice::Dying)
    }
}

fn record(line: FaultLine<'_>) -> EventRecord {
    EventRecord::of_fault(line.at, line.member, line.number, line.time, line.event, line.begins)
}
