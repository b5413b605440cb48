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
    latest: Vec<Option<LinkReport>>,
    queued: Vec<VecDeque<NodeId>>,
    digest: u32,
    edge_count: usize,
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
    /// Nothing heard yet.
    #[must_use]
    pub fn new(graph: &Graph, port_count: usize) -> Self {
        Self {
            latest: vec![None; graph.members.len()],
            queued: vec![VecDeque::new(); port_count],
            digest: 0,
            edge_count: graph.edges.len(),
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

    /// Whether `member` says that `edge` carries data.
    #[must_use]
    pub fn says_up(&self, member: NodeId, edge: u16) -> bool {
        let Some(Some(report)) = self.latest.get(member.index()) else { return false };
        report.edges.iter().any(|(known, up)| *known == edge && *up)
    }

    // W-18
    /// A report came in through `from`, or is this member's own (`None`). `live` lists the ports to pass it on to.
    pub fn hear(
        &mut self,
        report: LinkReport,
        from: Option<PortId>,
        live: impl Iterator<Item = PortId>,
    ) -> News {
        if report.edges.iter().any(|(edge, _)| usize::from(*edge) >= self.edge_count) {
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
        let origin = report.origin;
        if let Some(known) = slot.as_ref() {
            self.digest ^= fingerprint(known);
        }
        self.digest ^= fingerprint(&report);
        *slot = Some(report);
        for port in live {
            if Some(port) != from {
                self.queue(port, origin);
            }
        }
        news
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

    fn graph() -> Graph {
        let edge = Edge { a: NodeId(0), a_port: PortId(0), b: NodeId(1), b_port: PortId(0), plane: Plane(0) };
        Graph { members: vec![MemberRole::Endpoint; 2], edges: vec![edge] }
    }

    fn report(life: u64, number: u32, up: bool) -> LinkReport {
        LinkReport { origin: NodeId(1), incarnation: Incarnation(life), number, edges: vec![(0, up)] }
    }

    #[test]
    fn newer_reports_win_and_older_ones_change_nothing() {
        let mut reports = Reports::new(&graph(), 2);
        let live = || [PortId(0), PortId(1)].into_iter();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::NewLife);
        assert_eq!(reports.hear(report(5, 2, false), Some(PortId(0)), live()), News::Changed);
        let digest = reports.digest();
        assert_eq!(reports.hear(report(5, 1, true), Some(PortId(0)), live()), News::Old);
        assert_eq!(reports.hear(report(4, 9, true), Some(PortId(0)), live()), News::Old);
        assert!(!reports.says_up(NodeId(1), 0));
        assert_eq!(reports.digest(), digest);
        assert!(!reports.is_waiting(PortId(0)), "not told back to where it came from");
        assert_eq!(reports.next(PortId(1)).map(|report| report.number), Some(2));
        assert_eq!(reports.hear(report(6, 1, true), None, live()), News::NewLife);
    }

    #[test]
    fn a_report_about_links_that_do_not_exist_is_refused() {
        let mut reports = Reports::new(&graph(), 1);
        let mut strange = report(1, 1, true);
        strange.edges.push((7, true));
        assert_eq!(reports.hear(strange, None, core::iter::empty()), News::Malformed);
        assert_eq!(reports.digest(), 0);
    }
}
