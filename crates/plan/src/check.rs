//! Checks if a plan can run: ranges of single values, and values that contradict each other.
//!
//! The checks apply to the plan of a file and to a plan that a command line has changed. They use the finished plan, and
//! [`Positions`] only for positions. A value that could not be read is not checked, because it has been reported.

mod channels;
mod forwarding;
mod hops;
mod hosts;
mod job;
mod links;
mod members;
mod objections;
mod own_channels;
mod own_credits;
mod paths;
mod pause;
mod retry;

pub(crate) use hops::{from as hops_from, neighbours};

use std::collections::BTreeSet;

use rackloom_protocol::RetransmissionMode;
use rackloom_protocol::wire::layout::OPERATION_HEADER;

use crate::job::JobPlan;
use crate::mistake::{Complaint, Mistake, Source};
use crate::objection::Objection;
use crate::plan::Plan;
use crate::positions::Positions;
use crate::quantity::{Unit, shown};
use crate::schema::{self, FRAME_BYTES_MIN, HEADER_BYTES, Table, WINDOW_PACKETS_MAX};

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

/// Selects if the job must fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Judged,
    /// Not checked, because the caller replaces the job or its size.
    Open,
}

/// Returns all mistakes of a plan. `judge` is called last, for the job of a plan without other mistakes.
pub(crate) fn mistakes(
    plan: &Plan,
    jobs: &[JobPlan],
    positions: &Positions,
    source: &Source<'_>,
    fit: Fit,
    judge: &dyn Fn(&Plan) -> Vec<Objection>,
) -> Vec<Mistake> {
    let mut check = Inspection::new(plan, jobs, positions, source, fit);
    check.settings();
    members::check(&mut check);
    links::check(&mut check);
    links::bridges(&mut check);
    hosts::check(&mut check);
    channels::circles(&mut check);
    if fit == Fit::Judged {
        objections::check(&mut check, judge);
    }
    check.mistakes
}

/// Returns all mistakes of a plan whose shape could not be built.
pub(crate) fn mistakes_of_settings(
    plan: &Plan,
    jobs: &[JobPlan],
    positions: &Positions,
    source: &Source<'_>,
) -> Vec<Mistake> {
    let mut check = Inspection::new(plan, jobs, positions, source, Fit::Open);
    check.settings();
    check.mistakes
}

/// State of one check of a plan.
struct Inspection<'run> {
    plan: &'run Plan,
    /// All jobs that the file names. More than one is a mistake that has been reported.
    jobs: &'run [JobPlan],
    positions: &'run Positions,
    source: &'run Source<'run>,
    fit: Fit,
    mistakes: Vec<Mistake>,
    /// Paths of values that are out of their range. Checks that depend on them are skipped.
    outside: BTreeSet<String>,
    /// True if a node has less memory than the job's input and output.
    job_is_too_large: bool,
}

impl<'run> Inspection<'run> {
    const fn new(
        plan: &'run Plan,
        jobs: &'run [JobPlan],
        positions: &'run Positions,
        source: &'run Source<'run>,
        fit: Fit,
    ) -> Self {
        Self {
            plan,
            jobs,
            positions,
            source,
            fit,
            mistakes: Vec::new(),
            outside: BTreeSet::new(),
            job_is_too_large: false,
        }
    }

    /// Reports a mistake at the first of these paths that is written in the file.
    fn complain(&mut self, paths: &[&str], complaint: Complaint) {
        let position = self.positions.first_written(paths).and_then(|path| self.positions.find(path));
        let mistake = self.source.mistake(position, complaint);
        // A common profile of many links is reported once.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Returns true if all of these values could be read and are in their ranges.
    fn intact(&self, paths: &[&str]) -> bool {
        paths.iter().all(|path| self.positions.is_intact(path) && !self.outside.contains(*path))
    }

    /// Returns true if this value and all values below it could be read and are in their ranges.
    fn intact_below(&self, path: &str) -> bool {
        self.positions.is_intact_below(path) && !self.outside.iter().any(|outside| outside.starts_with(path))
    }

    /// Reports a value outside the declared range of its key. Returns true if it is inside.
    fn within(&mut self, table: &Table, key: &str, value: impl Into<u64>) -> bool {
        self.within_at(&table.path_of(key), table, key, value)
    }

    /// Reports a value outside the declared range of its key, for a table with several positions. Returns true if it is inside.
    fn within_at(&mut self, path: &str, table: &Table, key: &str, value: impl Into<u64>) -> bool {
        let value = value.into();
        let (least, most, unit) = table.range_of(key);
        let fine = (least..=most).contains(&value);
        if self.intact(&[path]) && !fine {
            let range = match most {
                u64::MAX => format!("below {}", shown(least, unit)),
                most => format!("outside {} to {}", shown(least, unit), shown(most, unit)),
            };
            let hint = match most {
                u64::MAX => format!("write at least {}", shown(least, unit)),
                most => format!("write {} to {}", shown(least, unit), shown(most, unit)),
            };
            let complaint = Complaint::about(format!("`{path}` is {}, {range}", shown(value, unit)));
            self.complain(&[path], complaint.hint(hint));
            self.outside.insert(path.to_owned());
        }
        fine
    }

    fn settings(&mut self) {
        self.frames();
        self.timers();
        self.transport();
        self.within(&schema::PACKING, "operations_max", self.plan.packing.operations_max);
        forwarding::check(self);
        self.within(&schema::RACK, "watchdog", self.plan.watchdog_ns);
        paths::check(self);
        channels::settings(self);
        links::credits(self);
        job::check(self);
    }

    fn frames(&mut self) {
        let plan = self.plan;
        let frame_bytes_max = u64::from(plan.frame_bytes_max);
        if frame_bytes_max < FRAME_BYTES_MIN && self.intact(&["frame_bytes_max"]) {
            let least = shown(FRAME_BYTES_MIN, Unit::Bytes);
            let message =
                format!("`frame_bytes_max` is {}, below {least}", shown(frame_bytes_max, Unit::Bytes));
            let hint =
                format!("the headers take {HEADER_BYTES}B, and the reply to a load must fit behind them");
            self.complain(&["frame_bytes_max"], Complaint::about(message).hint(hint));
            self.outside.insert("frame_bytes_max".to_owned());
        } else {
            self.within(&schema::RACK, "frame_bytes_max", frame_bytes_max);
        }
        self.within(&schema::RACK, "outstanding_loads_max", plan.outstanding_loads_max);
        self.within(&schema::RACK, "rdma_threshold_bytes", plan.rdma_threshold_bytes);
        if self.within(&schema::RACK, "ring_bytes", plan.ring_bytes) && !plan.ring_bytes.is_power_of_two() {
            let message =
                format!("`ring_bytes` is {}, no power of two", shown(plan.ring_bytes.into(), Unit::Bytes));
            let near = shown(plan.ring_bytes.next_power_of_two().into(), Unit::Bytes);
            self.complain(&["ring_bytes"], Complaint::about(message).hint(format!("write `{near}`")));
            self.outside.insert("ring_bytes".to_owned());
        }
        self.ether_type();
    }

    fn ether_type(&mut self) {
        let ether_type = self.plan.ether_type;
        let (ether_type_min, ..) = schema::RACK.range_of("ether_type");
        let taken = ETHER_TYPES_TAKEN.iter().find(|(taken, _)| *taken == ether_type);
        let message = match taken {
            Some((_, owner)) => format!("`ether_type` {ether_type:#06x} belongs to {owner}"),
            None if u64::from(ether_type) < ether_type_min => {
                format!(
                    "`ether_type` {ether_type:#06x} is below {ether_type_min:#06x}, where frame lengths are"
                )
            }
            None => return,
        };
        let hint = "0x88B5 and 0x88B6 are kept free for local experiments";
        self.complain(&["ether_type"], Complaint::about(message).hint(hint));
    }

    fn timers(&mut self) {
        let timers = self.plan.timers;
        let table = &schema::TIMERS;
        let mut fine = self.within(table, "heartbeat_interval", timers.heartbeat_interval_ns);
        fine &= self.within(table, "heartbeat_miss_max", timers.heartbeat_miss_max);
        self.within(table, "heartbeat_rest", timers.heartbeat_rest);
        fine &= self.within(table, "hold_down", timers.hold_down_ns);
        fine &= self.within(table, "up_count", timers.up_count);
        self.within(table, "hello_interval", timers.hello_interval_ns);
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
            self.complain(&paths, Complaint::about(message).hint(hint));
        }
    }

    fn transport(&mut self) {
        let transport = self.plan.transport;
        let table = &schema::TRANSPORT;
        self.within(table, "retry_count_max", transport.retry_count_max);
        self.window();
        let ordered = [
            ("ack_delay", transport.ack_delay_ns),
            ("timeout_min", transport.timeout_min_ns),
            ("timeout_initial", transport.timeout_initial_ns),
            ("timeout_max", transport.timeout_max_ns),
        ];
        let mut fine = true;
        for (key, value) in ordered {
            fine &= self.within(table, key, value) && self.intact(&[&table.path_of(key)]);
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

    fn window(&mut self) {
        let transport = self.plan.transport;
        let window = u64::from(transport.window_packets);
        let path = "transport.window_packets";
        if self.intact(&[path]) && window > WINDOW_PACKETS_MAX {
            // The sequence numbers would permit half of their range. The limit of the bitmap is much lower.
            let message = format!(
                "`{path}` is {window}: an acknowledgement can name {WINDOW_PACKETS_MAX} packets, and a window beyond \
                 half the sequence space could not tell new from old"
            );
            self.complain(
                &[path],
                Complaint::about(message).hint(format!("write at most {WINDOW_PACKETS_MAX}")),
            );
            return;
        }
        if !self.within(&schema::TRANSPORT, "window_packets", window) {
            return;
        }
        let every = "transport.ack_every_packets";
        if self.within(&schema::TRANSPORT, "ack_every_packets", transport.ack_every_packets)
            && self.intact(&[path, every])
            && u64::from(transport.ack_every_packets) > window
        {
            let message = format!(
                "`{every}` is {}, more than the window of {window} packets: every window would wait for the timer",
                transport.ack_every_packets
            );
            self.complain(
                &[every, path],
                Complaint::about(message).hint("acknowledge at least once per window"),
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
                Complaint::about(message).hint("make the window smaller"),
            );
        }
    }
}
