//! Attributes by which a queue pair becomes one end of a connection.

use super::message::Side;
use crate::engine::{State, addresses_of, limits, port_of};
use crate::layout::attributes::{AhAttr, GlobalRoute, QpAttr};
use crate::layout::constants::*;

/// Both sides of a connection, as one of them sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Node of the peer. It is reached over the own port of the same number.
    pub node: u32,
    /// Own side.
    pub own: Side,
    /// Side of the peer.
    pub peer: Side,
    /// Retries without an answer.
    pub retry_count: u8,
}

/// Code of the time between two attempts of a peer while no receive is posted: 0.64 ms.
const NOT_READY_TIMER: u8 = 12;
/// Code of the time until a request without an answer is repeated: one second.
const TIMEOUT: u8 = 18;
const HOP_LIMIT: u8 = 64;
/// Index of the IPv4 address of the port.
const ADDRESS_INDEX: u8 = 1;

/// Returns the attributes of the step to a state, and their mask. `None` for states that connection management does not set.
#[must_use]
pub fn attributes(state: State, link: &Link) -> Option<(QpAttr, u32)> {
    let mut attributes = QpAttr { qp_state: state as u32, ..QpAttr::default() };
    // A side has no more outstanding than the other one executes.
    let executes = link.own.responder_resources.min(limits::READS);
    let outstanding = link.own.initiator_depth.min(link.peer.responder_resources).min(limits::READS);
    let mask = match state {
        State::Init => {
            attributes.port_num = port_of(link.node);
            let fetches = if executes > 0 { ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC } else { 0 };
            attributes.qp_access_flags = ACCESS_REMOTE_WRITE | fetches;
            QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS
        }
        State::Rtr => {
            let dgid = addresses_of(link.node)[usize::from(ADDRESS_INDEX)];
            let grh = GlobalRoute {
                dgid,
                sgid_index: ADDRESS_INDEX,
                hop_limit: HOP_LIMIT,
                ..GlobalRoute::default()
            };
            attributes.ah_attr =
                AhAttr { grh, is_global: 1, port_num: port_of(link.node), ..AhAttr::default() };
            attributes.path_mtu = MTU_4096;
            attributes.dest_qp_num = link.peer.queue_pair;
            attributes.rq_psn = link.peer.first_message;
            attributes.max_dest_rd_atomic = executes;
            attributes.min_rnr_timer = NOT_READY_TIMER;
            QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER
        }
        State::Rts => {
            attributes.timeout = TIMEOUT;
            attributes.retry_cnt = link.retry_count.min(7);
            attributes.rnr_retry = link.peer.rnr_retry_count.min(7);
            attributes.sq_psn = link.own.first_message;
            attributes.max_rd_atomic = outstanding;
            QP_TIMEOUT | QP_RETRY_CNT | QP_RNR_RETRY | QP_SQ_PSN | QP_MAX_QP_RD_ATOMIC
        }
        _ => return None,
    };
    Some((attributes, mask | QP_STATE))
}
