//! Frames committed to a datagram socket, one after the other, and the runs of them that are sent as one buffer.
//!
//! The kernel cuts one large buffer into datagrams of one length, of which the last may be shorter. Frames therefore lie in one buffer without gaps.
//! A run consists of consecutive frames of one length, and may end with a shorter one. A large transfer then costs little more than a small one.

use std::collections::VecDeque;
use std::ops::Range;

use crate::wires::FRAME_BYTES_MAX;

/// Space for frames that have not been sent, in bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// Limits of what the kernel cuts at once: payload of one large datagram in bytes, and number of pieces.
const RUN_BYTES_MAX: usize = 65_000;
const RUN_FRAMES_MAX: usize = 64;

/// Frames that are sent as one buffer and received as that many datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Range of their bytes in the buffer.
    pub(super) bytes: Range<usize>,
    /// Number of frames.
    pub(super) frames: usize,
    /// Length of each frame except the last, in bytes.
    pub(super) frame_bytes: usize,
}

/// Frames committed and not yet accepted by the kernel.
#[derive(Debug)]
pub(super) struct Outgoing {
    buffer: Box<[u8]>,
    lengths: VecDeque<usize>,
    /// Offset of the first frame, and offset at which the next one will begin.
    begin: usize,
    end: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        // The kernel zeroes each page on first use.
        Self { buffer: vec![0; BUFFER_BYTES].into(), lengths: VecDeque::new(), begin: 0, end: 0 }
    }
}

impl Outgoing {
    /// Returns the number of waiting frames.
    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of waiting bytes.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.end - self.begin
    }

    /// Returns whether there is no space for another frame at the end of the buffer.
    pub(super) const fn is_full(&self) -> bool {
        self.end + FRAME_BYTES_MAX > BUFFER_BYTES
    }

    /// Returns space for the next frame, or `None` if the buffer is full.
    pub(super) fn slot(&mut self) -> Option<&mut [u8]> {
        self.buffer.get_mut(self.end..self.end + FRAME_BYTES_MAX)
    }

    /// Enqueues the frame in the space that `slot` returned.
    pub(super) fn push(&mut self, length: usize) {
        self.lengths.push_back(length);
        self.end += length;
    }

    /// Returns the bytes of a run.
    pub(super) fn bytes(&self, run: &Run) -> &[u8] {
        &self.buffer[run.bytes.clone()]
    }

    /// Returns the waiting runs, oldest first, of at most `frames_max` frames each.
    pub(super) fn runs(&self, frames_max: usize) -> impl Iterator<Item = Run> {
        let frames_max = frames_max.clamp(1, RUN_FRAMES_MAX);
        let (mut next, mut at) = (0, self.begin);
        std::iter::from_fn(move || {
            let frame_bytes = *self.lengths.get(next)?;
            let (begin, first) = (at, next);
            (next, at) = (next + 1, at + frame_bytes);
            while let Some(&length) = self.lengths.get(next)
                && length <= frame_bytes
                && next - first < frames_max
                && at + length - begin <= RUN_BYTES_MAX
            {
                (next, at) = (next + 1, at + length);
                if length < frame_bytes {
                    break;
                }
            }
            Some(Run { bytes: begin..at, frames: next - first, frame_bytes })
        })
    }

    /// Removes the oldest `frames` frames.
    pub(super) fn forget(&mut self, frames: usize) {
        let bytes: usize = self.lengths.drain(..frames.min(self.lengths.len())).sum();
        self.begin += bytes;
        if self.lengths.is_empty() {
            (self.begin, self.end) = (0, 0);
        } else if self.is_full() {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(lengths: &[usize]) -> Outgoing {
        let mut outgoing = Outgoing::default();
        lengths.iter().for_each(|length| outgoing.push(*length));
        outgoing
    }

    fn runs(lengths: &[usize], frames_max: usize) -> Vec<(usize, usize)> {
        let outgoing = outgoing(lengths);
        let runs: Vec<_> = outgoing.runs(frames_max).collect();
        assert_eq!(runs.iter().map(|run| run.bytes.len()).sum::<usize>(), lengths.iter().sum::<usize>());
        runs.iter().map(|run| (run.frames, run.frame_bytes)).collect()
    }

    #[test]
    fn a_run_ends_with_a_shorter_frame_and_before_a_longer_one() {
        assert_eq!(runs(&[], 64), []);
        assert_eq!(runs(&[100, 100, 60, 60, 100], 64), [(3, 100), (1, 60), (1, 100)]);
        assert_eq!(runs(&[60, 100, 100, 100], 64), [(1, 60), (3, 100)]);
        assert_eq!(runs(&[100, 60, 60], 64), [(2, 100), (1, 60)]);
    }

    #[test]
    fn a_run_has_no_more_frames_and_bytes_than_the_kernel_cuts() {
        assert_eq!(runs(&[100; 130], 1000), [(64, 100), (64, 100), (2, 100)]);
        assert_eq!(runs(&[100; 3], 1), [(1, 100), (1, 100), (1, 100)]);
        assert_eq!(runs(&[9014; 8], 64), [(7, 9014), (1, 9014)]);
    }

    #[test]
    fn space_is_free_again_when_the_oldest_frames_are_sent() {
        let mut outgoing = outgoing(&[]);
        let mut pushed = 0_usize;
        while !outgoing.is_full() {
            outgoing.slot().unwrap()[..9000].fill(pushed as u8);
            outgoing.push(9000);
            pushed += 1;
        }
        outgoing.forget(pushed - 2);
        assert!(!outgoing.is_full());
        let left: Vec<_> = outgoing.runs(1).map(|run| outgoing.bytes(&run)[8999] as usize).collect();
        assert_eq!(left, [pushed - 2, pushed - 1]);
        outgoing.forget(usize::MAX);
        assert_eq!(outgoing.count(), 0);
    }
}
