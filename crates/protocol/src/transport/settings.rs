//! Settings that all streams of a member share.
//!
//! A member of a large rack has thousands of streams. Each refers to one copy of its settings instead of holding its own.

use crate::config::{PackingConfig, RetransmissionMode, TransportConfig};

/// Number of packets from which on a stream is long ([`is_short`]).
const LONG_FROM_PACKETS: u32 = 4;

/// Settings of all streams of a member.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    /// Retransmission, windows, timeouts.
    pub transport: TransportConfig,
    /// Packing of small operations.
    pub packing: PackingConfig,
    /// Bytes of operations that a frame can hold.
    pub operation_bytes_max: usize,
}

impl StreamSettings {
    /// Largest number of packets in flight.
    #[must_use]
    #[inline]
    pub const fn window(&self) -> usize {
        self.transport.window_packets as usize
    }

    /// Number of packets, from the expected one on, that a receiver does not drop.
    #[must_use]
    #[inline]
    pub(super) const fn receive_window(&self) -> u32 {
        match self.transport.mode {
            RetransmissionMode::GoBackN => self.transport.window_packets,
            RetransmissionMode::Selective => self.transport.reorder_packets,
        }
    }
}

/// Returns true if a stream has carried only a few packets: those before the packet number `psn`.
///
/// In an exchange among all nodes of a large rack nearly every stream stays short. A short stream stores no header for
/// the next packet, and returns its buffers when it is idle. A long one keeps both, so that its packets cost little.
#[must_use]
#[inline]
pub const fn is_short(psn: u32) -> bool {
    psn < LONG_FROM_PACKETS
}
