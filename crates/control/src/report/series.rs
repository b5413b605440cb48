//! Time series of a run: what links and nodes did in each interval.
//!
//! All intervals of one run have the same length. A run of unknown duration begins with short intervals. When the maximum number is
//! reached, each two neighbours become one and the length doubles, so that memory is bounded and the whole run is covered.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::balance::{PhaseBytes, with_preambles};
use super::member::MemberReport;
use super::spans::PhaseSpan;
use crate::recorder::{MemberSeries, PortSeries, greatest_of_pairs, join_operations, join_pairs};

/// Maximum number of intervals of a report.
const INTERVALS_MAX: usize = 512;
/// Intervals that a phase must cover, so that its bytes are known from them.
const PHASE_INTERVALS_MIN: u64 = 4;
/// Intervals before the first operation that are kept.
const LEAD: usize = 2;

/// Time series of a run. Each list of a link or node has one value per interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Begin of the first interval in nanoseconds, on the run's clock.
    pub from_ns: u64,
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
    /// Number of intervals.
    pub intervals: u32,
    /// Directions of links, in the order of the report's `links`. Directions without frames are left out.
    pub links: Vec<LinkSeries>,
    /// Nodes and switches with operations, in the order of the members.
    pub nodes: Vec<NodeSeries>,
}

/// Series of one direction of one link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkSeries {
    /// Name of the direction, such as `n0->n1`.
    pub name: String,
    /// Bytes sent, with the Ethernet header, without preamble and gap.
    pub bytes: Vec<u64>,
    /// Frames sent.
    pub frames: Vec<u64>,
    /// Bytes of those frames that the rate of the link was charged for: with the headers of the link's profile, checks, padding, preambles
    /// and gaps. Empty in processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounted: Vec<u64>,
    /// Frames that did not arrive; empty if all did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u64>,
    /// Frames dropped by the receiving end, by reason. `injected` has those that an injected fault dropped on the link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, Vec<u64>>,
    /// Frames that link-level retry sent again; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayed: Vec<u64>,
    /// Packets of the sending end that were retransmitted; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmitted: Vec<u64>,
    /// Times at which sending stopped for lack of credits or because of a pause; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit_waits: Vec<u64>,
    /// Frames in transit that wait at the sending end at the end of the interval; empty if there were none. Joined intervals have the greatest
    /// number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<u64>,
}

/// Series of one node, or of one switch with a reduction unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSeries {
    /// Name of the node or switch.
    pub name: String,
    /// True if it is a switch with a reduction unit. The report's `operations` do not count operations of switches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_switch: bool,
    /// Operations that ended, with those that ended with an error.
    pub operations: Vec<u64>,
    /// Median latency of those without an error, in nanoseconds; 0 if there was none.
    pub latency_p50_ns: Vec<u64>,
    /// 99th percentile of this latency in nanoseconds; 0 if there was none.
    pub latency_p99_ns: Vec<u64>,
}

impl LinkSeries {
    /// Returns the bytes of an interval that count against the rate of the link: accounted bytes in virtual time, bytes with preambles and
    /// gaps in processes.
    #[must_use]
    pub fn load_bytes(&self, interval: usize) -> u64 {
        let at = |values: &[u64]| values.get(interval).copied().unwrap_or(0);
        if self.accounted.is_empty() {
            with_preambles(at(&self.bytes), at(&self.frames))
        } else {
            at(&self.accounted)
        }
    }
}

impl Series {
    /// Joins the series of all members; `None` if none recorded one. `directions` are the names of both directions of each link, in the
    /// order of the links.
    #[must_use]
    pub(super) fn join(members: &[MemberReport], directions: &[Direction]) -> Option<Self> {
        let recorded = || members.iter().filter_map(|member| Some((member, member.series.as_ref()?)));
        let interval_ns = recorded().map(|(_, series)| series.interval_ns).max()?;
        let all: Recorded<'_> = recorded()
            .map(|(member, series)| {
                let mut series = Cow::Borrowed(series);
                if series.interval_ns < interval_ns {
                    series.to_mut().coarsen_to(interval_ns);
                }
                (member.name.as_str(), (member, series))
            })
            .collect();
        let intervals = all.values().map(|(_, series)| series.intervals).max()?;
        let mut joined = Self {
            from_ns: 0,
            interval_ns,
            intervals: intervals as u32,
            links: links(&all, directions),
            nodes: members
                .iter()
                .filter_map(|member| node(&member.name, &all.get(member.name.as_str())?.1))
                .collect(),
        };
        joined.each_list(|values| values.resize(intervals, 0));
        joined.leave_out_the_start();
        joined.shorten();
        Some(joined)
    }

    /// Marks the members for which `is_switch` holds as switches.
    pub(super) fn mark_switches(&mut self, is_switch: impl Fn(&str) -> bool) {
        for node in &mut self.nodes {
            node.is_switch = is_switch(&node.name);
        }
    }

    /// Calls `change` for each list of values.
    fn each_list(&mut self, mut change: impl FnMut(&mut Vec<u64>)) {
        for link in &mut self.links {
            let rare =
                [&mut link.missing, &mut link.replayed, &mut link.retransmitted, &mut link.credit_waits];
            let rare = rare
                .into_iter()
                .chain([&mut link.queued, &mut link.accounted])
                .filter(|values| !values.is_empty())
                .chain(link.dropped.values_mut());
            [&mut link.bytes, &mut link.frames].into_iter().chain(rare).for_each(&mut change);
        }
        for node in &mut self.nodes {
            let lists = [&mut node.operations, &mut node.latency_p50_ns, &mut node.latency_p99_ns];
            lists.into_iter().for_each(&mut change);
        }
    }

    /// Removes the intervals before the first operation: links come up in them.
    fn leave_out_the_start(&mut self) {
        let first = |node: &NodeSeries| node.operations.iter().position(|count| *count > 0);
        let Some(first) = self.nodes.iter().filter_map(first).min() else { return };
        let start = first.saturating_sub(LEAD);
        self.each_list(|values| drop(values.drain(..start)));
        self.intervals -= start as u32;
        self.from_ns += start as u64 * self.interval_ns;
    }

    /// Joins neighbours until there are at most as many intervals as a report has.
    fn shorten(&mut self) {
        while self.intervals as usize > INTERVALS_MAX {
            for node in &mut self.nodes {
                join_operations(&mut node.operations, &mut node.latency_p50_ns, &mut node.latency_p99_ns);
            }
            for link in &mut self.links {
                let lists = [&mut link.bytes, &mut link.frames, &mut link.missing, &mut link.replayed];
                let more = [&mut link.accounted, &mut link.retransmitted, &mut link.credit_waits];
                lists.into_iter().chain(more).chain(link.dropped.values_mut()).for_each(join_pairs);
                greatest_of_pairs(&mut link.queued);
            }
            self.intervals = self.intervals.div_ceil(2);
            self.interval_ns *= 2;
        }
    }

    /// Returns the bytes of each direction in those phases that cover several intervals. An interval
    /// that a phase shares with another counts in proportion.
    #[must_use]
    pub(super) fn bytes_of_phases(&self, phases: &[PhaseSpan], directions: &[Direction]) -> Vec<PhaseBytes> {
        let index: HashMap<&str, usize> =
            directions.iter().enumerate().map(|(index, one)| (one.name.as_str(), index)).collect();
        let is_long = |phase: &&PhaseSpan| {
            phase.ended_ns.saturating_sub(phase.began_ns) >= PHASE_INTERVALS_MIN * self.interval_ns
        };
        let of = |phase: &PhaseSpan| {
            let mut bytes = vec![0; directions.len()];
            for link in &self.links {
                let Some(index) = index.get(link.name.as_str()) else { continue };
                bytes[*index] = self.within(phase, link);
            }
            PhaseBytes { name: phase.name.clone(), began_ns: phase.began_ns, ended_ns: phase.ended_ns, bytes }
        };
        phases.iter().filter(is_long).map(of).collect()
    }

    fn within(&self, phase: &PhaseSpan, link: &LinkSeries) -> u64 {
        let first = phase.began_ns.saturating_sub(self.from_ns) / self.interval_ns;
        let count = (phase.ended_ns - phase.began_ns) / self.interval_ns + 2;
        let mut sum = 0.0;
        for interval in (first..first + count).take_while(|interval| *interval < u64::from(self.intervals)) {
            let begin_ns = self.from_ns + interval * self.interval_ns;
            let end_ns = begin_ns + self.interval_ns;
            let shared_ns = phase.ended_ns.min(end_ns).saturating_sub(phase.began_ns.max(begin_ns));
            let bytes = link.load_bytes(interval as usize);
            sum += bytes as f64 * shared_ns as f64 / self.interval_ns as f64;
        }
        sum.round() as u64
    }
}

/// Members that recorded, by name, with series of one interval.
type Recorded<'a> = HashMap<&'a str, (&'a MemberReport, Cow<'a, MemberSeries>)>;

/// Direction of a link: its name, its sending and its receiving member, and the index of the link.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    pub(super) name: String,
    pub(super) sender: String,
    pub(super) receiver: String,
    pub(super) edge: u16,
}

fn links(all: &Recorded<'_>, directions: &[Direction]) -> Vec<LinkSeries> {
    let port = |member: &str, edge: u16| {
        let (report, series) = all.get(member)?;
        let index = report.ports.iter().position(|port| port.edge == edge)?;
        series.ports.get(index)
    };
    let of = |direction: &Direction| {
        let sender = port(&direction.sender, direction.edge)?;
        let receiver = port(&direction.receiver, direction.edge);
        let of_receiver =
            |values: fn(&PortSeries) -> &Vec<u64>| receiver.map(values).cloned().unwrap_or_default();
        let mut dropped = receiver.map(|port| port.dropped.clone()).unwrap_or_default();
        if !sender.injected.is_empty() {
            dropped.insert("injected".to_owned(), sender.injected.clone());
        }
        sender.frames.iter().any(|frames| *frames > 0).then(|| LinkSeries {
            name: direction.name.clone(),
            bytes: sender.bytes.clone(),
            frames: sender.frames.clone(),
            accounted: sender.accounted.clone(),
            missing: of_receiver(|port| &port.missing),
            dropped,
            replayed: sender.replayed.clone(),
            retransmitted: sender.retransmitted.clone(),
            credit_waits: sender.credit_waits.clone(),
            queued: sender.queued.clone(),
        })
    };
    directions.iter().filter_map(of).collect()
}

fn node(name: &str, series: &MemberSeries) -> Option<NodeSeries> {
    (!series.operations.is_empty()).then(|| NodeSeries {
        name: name.to_owned(),
        is_switch: false,
        operations: series.operations.clone(),
        latency_p50_ns: series.latency_p50_ns.clone(),
        latency_p99_ns: series.latency_p99_ns.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{MemberState, PortReport};

    fn member(name: &str, interval_ns: u64, bytes: &[u64], operations: &[u64]) -> MemberReport {
        let frames = bytes.iter().map(|bytes| bytes / 100).collect();
        let port = PortSeries { bytes: bytes.to_vec(), frames, ..PortSeries::default() };
        MemberReport {
            ports: vec![PortReport::default()],
            series: Some(MemberSeries {
                interval_ns,
                intervals: bytes.len(),
                ports: vec![port],
                operations: operations.to_vec(),
                latency_p50_ns: vec![7; operations.len()],
                latency_p99_ns: vec![9; operations.len()],
            }),
            ..MemberReport::silent(name, None, MemberState::Finished)
        }
    }

    fn directions() -> [Direction; 2] {
        let of = |sender: &str, receiver: &str| Direction {
            name: format!("{sender}->{receiver}"),
            sender: sender.into(),
            receiver: receiver.into(),
            edge: 0,
        };
        [of("a", "b"), of("b", "a")]
    }

    #[test]
    fn members_with_other_intervals_are_joined_and_the_start_is_left_out() {
        let members = [
            member(
                "a",
                10,
                &[0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300, 400],
                &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
            ),
            member("b", 20, &[0, 0, 0, 0, 100, 200], &[]),
        ];
        let series = Series::join(&members, &directions()).expect("two members recorded");
        assert_eq!((series.from_ns, series.interval_ns, series.intervals), (60, 20, 3));
        assert_eq!(series.links[0].bytes, [0, 300, 700]);
        assert_eq!(series.links[1].bytes, [0, 100, 200]);
        assert_eq!(series.nodes.len(), 1, "b has no operations");
        assert_eq!(series.nodes[0].operations, [0, 0, 2]);
    }

    #[test]
    fn a_phase_has_the_bytes_of_its_intervals() {
        let members = [member("a", 10, &[100; 10], &[1; 10]), member("b", 10, &[0; 10], &[])];
        let series = Series::join(&members, &directions()).expect("two members recorded");
        let phase = |began_ns, ended_ns| PhaseSpan { name: "p".into(), began_ns, ended_ns };
        let phases = series.bytes_of_phases(&[phase(15, 60), phase(20, 30)], &directions());
        // Each interval has one frame: 100 bytes, and 20 beside it. The second phase is too short.
        assert_eq!(phases.len(), 1);
        assert_eq!(phases[0].bytes, [540, 0]);
    }

    #[test]
    fn a_phase_has_the_accounted_bytes_where_they_are_known() {
        let mut members = [member("a", 10, &[100; 10], &[1; 10]), member("b", 20, &[0; 5], &[])];
        members[0].series.as_mut().expect("a series").ports[0].accounted = vec![60; 10];
        let series = Series::join(&members, &directions()).expect("two members recorded");
        assert_eq!((series.interval_ns, series.links[0].accounted.as_slice()), (20, &[120; 5][..]));
        let phase = PhaseSpan { name: "p".into(), began_ns: 0, ended_ns: 80 };
        assert_eq!(series.bytes_of_phases(&[phase], &directions())[0].bytes, [480, 0]);
    }

    #[test]
    fn a_report_has_a_bounded_number_of_intervals() {
        let members = [member("a", 1, &[100; 2000], &[1; 2000]), member("b", 1, &[0; 2000], &[])];
        let series = Series::join(&members, &directions()).expect("two members recorded");
        assert_eq!((series.intervals, series.interval_ns), (500, 4));
        assert_eq!((series.links[0].bytes[0], series.nodes[0].operations[0]), (400, 4));
        assert_eq!(series.nodes[0].latency_p50_ns[0], 7);
    }
}
