//! A capture of one direction of a link, made by a run and read back as any reader of pcapng would read it.
//!
//! The counts of an experiment come from the bytes of the file: payload from the operations in the frames, time from the
//! timestamps. The simulator's own counters are not used.

use std::sync::{Arc, Mutex, PoisonError};

use rackloom_capture::{Heading, Reader, Recorder, describe};
use rackloom_plan::impair::{Direction, Verdict};
use rackloom_protocol::{DropReason, Instant};
use rackloom_simulator::FrameObserver;

use crate::stage::Stage;

/// Largest capture, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// A frame of a capture that carries operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataFrame {
    /// Bytes of the frame as captured: Ethernet header included, frame check excluded.
    pub(crate) bytes: u64,
    /// Payload of its stores.
    pub(crate) payload_bytes: u64,
    /// From this frame to the next one of the same end, in nanoseconds; `None` for the last one.
    pub(crate) to_next_ns: Option<u64>,
}

/// A capture that is being written.
pub(crate) struct Capture(Arc<Mutex<Recorder>>);

/// Writes the frames that leave one end of a link.
struct LinkCapture {
    recorder: Arc<Mutex<Recorder>>,
    edge: u16,
}

impl FrameObserver for LinkCapture {
    fn sent(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], verdict: &Verdict) {
        if (edge, direction) == (self.edge, Direction::Forward) {
            self.recorder.lock().unwrap_or_else(PoisonError::into_inner).sent(
                now,
                Heading::interface(direction),
                frame,
                verdict,
            );
        }
    }
    fn not_used(&mut self, _: Instant, _: u16, _: Direction, _: &[u8], _: DropReason) {}
    fn lost(&mut self, _: Instant, _: u16, _: Direction, _: &[u8], _: &str) {}
}

impl Capture {
    /// Captures the first direction of this link from now on.
    pub(crate) fn begin(stage: &mut Stage, link: &str) -> Result<Self, String> {
        let edge = stage.edge(link)?;
        let heading =
            Heading::of(stage.plan(), edge).ok_or_else(|| format!("the rack has no link {link}"))?;
        let recorder = Arc::new(Mutex::new(Recorder::new(&heading, BYTES_MAX)));
        stage.simulation.observe_frames(LinkCapture { recorder: Arc::clone(&recorder), edge });
        Ok(Self(recorder))
    }

    /// Returns the frames with operations, read from the file's bytes.
    pub(crate) fn data_frames(&self) -> Result<Vec<DataFrame>, String> {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = recorder.take(Vec::new());
        if recorder.is_full() {
            return Err(format!("the capture has more than {BYTES_MAX} bytes"));
        }
        let mut reader = Reader::new(file.as_slice());
        let mut frames: Vec<DataFrame> = Vec::new();
        // A frame of another kind takes the link between two data frames, so each frame closes the one before it.
        let mut open: Option<u64> = None;
        while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
            if let (Some(since_ns), Some(last)) = (open.take(), frames.last_mut()) {
                last.to_next_ns = Some(record.timestamp_ns - since_ns);
            }
            let described = describe(record.frame);
            let stores = described.operations.iter().filter(|operation| operation.op == "store");
            let payload_bytes = stores.filter_map(|operation| operation.length).sum();
            if payload_bytes > 0 {
                frames.push(DataFrame { bytes: record.frame.len() as u64, payload_bytes, to_next_ns: None });
                open = Some(record.timestamp_ns);
            }
        }
        Ok(frames)
    }
}
