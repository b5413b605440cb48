//! Refusal of signals whose data is not visible, because an operation that they count has failed.

use crate::endpoint::Endpoint;
use crate::endpoint::operations::memory_queue::{Pending, Purpose};
use crate::endpoint::peer::Peer;
use crate::error::OperationError;
use crate::ids::Class;

impl Endpoint {
    /// Records failed operations of a stream, from `first` to before `end`.
    pub(in crate::endpoint) fn note_failed(
        &mut self,
        peer: &mut Peer,
        class: Class,
        first: u32,
        end: u32,
        error: Option<OperationError>,
    ) {
        peer.streams.of_mut(class).note_failed(first, end, error);
        self.has_failures = true;
    }

    // W-40
    /// Refuses the signals at the front of the memory queue whose data is not visible.
    #[cold]
    pub(in crate::endpoint) fn refuse_signals_without_data(&mut self) {
        while let Some(pending) = self.memory.next_signal().copied() {
            let Purpose::Signal { class, first, counted, .. } = pending.purpose else { return };
            let Some(mut peer) = self.peers.get_mut(pending.node.index()).and_then(Option::take) else {
                return;
            };
            // After the end of the peer's incarnation the state of the data is unknown, and no peer waits.
            let found = if peer.generation == pending.generation {
                peer.streams.of(class).find_failed(first.wrapping_sub(counted), first)
            } else {
                Some(None)
            };
            if let Some(error) = found {
                self.memory.forget_next();
                self.refuse_signal(&mut peer, &pending, error);
            }
            self.put_back(peer);
            if found.is_none() {
                return;
            }
        }
    }

    fn refuse_signal(&mut self, peer: &mut Peer, pending: &Pending, error: Option<OperationError>) {
        let Purpose::Signal { class, first, end, .. } = pending.purpose else { return };
        if peer.generation != pending.generation {
            return;
        }
        if let Some(error) = error {
            self.refuse(peer, class, first, pending.region, error);
            self.queue_data(peer, class.reply());
        }
        peer.served(class, end);
        self.acknowledge_if_late(peer, class);
    }
}
