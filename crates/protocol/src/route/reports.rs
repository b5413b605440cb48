//! What every member last said about its links, and what must still be told to whom.
//!
//! Reports are ordered by (incarnation, number). A newer one is kept and passed on to every other live neighbour; an
//! older one is ignored. Flooding may lose frames: heartbeats carry a digest of all reports, and neighbours whose
//! digests differ tell each other everything again.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::graph::Graph;
use crate::ids::{Incarnation, NodeId, PortId};
use crate::wire::control::LinkReport;

/// All reports heard, and the queue towards each port.
#[derive(Debug)]
pub struct Reports {
    own: NodeId,
    latest: Vec<Option<LinkReport>>,
    queued: Vec<VecDeque<NodeId>>,
    neighbours: Vec<NodeId>,
    ends: Vec<[NodeId; 2]>,
    says_up: Vec<[bool; 2]>,
    digest: u32,
}

/// What a received report meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Known, or older than what is known.
    Old,
    /// The origin says something new about its links.
    Changed,
    /// The origin has begun a new life.
    NewLife,
    /// It names members or links that do not exist.
    Malformed,
}

impl Reports {
    /// Nothing heard yet by `own`.
    #[must_use]
    pub fn new(graph: &Graph, own: NodeId) -> Self {
        let neighbours: Vec<_> = graph.ports(own).into_iter().map(|(_, neighbour, _)| neighbour).collect();
        Self {
            own,
            latest: vec![None; graph.members.len()],
            queued: vec![VecDeque::new(); neighbours.len()],
            neighbours,
            ends: graph.edges.iter().map(|edge| [edge.a, edge.b]).collect(),
            says_up: vec![[false; 2]; graph.edges.len()],
            digest: 0,
        }
    }

    /// Hash of everything known; equal at members that know the same.
    #[must_use]
    pub const fn digest(&self) -> u32 {
        self.digest
    }

    /// The life that a member last reported.
    #[must_use]
    pub fn life(&self, member: NodeId) -> Option<Incarnation> {
        self.latest.get(member.index())?.as_ref().map(|report| report.incarnation)
    }

    /// Whether both ends say that an edge carries data.
    #[must_use]
    pub fn both_say_up(&self, edge: u16) -> bool {
        self.says_up[usize::from(edge)] == [true; 2]
    }

    /// Whether the end of `edge` that is not `member` says that it carries data.
    #[must_use]
    pub fn other_says_up(&self, member: NodeId, edge: u16) -> bool {
        let edge = usize::from(edge);
        self.says_up[edge][usize::from(self.ends[edge][0] == member)]
    }

    // W-18
    /// A report came in through `from`, or is this member's own (`None`). `live` lists the ports to pass it on to.
    pub fn hear(
        &mut self,
        report: LinkReport,
        from: Option<PortId>,
        live: impl Iterator<Item = PortId>,
    ) -> News {
        let origin = report.origin;
        let is_its_own =
            |edge: u16| self.ends.get(usize::from(edge)).is_some_and(|ends| ends.contains(&origin));
        if !report.edges.iter().all(|(edge, _)| is_its_own(*edge)) {
            return News::Malformed;
        }
        let Some(slot) = self.latest.get_mut(report.origin.index()) else { return News::Malformed };
        let news = match slot {
            Some(known) if (report.incarnation, report.number) <= (known.incarnation, known.number) => {
                return News::Old;
            }
            Some(known) if report.incarnation > known.incarnation => News::NewLife,
            Some(_) => News::Changed,
            None => News::NewLife,
        };
        if let Some(known) = slot.as_ref() {
            self.digest ^= fingerprint(known);
        }
        self.digest ^= fingerprint(&report);
        *slot = Some(report);
        self.note_edges(origin);
        for port in live {
            if Some(port) != from && !self.hears_directly(port, origin) {
                self.queue(port, origin);
            }
        }
        news
    }

    fn note_edges(&mut self, origin: NodeId) {
        let Some(report) = &self.latest[origin.index()] else { return };
        for (edge, up) in &report.edges {
            let edge = usize::from(*edge);
            let end = usize::from(self.ends[edge][1] == origin);
            self.says_up[edge][end] = *up;
        }
    }

    /// Whether the neighbour at `port` hears the origin over a link of its own, so that nobody need pass the report on.
    /// If the origin's frame is lost, the digests tell.
    fn hears_directly(&self, port: PortId, origin: NodeId) -> bool {
        let neighbour = self.neighbours[port.index()];
        let Some(report) = &self.latest[origin.index()] else { return false };
        origin != self.own
            && (neighbour == origin
                || report
                    .edges
                    .iter()
                    .any(|(edge, up)| *up && self.ends[usize::from(*edge)].contains(&neighbour)))
    }

    /// A link has come up: tell the neighbour what it will not hear from the origins themselves.
    pub fn greet(&mut self, port: PortId) {
        for index in 0..self.latest.len() {
            let origin = NodeId(index as u16);
            if self.latest[index].is_some() && !self.hears_directly(port, origin) {
                self.queue(port, origin);
            }
        }
    }

    fn queue(&mut self, port: PortId, origin: NodeId) {
        let queue = &mut self.queued[port.index()];
        if !queue.contains(&origin) {
            queue.push_back(origin);
        }
    }

    /// Tell a neighbour everything.
    pub fn queue_all(&mut self, port: PortId) {
        let known = (0..self.latest.len()).filter(|index| self.latest[*index].is_some());
        let queue = &mut self.queued[port.index()];
        queue.clear();
        queue.extend(known.map(|index| NodeId(index as u16)));
    }

    /// Forget what was to be told through a port.
    pub fn clear(&mut self, port: PortId) {
        self.queued[port.index()].clear();
    }

    /// Whether something is to be told through a port.
    #[must_use]
    pub fn is_waiting(&self, port: PortId) -> bool {
        !self.queued[port.index()].is_empty()
    }

    /// The next report to be told through a port.
    pub fn next(&mut self, port: PortId) -> Option<&LinkReport> {
        let origin = self.queued[port.index()].pop_front()?;
        self.latest[origin.index()].as_ref()
    }
}

/// A well-mixed hash of which report this is; xor over all of them gives the digest.
fn fingerprint(report: &LinkReport) -> u32 {
    let mut hash =
        report.incarnation.0 ^ (u64::from(report.origin.0) << 48) ^ (u64::from(report.number) << 16);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Plane;
    use crate::route::graph::{Edge, MemberRole};

    /// A line 2 - 0 - 1 - 3, seen from 0: port 0 leads to 1, port 1 to 2.
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

    fn report(life: u64, number: u32, up: bool) -> LinkReport {
        LinkReport { origin: NodeId(1), incarnation: Incarnation(life), number, edges: vec![(0, up)] }
    }

    #[test]
    fn newer_reports_win_and_older_ones_change_nothing() {
        let mut reports = Reports::new(&graph(), NodeId(0));
        let live = || [PortId(0), PortId(1)].into_iter();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::NewLife);
        assert_eq!(reports.hear(report(5, 2, false), Some(PortId(0)), live()), News::Changed);
        let digest = reports.digest();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::Old);
        assert_eq!(reports.hear(report(4, 9, true), Some(PortId(0)), live()), News::Old);
        assert!(!reports.other_says_up(NodeId(0), 0));
        assert_eq!(reports.digest(), digest);
        assert!(!reports.is_waiting(PortId(0)), "not told back to where it came from");
        assert_eq!(reports.next(PortId(1)).map(|report| report.number), Some(2));
        assert_eq!(reports.hear(report(6, 1, true), None, live()), News::NewLife);
    }

    #[test]
    fn a_neighbour_of_the_origin_is_not_told_again() {
        let mut reports = Reports::new(&graph(), NodeId(0));
        let live = || [PortId(0), PortId(1)].into_iter();
        let of_three =
            LinkReport { origin: NodeId(3), incarnation: Incarnation(1), number: 1, edges: vec![(2, true)] };
        reports.hear(of_three, None, live());
        assert!(!reports.is_waiting(PortId(0)), "member 1 has a link to member 3");
        assert!(reports.is_waiting(PortId(1)), "member 2 has none");
    }

    #[test]
    fn a_report_about_links_that_do_not_exist_is_refused() {
        let mut reports = Reports::new(&graph(), NodeId(0));
        let mut strange = report(1, 1, true);
        strange.edges.push((1, true));
        assert_eq!(reports.hear(strange, None, core::iter::empty()), News::Malformed);
        assert_eq!(reports.digest(), 0);
    }
}
