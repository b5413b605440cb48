//! What a rack file that says nothing gets.
//!
//! Public descriptions of scale-up fabrics publish few of these numbers; `docs/topology-file.md` marks which are ours.
//! The values suit real processes that share a few cores: heartbeats are rare enough to cost nothing there.

use rackloom_protocol::wire::packed::BITMAP_BYTES_MAX;
use rackloom_protocol::{
    CreditConfig, CreditUpdates, LinkTimers, PackingConfig, PackingMode, RetransmissionMode, TransportConfig,
};

use crate::job::{JobKind, JobPlan};
use crate::of_link::OwnCredits;
use crate::plan::WireKind;

/// Largest frame: 4096 bytes of a put behind 130 bytes of headers, up to a multiple of 16. Fifteen bytes less would cut every
/// 4 KiB block in two.
pub(crate) const FRAME_BYTES_MAX: u16 = 4240;
/// IEEE 802 "local experimental EtherType 1".
pub(crate) const ETHER_TYPE: u16 = 0x88B5;
/// Not assigned to anybody, and below the ports that systems give out.
pub(crate) const UDP_PORT: u16 = 26_000;
pub(crate) const RING_BYTES: u32 = 1 << 20;
pub(crate) const RDMA_THRESHOLD_BYTES: u32 = 4096;
pub(crate) const OUTSTANDING_LOADS_MAX: u32 = 64;
pub(crate) const MEMORY_BYTES: u64 = 16 << 20;
/// The least that a receiver keeps after a hole.
pub(crate) const REORDER_PACKETS_MIN: u32 = 128;
/// What the bitmap of an acknowledgement can name.
pub(crate) const REORDER_PACKETS_MAX: u32 = BITMAP_BYTES_MAX as u32 * 8;
pub(crate) const WATCHDOG_NS: u64 = 30_000_000_000;
/// What credits may fill of the receive buffer that the kernel grants everybody (`docs/decisions/credits-in-truesize.md`).
const PACKET_BUFFER_BYTES: u32 = 160 << 10;
/// Less, because a datagram socket keeps back a part of what has been read.
const UDP_BUFFER_BYTES: u32 = 120 << 10;

pub(crate) const TRANSPORT: TransportConfig = TransportConfig {
    mode: RetransmissionMode::Selective,
    window_packets: 256,
    reorder_packets: 256,
    timeout_initial_ns: 20_000_000,
    timeout_min_ns: 10_000_000,
    timeout_max_ns: 500_000_000,
    retry_count_max: 0,
    ack_every_packets: 16,
    ack_delay_ns: 200_000,
};

pub(crate) const PACKING: PackingConfig =
    PackingConfig { mode: PackingMode::Opportunistic, operations_max: 64 };

pub(crate) const JOB: JobPlan = JobPlan { kind: JobKind::Litmus, bytes_max: 1 << 20, rounds: 1 };

/// Timers; the hold-down follows from the detection time unless it is replaced.
pub(crate) const TIMERS: LinkTimers = LinkTimers {
    heartbeat_interval_ns: 100_000_000,
    heartbeat_miss_max: 5,
    heartbeat_rest: 5,
    hold_down_ns: hold_down_ns(100_000_000, 5),
    up_count: 3,
    hello_interval_ns: 2_000_000,
};

/// A receiver keeps whatever the sender may have in flight.
pub(crate) fn reorder_packets(window_packets: u32) -> u32 {
    window_packets.clamp(REORDER_PACKETS_MIN, REORDER_PACKETS_MAX)
}

/// Whoever sets the interval wants to hear of a death within so many of them, at rest as well.
pub(crate) const fn heartbeat_rest(heartbeat_interval_ns: u64) -> u32 {
    if heartbeat_interval_ns == TIMERS.heartbeat_interval_ns { TIMERS.heartbeat_rest } else { 1 }
}

/// A link stays down for twice the time that it takes to notice.
pub(crate) const fn hold_down_ns(heartbeat_interval_ns: u64, heartbeat_miss_max: u32) -> u64 {
    heartbeat_interval_ns.saturating_mul(heartbeat_miss_max as u64).saturating_mul(2)
}

/// What the file says about credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreditChoice {
    pub(crate) unit_bytes: Option<u16>,
    pub(crate) overhead_bytes: Option<u16>,
    pub(crate) limit: Option<u32>,
    /// Freed bytes between updates; a quarter of the limit if the file leaves it open.
    pub(crate) update_spacing_bytes: Option<u64>,
    /// Whether lost frames leak their credits.
    pub(crate) leaks: bool,
    /// Width of the counters whose rule is kept; 32 bits if the file leaves it open.
    pub(crate) counter_bits: Option<u8>,
}

impl CreditChoice {
    /// With what one link has in place of it.
    pub(crate) fn of_link(self, own: OwnCredits) -> Self {
        Self {
            limit: own.limit.or(self.limit),
            update_spacing_bytes: own.update_spacing_bytes.or(self.update_spacing_bytes),
            leaks: own.resync.map_or(self.leaks, |resync| !resync),
            ..self
        }
    }

    /// How credits of this kind come back.
    pub(crate) fn updates(self, credits: CreditConfig) -> CreditUpdates {
        let usual = credits.usual_updates();
        let in_credits =
            |bytes: u64| u32::try_from(bytes / u64::from(credits.unit_bytes.max(1))).unwrap_or(u32::MAX);
        CreditUpdates {
            spacing: self.update_spacing_bytes.map_or(usual.spacing, |bytes| in_credits(bytes).max(1)),
            resync: !self.leaks,
        }
    }

    /// The file's word where there is one, else what the wire can hold: half of a ring, or a socket's buffer as
    /// the kernel accounts for it (about 1 KiB per frame on top of the bytes).
    pub(crate) fn resolve(self, wire: WireKind, ring_bytes: u32) -> CreditConfig {
        let (unit_bytes, overhead_bytes, room_bytes) = match wire {
            WireKind::SharedMemory => (128, 16, ring_bytes / 2),
            WireKind::Packet => (256, 1024, PACKET_BUFFER_BYTES),
            WireKind::Udp => (256, 1024, UDP_BUFFER_BYTES),
        };
        let unit_bytes = self.unit_bytes.unwrap_or(unit_bytes);
        CreditConfig {
            unit_bytes,
            overhead_bytes: self.overhead_bytes.unwrap_or(overhead_bytes),
            // A unit of zero is reported by the checks; here it must only not divide.
            limit: self.limit.unwrap_or(room_bytes / u32::from(unit_bytes.max(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::wire::layout::OPERATIONS;
    use rackloom_protocol::wire::packed::{PUT_BYTES, SELECT_BYTES};

    #[test]
    fn a_block_of_4_kib_fits_one_default_frame() {
        assert!(usize::from(FRAME_BYTES_MAX) - OPERATIONS - SELECT_BYTES - PUT_BYTES >= 4096);
    }
}
