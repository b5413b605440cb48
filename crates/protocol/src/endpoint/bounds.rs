//! Bounds on the work that one remote node may queue at this one.
//!
//! A correct node keeps limits that the plan sets: a window of packets, operations per packet, outstanding loads and
//! an eager budget. A node that ignores them must not make this one grow. So each queue that serves a remote node is
//! measured before the transport accepts a packet. A packet that arrives while a queue is at its bound is dropped,
//! counted as [`DropReason::ServingFull`](crate::event::DropReason::ServingFull) and not acknowledged. Its sender
//! retransmits it later.
//!
//! The bounds hold between packets: one packet may exceed a bound by the operations that it carries.

use crate::config::{MemberConfig, PackingMode};
use crate::operation::messages::{EAGER_BUDGET_BYTES, EAGER_COST_MIN};

/// Number of eager messages that fit into the budget of one sender.
const EAGER_MESSAGES_MAX: usize = (EAGER_BUDGET_BYTES / EAGER_COST_MIN) as usize;
/// Budgets that one sender may use. A sender that loses its path forgets its messages that wait for receives here,
/// and begins a new budget when it returns. The old messages still wait.
pub(super) const BUDGETS_MAX: u64 = 2;

/// Bounds per remote node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Operations in one queue: served and not yet visible, gets and pulls not yet cut, refusals not yet
    /// acknowledged.
    pub(super) operations: usize,
    /// Packets of answers in one class that have not been sent yet.
    pub(super) packets: usize,
    /// Offers without a matching receive.
    pub(super) offers: usize,
}

impl Bounds {
    pub(super) fn of(config: &MemberConfig) -> Self {
        let window = config.transport.window_packets as usize;
        let per_packet = usize::from(config.packing.operations_max).max(1);
        let outstanding = config.outstanding_loads_max as usize;
        let small = EAGER_MESSAGES_MAX + outstanding;
        let packed = if config.packing.mode == PackingMode::Off { 1 } else { per_packet };
        Self {
            operations: window * per_packet + small,
            packets: window + small.div_ceil(packed),
            offers: BUDGETS_MAX as usize * outstanding,
        }
    }

    /// Returns true if a queue of this many operations is at its bound.
    #[inline]
    pub(super) const fn is_full(&self, operations: usize) -> bool {
        operations >= self.operations
    }
}
