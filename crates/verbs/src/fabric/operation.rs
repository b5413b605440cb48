//! Operations of the fabric, and those that wait because the queue towards their peer is full.

use std::collections::{BTreeMap, VecDeque};

use rackloom::fabric::{NodeId, RemoteAddress, Slice};

/// Kinds of operations of the fabric, in the highest byte of the context.
pub(super) const SENT: u64 = 1 << 56;
pub(super) const RECEIVED: u64 = 2 << 56;
pub(super) const JOB: u64 = 3 << 56;
pub(super) const INCOMING: u64 = 4 << 56;
pub(super) const WATCH: u64 = 5 << 56;
/// Bits of the context with the number of the operation within its kind.
pub(super) const NUMBER: u64 = (1 << 56) - 1;

/// Operation of the fabric.
pub(super) enum Start {
    Send { peer: NodeId, slot: usize, length: usize },
    Receive { slot: usize },
    Watch { peer: NodeId },
    Put { source: Slice, target: RemoteAddress },
    Get { source: RemoteAddress, into: Slice },
    FetchAdd { target: RemoteAddress, add: u64 },
    CompareSwap { target: RemoteAddress, expected: u64, new: u64 },
}

impl Start {
    /// Returns the peer whose queue the operation enters, or `None`.
    const fn peer(&self) -> Option<NodeId> {
        match self {
            Self::Send { peer, .. } => Some(*peer),
            Self::Receive { .. } | Self::Watch { .. } => None,
            Self::Put { target, .. } | Self::FetchAdd { target, .. } | Self::CompareSwap { target, .. } => {
                Some(target.node)
            }
            Self::Get { source, .. } => Some(source.node),
        }
    }
}

/// Operations that found a full queue, by peer. They keep their order, and those to one peer do not wait for those to another one.
#[derive(Default)]
pub(super) struct Starts {
    by_peer: BTreeMap<Option<NodeId>, VecDeque<(Start, u64)>>,
}

impl Starts {
    /// Begins an operation, or keeps it for [`Self::begin_waiting`]. `begin` returns an operation that found a full queue.
    pub(super) fn begin(
        &mut self,
        start: Start,
        context: u64,
        begin: impl FnOnce(Start, u64) -> Option<Start>,
    ) {
        let peer = start.peer();
        if let Some(waiting) = self.by_peer.get_mut(&peer) {
            waiting.push_back((start, context));
        } else if let Some(start) = begin(start, context) {
            self.by_peer.insert(peer, VecDeque::from([(start, context)]));
        }
    }

    /// Begins the operations that wait, for each peer until its queue is full.
    pub(super) fn begin_waiting(&mut self, mut begin: impl FnMut(Start, u64) -> Option<Start>) {
        self.by_peer.retain(|_, waiting| {
            while let Some((start, context)) = waiting.pop_front() {
                if let Some(start) = begin(start, context) {
                    waiting.push_front((start, context));
                    break;
                }
            }
            !waiting.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_with_a_full_queue_delays_no_other_and_order_is_kept() {
        let mut starts = Starts::default();
        let send = |peer, slot| Start::Send { peer: NodeId(peer), slot, length: 0 };
        let mut begun = Vec::new();
        for slot in 0..3 {
            for peer in [1, 2] {
                starts.begin(send(peer, slot), slot as u64, |start, context| {
                    begun.push((peer, context));
                    (peer == 1).then_some(start)
                });
            }
        }
        assert_eq!(begun, [(1, 0), (2, 0), (2, 1), (2, 2)]);
        let mut left = 2;
        begun.clear();
        for _ in 0..2 {
            starts.begin_waiting(|start, context| {
                if left == 0 {
                    left = 2;
                    return Some(start);
                }
                left -= 1;
                begun.push((1, context));
                None
            });
        }
        assert_eq!(begun, [(1, 0), (1, 1), (1, 2)]);
    }
}
