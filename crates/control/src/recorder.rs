//! Recorder of a member's time series: what its ports and its operations did in each interval.
//!
//! The engine calls [`Recorder::is_due`] before each poll of the member, and [`Recorder::sample`] if it is. A counter changes in polls only.
//! So what has changed since the last sample belongs to the interval in which that sample's successor was due, even if the member was idle
//! for many intervals after it. When the maximum number of intervals is reached, each two neighbours become one and the length doubles.

use std::collections::BTreeMap;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{DropReason, Inspect, Instant, PortId};
use serde::{Deserialize, Serialize};

/// First length of an interval, if none is given: in virtual time, and in processes.
const FIRST_NS: (u64, u64) = (1_000, 1_000_000);
/// Bounds of the number of intervals, and number of values of all directions of links within them.
const INTERVALS: (usize, usize) = (32, 4_096);
const VALUES_MAX: usize = 1 << 19;
/// Maximum number of single operations of one node that are recorded.
const OPERATIONS_MAX: usize = 4_096;
/// Number of single operations of all nodes that are recorded.
const OPERATIONS_OF_ALL_MAX: usize = 1 << 17;

/// Recording that a user requests for a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// True if time series are recorded.
    pub series: bool,
    /// First length of an interval in nanoseconds. A long run has longer ones. The engine's default if absent.
    pub interval_ns: Option<u64>,
    /// True if single operations are recorded.
    pub operations: bool,
}

impl Recording {
    /// Returns whether nothing is recorded.
    #[must_use]
    pub fn is_off(&self) -> bool {
        !self.series && !self.operations
    }

    /// Returns what a job records of its operations.
    #[must_use]
    pub fn of_operations(&self, nodes: usize) -> OperationRecording {
        let share = OPERATIONS_OF_ALL_MAX / nodes.max(1);
        let spans_max = if self.operations { share.clamp(16, OPERATIONS_MAX) } else { 0 };
        OperationRecording { has_latencies: self.series, spans_max }
    }

    /// Returns the recorder of a member with `ports` ports in a rack with `links` links, if time series are recorded.
    #[must_use]
    pub fn recorder(&self, is_virtual: bool, ports: usize, links: usize) -> Option<Recorder> {
        let default_ns = if is_virtual { FIRST_NS.0 } else { FIRST_NS.1 };
        let intervals_max = (VALUES_MAX / (2 * links.max(1))).clamp(INTERVALS.0, INTERVALS.1) & !1;
        // A large rack keeps few intervals. They begin longer, so that they are not joined again and again.
        let default_ns = default_ns * (INTERVALS.1 / intervals_max) as u64;
        let interval_ns = self.interval_ns.unwrap_or(default_ns).max(1);
        self.series.then(|| Recorder::new(ports, interval_ns, intervals_max))
    }
}

/// Recording of the operations of a job while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationRecording {
    /// True if the latencies of each interval are kept.
    pub has_latencies: bool,
    /// Maximum number of operations that are kept one by one: the first ones.
    pub spans_max: usize,
}

/// Operations of a node that have ended in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentOperations {
    /// Number of operations, with those that ended with an error.
    pub count: u64,
    /// Median latency of those without an error, in nanoseconds; 0 if there was none.
    pub p50_ns: u64,
    /// 99th percentile of this latency in nanoseconds; 0 if there was none.
    pub p99_ns: u64,
}

/// Quantity of a port that is rarely counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rare {
    Missing,
    /// Sent frames that an injected fault dropped on the link.
    Injected,
    Replayed,
    Retransmitted,
    CreditWaits,
    /// Frames that wait. It is no count: joined intervals have the greater number.
    Queued,
    Dropped(usize),
}

/// Series of one port. "Sent" and "received" are as seen from the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSeries {
    /// Bytes sent in each interval.
    pub bytes: Vec<u64>,
    /// Frames sent.
    pub frames: Vec<u64>,
    /// Bytes of those frames that the rate of the link was charged for; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounted: Vec<u64>,
    /// Frames of the neighbour that did not arrive; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u64>,
    /// Received frames that were dropped, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, Vec<u64>>,
    /// Frames sent here that an injected fault dropped on the link; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<u64>,
    /// Frames that link-level retry sent again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayed: Vec<u64>,
    /// Packets of this member that were retransmitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmitted: Vec<u64>,
    /// Times at which sending stopped for lack of credits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit_waits: Vec<u64>,
    /// Frames in transit that wait for this port at the end of the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<u64>,
}

/// Series of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSeries {
    /// Length of an interval in nanoseconds. The first one begins at 0.
    pub interval_ns: u64,
    /// Number of intervals.
    pub intervals: usize,
    /// Ports, in port order.
    pub ports: Vec<PortSeries>,
    /// Operations that ended in each interval, with those that ended with an error; empty if the member has no job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<u64>,
    /// Median latency of those without an error, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_p50_ns: Vec<u64>,
    /// 99th percentile of this latency in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_p99_ns: Vec<u64>,
}

/// Port while it is recorded.
#[derive(Clone, Debug, Default)]
struct Port {
    last: PortCounters,
    /// Frames that injected faults have dropped on the link, and how many of them an interval has.
    injected: u64,
    injected_noted: u64,
    /// Bytes that the rate of the link was charged for, and how many of them an interval has.
    accounted: u64,
    accounted_noted: u64,
    bytes: Vec<u64>,
    frames: Vec<u64>,
    accounted_bytes: Vec<u64>,
    /// Each list is as long as the others after its first value; values before are 0.
    rare: BTreeMap<Rare, Vec<u64>>,
}

/// Recorder of one member.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval_ns: u64,
    intervals_max: usize,
    /// Number of intervals that are over.
    intervals: usize,
    next_at: Instant,
    ports: Vec<Port>,
    operations: Vec<RecentOperations>,
}

impl Recorder {
    /// Creates the recorder of a member with this number of ports, at time 0.
    #[must_use]
    pub fn new(ports: usize, interval_ns: u64, intervals_max: usize) -> Self {
        debug_assert!(interval_ns > 0 && intervals_max >= 2 && intervals_max.is_multiple_of(2));
        Self {
            interval_ns,
            intervals_max,
            intervals: 0,
            next_at: Instant(interval_ns),
            ports: vec![Port::default(); ports],
            operations: Vec::new(),
        }
    }

    /// Returns whether an interval has ended. Call it before each poll of the member.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    /// Ends all intervals that are over at `now`. `recent` returns the operations that have ended since its last call.
    pub fn sample<M>(&mut self, now: Instant, member: &M, recent: impl FnOnce() -> Option<RecentOperations>)
    where
        M: Inspect + ?Sized,
    {
        if !self.is_due(now) {
            return;
        }
        self.note(member, recent());
        self.end_interval();
        // The member was idle in the others. Long idle times double the length instead of adding intervals without bound.
        while self.is_due(now) {
            self.end_interval();
        }
    }

    /// Sets the number of frames sent at a port that injected faults have dropped. The counters of a member do not have it. Call
    /// it before [`Self::sample`] and [`Self::finish`].
    pub fn set_injected(&mut self, port: PortId, dropped: u64) {
        if let Some(port) = self.ports.get_mut(port.index()) {
            port.injected = dropped;
        }
    }

    /// Sets the number of bytes that the rate of a port's link was charged for. The counters of a member do not have it. Call it before
    /// [`Self::sample`] and [`Self::finish`].
    pub fn set_accounted(&mut self, port: PortId, bytes: u64) {
        if let Some(port) = self.ports.get_mut(port.index()) {
            port.accounted = bytes;
        }
    }

    /// Returns the series. The last interval is not over; it contains what it has so far.
    pub fn finish<M>(
        mut self,
        now: Instant,
        member: &M,
        mut recent: impl FnMut() -> Option<RecentOperations>,
    ) -> MemberSeries
    where
        M: Inspect + ?Sized,
    {
        self.sample(now, member, &mut recent);
        self.note(member, recent());
        self.end_interval();
        self.series()
    }

    /// Adds the changes since the last note to the current interval.
    fn note<M: Inspect + ?Sized>(&mut self, member: &M, recent: Option<RecentOperations>) {
        let interval = self.intervals;
        for (index, port) in self.ports.iter_mut().enumerate().take(member.port_count()) {
            let id = PortId(index as u16);
            port.note(interval, member.port_counters(id), member.queued_frames(id) as u64);
        }
        if let Some(recent) = recent.filter(|recent| recent.count > 0) {
            self.operations.resize(interval, RecentOperations::default());
            self.operations.push(recent);
        }
    }

    fn end_interval(&mut self) {
        self.intervals += 1;
        if self.intervals == self.intervals_max {
            self.halve();
        }
        self.next_at = Instant(self.interval_ns.saturating_mul(self.intervals as u64 + 1));
    }

    /// Joins each two neighbours.
    fn halve(&mut self) {
        for port in &mut self.ports {
            if let Some(queued) = port.rare.get_mut(&Rare::Queued) {
                greatest_of_pairs(queued);
            }
            let rare = port.rare.iter_mut().filter(|(rare, _)| **rare != Rare::Queued);
            let rare = rare.map(|(_, values)| values);
            let lists = [&mut port.bytes, &mut port.frames, &mut port.accounted_bytes];
            lists.into_iter().chain(rare).for_each(join_pairs);
        }
        let pairs = self.operations.chunks(2).map(|pair| pair.iter().copied().reduce(joined));
        self.operations = pairs.map(Option::unwrap_or_default).collect();
        self.intervals = self.intervals.div_ceil(2);
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    fn series(self) -> MemberSeries {
        let length = self.intervals;
        let padded = |mut values: Vec<u64>| {
            values.resize(length, 0);
            values
        };
        let port = |mut port: Port| {
            let mut take = |rare| port.rare.remove(&rare).map(padded).unwrap_or_default();
            let (missing, replayed) = (take(Rare::Missing), take(Rare::Replayed));
            let (retransmitted, credit_waits) = (take(Rare::Retransmitted), take(Rare::CreditWaits));
            let (queued, injected) = (take(Rare::Queued), take(Rare::Injected));
            let dropped = port.rare.into_iter().filter_map(|(rare, values)| match rare {
                Rare::Dropped(reason) => {
                    Some((DropReason::ALL.get(reason)?.name().to_owned(), padded(values)))
                }
                _ => None,
            });
            PortSeries {
                bytes: padded(port.bytes),
                frames: padded(port.frames),
                accounted: match port.accounted_noted {
                    0 => Vec::new(),
                    _ => padded(port.accounted_bytes),
                },
                missing,
                dropped: dropped.collect(),
                injected,
                replayed,
                retransmitted,
                credit_waits,
                queued,
            }
        };
        let of = |value: fn(&RecentOperations) -> u64| match self.operations.is_empty() {
            true => Vec::new(),
            false => padded(self.operations.iter().map(value).collect()),
        };
        MemberSeries {
            interval_ns: self.interval_ns,
            intervals: length,
            operations: of(|recent| recent.count),
            latency_p50_ns: of(|recent| recent.p50_ns),
            latency_p99_ns: of(|recent| recent.p99_ns),
            ports: self.ports.into_iter().map(port).collect(),
        }
    }
}

impl Port {
    fn note(&mut self, interval: usize, counters: &PortCounters, queued: u64) {
        if counters.frames_sent < self.last.frames_sent {
            // The member has restarted, and counts from 0.
            self.last = PortCounters::default();
        }
        let last = &self.last;
        let noted = |of: &PortCounters| {
            [of.frames_sent, of.missing, of.credit_stalls, of.retransmitted, of.retry.tx_replay]
        };
        let is_unchanged = noted(counters) == noted(last) && counters.dropped == last.dropped;
        let is_unchanged = is_unchanged && self.accounted == self.accounted_noted;
        if is_unchanged && self.injected == self.injected_noted && queued == 0 {
            return;
        }
        add(&mut self.bytes, interval, counters.bytes_sent.saturating_sub(last.bytes_sent));
        add(&mut self.frames, interval, counters.frames_sent.saturating_sub(last.frames_sent));
        add(&mut self.accounted_bytes, interval, self.accounted.saturating_sub(self.accounted_noted));
        let named = [
            (Rare::Missing, counters.missing.saturating_sub(last.missing)),
            (Rare::Injected, self.injected.saturating_sub(self.injected_noted)),
            (Rare::Replayed, counters.retry.tx_replay.saturating_sub(last.retry.tx_replay)),
            (Rare::Retransmitted, counters.retransmitted.saturating_sub(last.retransmitted)),
            (Rare::CreditWaits, counters.credit_stalls.saturating_sub(last.credit_stalls)),
        ];
        let dropped = counters.dropped.iter().zip(&last.dropped).enumerate();
        let dropped =
            dropped.map(|(reason, (count, last))| (Rare::Dropped(reason), count.saturating_sub(*last)));
        for (rare, change) in named.into_iter().chain(dropped).filter(|(_, change)| *change > 0) {
            add(self.rare.entry(rare).or_default(), interval, change);
        }
        if queued > 0 {
            add(self.rare.entry(Rare::Queued).or_default(), interval, queued);
        }
        self.last.clone_from(counters);
        (self.injected_noted, self.accounted_noted) = (self.injected, self.accounted);
    }
}

/// Adds a value to an interval. Intervals before it without values are 0.
fn add(values: &mut Vec<u64>, interval: usize, change: u64) {
    if change > 0 {
        values.resize(values.len().max(interval + 1), 0);
        values[interval] += change;
    }
}

/// Joins each two neighbours to their sum.
pub(crate) fn join_pairs(values: &mut Vec<u64>) {
    *values = values.chunks(2).map(|pair| pair.iter().sum()).collect();
}

/// Joins each two neighbours to the greater one.
pub(crate) fn greatest_of_pairs(values: &mut Vec<u64>) {
    *values = values.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
}

/// Joins two intervals. The quantiles of both together are not known: the result has the mean of the medians, weighted by their
/// numbers, and the greater of the 99th percentiles. An interval without a latency, in which all operations ended with errors, has no weight.
fn joined(one: RecentOperations, other: RecentOperations) -> RecentOperations {
    let weight = |recent: &RecentOperations| if recent.p99_ns > 0 { recent.count } else { 0 };
    let weighted = |recent: &RecentOperations| u128::from(recent.p50_ns) * u128::from(weight(recent));
    let timed = weight(&one) + weight(&other);
    RecentOperations {
        count: one.count + other.count,
        p50_ns: ((weighted(&one) + weighted(&other)) / u128::from(timed.max(1))) as u64,
        p99_ns: one.p99_ns.max(other.p99_ns),
    }
}

/// Joins each two neighbours of operations and their latencies as [`joined`] does. The lists have equal lengths.
pub(crate) fn join_operations(operations: &mut Vec<u64>, p50_ns: &mut Vec<u64>, p99_ns: &mut Vec<u64>) {
    let recent = |((count, p50_ns), p99_ns): ((&u64, &u64), &u64)| RecentOperations {
        count: *count,
        p50_ns: *p50_ns,
        p99_ns: *p99_ns,
    };
    let all: Vec<_> = operations.iter().zip(&*p50_ns).zip(&*p99_ns).map(recent).collect();
    let all: Vec<_> = all.chunks(2).filter_map(|pair| pair.iter().copied().reduce(joined)).collect();
    *operations = all.iter().map(|recent| recent.count).collect();
    *p50_ns = all.iter().map(|recent| recent.p50_ns).collect();
    *p99_ns = all.iter().map(|recent| recent.p99_ns).collect();
}

impl MemberSeries {
    /// Joins neighbours until an interval has this length, which is the own one times a power of two.
    pub fn coarsen_to(&mut self, interval_ns: u64) {
        while self.interval_ns < interval_ns {
            join_operations(&mut self.operations, &mut self.latency_p50_ns, &mut self.latency_p99_ns);
            for port in &mut self.ports {
                let lists = [&mut port.bytes, &mut port.frames, &mut port.missing, &mut port.replayed];
                let more = [
                    &mut port.accounted,
                    &mut port.retransmitted,
                    &mut port.credit_waits,
                    &mut port.injected,
                ];
                lists.into_iter().chain(more).chain(port.dropped.values_mut()).for_each(join_pairs);
                greatest_of_pairs(&mut port.queued);
            }
            self.intervals = self.intervals.div_ceil(2);
            self.interval_ns = self.interval_ns.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_plan::Plan;
    use rackloom_protocol::{Endpoint, Incarnation, NodeId};

    /// Port whose counters the test sets.
    fn counted(frames_sent: u64) -> PortCounters {
        PortCounters { frames_sent, bytes_sent: 100 * frames_sent, ..PortCounters::default() }
    }

    /// Member at rest: only times and operations matter.
    fn member() -> Endpoint {
        let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "rack").expect("a plan");
        Endpoint::new(plan.member_config(NodeId(0), Incarnation(1)))
    }

    fn recent(count: u64, p50_ns: u64) -> Option<RecentOperations> {
        Some(RecentOperations { count, p50_ns, p99_ns: 2 * p50_ns })
    }

    #[test]
    fn an_interval_in_which_all_operations_failed_does_not_change_the_median_of_its_neighbour() {
        let good = RecentOperations { count: 2, p50_ns: 100, p99_ns: 300 };
        let failed = RecentOperations { count: 3, p50_ns: 0, p99_ns: 0 };
        assert_eq!(joined(good, failed), RecentOperations { count: 5, p50_ns: 100, p99_ns: 300 });
        assert_eq!(joined(failed, failed), RecentOperations { count: 6, p50_ns: 0, p99_ns: 0 });
    }

    #[test]
    fn changes_belong_to_the_interval_of_their_poll_and_idle_intervals_are_empty() {
        let mut recorder = Recorder::new(0, 10, 8);
        recorder.sample(Instant(9), &member(), || panic!("no interval has ended"));
        recorder.sample(Instant(35), &member(), || recent(3, 5));
        let series = recorder.finish(Instant(38), &member(), || recent(1, 7));
        assert_eq!((series.interval_ns, series.intervals), (10, 4));
        assert_eq!(series.operations, [3, 0, 0, 1]);
        assert_eq!(series.latency_p50_ns, [5, 0, 0, 7]);
    }

    #[test]
    fn a_long_run_has_longer_intervals_and_the_same_sums() {
        let mut recorder = Recorder::new(0, 10, 4);
        let mut ended = 0;
        for step in 1..=100 {
            recorder.sample(Instant(step * 10), &member(), || recent(std::mem::take(&mut ended), 5));
            ended += 1;
        }
        let series = recorder.finish(Instant(1_000), &member(), || recent(std::mem::take(&mut ended), 5));
        assert!(series.intervals <= 4 && series.interval_ns == 640, "{series:?}");
        assert_eq!(series.operations.iter().sum::<u64>(), 100);
    }

    #[test]
    fn a_port_adds_the_change_of_each_counter() {
        let mut port = Port::default();
        port.note(0, &counted(5), 3);
        port.note(2, &PortCounters { retransmitted: 2, ..counted(9) }, 1);
        assert_eq!((port.frames.as_slice(), port.bytes.as_slice()), (&[5, 0, 4][..], &[500, 0, 400][..]));
        assert_eq!(port.rare[&Rare::Retransmitted], [0, 0, 2]);
        port.injected = 4;
        port.note(2, &PortCounters { retransmitted: 2, ..counted(9) }, 0);
        port.note(3, &counted(1), 0);
        assert_eq!(port.rare[&Rare::Injected], [0, 0, 4], "the link counts, and does not restart");
        assert_eq!(port.rare[&Rare::Queued], [3, 0, 1]);
        assert_eq!(port.frames, [5, 0, 4, 1], "a restarted member counts from 0");
    }

    #[test]
    fn series_of_different_length_are_brought_to_one() {
        let mut series = MemberSeries {
            interval_ns: 10,
            intervals: 3,
            ports: vec![PortSeries { bytes: vec![1, 2, 4], frames: vec![1, 1, 1], ..PortSeries::default() }],
            operations: vec![1, 3, 0],
            latency_p50_ns: vec![4, 8, 0],
            latency_p99_ns: vec![5, 9, 0],
        };
        series.coarsen_to(20);
        assert_eq!((series.intervals, series.ports[0].bytes.as_slice()), (2, &[3, 4][..]));
        assert_eq!((series.operations, series.latency_p50_ns), (vec![4, 0], vec![7, 0]));
        assert_eq!(series.latency_p99_ns, [9, 0]);
    }
}
