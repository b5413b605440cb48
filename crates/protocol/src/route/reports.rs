//! What every member last said about its links, and what must still be told to whom.
//!
//! Reports are ordered by (incarnation, number). A newer one is kept and passed on to every other live neighbour; an
//! older one is ignored. Flooding may lose frames: heartbeats carry a digest of all reports, and neighbours whose
//! digests differ tell each other everything again.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::graph::SharedGraph;
use crate::ids::{Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::planted::{PlantedBug, is_planted};
use crate::wire::control::{LifeMark, LinkReport};

/// Room for so many members in a queue that is empty is kept; a rack that comes up needs more once.
const QUEUE_ROOM_KEPT: usize = 64;

/// The newest report of a member, but for what it says of its links.
#[derive(Clone, Copy, Debug)]
struct Heard {
    incarnation: Incarnation,
    number: u32,
    is_farewell: bool,
}

impl Heard {
    fn of(report: &LinkReport) -> Self {
        let LinkReport { incarnation, number, is_farewell, .. } = *report;
        Self { incarnation, number, is_farewell }
    }

    // W-18
    /// Lives first, then numbers: the first report of a new life is newer than the last of the one before. Numbers are on a circle, so that
    /// each one has a successor: whatever number a forged report bears, the member itself can send a newer one.
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
    /// A well-mixed hash of which report this is; xor over all of them gives the digest.
    fn fingerprint(&self, origin: NodeId) -> u32 {
        let mut hash = self.incarnation.0 ^ (u64::from(origin.0) << 48) ^ (u64::from(self.number) << 16);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) as u32
    }
}

/// All reports heard, and the queue towards each port.
#[derive(Debug)]
pub struct Reports {
    own: NodeId,
    own_life: LifeMark,
    graph: SharedGraph,
    /// By member.
    latest: Vec<Option<Heard>>,
    /// By edge, what either end said of it last: with which life of the other end it carries data, if it does.
    says_up: Vec<[Option<LifeMark>; 2]>,
    queued: Vec<VecDeque<NodeId>>,
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
    /// Nothing heard yet by `own`, whose life this is.
    #[must_use]
    pub fn new(graph: SharedGraph, own: NodeId, life: Incarnation) -> Self {
        Self {
            own,
            own_life: LifeMark::of(life),
            latest: vec![None; graph.members.len()],
            says_up: vec![[None; 2]; graph.edges.len()],
            queued: vec![VecDeque::new(); graph.links(own).len()],
            graph,
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

    // W-63
    /// Whether both ends say that an edge carries data, each with the other's present life.
    #[must_use]
    pub fn both_say_up(&self, edge: u16) -> bool {
        let edge = usize::from(edge);
        let [one, other] = self.says_up[edge];
        let ends = &self.graph.edges[edge];
        let means = |said: Option<LifeMark>, whom: NodeId| {
            said.is_some() && said == self.life(whom).map(LifeMark::of)
        };
        means(one, ends.b) && means(other, ends.a)
    }

    // W-63
    /// Whether the neighbour at the other end of an edge of this member, which has been met there in this life, says that the
    /// edge carries data with this member's life.
    #[must_use]
    pub fn neighbour_says_up(&self, edge: u16, met: Option<Incarnation>) -> bool {
        let edge = usize::from(edge);
        let ends = &self.graph.edges[edge];
        let neighbour = if ends.a == self.own { ends.b } else { ends.a };
        self.says_up[edge][self.end(edge, neighbour)] == Some(self.own_life) && self.life(neighbour) == met
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
        let is_its_own = |edge: u16| {
            let ends = self.graph.edges.get(usize::from(edge));
            ends.is_some_and(|ends| [ends.a, ends.b].contains(&origin))
        };
        if !report.edges.iter().all(|(edge, _)| is_its_own(*edge)) {
            return News::Malformed;
        }
        let Some(slot) = self.latest.get_mut(report.origin.index()) else { return News::Malformed };
        let heard = Heard::of(&report);
        let news = match slot {
            Some(known) if heard.is_not_newer(known) => return News::Old,
            Some(known) if heard.incarnation > known.incarnation => News::NewLife,
            Some(_) => News::Changed,
            None => News::NewLife,
        };
        if let Some(known) = slot {
            self.digest ^= known.fingerprint(origin);
        }
        self.digest ^= heard.fingerprint(origin);
        *slot = Some(heard);
        self.note_edges(&report);
        for port in live {
            if Some(port) != from && !self.hears_directly(port, origin) {
                self.queue(port, origin);
            }
        }
        news
    }

    fn note_edges(&mut self, report: &LinkReport) {
        for (edge, life) in &report.edges {
            let edge = usize::from(*edge);
            let end = self.end(edge, report.origin);
            self.says_up[edge][end] = *life;
        }
    }

    /// Which end of an edge a member is.
    fn end(&self, edge: usize, member: NodeId) -> usize {
        usize::from(self.graph.edges[edge].b == member)
    }

    /// What a member said of its links last, in port order.
    fn said(&self, origin: NodeId) -> impl Iterator<Item = (u16, NodeId, Option<LifeMark>)> + '_ {
        self.graph.links(origin).iter().map(move |(edge, neighbour)| {
            let index = usize::from(*edge);
            (*edge, *neighbour, self.says_up[index][self.end(index, origin)])
        })
    }

    /// Whether the neighbour at `port` hears the origin over a link of its own, so that nobody need pass the report on.
    /// If the origin's frame is lost, the digests tell.
    fn hears_directly(&self, port: PortId, origin: NodeId) -> bool {
        let neighbour = self.graph.links(self.own)[port.index()].1;
        if self.latest[origin.index()].is_none() || origin == self.own {
            return false;
        }
        neighbour == origin || self.said(origin).any(|(_, other, life)| life.is_some() && other == neighbour)
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
    pub fn next(&mut self, port: PortId) -> Option<LinkReport> {
        let queue = &mut self.queued[port.index()];
        let origin = queue.pop_front()?;
        if queue.is_empty() && queue.capacity() > QUEUE_ROOM_KEPT {
            *queue = VecDeque::new();
        }
        let Heard { incarnation, number, is_farewell } = self.latest[origin.index()]?;
        let edges = self.said(origin).map(|(edge, _, life)| (edge, life)).collect();
        Some(LinkReport { origin, incarnation, number, edges, is_farewell })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Plane;
    use crate::route::graph::{Edge, Graph, MemberRole};

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

    const OWN: Incarnation = Incarnation(7);
    const OWN_MARK: LifeMark = LifeMark::of(OWN);

    fn report(life: u64, number: u32, up: bool) -> LinkReport {
        LinkReport {
            origin: NodeId(1),
            incarnation: Incarnation(life),
            number,
            edges: vec![(0, up.then_some(OWN_MARK))],
            is_farewell: false,
        }
    }

    #[test]
    fn newer_reports_win_and_older_ones_change_nothing() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let live = || [PortId(0), PortId(1)].into_iter();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::NewLife);
        assert_eq!(reports.hear(report(5, 2, false), Some(PortId(0)), live()), News::Changed);
        let digest = reports.digest();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::Old);
        assert_eq!(reports.hear(report(4, 9, true), Some(PortId(0)), live()), News::Old);
        assert!(!reports.neighbour_says_up(0, Some(Incarnation(5))));
        assert_eq!(reports.digest(), digest);
        assert!(!reports.is_waiting(PortId(0)), "not told back to where it came from");
        assert_eq!(reports.next(PortId(1)).map(|report| report.number), Some(2));
        assert_eq!(reports.hear(report(6, 1, true), None, live()), News::NewLife);
    }

    // W-18
    #[test]
    fn every_number_has_a_newer_one() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut hear = |number: u32| reports.hear(report(5, number, true), None, core::iter::empty());
        assert_eq!(hear(u32::MAX - (1 << 31)), News::NewLife);
        assert_eq!(hear(u32::MAX), News::Old, "half of the circle away");
        assert_eq!(hear(u32::MAX - 1), News::Changed);
        assert_eq!(hear(u32::MAX), News::Changed);
        assert_eq!(hear(0), News::Changed);
        assert_eq!(hear(u32::MAX), News::Old);
    }

    // W-63
    #[test]
    fn who_is_up_with_another_life_is_not_up_with_this_one() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut hear = |origin: u16, life: u64, edges: &[(u16, Option<u64>)]| {
            let edges =
                edges.iter().map(|(edge, of)| (*edge, of.map(|life| LifeMark::of(Incarnation(life)))));
            let (origin, edges) = (NodeId(origin), edges.collect());
            reports.hear(LinkReport { origin, edges, ..report(life, 1, true) }, None, core::iter::empty());
            (reports.neighbour_says_up(0, Some(Incarnation(11))), reports.both_say_up(2))
        };
        assert_eq!(hear(3, 20, &[(2, Some(10))]), (false, false), "nobody knows member 1 yet");
        assert_eq!(
            hear(1, 10, &[(0, Some(7)), (2, Some(20))]),
            (false, true),
            "the link has met life 11 of member 1"
        );
        assert_eq!(
            hear(1, 11, &[(0, Some(6)), (2, Some(20))]),
            (false, false),
            "it means life 6, and member 3 life 10"
        );
        assert_eq!(hear(3, 21, &[(2, Some(11))]), (false, false), "member 1 means life 20 of member 3");
        assert_eq!(hear(3, 22, &[(2, None)]), (false, false));
        assert_eq!(hear(3, 23, &[(2, Some(11))]), (false, false));
    }

    // W-63
    #[test]
    fn a_link_counts_when_both_mean_each_other() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut hear = |origin: u16, life: u64, edges: Vec<(u16, Option<LifeMark>)>| {
            let origin = NodeId(origin);
            reports.hear(LinkReport { origin, edges, ..report(life, 1, true) }, None, core::iter::empty());
        };
        let mark = |life: u64| Some(LifeMark::of(Incarnation(life)));
        hear(1, 11, vec![(0, Some(OWN_MARK)), (2, mark(20))]);
        hear(3, 20, vec![(2, mark(11))]);
        assert!(reports.neighbour_says_up(0, Some(Incarnation(11))) && reports.both_say_up(2));
    }

    #[test]
    fn a_neighbour_of_the_origin_is_not_told_again() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let live = || [PortId(0), PortId(1)].into_iter();
        let of_three =
            LinkReport { origin: NodeId(3), edges: vec![(2, Some(OWN_MARK))], ..report(1, 1, true) };
        reports.hear(of_three, None, live());
        assert!(!reports.is_waiting(PortId(0)), "member 1 has a link to member 3");
        assert!(reports.is_waiting(PortId(1)), "member 2 has none");
    }

    #[test]
    fn a_report_about_links_that_do_not_exist_is_refused() {
        let mut reports = Reports::new(graph().into(), NodeId(0), OWN);
        let mut strange = report(1, 1, true);
        strange.edges.push((1, Some(OWN_MARK)));
        assert_eq!(reports.hear(strange, None, core::iter::empty()), News::Malformed);
        assert_eq!(reports.digest(), 0);
    }
}
