//! Captures of a simulated rack: one file per link, for both of its ends.

use std::io;

use rackloom_capture::{Heading, comment};
use rackloom_plan::Plan;
use rackloom_plan::impair::{Direction, Verdict};
use rackloom_protocol::{DropReason, Instant};
use rackloom_simulator::FrameObserver;

use rackloom_runtime::capture::{CaptureFiles, CaptureWriter, FrameSink, WhenFull};

/// Capture sinks of all links.
pub(crate) struct SimulatedLinks {
    sinks: Vec<FrameSink>,
    headings: Vec<Heading>,
    /// Dropped last: the drop writes all frames to the disk.
    _writer: CaptureWriter,
}

impl SimulatedLinks {
    /// Opens one part per link.
    pub(crate) fn begin(files: &CaptureFiles, plan: &Plan) -> io::Result<Self> {
        let headings: Vec<_> =
            (0..plan.links.len()).filter_map(|edge| Heading::of(plan, edge as u16)).collect();
        let (writer, sinks) = CaptureWriter::begin(files, 0, &headings, WhenFull::Wait)?;
        Ok(Self { sinks, headings, _writer: writer })
    }

    /// Records a frame in `direction` that the receiver did not get or did not use.
    fn write_unused(
        &self,
        now: Instant,
        edge: u16,
        direction: Direction,
        frame: &[u8],
        reason: impl FnOnce(&str) -> String,
    ) {
        let receiver = Heading::interface(direction) ^ 1;
        let index = usize::from(edge);
        if let (Some(sink), Some(heading)) = (self.sinks.get(index), self.headings.get(index)) {
            sink.write(|to| to.not_used(now, receiver, frame, reason(&heading.ends[receiver as usize])));
        }
    }
}

impl FrameObserver for SimulatedLinks {
    fn sent(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], verdict: &Verdict) {
        if let Some(sink) = self.sinks.get(usize::from(edge)) {
            sink.write(|to| to.sent(now, Heading::interface(direction), frame, verdict));
        }
    }

    fn not_used(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], reason: DropReason) {
        self.write_unused(now, edge, direction, frame, |end| comment::refused(end, reason));
    }

    fn lost(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], reason: &str) {
        self.write_unused(now, edge, direction, frame, |_| comment::lost(reason));
    }
}
