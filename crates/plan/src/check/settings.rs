//! Checks the settings of the protocol: frames, timers, transport and the parts in other files.

use rackloom_protocol::wire::layout::OPERATION_HEADER;
use rackloom_protocol::{CongestionControl, RetransmissionMode};

use crate::check::inspection::Inspection;
use crate::check::{channels, forwarding, job, links, paths};
use crate::read::mistake::Complaint;
use crate::schema::{self, FRAME_BYTES_MIN, HEADER_BYTES};
use crate::setting::quantity::{Unit, shown};

/// EtherTypes that other protocols own on real networks.
const ETHER_TYPES_TAKEN: [(u16, &str); 7] = [
    (0x0800, "IPv4"),
    (0x0806, "ARP"),
    (0x8100, "VLAN tags"),
    (0x86DD, "IPv6"),
    (0x8915, "RoCE"),
    (0x885B, "another vendor"),
    (0x9AC6, "another vendor"),
];

impl Inspection<'_> {
    pub(super) fn settings(&mut self) {
        self.ranges_of(&self.plan.settings);
        self.ranges_of(&self.plan.timers);
        self.ranges_of(&self.plan.transport);
        self.ranges_of(&self.plan.packing);
        self.frames();
        self.timers();
        self.transport();
        self.congestion();
        forwarding::check(self);
        paths::check(self);
        channels::settings(self);
        links::credits(self);
        job::check(self);
    }

    fn frames(&mut self) {
        let plan = self.plan;
        if self.intact(&["ring_bytes"]) && !plan.settings.ring_bytes.is_power_of_two() {
            let message = format!(
                "`ring_bytes` is {}, no power of two",
                shown(plan.settings.ring_bytes.into(), Unit::Bytes)
            );
            let near = shown(plan.settings.ring_bytes.next_power_of_two().into(), Unit::Bytes);
            self.complain(&["ring_bytes"], Complaint::about(message).hint(format!("write `{near}`")));
            self.outside.insert("ring_bytes".to_owned());
        }
        self.ether_type();
    }

    fn ether_type(&mut self) {
        let ether_type = self.plan.settings.ether_type;
        let taken = ETHER_TYPES_TAKEN.iter().find(|(taken, _)| *taken == ether_type);
        let Some((_, owner)) = taken else { return };
        let message = format!("`ether_type` {ether_type:#06x} belongs to {owner}");
        let hint = "0x88B5 and 0x88B6 are kept free for local experiments";
        self.complain(&["ether_type"], Complaint::about(message).hint(hint));
    }

    fn timers(&mut self) {
        let timers = self.plan.timers;
        let paths =
            ["timers.hold_down", "timers.up_count", "timers.heartbeat_miss_max", "timers.heartbeat_interval"];
        if !self.intact(&paths) {
            return;
        }
        let departure = timers.heartbeat_interval_ns * u64::from(timers.heartbeat_miss_max);
        let arrival = timers.hold_down_ns + timers.heartbeat_interval_ns * u64::from(timers.up_count);
        if arrival <= departure {
            let message = format!(
                "a link would return after {} (`hold_down` + `up_count` heartbeats) and leave after {}",
                shown(arrival, Unit::Nanoseconds),
                shown(departure, Unit::Nanoseconds)
            );
            let hint = "return must be slower than departure, or a bad link flaps; raise `timers.hold_down`";
            self.complain(&paths, Complaint::about(message).hint(hint));
        }
    }

    fn transport(&mut self) {
        let transport = self.plan.transport;
        let table = &schema::TRANSPORT;
        self.window();
        let ordered = [
            ("ack_delay", transport.ack_delay_ns),
            ("timeout_min", transport.timeout_min_ns),
            ("timeout_initial", transport.timeout_initial_ns),
            ("timeout_max", transport.timeout_max_ns),
        ];
        let mut fine = true;
        for (key, _) in ordered {
            fine &= self.intact(&[&table.path_of(key)]);
        }
        if !fine {
            return;
        }
        for pair in ordered.windows(2) {
            let [(low_path, low), (high_path, high)] = [pair[0], pair[1]];
            if low > high || (low == high && low_path == "ack_delay") {
                let (low_path, high_path) = (table.path_of(low_path), table.path_of(high_path));
                let (low, high) = (shown(low, Unit::Nanoseconds), shown(high, Unit::Nanoseconds));
                let message = format!("`{low_path}` is {low}, not below `{high_path}`, which is {high}");
                let hint = "ack_delay < timeout_min <= timeout_initial <= timeout_max";
                self.complain(&[&low_path, &high_path], Complaint::about(message).hint(hint));
            }
        }
    }

    /// `dctcp` follows marks, and without a limit nothing is marked. A pool of grants needs `grants`.
    fn congestion(&mut self) {
        let paths = ["transport.congestion", "forwarding.mark_above"];
        let congestion = self.plan.transport.congestion;
        if congestion == CongestionControl::Dctcp
            && self.plan.forwarding.mark_above_bytes.is_none()
            && self.intact(&paths)
        {
            let message =
                "`transport.congestion` means nothing: no queue marks packets, so windows only grow";
            let hint = "add `forwarding: {mark_above: 64KiB}`, or leave it out";
            self.complain(&paths, Complaint::about(message).hint(hint));
        }
        let pool = "transport.grant_packets";
        let has_pool = self.plan.transport.grant_packets.is_some();
        if congestion != CongestionControl::Grants && has_pool && self.intact(&[pool, paths[0]]) {
            let message = format!("`{pool}` means nothing: receivers grant no packets");
            let hint = "add `transport: {congestion: grants}`, or leave it out";
            self.complain(&[pool], Complaint::about(message).hint(hint));
        }
    }

    fn window(&mut self) {
        let transport = self.plan.transport;
        let window = u64::from(transport.window_packets);
        let path = "transport.window_packets";
        if !self.intact(&[path]) {
            return;
        }
        let every = "transport.ack_every_packets";
        if self.intact(&[every]) && u64::from(transport.ack_every_packets) > window {
            let message = format!(
                "`{every}` is {}, more than the window of {window} packets: every window would wait for the timer",
                transport.ack_every_packets
            );
            self.complain(
                &[every, path],
                Complaint::about(message).hint("acknowledge at least once per window"),
            );
        }
        let grant_bytes = if transport.grant_pool().is_some() { OPERATION_HEADER as u64 } else { 0 };
        let bitmap_bytes = window.div_ceil(8) + grant_bytes;
        let free_bytes = u64::from(self.plan.settings.frame_bytes_max)
            .saturating_sub(HEADER_BYTES + OPERATION_HEADER as u64);
        if transport.mode == RetransmissionMode::Selective
            && self.intact(&[path, "frame_bytes_max"])
            && u64::from(self.plan.settings.frame_bytes_max) >= FRAME_BYTES_MIN
            && bitmap_bytes > free_bytes
        {
            let message = format!(
                "a window of {window} packets needs {bitmap_bytes} bytes in an acknowledgement, \
                 and frames of {} leave {free_bytes}",
                shown(self.plan.settings.frame_bytes_max.into(), Unit::Bytes)
            );
            self.complain(
                &[path, "frame_bytes_max"],
                Complaint::about(message).hint("make the window smaller"),
            );
        }
    }
}
