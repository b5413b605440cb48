//! Whether a plan can be run as it stands: ranges of single values, and values that contradict each other.
//!
//! The same checks judge a fresh file and a plan that a command line has changed. They work on the finished plan and ask
//! [`Places`] only where to point. A value that could not be read is judged nowhere: it has been complained about.

mod links;
mod members;

use std::ops::RangeInclusive;

use rackloom_protocol::RetransmissionMode;
use rackloom_protocol::wire::layout::{OPERATION_HEADER, OPERATIONS};
use rackloom_protocol::wire::packed::{BITMAP_BYTES_MAX, LOAD_BYTES_MAX};

use crate::mistake::{Complaint, Mistake, Source};
use crate::places::Places;
use crate::plan::{JobKind, Plan};
use crate::quantity::{Unit, shown};

/// Headers of a data frame, Ethernet header included.
const HEADER_BYTES: u64 = OPERATIONS as u64;
/// The reply to one load request, which is never split, must fit.
const FRAME_BYTES_MIN: u64 = HEADER_BYTES + OPERATION_HEADER as u64 + LOAD_BYTES_MAX as u64;
/// An Ethernet frame of a 9000-byte MTU.
const FRAME_BYTES_MAX: u64 = 9014;
/// The selective acknowledgement names the packets of one window, one bit each.
const WINDOW_PACKETS_MAX: u64 = BITMAP_BYTES_MAX as u64 * 8;
/// Operations of a frame are counted in one byte; the core keeps a few for its own.
const OPERATIONS_MAX: u64 = 250;
/// The core takes nothing larger on the Load/Store path.
const STORE_BYTES_MAX: u64 = 16 << 10;
const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
/// EtherTypes below are lengths.
const ETHER_TYPE_MIN: u64 = 0x0600;
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

/// Everything that is wrong with a plan.
pub(crate) fn mistakes(plan: &Plan, places: &Places, source: &Source<'_>) -> Vec<Mistake> {
    let mut check = Inspection { plan, places, source, mistakes: Vec::new() };
    check.settings();
    members::check(&mut check);
    links::check(&mut check);
    check.mistakes
}

/// As [`mistakes`], for a file whose shape could not be built.
pub(crate) fn mistakes_of_settings(plan: &Plan, places: &Places, source: &Source<'_>) -> Vec<Mistake> {
    let mut check = Inspection { plan, places, source, mistakes: Vec::new() };
    check.settings();
    check.mistakes
}

/// One pass over a plan.
struct Inspection<'run> {
    plan: &'run Plan,
    places: &'run Places,
    source: &'run Source<'run>,
    mistakes: Vec<Mistake>,
}

impl Inspection<'_> {
    /// Complain at the first of these paths that is written in the file.
    fn complain(&mut self, paths: &[&str], complaint: Complaint) {
        let place = self.places.first_written(paths).and_then(|path| self.places.find(path));
        let mistake = self.source.mistake(place, complaint);
        // The same profile on many links is one mistake.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Whether all of these values are what the user meant.
    fn intact(&self, paths: &[&str]) -> bool {
        paths.iter().all(|path| self.places.is_intact(path))
    }

    /// Complain if `value` lies outside `range`; whether it lies inside.
    fn within(&mut self, path: &str, value: impl Into<u64>, range: RangeInclusive<u64>, unit: Unit) -> bool {
        let value = value.into();
        if !self.intact(&[path]) || range.contains(&value) {
            return range.contains(&value);
        }
        let (least, most) = (shown(*range.start(), unit), shown(*range.end(), unit));
        let message = format!("`{path}` is {}, outside {least} to {most}", shown(value, unit));
        self.complain(&[path], Complaint::new(message));
        false
    }

    fn settings(&mut self) {
        self.frames();
        self.timers();
        self.transport();
        let packing = self.plan.packing;
        self.within("packing.operations_max", packing.operations_max, 1..=OPERATIONS_MAX, Unit::Count);
        self.within("watchdog", self.plan.watchdog_ns, 1_000_000..=24 * HOUR_NS, Unit::Nanoseconds);
        if self.plan.job.kind == JobKind::Litmus {
            self.within("job.litmus.bytes_max", self.plan.job.bytes_max, 1..=1 << 30, Unit::Bytes);
            self.within("job.litmus.rounds", self.plan.job.rounds, 1..=1_000_000, Unit::Count);
        }
    }

    fn frames(&mut self) {
        let plan = self.plan;
        let sensible = FRAME_BYTES_MIN..=FRAME_BYTES_MAX;
        self.within("frame_bytes_max", plan.frame_bytes_max, sensible, Unit::Bytes);
        self.within("outstanding_loads_max", plan.outstanding_loads_max, 1..=65_536, Unit::Count);
        self.within("rdma_threshold_bytes", plan.rdma_threshold_bytes, 0..=STORE_BYTES_MAX, Unit::Bytes);
        if self.within("ring_bytes", plan.ring_bytes, 1 << 12..=1 << 30, Unit::Bytes)
            && !plan.ring_bytes.is_power_of_two()
        {
            let message =
                format!("`ring_bytes` is {}, no power of two", shown(plan.ring_bytes.into(), Unit::Bytes));
            let near = shown(plan.ring_bytes.next_power_of_two().into(), Unit::Bytes);
            self.complain(&["ring_bytes"], Complaint::new(message).hint(format!("write `{near}`")));
        }
        self.ether_type();
    }

    fn ether_type(&mut self) {
        let ether_type = self.plan.ether_type;
        let taken = ETHER_TYPES_TAKEN.iter().find(|(taken, _)| *taken == ether_type);
        let message = match taken {
            Some((_, owner)) => format!("`ether_type` {ether_type:#06x} belongs to {owner}"),
            None if u64::from(ether_type) < ETHER_TYPE_MIN => {
                format!(
                    "`ether_type` {ether_type:#06x} is below {ETHER_TYPE_MIN:#06x}, where frame lengths are"
                )
            }
            None => return,
        };
        let hint = "0x88B5 and 0x88B6 are kept free for local experiments";
        self.complain(&["ether_type"], Complaint::new(message).hint(hint));
    }

    fn timers(&mut self) {
        let timers = self.plan.timers;
        let sensible = 1_000..=MINUTE_NS;
        let mut fine = self.within(
            "timers.heartbeat_interval",
            timers.heartbeat_interval_ns,
            sensible.clone(),
            Unit::Nanoseconds,
        );
        fine &= self.within("timers.heartbeat_miss_max", timers.heartbeat_miss_max, 1..=100, Unit::Count);
        fine &= self.within("timers.hold_down", timers.hold_down_ns, 0..=24 * HOUR_NS, Unit::Nanoseconds);
        fine &= self.within("timers.up_count", timers.up_count, 1..=100, Unit::Count);
        self.within("timers.hello_interval", timers.hello_interval_ns, sensible, Unit::Nanoseconds);
        let paths =
            ["timers.hold_down", "timers.up_count", "timers.heartbeat_miss_max", "timers.heartbeat_interval"];
        if !fine || !self.intact(&paths) {
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
            self.complain(&paths, Complaint::new(message).hint(hint));
        }
    }

    fn transport(&mut self) {
        let transport = self.plan.transport;
        self.within("transport.retry_count_max", transport.retry_count_max, 0..=1_000_000, Unit::Count);
        self.window();
        let ordered = [
            ("transport.ack_delay", transport.ack_delay_ns),
            ("transport.timeout_min", transport.timeout_min_ns),
            ("transport.timeout_initial", transport.timeout_initial_ns),
            ("transport.timeout_max", transport.timeout_max_ns),
        ];
        let least = [0, 1_000, 1_000, 1_000];
        let mut fine = true;
        for ((path, value), least) in ordered.into_iter().zip(least) {
            fine &= self.within(path, value, least..=HOUR_NS, Unit::Nanoseconds) && self.intact(&[path]);
        }
        if !fine {
            return;
        }
        for pair in ordered.windows(2) {
            let [(low_path, low), (high_path, high)] = [pair[0], pair[1]];
            if low > high || (low == high && low_path == "transport.ack_delay") {
                let (low, high) = (shown(low, Unit::Nanoseconds), shown(high, Unit::Nanoseconds));
                let message = format!("`{low_path}` is {low}, not below `{high_path}`, which is {high}");
                let hint = "ack_delay < timeout_min <= timeout_initial <= timeout_max";
                self.complain(&[low_path, high_path], Complaint::new(message).hint(hint));
            }
        }
    }

    fn window(&mut self) {
        let transport = self.plan.transport;
        let window = u64::from(transport.window_packets);
        let path = "transport.window_packets";
        if self.intact(&[path]) && window > WINDOW_PACKETS_MAX {
            // Half of the 32-bit packet sequence would be the limit of the numbers; the bitmap is reached long before.
            let message = format!(
                "`{path}` is {window}: an acknowledgement can name {WINDOW_PACKETS_MAX} packets, and a window beyond \
                 half the sequence space could not tell new from old"
            );
            self.complain(
                &[path],
                Complaint::new(message).hint(format!("write at most {WINDOW_PACKETS_MAX}")),
            );
            return;
        }
        if !self.within(path, window, 1..=WINDOW_PACKETS_MAX, Unit::Count) {
            return;
        }
        let every = "transport.ack_every_packets";
        if self.within(every, transport.ack_every_packets, 1..=WINDOW_PACKETS_MAX, Unit::Count)
            && self.intact(&[path, every])
            && u64::from(transport.ack_every_packets) > window
        {
            let message = format!(
                "`{every}` is {}, more than the window of {window} packets: every window would wait for the timer",
                transport.ack_every_packets
            );
            self.complain(
                &[every, path],
                Complaint::new(message).hint("acknowledge at least once per window"),
            );
        }
        let bitmap_bytes = window.div_ceil(8);
        let room =
            u64::from(self.plan.frame_bytes_max).saturating_sub(HEADER_BYTES + OPERATION_HEADER as u64);
        if transport.mode == RetransmissionMode::Selective
            && self.intact(&[path, "frame_bytes_max"])
            && u64::from(self.plan.frame_bytes_max) >= FRAME_BYTES_MIN
            && bitmap_bytes > room
        {
            let message = format!(
                "a window of {window} packets needs {bitmap_bytes} bytes in an acknowledgement, \
                 and frames of {} leave {room}",
                shown(self.plan.frame_bytes_max.into(), Unit::Bytes)
            );
            self.complain(
                &[path, "frame_bytes_max"],
                Complaint::new(message).hint("make the window smaller"),
            );
        }
    }
}
