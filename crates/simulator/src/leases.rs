//! The frames that one member holds, by the numbers under which it holds them.
//!
//! A member keeps a record per number that it has ever seen, as it would for the slots of its device. So the numbers are the
//! member's own and small, the last one given back is the first to be given out, and the member's records do not grow
//! with the frames that are in flight elsewhere. Records of busier times are given up (`trim`): a rack that comes up gives each
//! of its members as many frames at once as it has members, and never again.

use rackloom_protocol::LeaseId;

use crate::ids::FrameId;

/// Number of entries for which memory is kept.
const KEPT: usize = 64;

/// The leases of one member.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Frames by lease; `None` if the lease is free.
    frames: Vec<Option<FrameId>>,
    free: Vec<LeaseId>,
}

impl Leases {
    /// Gives a frame to the member and returns its lease.
    pub(crate) fn give(&mut self, frame: FrameId) -> LeaseId {
        let lease = self.free.pop().unwrap_or(LeaseId(self.frames.len() as u32));
        match self.frames.get_mut(lease.0 as usize) {
            Some(slot) => *slot = Some(frame),
            None => self.frames.push(Some(frame)),
        }
        lease
    }

    /// Returns the frame under a lease.
    pub(crate) fn frame(&self, lease: LeaseId) -> Option<FrameId> {
        self.frames.get(lease.0 as usize).copied().flatten()
    }

    /// Takes a frame back from the member; `None` if the member does not hold it.
    pub(crate) fn take_back(&mut self, lease: LeaseId) -> Option<FrameId> {
        let frame = self.frames.get_mut(lease.0 as usize)?.take()?;
        self.free.push(lease);
        Some(frame)
    }

    /// Frees memory that a busier time has left. A member that holds no frame begins anew.
    pub(crate) fn trim(&mut self) {
        if self.free.len() == self.frames.len() && self.frames.len() > KEPT {
            *self = Self::default();
        }
    }

    /// Takes back all frames of a dead member.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = FrameId> {
        self.free.clear();
        std::mem::take(&mut self.frames).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused_and_frames_are_returned_once() {
        let mut leases = Leases::default();
        let [first, second] = [70, 80].map(|frame| leases.give(FrameId(frame)));
        assert_eq!((first, second), (LeaseId(0), LeaseId(1)));
        assert_eq!(leases.take_back(first), Some(FrameId(70)));
        assert_eq!((leases.take_back(first), leases.frame(first)), (None, None));
        assert_eq!(leases.take_back(LeaseId(9)), None);
        assert_eq!(leases.give(FrameId(90)), first);
        assert_eq!(leases.frame(first), Some(FrameId(90)));
        assert_eq!(leases.take_all().collect::<Vec<_>>(), [FrameId(90), FrameId(80)]);
        assert_eq!(leases.give(FrameId(5)), LeaseId(0), "a dead member begins anew");
    }

    #[test]
    fn memory_is_freed_when_nothing_is_held() {
        let mut leases = Leases::default();
        let held: Vec<_> = (0..1_000).map(|frame| leases.give(FrameId(frame))).collect();
        held[1..].iter().for_each(|lease| assert!(leases.take_back(*lease).is_some()));
        leases.trim();
        assert_eq!(leases.take_back(held[0]), Some(FrameId(0)), "what is held stays");
        leases.trim();
        assert_eq!((leases.frames.capacity(), leases.free.capacity()), (0, 0));
    }
}
