//! End-to-end reliability and packing.

use rackloom_protocol::wire::packed::BITMAP_BYTES_MAX;
use rackloom_protocol::{CongestionControl, PackingConfig, PackingMode, RetransmissionMode, TransportConfig};

use crate::model::bounds::{HOUR_NS, MICROSECOND_NS, MILLISECOND_NS};
use crate::setting::complaint::Complaint;
use crate::setting::named_value::NamedValue;
use crate::setting::section::section;
use crate::setting::table::Kind;

/// Largest window: the selective acknowledgement has one bit for each of its packets.
pub(crate) const WINDOW_PACKETS_MAX: u64 = BITMAP_BYTES_MAX as u64 * 8;
const WINDOW_PACKETS: u32 = 256;
/// Largest pool of grants, in packets.
const GRANT_PACKETS_MAX: u64 = 1 << 20;
/// Least number of packets that a receiver keeps after a gap.
const REORDER_PACKETS_MIN: u32 = 128;
/// Largest number of operations per frame: the count is one byte, and the core reserves a few.
const OPERATIONS_MAX: u64 = 250;

section! {
    /// Transport between real processes for a file that states nothing.
    pub(crate) const TRANSPORT_DEFAULT: TransportConfig, TRANSPORT = "transport" {
        /// Packets that are retransmitted: the missing ones, or all from the first missing one on.
        mode: RetransmissionMode {
            form = Kind::Choice(RetransmissionMode::NAMES);
            default = RetransmissionMode::Selective;
        }
        /// Packets in flight per sequence. The bitmap of an acknowledgement sets the limit, which is far below half of the sequence
        /// numbers.
        window_packets: u32 {
            form = Kind::Count(1, WINDOW_PACKETS_MAX);
            default = WINDOW_PACKETS;
            ours = true;
            explain = explain_window;
        }
        /// Under `selective`: packets from the expected one on that a receiver keeps. A packet further ahead is dropped as
        /// `beyond-window` and retransmitted.
        reorder_packets: u32 {
            form = Kind::Count(REORDER_PACKETS_MIN as u64, WINDOW_PACKETS_MAX);
            default = WINDOW_PACKETS;
            shown = "as `window_packets`, at least 128 (ours)";
            follows = |transport| reorder_packets(transport.window_packets);
        }
        /// First retransmission timeout, before a round trip is measured. In virtual time the time of one window of every node, at most
        /// this default.
        timeout_initial_ns: u64 {
            key = "timeout_initial";
            form = Kind::Time(MICROSECOND_NS, HOUR_NS);
            default = 20 * MILLISECOND_NS;
            ours = true;
        }
        /// Lower bound of the timeout. Between real processes at least 40 ms if all links have `llr`. In virtual time the round trip, the
        /// delay of an acknowledgement, one window, and the queue that `congestion` permits.
        timeout_min_ns: u64 {
            key = "timeout_min";
            form = Kind::Time(MICROSECOND_NS, HOUR_NS);
            default = 10 * MILLISECOND_NS;
            ours = true;
        }
        /// Upper bound of the timeout, back-off included. In virtual time 32 times the lower bound, at least twice the first timeout.
        timeout_max_ns: u64 {
            key = "timeout_max";
            form = Kind::Time(MICROSECOND_NS, HOUR_NS);
            default = 500 * MILLISECOND_NS;
            ours = true;
        }
        /// Consecutive timeouts after which the sequence gives up. 0 leaves that to the state of the paths.
        retry_count_max: u32 {
            form = Kind::Count(0, 1_000_000);
            default = 0;
            ours = true;
        }
        /// Packets that may arrive before an acknowledgement must leave; at most the window.
        ack_every_packets: u32 {
            form = Kind::Count(1, WINDOW_PACKETS_MAX);
            default = 16;
            ours = true;
        }
        /// Longest time that an acknowledgement waits for further packets. In virtual time the round trip, within 1 us and 200 us.
        ack_delay_ns: u64 {
            key = "ack_delay";
            form = Kind::Time(0, HOUR_NS);
            default = 200 * MICROSECOND_NS;
            ours = true;
        }
        /// Congestion control: none, a window of each sequence that follows the share of marked packets (`dctcp`), or packets that the
        /// receiver grants (`grants`). Windows grow from one packet up to `window_packets`, and marks need `forwarding.mark_above`.
        congestion: CongestionControl {
            form = Kind::Choice(CongestionControl::NAMES);
            default = CongestionControl::Off;
        }
        /// Under `congestion: grants`: packets that may be on their way to a node, from all senders and over all of its links together. One
        /// packet of each sequence needs no grant. The default is the largest frames that a round trip holds, for each link of a node.
        grant_packets: Option<u32> {
            form = Kind::Count(1, GRANT_PACKETS_MAX);
            default = None;
            shown = "a bandwidth-delay product per link; `window_packets` without a rate (ours)";
        }
    }
}

section! {
    /// Packing for a file that states nothing.
    pub(crate) const PACKING_DEFAULT: PackingConfig, PACKING = "packing" {
        /// Operations of a frame: all that are queued for its destination and class, or one.
        mode: PackingMode {
            form = Kind::Choice(PackingMode::NAMES);
            default = PackingMode::Opportunistic;
        }
        /// Largest number of operations of one frame.
        operations_max: u16 {
            form = Kind::Count(1, OPERATIONS_MAX);
            default = 64;
            ours = true;
        }
    }
}

/// Returns the number of packets that a receiver keeps: all packets that the sender may have in flight.
fn reorder_packets(window_packets: u32) -> u32 {
    window_packets.clamp(REORDER_PACKETS_MIN, WINDOW_PACKETS_MAX as u32)
}

/// The sequence numbers would permit half of their range. The limit of the bitmap is much lower.
fn explain_window(path: &str, window: u64) -> Option<Complaint> {
    (window > WINDOW_PACKETS_MAX).then(|| {
        let message = format!(
            "`{path}` is {window}: an acknowledgement can name {WINDOW_PACKETS_MAX} packets, and a window beyond \
             half the sequence space could not tell new from old"
        );
        Complaint::about(message).hint(format!("write at most {WINDOW_PACKETS_MAX}"))
    })
}
