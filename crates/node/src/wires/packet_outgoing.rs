//! Frames committed to a packet socket that the kernel has not taken yet.

use super::FRAME_BYTES_MAX;
use super::packet_socket::{BATCH, FrameBuffer};

/// Frames that wait for the kernel to take them.
pub(super) const SEND_FRAMES_MAX: usize = 2 * BATCH;

/// Frames committed and not yet taken by the kernel, oldest first from `first`.
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
    /// How many frames wait.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether there is no room for another one.
    pub(super) const fn is_full(&self) -> bool {
        self.count == SEND_FRAMES_MAX
    }

    /// Room for the next frame.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        let place = (self.first + self.count) % SEND_FRAMES_MAX;
        (self.count < SEND_FRAMES_MAX).then(|| &mut self.buffers[place][..])
    }

    /// The frame in the room waits from now on.
    pub(super) fn push(&mut self, length: usize) {
        self.lengths[(self.first + self.count) % SEND_FRAMES_MAX] = length;
        self.count += 1;
    }

    /// All that wait, oldest first.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|step| {
            let place = (self.first + step) % SEND_FRAMES_MAX;
            &self.buffers[place][..self.lengths[place]]
        })
    }

    /// The oldest ones are gone.
    pub(super) fn forget(&mut self, frames: usize) {
        let frames = frames.min(self.count);
        self.first = (self.first + frames) % SEND_FRAMES_MAX;
        self.count -= frames;
    }
}
