//! Link reports: the last report of every member, and the reports to send to each neighbour.
//!
//! Reports are ordered by (incarnation, number). A newer one is stored and forwarded to every other live neighbour;
//! an older one is ignored. Flooding may lose frames: heartbeats carry a digest of all reports, and neighbours with
//! different digests send each other all reports again.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::graph::SharedGraph;
use super::report_queue::ReportQueue;
use crate::ids::{Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::planted::{PlantedBug, is_planted};
use crate::wire::control::{IncarnationMark, LinkReport};

/// Order and identity of the newest report of a member, without its links.
#[derive(Clone, Copy, Debug)]
struct LatestReport {
    incarnation: Incarnation,
    number: u32,
    is_departure: bool,
}

/// Link of a member's last report.
struct ReportedLink {
    edge: u16,
    neighbour: NodeId,
    /// Incarnation of the neighbour if the link is up.
    incarnation: Option<IncarnationMark>,
}

impl LatestReport {
    fn of(report: &LinkReport) -> Self {
        let LinkReport { incarnation, number, is_departure, .. } = *report;
        Self { incarnation, number, is_departure }
    }

    // W-18
    /// Returns true if this report is not newer. Incarnations come first, then numbers: the first report of a new
    /// incarnation is newer than the last of the one before. Numbers wrap, so that each has a successor: whichever
    /// number a forged report has, the member itself can send a newer one.
    fn is_not_newer(&self, known: &Self) -> bool {
        if is_planted(PlantedBug::StaleEpochTaken) {
            return self.number <= known.number;
        }
        match self.incarnation.cmp(&known.incarnation) {
            Ordering::Less => true,
            Ordering::Equal => !is_ahead(self.number, known.number),
            Ordering::Greater => false,
        }
    }

    // W-80
    /// Returns a hash of the report. The xor over all reports is the digest.
    fn fingerprint(&self, origin: NodeId) -> u32 {
        let mut hash = self.incarnation.0 ^ (u64::from(origin.0) << 48) ^ (u64::from(self.number) << 16);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) as u32
    }
}

/// All received reports, and the queue towards each port.
#[derive(Debug)]
pub struct Reports {
    own: NodeId,
    own_mark: IncarnationMark,
    graph: SharedGraph,
    /// Newest report of each member.
    latest: Vec<Option<LatestReport>>,
    /// Last report of either end of an edge: the incarnation of the other end to which it carries data, if it does.
    reported_up: Vec<[Option<IncarnationMark>; 2]>,
    queued: Vec<ReportQueue>,
    digest: u32,
}

/// Result of a received report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportEffect {
    /// Already received, or older than the present one.
    Old,
    /// The links of the origin have changed.
    Changed,
    /// The origin has a new incarnation.
    NewIncarnation,
    /// The report names members or links that do not exist.
    Malformed,
}

impl Reports {
    /// Returns an empty set of reports of `own`, whose incarnation is `incarnation`.
    #[must_use]
    pub fn new(graph: SharedGraph, own: NodeId, incarnation: Incarnation) -> Self {
        Self {
            own,
            own_mark: IncarnationMark::of(incarnation),
            latest: vec![None; graph.members.len()],
            reported_up: vec![[None; 2]; graph.edges.len()],
            queued: vec![ReportQueue::default(); graph.links(own).len()],
            graph,
            digest: 0,
        }
    }

    /// Returns the hash of all reports, which is equal at members that hold equal reports.
    #[must_use]
    pub const fn digest(&self) -> u32 {
        self.digest
    }

    /// Returns the incarnation that a member last reported.
    #[must_use]
    pub fn incarnation(&self, member: NodeId) -> Option<Incarnation> {
        self.latest.get(member.index())?.as_ref().map(|report| report.incarnation)
    }

    // W-63
    /// Returns true if both ends report that an edge carries data, each with the other's present incarnation.
    #[must_use]
    pub fn both_report_up(&self, edge: u16) -> bool {
        let edge = usize::from(edge);
        let [one, other] = self.reported_up[edge];
        let ends = &self.graph.edges[edge];
        let means = |reported: Option<IncarnationMark>, node: NodeId| {
            reported.is_some() && reported == self.incarnation(node).map(IncarnationMark::of)
        };
        means(one, ends.b) && means(other, ends.a)
    }

    // W-63
    /// Returns true if the neighbour at the other end of one of this member's edges, accepted there with incarnation
    /// `met`, reports that the edge carries data to this member's incarnation.
    #[must_use]
    pub fn neighbour_reports_up(&self, edge: u16, met: Option<Incarnation>) -> bool {
        let edge = usize::from(edge);
        let ends = &self.graph.edges[edge];
        let neighbour = if ends.a == self.own { ends.b } else { ends.a };
        self.reported_up[edge][self.end(edge, neighbour)] == Some(self.own_mark)
            && self.incarnation(neighbour) == met
    }

    // W-18
    /// Handles a report that arrived through `from`, or this member's own (`None`). `live` lists the ports to which
    /// it is forwarded.
    pub fn receive(
        &mut self,
        report: LinkReport,
        from: Option<PortId>,
        live: impl Iterator<Item = PortId>,
    ) -> ReportEffect {
        let origin = report.origin;
        let is_its_own = |edge: u16| {
            let ends = self.graph.edges.get(usize::from(edge));
            ends.is_some_and(|ends| [ends.a, ends.b].contains(&origin))
        };
        if !report.edges.iter().all(|(edge, _)| is_its_own(*edge)) {
            return ReportEffect::Malformed;
        }
        let Some(slot) = self.latest.get_mut(report.origin.index()) else { return ReportEffect::Malformed };
        let latest = LatestReport::of(&report);
        let effect = match slot {
            Some(known) if latest.is_not_newer(known) => return ReportEffect::Old,
            Some(known) if latest.incarnation > known.incarnation => ReportEffect::NewIncarnation,
            Some(_) => ReportEffect::Changed,
            None => ReportEffect::NewIncarnation,
        };
        if let Some(known) = slot {
            self.digest ^= known.fingerprint(origin);
        }
        self.digest ^= latest.fingerprint(origin);
        *slot = Some(latest);
        self.note_edges(&report);
        for port in live {
            if Some(port) != from && !self.receives_directly(port, origin) {
                self.queue(port, origin);
            }
        }
        effect
    }

    fn note_edges(&mut self, report: &LinkReport) {
        for (edge, incarnation) in &report.edges {
            let edge = usize::from(*edge);
            let end = self.end(edge, report.origin);
            self.reported_up[edge][end] = *incarnation;
        }
    }

    /// Returns the index of the end of an edge at which a member is.
    fn end(&self, edge: usize, member: NodeId) -> usize {
        usize::from(self.graph.edges[edge].b == member)
    }

    /// Iterates over the links of a member's last report, in port order.
    fn reported(&self, origin: NodeId) -> impl Iterator<Item = ReportedLink> + '_ {
        self.graph.links(origin).iter().map(move |(edge, neighbour)| {
            let index = usize::from(*edge);
            let incarnation = self.reported_up[index][self.end(index, origin)];
            ReportedLink { edge: *edge, neighbour: *neighbour, incarnation }
        })
    }

    /// Returns true if the neighbour at `port` has a link of its own to the origin, so that the report need not be
    /// forwarded. If the origin's frame is lost, the digests differ.
    fn receives_directly(&self, port: PortId, origin: NodeId) -> bool {
        let neighbour = self.graph.links(self.own)[port.index()].1;
        if self.latest[origin.index()].is_none() || origin == self.own {
            return false;
        }
        neighbour == origin
            || self.reported(origin).any(|link| link.incarnation.is_some() && link.neighbour == neighbour)
    }

    /// Queues the reports that a neighbour on a new link will not get from their origins.
    pub fn report_all_to(&mut self, port: PortId) {
        for index in 0..self.latest.len() {
            let origin = NodeId(index as u16);
            if self.latest[index].is_some() && !self.receives_directly(port, origin) {
                self.queue(port, origin);
            }
        }
    }

    fn queue(&mut self, port: PortId, origin: NodeId) {
        self.queued[port.index()].push(origin);
    }

    /// Queues all reports for a neighbour.
    pub fn queue_all(&mut self, port: PortId) {
        let known = (0..self.latest.len()).filter(|index| self.latest[*index].is_some());
        let queue = &mut self.queued[port.index()];
        queue.clear();
        known.for_each(|index| queue.push(NodeId(index as u16)));
    }

    /// Empties the queue of a port.
    pub fn clear(&mut self, port: PortId) {
        self.queued[port.index()].clear();
    }

    /// Returns true if a report is queued for a port.
    #[must_use]
    pub fn is_waiting(&self, port: PortId) -> bool {
        !self.queued[port.index()].is_empty()
    }

    /// Removes and returns the next report for a port, if its body has at most this number of bytes.
    pub fn next_within(&mut self, port: PortId, bytes_max: usize) -> Option<LinkReport> {
        let origin = self.queued[port.index()].front()?;
        let LatestReport { incarnation, number, is_departure } = self.latest[origin.index()]?;
        if LinkReport::bytes_of(self.graph.links(origin).len()) > bytes_max {
            return None;
        }
        self.queued[port.index()].pop();
        let edges = self.reported(origin).map(|link| (link.edge, link.incarnation)).collect();
        Some(LinkReport { origin, incarnation, number, edges, is_departure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Plane;
    use crate::route::graph::{Edge, Graph, MemberRole};

    /// Returns the graph of a line 2 - 0 - 1 - 3: from 0, port 0 leads to 1 and port 1 to 2.
    fn graph() -> Graph {
        let edge = |a: u16, a_port: u16, b: u16, b_port: u16| Edge {
            a: NodeId(a),
            a_port: PortId(a_port),
            b: NodeId(b),
            b_port: PortId(b_port),
            plane: Plane(0),
        };
        let edges = vec![edge(0, 0, 1, 0), edge(0, 1, 2, 0), edge(1, 1, 3, 0)];
        Graph { members: vec![MemberRole::Endpoint; 4], edges }
    }

    const OWN: Incarnation = Incarnation(7);
    const OWN_MARK: IncarnationMark = IncarnationMark::of(OWN);

    fn report(incarnation: u64, number: u32, up: bool) -> LinkReport {
        LinkReport {
            origin: NodeId(1),
            incarnation: Incarnation(incarnation),
            number,
            edges: vec![(0, up.then_some(OWN_MARK))],
            is_departure: false,
        }
    }

    #[test]
    fn newer_reports_win_and_older_ones_change_nothing() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let live = || [PortId(0), PortId(1)].into_iter();
        assert_eq!(
            reports.receive(report(5, 1, true), Some(PortId(0)), live()),
            ReportEffect::NewIncarnation
        );
        assert_eq!(reports.receive(report(5, 2, false), Some(PortId(0)), live()), ReportEffect::Changed);
        let digest = reports.digest();
        assert_eq!(reports.receive(report(5, 1, true), Some(PortId(0)), live()), ReportEffect::Old);
        assert_eq!(reports.receive(report(4, 9, true), Some(PortId(0)), live()), ReportEffect::Old);
        assert!(!reports.neighbour_reports_up(0, Some(Incarnation(5))));
        assert_eq!(reports.digest(), digest);
        assert!(!reports.is_waiting(PortId(0)), "not reported back to its source");
        assert_eq!(reports.next_within(PortId(1), 1000).map(|report| report.number), Some(2));
        assert_eq!(reports.receive(report(6, 1, true), None, live()), ReportEffect::NewIncarnation);
    }

    // W-18
    #[test]
    fn every_number_has_a_newer_one() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut receive = |number: u32| reports.receive(report(5, number, true), None, core::iter::empty());
        assert_eq!(receive(u32::MAX - (1 << 31)), ReportEffect::NewIncarnation);
        assert_eq!(receive(u32::MAX), ReportEffect::Old, "half of the range away");
        assert_eq!(receive(u32::MAX - 1), ReportEffect::Changed);
        assert_eq!(receive(u32::MAX), ReportEffect::Changed);
        assert_eq!(receive(0), ReportEffect::Changed);
        assert_eq!(receive(u32::MAX), ReportEffect::Old);
    }

    // W-63
    #[test]
    fn a_link_that_is_up_with_another_incarnation_is_not_up_with_this_one() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut receive = |origin: u16, incarnation: u64, edges: &[(u16, Option<u64>)]| {
            let edges = edges.iter().map(|(edge, of)| {
                (*edge, of.map(|incarnation| IncarnationMark::of(Incarnation(incarnation))))
            });
            let (origin, edges) = (NodeId(origin), edges.collect());
            reports.receive(
                LinkReport { origin, edges, ..report(incarnation, 1, true) },
                None,
                core::iter::empty(),
            );
            (reports.neighbour_reports_up(0, Some(Incarnation(11))), reports.both_report_up(2))
        };
        assert_eq!(receive(3, 20, &[(2, Some(10))]), (false, false), "member 1 is not known yet");
        assert_eq!(
            receive(1, 10, &[(0, Some(7)), (2, Some(20))]),
            (false, true),
            "the link has met incarnation 11 of member 1"
        );
        assert_eq!(
            receive(1, 11, &[(0, Some(6)), (2, Some(20))]),
            (false, false),
            "it means incarnation 6, and member 3 incarnation 10"
        );
        assert_eq!(
            receive(3, 21, &[(2, Some(11))]),
            (false, false),
            "member 1 means incarnation 20 of member 3"
        );
        assert_eq!(receive(3, 22, &[(2, None)]), (false, false));
        assert_eq!(receive(3, 23, &[(2, Some(11))]), (false, false));
    }

    // W-63
    #[test]
    fn a_link_is_used_when_both_ends_report_each_other() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut receive = |origin: u16, incarnation: u64, edges: Vec<(u16, Option<IncarnationMark>)>| {
            let origin = NodeId(origin);
            reports.receive(
                LinkReport { origin, edges, ..report(incarnation, 1, true) },
                None,
                core::iter::empty(),
            );
        };
        let mark = |incarnation: u64| Some(IncarnationMark::of(Incarnation(incarnation)));
        receive(1, 11, vec![(0, Some(OWN_MARK)), (2, mark(20))]);
        receive(3, 20, vec![(2, mark(11))]);
        assert!(reports.neighbour_reports_up(0, Some(Incarnation(11))) && reports.both_report_up(2));
    }

    #[test]
    fn a_report_is_not_sent_to_a_neighbour_of_its_origin() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let live = || [PortId(0), PortId(1)].into_iter();
        let of_three =
            LinkReport { origin: NodeId(3), edges: vec![(2, Some(OWN_MARK))], ..report(1, 1, true) };
        reports.receive(of_three, None, live());
        assert!(!reports.is_waiting(PortId(0)), "member 1 has a link to member 3");
        assert!(reports.is_waiting(PortId(1)), "member 2 has none");
    }

    #[test]
    fn a_report_about_links_that_do_not_exist_is_refused() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut malformed = report(1, 1, true);
        malformed.edges.push((1, Some(OWN_MARK)));
        assert_eq!(reports.receive(malformed, None, core::iter::empty()), ReportEffect::Malformed);
        assert_eq!(reports.digest(), 0);
    }
}
