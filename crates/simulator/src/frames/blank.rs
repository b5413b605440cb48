//! Buffer in which a short frame is read at its full length.

use std::ops::Range;

use crate::ids::FrameId;

/// Zeros, and the head and tail of the short frame that was read last.
#[derive(Debug)]
pub(super) struct Blank {
    pub(super) bytes: Box<[u8]>,
    pub(super) head: usize,
    pub(super) tail: Range<usize>,
    /// Frame whose head and tail are here.
    pub(super) of: FrameId,
}

impl Blank {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into_boxed_slice(), head: 0, tail: 0..0, of: FrameId(u32::MAX) }
    }

    /// Writes the stored bytes apart: the first `head` in front, the rest at `tail`.
    pub(super) fn write(&mut self, stored: &[u8], head: usize, tail: Range<usize>) -> &[u8] {
        if (self.head, &self.tail) != (head, &tail) {
            self.bytes[..self.head].fill(0);
            self.bytes[self.tail.clone()].fill(0);
            (self.head, self.tail) = (head, tail);
        }
        let (stored_head, stored_tail) = stored.split_at(head);
        self.bytes[..head].copy_from_slice(stored_head);
        self.bytes[self.tail.clone()].copy_from_slice(stored_tail);
        &self.bytes[..self.tail.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_out_part_of_a_frame_reads_as_zeros() {
        let mut blank = Blank::new(100);
        let stored: Vec<u8> = (1..=30).collect();
        for (head, tail) in [(10, 80..100), (25, 30..35), (5, 75..100), (30, 60..60), (10, 80..100)] {
            let whole = blank.write(&stored[..head + tail.len()], head, tail.clone());
            assert_eq!(whole.len(), tail.end);
            assert_eq!(whole[..head], stored[..head]);
            assert_eq!(whole[tail.clone()], stored[head..head + tail.len()]);
            assert!(whole[head..tail.start].iter().all(|byte| *byte == 0), "{head}, {tail:?}: {whole:?}");
        }
    }
}
