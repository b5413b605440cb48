//! Objects of the device by their numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::{Piece, Regions};
use super::queue_pair::QueuePair;
use super::receive::Shared;
use super::work::Receive;
use crate::layout::Gid;
use crate::layout::work::Sge;

/// Objects of all contexts of the process.
pub(super) struct Objects {
    pub(super) node: u32,
    /// Addresses of the ports. The first element is of port 1.
    pub(super) addresses: Vec<Vec<Gid>>,
    /// Domains, with the number of their objects.
    pub(super) domains: BTreeMap<u32, u32>,
    pub(super) regions: Regions,
    pub(super) queue_pairs: BTreeMap<u32, QueuePair>,
    pub(super) shared: BTreeMap<u32, Shared>,
    /// Queue pairs whose oldest send is repeated.
    pub(super) stalled: BTreeSet<u32>,
    /// Queue pairs whose request is at the transport and has a time for its answer.
    pub(super) awaiting: BTreeSet<u32>,
    /// Queue pairs whose next send waits for its time.
    pub(super) delayed: BTreeSet<u32>,
}

impl Objects {
    /// Takes the next receive of a queue pair, with the domain of its memory.
    pub(super) fn take_receive(&mut self, number: u32) -> Option<(Receive, u32)> {
        let pair = self.queue_pairs.get_mut(&number)?;
        match pair.shared {
            None => Some((pair.receives.pop_front()?, pair.domain)),
            Some(shared) => {
                let shared = self.shared.get_mut(&shared)?;
                Some((shared.take()?, shared.domain))
            }
        }
    }

    /// Returns true if a receive is posted for a queue pair.
    pub(super) fn has_receive(&self, number: u32) -> bool {
        self.queue_pairs.get(&number).is_some_and(|pair| match pair.shared {
            None => !pair.receives.is_empty(),
            Some(shared) => self.shared.get(&shared).is_some_and(|shared| !shared.receives.is_empty()),
        })
    }

    /// Checks parts of local memory. `None` if one of them is not registered in the domain with the needed right.
    pub(super) fn pieces(&self, parts: &[Sge], domain: u32, needed: u32) -> Option<Vec<Piece>> {
        let used = parts.iter().filter(|part| part.length > 0);
        used.map(|part| self.regions.piece(part.lkey, domain, part.addr, part.length.into(), needed))
            .collect()
    }
}
