//! Frames that were committed to a packet socket and that the kernel has not accepted yet.

use super::socket::{BATCH, FrameBuffer};
use crate::wires::FRAME_BYTES_MAX;

/// Number of frames that may wait for the kernel.
pub(super) const SEND_FRAMES_MAX: usize = 2 * BATCH;

/// Frames committed and not yet accepted by the kernel, oldest first from `first`.
#[derive(Debug)]
pub(super) struct Outgoing {
    buffers: Vec<FrameBuffer>,
    lengths: [usize; SEND_FRAMES_MAX],
    first: usize,
    count: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        let buffers = (0..SEND_FRAMES_MAX).map(|_| Box::new([0; FRAME_BYTES_MAX])).collect();
        Self { buffers, lengths: [0; SEND_FRAMES_MAX], first: 0, count: 0 }
    }
}

impl Outgoing {
    /// Returns the number of waiting frames.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether there is no space for another frame.
    pub(super) const fn is_full(&self) -> bool {
        self.count == SEND_FRAMES_MAX
    }

    /// Returns space for the next frame, or `None` if the queue is full.
    pub(super) fn slot(&mut self) -> Option<&mut [u8]> {
        let index = (self.first + self.count) % SEND_FRAMES_MAX;
        (self.count < SEND_FRAMES_MAX).then(|| &mut self.buffers[index][..])
    }

    /// Enqueues the frame in the space that `slot` returned.
    pub(super) fn push(&mut self, length: usize) {
        self.lengths[(self.first + self.count) % SEND_FRAMES_MAX] = length;
        self.count += 1;
    }

    /// Returns all waiting frames, oldest first.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|step| {
            let index = (self.first + step) % SEND_FRAMES_MAX;
            &self.buffers[index][..self.lengths[index]]
        })
    }

    /// Removes the oldest `frames` frames.
    pub(super) fn forget(&mut self, frames: usize) {
        let frames = frames.min(self.count);
        self.first = (self.first + frames) % SEND_FRAMES_MAX;
        self.count -= frames;
    }
}
