//! Limits the reads of awaited words on a device, because each of them waits for the device.

use rackloom_protocol::Instant;

/// Interval between reads of all awaited words on devices, in nanoseconds.
const INTERVAL_NS: u64 = 10_000;

/// Time of the next reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceWords {
    due: Instant,
}

impl DeviceWords {
    /// Returns `true` if the words may be read now.
    pub(crate) fn are_due(self, now: Instant) -> bool {
        now >= self.due
    }

    /// Records that at least one of the words was read.
    pub(crate) fn note_reads(&mut self, now: Instant) {
        self.due = now + INTERVAL_NS;
    }
}
