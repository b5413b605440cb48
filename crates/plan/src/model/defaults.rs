//! Default values of settings that a rack file does not state.
//!
//! Public descriptions of scale-up fabrics publish few of these numbers; `docs/topology-file.md` marks which are ours.
//! The values suit real processes that share a few cores: heartbeats are rare enough to cost nothing there.

use rackloom_protocol::wire::packed::BITMAP_BYTES_MAX;
use rackloom_protocol::{
    CreditConfig, CreditUpdates, LinkTimers, PackingConfig, PackingMode, RetransmissionMode, TransportConfig,
};

use crate::model::job::{JobKind, JobPlan};
use crate::model::of_link::OwnCredits;
use crate::model::wire::WireKind;

/// Largest frame: 4096 bytes of a put and 130 bytes of headers, rounded up to a multiple of 16. Fifteen bytes less would split every
/// 4 KiB block.
pub(crate) const FRAME_BYTES_MAX: u16 = 4240;
/// IEEE 802 "local experimental EtherType 1".
pub(crate) const ETHER_TYPE: u16 = 0x88B5;
/// Port that is not assigned, and below the ports that systems assign dynamically.
pub(crate) const UDP_PORT: u16 = 26_000;
pub(crate) const RING_BYTES: u32 = 1 << 20;
pub(crate) const RDMA_THRESHOLD_BYTES: u32 = 4096;
pub(crate) const OUTSTANDING_LOADS_MAX: u32 = 64;
pub(crate) const MEMORY_BYTES: u64 = 16 << 20;
/// Least number of packets that a receiver keeps after a gap.
pub(crate) const REORDER_PACKETS_MIN: u32 = 128;
/// Number of packets that the bitmap of an acknowledgement can name.
pub(crate) const REORDER_PACKETS_MAX: u32 = BITMAP_BYTES_MAX as u32 * 8;
pub(crate) const WATCHDOG_NS: u64 = 30_000_000_000;
/// Credits of one link in the default receive buffer of the kernel, in bytes (`docs/decisions/credits-in-truesize.md`).
const PACKET_BUFFER_BYTES: u32 = 160 << 10;
/// Credits on the udp wire, in bytes. They are fewer, because a datagram socket keeps a part of the bytes that have been read.
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

/// Timers. The hold-down follows from the detection time unless it is stated.
pub(crate) const TIMERS: LinkTimers = LinkTimers {
    heartbeat_interval_ns: 100_000_000,
    heartbeat_miss_max: 5,
    heartbeat_rest: 5,
    hold_down_ns: hold_down_ns(100_000_000, 5),
    up_count: 3,
    hello_interval_ns: 2_000_000,
};

/// Returns the number of packets that a receiver keeps: all packets that the sender may have in flight.
pub(crate) fn reorder_packets(window_packets: u32) -> u32 {
    window_packets.clamp(REORDER_PACKETS_MIN, REORDER_PACKETS_MAX)
}

/// Returns the number of intervals between heartbeats of an idle link, such that a stated interval also bounds detection at rest.
pub(crate) const fn heartbeat_rest(heartbeat_interval_ns: u64) -> u32 {
    if heartbeat_interval_ns == TIMERS.heartbeat_interval_ns { TIMERS.heartbeat_rest } else { 1 }
}

/// Returns twice the detection time: a link stays down for that long.
pub(crate) const fn hold_down_ns(heartbeat_interval_ns: u64, heartbeat_miss_max: u32) -> u64 {
    heartbeat_interval_ns.saturating_mul(heartbeat_miss_max as u64).saturating_mul(2)
}

/// Credit settings of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreditChoice {
    pub(crate) unit_bytes: Option<u16>,
    pub(crate) overhead_bytes: Option<u16>,
    pub(crate) limit: Option<u32>,
    /// Freed bytes between updates. `None` is a quarter of the limit.
    pub(crate) update_spacing_bytes: Option<u64>,
    /// True if the credits of lost frames are lost as well.
    pub(crate) leaks: bool,
    /// Width of the counters in bits. The limit stays within their range. `None` is 32 bits.
    pub(crate) counter_bits: Option<u8>,
}

impl CreditChoice {
    /// Returns the settings of one link: its own where stated, else those of the rack.
    pub(crate) fn of_link(self, own: OwnCredits) -> Self {
        Self {
            limit: own.limit.or(self.limit),
            update_spacing_bytes: own.update_spacing_bytes.or(self.update_spacing_bytes),
            leaks: own.resync.map_or(self.leaks, |resync| !resync),
            ..self
        }
    }

    /// Returns the rules by which these credits return.
    pub(crate) fn updates(self, credits: CreditConfig) -> CreditUpdates {
        let usual = credits.usual_updates();
        let in_credits =
            |bytes: u64| u32::try_from(bytes / u64::from(credits.unit_bytes.max(1))).unwrap_or(u32::MAX);
        CreditUpdates {
            spacing: self.update_spacing_bytes.map_or(usual.spacing, |bytes| in_credits(bytes).max(1)),
            resync: !self.leaks,
        }
    }

    /// Returns the stated credits, or else the credits that the wire can hold: half of a ring, or the buffer of a socket in the
    /// kernel's accounting (about 1 KiB per frame in addition to its bytes).
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
            // The checks report a unit of zero. Here it must only not divide.
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
