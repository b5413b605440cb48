//! Replay buffer: copies of the frames that the neighbour has not acknowledged, oldest first.
//!
//! The buffer is one block of memory, allocated with the link and used as a ring. A frame that reaches its end
//! continues at its beginning. It has space for one largest frame more than the configuration grants, so that a
//! transport acknowledgement, whose length is known only after it is written, always fits.
//!
//! If the device keeps its frames itself ([`crate::KeptFrames::keep`]), the buffer holds only their lengths, and the block
//! is not touched.
//!
//! The buffer does not interpret the bytes.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Copies of unacknowledged frames.
#[derive(Debug)]
pub struct ReplayBuffer {
    bytes: Box<[u8]>,
    frames: VecDeque<StoredFrame>,
    used: usize,
}

/// Position of a frame in the ring.
#[derive(Clone, Copy, Debug)]
struct StoredFrame {
    start: u32,
    length: u16,
    /// True if the device keeps the bytes.
    is_elsewhere: bool,
}

/// A kept frame that is to be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFrame {
    /// Length of the frame, in bytes.
    pub length: usize,
    /// Number of frames that the device has kept after this one, or `None` if the frame was copied out.
    pub behind: Option<usize>,
}

impl StoredFrame {
    const fn length(self) -> usize {
        self.length as usize
    }
}

impl ReplayBuffer {
    /// Returns an empty buffer for `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        // The pages are zeroed and get memory only when touched: a link mostly keeps far fewer bytes than it may, and
        // a larger ring would miss every cache.
        Self { bytes: alloc::vec![0; bytes].into(), frames: VecDeque::new(), used: 0 }
    }

    /// Number of frames kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if no frame is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Number of bytes kept.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Reserves space for a new frame after the others. [`ReplayBuffer::fill_last`] writes its bytes.
    pub fn reserve(&mut self, length: usize) {
        assert!(self.used + length <= self.bytes.len(), "the window is smaller than the buffer");
        let start = self.frames.back().map_or(0, |last| last.start as usize + last.length());
        let start = (start % self.bytes.len().max(1)) as u32;
        self.frames.push_back(StoredFrame { start, length: length as u16, is_elsewhere: false });
        self.used += length;
    }

    /// Writes the bytes of the newest frame.
    pub fn fill_last(&mut self, frame: &[u8]) {
        let Some(stored) = self.frames.back().copied() else { return };
        let (head, tail) = frame[..stored.length()].split_at(self.until_the_end(stored));
        self.bytes[stored.start as usize..][..head.len()].copy_from_slice(head);
        self.bytes[..tail.len()].copy_from_slice(tail);
    }

    /// Records that the device keeps the bytes of the newest frame.
    pub fn leave_last(&mut self) {
        if let Some(stored) = self.frames.back_mut() {
            stored.is_elsewhere = true;
        }
    }

    /// Copies a kept frame to `out`, unless the device keeps its bytes.
    pub fn read_kept(&self, index: usize, out: &mut [u8]) -> Option<KeptFrame> {
        let stored = *self.frames.get(index)?;
        if stored.is_elsewhere {
            return Some(KeptFrame { length: stored.length(), behind: Some(self.frames.len() - 1 - index) });
        }
        let (head, tail) = out.get_mut(..stored.length())?.split_at_mut(self.until_the_end(stored));
        head.copy_from_slice(&self.bytes[stored.start as usize..][..head.len()]);
        tail.copy_from_slice(&self.bytes[..tail.len()]);
        Some(KeptFrame { length: stored.length(), behind: None })
    }

    fn until_the_end(&self, stored: StoredFrame) -> usize {
        stored.length().min(self.bytes.len() - stored.start as usize)
    }

    /// Removes the `count` oldest frames.
    pub fn forget(&mut self, count: usize) {
        assert!(count <= self.frames.len(), "more frames are forgotten than are kept");
        let gone = self.frames.drain(..count);
        self.used -= gone.map(StoredFrame::length).sum::<usize>();
        debug_assert_eq!(self.used, self.frames.iter().copied().map(StoredFrame::length).sum::<usize>());
    }

    /// Removes all frames. Returns their number.
    pub fn clear(&mut self) -> usize {
        let count = self.frames.len();
        self.frames.clear();
        self.used = 0;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn kept_frames_are_read_unchanged_across_the_end_of_the_block() {
        let mut buffer = ReplayBuffer::new(100);
        let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
        for round in 0..50u8 {
            let frame = vec![round; 20 + usize::from(round % 13)];
            buffer.reserve(frame.len());
            buffer.fill_last(&frame);
            kept.push_back(frame);
            if kept.len() > 2 {
                buffer.forget(1);
                kept.pop_front();
            }
            assert_eq!(buffer.used(), kept.iter().map(Vec::len).sum::<usize>());
            for (index, frame) in kept.iter().enumerate() {
                let mut out = [0; 64];
                let kept_frame = buffer.read_kept(index, &mut out).expect("it is kept");
                assert_eq!(kept_frame, KeptFrame { length: frame.len(), behind: None });
                assert_eq!(&out[..kept_frame.length], &frame[..], "round {round}, frame {index}");
            }
        }
        assert_eq!(buffer.clear(), 2);
        assert!(buffer.is_empty() && buffer.used() == 0);
    }

    #[test]
    fn a_frame_kept_by_the_device_is_identified_by_the_number_of_later_ones() {
        let mut buffer = ReplayBuffer::new(100);
        for length in [20, 30, 10] {
            buffer.reserve(length);
            buffer.leave_last();
        }
        let behind = |buffer: &ReplayBuffer, index| {
            buffer.read_kept(index, &mut []).map(|kept_frame| kept_frame.behind)
        };
        assert_eq!(
            [0, 1, 2].map(|index| behind(&buffer, index)),
            [Some(Some(2)), Some(Some(1)), Some(Some(0))]
        );
        buffer.forget(1);
        assert_eq!(buffer.read_kept(0, &mut []), Some(KeptFrame { length: 30, behind: Some(1) }));
        assert_eq!((behind(&buffer, 2), buffer.used()), (None, 40));
    }
}
