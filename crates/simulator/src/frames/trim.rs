//! Giving up buffers that are not needed any more.
//!
//! Free buffers are a stack: the last one freed is the first taken. So the buffers that were not reached between two calls of
//! `trim` were not needed, and giving them up costs nothing as long as the load stays the same. Buffers that stay move
//! to the front, so that the frames behind them can go as well.

use super::{FrameSlab, LARGE};

/// Free buffers of each kind that stay in any case.
const BUFFERS_KEPT: usize = 64;

impl FrameSlab {
    /// Gives up the buffers that were not needed since the last call.
    pub(crate) fn trim(&mut self) {
        for kind in 0..=LARGE {
            let idle = self.unused[kind].saturating_sub(BUFFERS_KEPT);
            if idle > 0 {
                // The first frames stay, so that the last ones can go altogether.
                self.free[kind].sort_unstable_by(|one, other| other.cmp(one));
                for index in self.free[kind].drain(..idle) {
                    self.frames[index as usize].buffer = Box::default();
                    self.bare.push(index);
                }
                self.free[kind].shrink_to(2 * self.free[kind].len());
            }
            self.unused[kind] = self.free[kind].len();
        }
        self.move_to_the_front();
        self.cut_bare_tail();
    }

    /// Exchanges free frames that have a buffer with frames in front of them that have none. A free frame is not
    /// referred to by number.
    fn move_to_the_front(&mut self) {
        self.bare.sort_unstable();
        let mut slots = self.bare.iter_mut().peekable();
        for free in self.free.iter_mut().flatten() {
            if let Some(slot) = slots.next_if(|slot| **slot < *free) {
                self.frames.swap(*slot as usize, *free as usize);
                std::mem::swap(slot, free);
            }
        }
    }

    /// Removes the last frames if they have no buffer.
    fn cut_bare_tail(&mut self) {
        let is_bare = |frame: &super::Frame| frame.is_free && frame.buffer.is_empty();
        let length = self.frames.iter().rposition(|frame| !is_bare(frame)).map_or(0, |last| last + 1);
        if length < self.frames.len() {
            self.frames.truncate(length);
            self.frames.shrink_to(2 * length);
            self.bare.retain(|index| (*index as usize) < length);
            self.bare.shrink_to_fit();
        }
    }

    /// Returns the number of frames, used or not.
    pub(crate) const fn len(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rackloom_plan::PayloadMode;

    use super::*;
    use crate::ids::ChannelId;
    use crate::memory::payload::PayloadTable;

    #[test]
    fn unused_buffers_are_freed_and_allocated_again_on_demand() {
        let mut frames = FrameSlab::new(4_096, Arc::new(PayloadTable::new(PayloadMode::Full, 1)));
        let channel = ChannelId(1);
        let allocate = |frames: &mut FrameSlab, count: usize| -> Vec<_> {
            let written: Vec<_> = (0..count).map(|_| frames.take(channel)).collect();
            written.into_iter().map(|id| frames.seal(id, 100, 0)).collect()
        };
        let many = allocate(&mut frames, 1_000);
        frames.trim();
        assert_eq!(
            frames.len(),
            2_000,
            "all were needed: a large buffer to write in, a small one to stay in"
        );
        many.iter().for_each(|id| frames.release(*id));
        frames.trim();
        assert_eq!(frames.len(), 2_000, "until now");
        let few = allocate(&mut frames, 10);
        frames.trim();
        let buffers =
            |frames: &FrameSlab| frames.frames.iter().filter(|frame| !frame.buffer.is_empty()).count();
        assert!(buffers(&frames) <= 2 * BUFFERS_KEPT + 20, "{}", buffers(&frames));
        few.iter().for_each(|id| frames.release(*id));
        frames.trim();
        // The small buffers were all made behind the large ones.
        assert!(frames.len() <= 2 * BUFFERS_KEPT + 20, "{}", frames.len());
        let again = allocate(&mut frames, 1_000);
        assert!(again.iter().all(|id| frames.bytes(*id).len() == 100));
        let distinct: std::collections::BTreeSet<_> = again.iter().map(|id| id.0).collect();
        assert_eq!(distinct.len(), 1_000);
    }
}
