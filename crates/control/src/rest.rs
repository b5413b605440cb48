//! Checks after a run: once all faults are healed, members must make progress, and all credits and grants must be free.
//!
//! A fabric may stop under faults. It must not stay stopped when they are over. So every live GPU node reads one word
//! from its live neighbours ([`nodes_to_read`]), and both ends of every link report their counters. [`judge`] checks that
//! every read was answered and that all credits are free. A member reports only its own state ([`Rest`]), so a process
//! can send it as one line.
//!
//! This module does not heal, read or wait.

use rackloom_protocol::link::credits::{CreditBalance, CreditCounters};
use rackloom_protocol::{Edge, Inspect, NodeId, PortId};
use serde::{Deserialize, Serialize};

use crate::oracle::{Oracle, Verdicts};

/// State of one member at rest, some time after all faults were healed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Number of reads that were answered.
    pub answered: u64,
    /// Members whose answer has not arrived, by seat in the plan.
    pub unanswered: Vec<u16>,
    /// The member's ends of links, in port order.
    pub ends: Vec<LinkEnd>,
    /// Packets that the member has granted and that have not arrived; `None` if it grants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_packets: Option<u32>,
}

/// One end of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// Index of the link in the plan.
    pub edge: u16,
    /// True if the link carries data.
    pub carries_data: bool,
    /// True if the credits of lost frames are returned.
    pub resyncs: bool,
    /// Credit counters by virtual channel.
    pub channels: Vec<Counters>,
}

/// [`CreditCounters`] in a form that lines and files carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// See [`CreditCounters::limit`].
    pub limit: u32,
    /// See [`CreditCounters::consumed`].
    pub consumed: u32,
    /// See [`CreditCounters::neighbour_freed`].
    pub neighbour_freed: u32,
    /// See [`CreditCounters::freed`].
    pub freed: u32,
    /// See [`CreditCounters::held`].
    pub held: u32,
}

impl From<CreditCounters> for Counters {
    fn from(counters: CreditCounters) -> Self {
        let CreditCounters { limit, consumed, neighbour_freed, freed, held } = counters;
        Self { limit, consumed, neighbour_freed, freed, held }
    }
}

impl From<Counters> for CreditCounters {
    fn from(counters: Counters) -> Self {
        let Counters { limit, consumed, neighbour_freed, freed, held } = counters;
        Self { limit, consumed, neighbour_freed, freed, held }
    }
}

impl LinkEnd {
    /// Returns all ends of a member whose ports lead to these links, in port order.
    pub fn of_member(member: &(impl Inspect + ?Sized), edges: impl IntoIterator<Item = u16>) -> Vec<Self> {
        let ends = edges.into_iter().zip(0..).filter_map(|(edge, port)| {
            let link = member.link(PortId(port))?;
            let channels = (0..link.accounts.count() as u8).map(rackloom_protocol::ids::Channel);
            Some(Self {
                edge,
                carries_data: link.state().carries_data(),
                resyncs: link.accounts.resync(),
                channels: channels.map(|channel| link.accounts.credits(channel).counters().into()).collect(),
            })
        });
        ends.collect()
    }
}

/// Returns the nodes from which `reader` must read a word. These are each live GPU node at the other end of a link, and,
/// behind each live switch, the next live node, so that the reads behind a switch form a circle.
pub fn nodes_to_read(
    edges: &[Edge],
    reader: NodeId,
    is_node: impl Fn(NodeId) -> bool,
    is_live: impl Fn(NodeId) -> bool,
) -> Vec<NodeId> {
    let neighbours = |node: NodeId| {
        let ends = edges.iter().filter_map(move |edge| match (edge.a == node, edge.b == node) {
            (true, _) => Some(edge.b),
            (_, true) => Some(edge.a),
            _ => None,
        });
        ends.filter(|end| is_live(*end)).collect::<Vec<_>>()
    };
    let (mut near, hubs): (Vec<_>, Vec<_>) = neighbours(reader).into_iter().partition(|end| is_node(*end));
    for hub in hubs {
        let mut behind: Vec<_> = neighbours(hub).into_iter().filter(|end| is_node(*end)).collect();
        behind.sort_unstable();
        let next = behind.iter().find(|end| **end > reader).or(behind.first());
        near.extend(next.filter(|next| **next != reader));
    }
    near.sort_unstable();
    near.dedup();
    near
}

/// Returns the number of link directions that were checked, and a line for each direction whose credits are not all
/// free. Only links that carry data at both ends are checked.
fn unbalanced(edges: &[Edge], rests: &[Option<Rest>], name: impl Fn(NodeId) -> String) -> (u64, Vec<String>) {
    let end = |node: NodeId, edge: usize| {
        let ends = rests.get(node.index())?.as_ref()?.ends.iter();
        ends.into_iter().find(|end| usize::from(end.edge) == edge && end.carries_data)
    };
    let (mut looked, mut found) = (0, Vec::new());
    for (number, edge) in edges.iter().enumerate() {
        for (from, to) in [(edge.a, edge.b), (edge.b, edge.a)] {
            let (Some(sender), Some(receiver)) = (end(from, number), end(to, number)) else { continue };
            looked += 1;
            for (channel, (sent, got)) in sender.channels.iter().zip(&receiver.channels).enumerate() {
                let balance = CreditBalance::of_counters(&(*sent).into(), &(*got).into(), 0);
                let is_home =
                    |balance: &CreditBalance| balance.held == 0 && (balance.leaked == 0 || !sender.resyncs);
                if !balance.as_ref().is_some_and(is_home) {
                    found.push(format!("{} to {} on channel {channel}: {balance:?}", name(from), name(to)));
                }
            }
        }
    }
    (looked, found)
}

impl Rest {
    /// Removes the members that have been lost since. A kill of the script may come between the end of the job and the
    /// healing.
    #[must_use]
    pub fn without_the_dead(mut self, is_dead: impl Fn(NodeId) -> bool) -> Self {
        self.unanswered.retain(|target| !is_dead(NodeId(*target)));
        self
    }
}

/// Checks the reports of the members, by seat in the plan. Members without a report are not judged.
#[must_use]
pub fn judge(edges: &[Edge], rests: &[Option<Rest>], name: impl Fn(NodeId) -> String) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for (reader, rest) in (0..).map(NodeId).zip(rests) {
        let Some(rest) = rest else { continue };
        verdicts.hold_times(Oracle::Progress, rest.answered);
        for target in &rest.unanswered {
            let what = || {
                format!(
                    "{} cannot read a word of {} although everything is healed",
                    name(reader),
                    name(NodeId(*target))
                )
            };
            verdicts.find(Oracle::Progress, what);
        }
    }
    for (member, granted) in (0..).map(NodeId).zip(rests).filter_map(|(member, rest)| {
        let granted = rest.as_ref()?.granted_packets?;
        Some((member, granted))
    }) {
        let what = || format!("grants of {} have not returned at rest: {granted} packets", name(member));
        verdicts.judge(Oracle::Credits, granted == 0, what);
    }
    let (looked, unbalanced) = unbalanced(edges, rests, name);
    verdicts.hold_times(Oracle::Credits, looked.saturating_sub(unbalanced.len() as u64));
    for line in unbalanced {
        verdicts.find(Oracle::Credits, || format!("credits have not come home at rest: {line}"));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::Plane;

    use super::*;

    fn edge(a: u16, b: u16) -> Edge {
        Edge { a: NodeId(a), a_port: PortId(0), b: NodeId(b), b_port: PortId(0), plane: Plane(0) }
    }

    fn end(consumed: u32, freed: u32) -> LinkEnd {
        let counters = Counters { limit: 8, consumed, neighbour_freed: consumed, freed, held: 0 };
        LinkEnd { edge: 0, carries_data: true, resyncs: true, channels: vec![counters] }
    }

    /// Two members at rest, after five credits in one direction and three in the other.
    fn pair() -> [Option<Rest>; 2] {
        let rest = |end: LinkEnd| {
            Some(Rest { answered: 1, unanswered: Vec::new(), ends: vec![end], granted_packets: None })
        };
        [rest(end(5, 3)), rest(end(3, 5))]
    }

    fn verdicts(change: impl FnOnce(&mut [Option<Rest>; 2])) -> Verdicts {
        let mut rests = pair();
        change(&mut rests);
        judge(&[edge(0, 1)], &rests, |node| format!("n{}", node.0))
    }

    fn counts(verdicts: &Verdicts, oracle: Oracle) -> (u64, u64) {
        verdicts.of(oracle).map_or((0, 0), |tally| (tally.looked, tally.broken))
    }

    fn channel(rest: &mut Option<Rest>) -> &mut Counters {
        &mut rest.as_mut().expect("it is there").ends[0].channels[0]
    }

    #[test]
    fn at_rest_both_ends_agree_and_every_request_was_answered() {
        let verdicts = verdicts(|_| {});
        assert_eq!(counts(&verdicts, Oracle::Credits), (2, 0));
        assert_eq!(counts(&verdicts, Oracle::Progress), (2, 0));
    }

    #[test]
    fn a_credit_that_is_held_lost_or_unexplained_is_reported_with_its_direction() {
        type Change = fn(&mut [Option<Rest>; 2]);
        let held: Change = |rests| channel(&mut rests[1]).held = 1;
        let leaked: Change = |rests| channel(&mut rests[0]).consumed = 6;
        let from_nowhere: Change = |rests| channel(&mut rests[0]).consumed = 3;
        for change in [held, leaked, from_nowhere] {
            let verdicts = verdicts(change);
            assert_eq!(counts(&verdicts, Oracle::Credits), (2, 1));
            assert!(verdicts.failures()[0].contains("n0 to n1"), "{:?}", verdicts.failures());
        }
        let where_nothing_comes_back = verdicts(|rests| {
            channel(&mut rests[0]).consumed = 6;
            rests[0].as_mut().expect("it is there").ends[0].resyncs = false;
        });
        assert_eq!(counts(&where_nothing_comes_back, Oracle::Credits), (2, 0));
    }

    #[test]
    fn a_grant_that_nothing_uses_at_rest_is_reported_with_its_member() {
        for (granted_packets, expected) in [(None, (2, 0)), (Some(0), (3, 0)), (Some(4), (3, 1))] {
            let verdicts =
                verdicts(|rests| rests[1].as_mut().expect("it is there").granted_packets = granted_packets);
            assert_eq!(counts(&verdicts, Oracle::Credits), expected, "{granted_packets:?}");
            let is_named = verdicts
                .failures()
                .iter()
                .any(|line| line.contains("grants of n1") && line.contains("4 packets"));
            assert_eq!(is_named, granted_packets == Some(4), "{:?}", verdicts.failures());
        }
    }

    #[test]
    fn a_question_without_an_answer_breaks_progress() {
        let verdicts = verdicts(|rests| rests[0].as_mut().expect("it is there").unanswered.push(1));
        assert_eq!(counts(&verdicts, Oracle::Progress), (3, 1));
        assert!(verdicts.failures()[0].contains("n0 cannot read a word of n1"));
    }

    #[test]
    fn a_request_to_a_member_that_failed_meanwhile_is_no_failure() {
        let rest = Rest { unanswered: vec![1, 2], ..Rest::default() };
        assert_eq!(rest.without_the_dead(|node| node == NodeId(1)).unanswered, [2]);
    }

    #[test]
    fn links_with_a_dead_or_dark_end_are_not_judged() {
        let dead = verdicts(|rests| rests[1] = None);
        assert_eq!(counts(&dead, Oracle::Credits), (0, 0));
        let dark = verdicts(|rests| {
            rests[0].as_mut().expect("it is there").ends[0].carries_data = false;
            channel(&mut rests[1]).held = 3;
        });
        assert_eq!(counts(&dark, Oracle::Credits), (0, 0));
    }

    #[test]
    fn behind_a_switch_the_questions_are_a_circle() {
        let edges = [edge(0, 3), edge(1, 3), edge(2, 3)];
        let request = |reader, dead| {
            nodes_to_read(&edges, NodeId(reader), |node| node.0 < 3, |node| Some(node.0) != dead)
        };
        assert_eq!(
            [request(0, None), request(1, None), request(2, None)],
            [[NodeId(1)], [NodeId(2)], [NodeId(0)]]
        );
        assert_eq!(request(0, Some(1)), [NodeId(2)]);
        assert_eq!(request(0, Some(3)), []);
    }
}
