//! Objects of the device by their numbers.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use super::limits;
use super::memory::{Piece, Regions};
use super::queue_pair::QueuePair;
use super::receive::Shared;
use super::transport::QUEUE_PAIR_MAX;
use super::work::Receive;
use crate::layout::Gid;
use crate::layout::attributes::{AhAttr, QpAttr};
use crate::layout::constants::*;
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

    /// Returns the addresses of a port, by their index. Empty for a port that does not exist.
    pub(super) fn addresses_of_port(&self, port: u8) -> &[Gid] {
        let place = usize::from(port).checked_sub(1);
        place.and_then(|place| self.addresses.get(place)).map_or(&[], Vec::as_slice)
    }

    /// Checks values of attributes against the limits of the device.
    ///
    /// # Errors
    /// `EINVAL` if one of the values in the mask is outside.
    pub(super) fn check_values(&self, attributes: &QpAttr, mask: u32) -> Result<(), Errno> {
        let route = |route: &AhAttr| check_route(route, self.addresses_of_port(route.port_num)).is_ok();
        let checks = [
            (QP_PORT, !self.addresses_of_port(attributes.port_num).is_empty()),
            (QP_PKEY_INDEX, attributes.pkey_index == 0),
            (QP_PATH_MTU, (1..=MTU_4096).contains(&attributes.path_mtu)),
            (QP_AV, route(&attributes.ah_attr)),
            (QP_DEST_QPN, attributes.dest_qp_num <= QUEUE_PAIR_MAX),
            (QP_TIMEOUT, attributes.timeout < 32),
            (QP_RETRY_CNT, attributes.retry_cnt < 8),
            (QP_RNR_RETRY, attributes.rnr_retry < 8),
            (QP_MIN_RNR_TIMER, attributes.min_rnr_timer < 32),
            (QP_MAX_QP_RD_ATOMIC, attributes.max_rd_atomic <= limits::READS),
            (QP_MAX_DEST_RD_ATOMIC, attributes.max_dest_rd_atomic <= limits::READS),
            // Paths are chosen by the fabric.
            (QP_ALT_PATH, false),
        ];
        let is_right = checks.iter().all(|(bit, fits)| mask & bit == 0 || *fits);
        if is_right { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Checks parts of local memory. `None` if one of them is not registered in the domain with the needed right.
    pub(super) fn pieces(&self, parts: &[Sge], domain: u32, needed: u32) -> Option<Vec<Piece>> {
        let used = parts.iter().filter(|part| part.length > 0);
        used.map(|part| self.regions.piece(part.lkey, domain, part.addr, part.length.into(), needed))
            .collect()
    }
}

/// Checks a route over a port with these addresses: on Ethernet it is global, and its local address exists. A port that does not exist has none.
///
/// # Errors
/// `EINVAL` otherwise.
pub(crate) fn check_route(route: &AhAttr, addresses: &[Gid]) -> Result<(), Errno> {
    let is_right = route.is_global != 0 && usize::from(route.grh.sgid_index) < addresses.len();
    if is_right { Ok(()) } else { Err(Errno::INVAL) }
}
