//! Traffic, losses and paths of a standing rack, from the counters in the members' answers.
//!
//! A member can be a program of the user, so no number in its answer is used as an index without a check.

use std::collections::BTreeMap;

use rackloom_control::links::{LinkCounters, LinkStatus, PathStatus};
use rackloom_control::notice::SeatStatus;
use rackloom_control::request::RackStatus;
use rackloom_jobs::report::PortReport;
use rackloom_plan::{LinkPlan, Plan};
use rackloom_protocol::{MemberRole, NodeId, PortId};

use crate::machine::here::Here;

/// Answers of the members, by number; `None` for a member that did not answer.
pub(super) type Answers<'a> = [Option<&'a SeatStatus>];

/// Returns both directions of every link with an end here, in the plan's order.
pub(super) fn of_rack(plan: &Plan, here: &Here, answers: &Answers<'_>) -> Vec<LinkStatus> {
    let links = (0..).zip(&plan.links).filter(|(_, link)| here.ends(plan, &link.edge) > 0);
    let directions = links.flat_map(|(edge, link)| {
        let (a, b) = (link.edge.a, link.edge.b);
        [(edge, link, a, b), (edge, link, b, a)]
    });
    directions.map(|(edge, link, from, to)| direction(plan, answers, edge, link, from, to)).collect()
}

fn direction(
    plan: &Plan,
    answers: &Answers<'_>,
    edge: u16,
    link: &LinkPlan,
    from: NodeId,
    to: NodeId,
) -> LinkStatus {
    let end = |node: NodeId| {
        let answer = (*answers.get(node.index())?)?;
        let port = answer.ports.iter().find(|port| port.edge == edge)?;
        Some((answer.at_ns, port))
    };
    let (sender, receiver) = (end(from), end(to));
    let ends = [(from, sender), (to, receiver)];
    LinkStatus {
        name: name(plan, link, from),
        from: plan.members[from.index()].name.clone(),
        to: plan.members[to.index()].name.clone(),
        link: edge,
        plane: link.edge.plane.0,
        rate_bits_per_s: link.profile.rate_bits_per_s,
        sent: sender.map(|(at_ns, port)| counters(at_ns, port)),
        rate: None,
        missing: receiver.map(|(_, port)| port.missing),
        dropped: dropped(sender.map(|(_, port)| port), receiver.map(|(_, port)| port)),
        unanswered: ends
            .into_iter()
            .filter(|(_, answer)| answer.is_none())
            .map(|(node, _)| plan.members[node.index()].name.clone())
            .collect(),
    }
}

/// Returns the name of one direction, such as `n0->n1`, with a number for parallel links.
fn name(plan: &Plan, link: &LinkPlan, from: NodeId) -> String {
    let member = |node: NodeId| plan.members[node.index()].name.as_str();
    let (a, b) = (member(link.edge.a), member(link.edge.b));
    let number = link.name.strip_prefix(&format!("{a}--{b}")).unwrap_or_default();
    if from == link.edge.a { format!("{a}->{b}{number}") } else { format!("{b}->{a}{number}") }
}

fn counters(at_ns: u64, port: &PortReport) -> LinkCounters {
    LinkCounters {
        at_ns,
        frames: port.frames_sent,
        bytes: port.bytes_sent,
        data_frames: port.data_frames_sent,
        data_bytes: port.data_bytes_sent,
        retransmitted: port.retransmitted,
        replayed: port.retry.get("tx_replay").copied().unwrap_or(0),
        credit_waits: port.credit_stalls,
    }
}

/// Returns the lost frames by reason, from the ends that answered.
fn dropped(sender: Option<&PortReport>, receiver: Option<&PortReport>) -> Option<BTreeMap<String, u64>> {
    if sender.is_none() && receiver.is_none() {
        return None;
    }
    let mut dropped = receiver.map(|port| port.dropped.clone()).unwrap_or_default();
    let injected = sender.and_then(|port| port.injected.get("dropped").copied());
    dropped.extend(injected.map(|count| ("injected".to_owned(), count)));
    Some(dropped)
}

/// Returns the live paths of a GPU node to all others; `None` if the node did not answer.
pub(super) fn paths_of(plan: &Plan, node: NodeId, answer: Option<&SeatStatus>) -> Option<Vec<PathStatus>> {
    // A node that has left its seat reports no paths.
    let paths = answer.map(|answer| &answer.paths).filter(|paths| !paths.is_empty())?;
    let others = plan.members.iter().zip(paths).enumerate();
    let others =
        others.filter(|(other, (member, _))| member.role == MemberRole::Endpoint && *other != node.index());
    Some(others.map(|(_, (member, ports))| path(plan, node, &member.name, ports)).collect())
}

fn path(plan: &Plan, node: NodeId, to: &str, ports: &[u16]) -> PathStatus {
    let is_at = |link: &LinkPlan, port: PortId| {
        let edge = &link.edge;
        (edge.a, edge.a_port) == (node, port) || (edge.b, edge.b_port) == (node, port)
    };
    let links: Vec<_> =
        ports.iter().filter_map(|port| plan.links.iter().find(|link| is_at(link, PortId(*port)))).collect();
    let mut planes: Vec<_> = links.iter().map(|link| link.edge.plane.0).collect();
    planes.sort_unstable();
    planes.dedup();
    PathStatus {
        to: to.to_owned(),
        live: links.len(),
        planes,
        links: links.iter().map(|link| name(plan, link, node)).collect(),
    }
}

/// Adds the rates since `earlier` to `later`, for links whose sending end is held by one process in both.
pub(super) fn add_rates(earlier: &RackStatus, later: &mut RackStatus) {
    let pids = |rack: &RackStatus| {
        let members = rack.members.iter().map(|member| (member.name.clone(), member.pid));
        members.collect::<BTreeMap<_, _>>()
    };
    let (before, now) = (pids(earlier), pids(later));
    for (old, new) in earlier.links.iter().zip(&mut later.links) {
        let is_one_process = before.get(&new.from) == now.get(&new.from) && old.name == new.name;
        let samples = old.sent.as_ref().zip(new.sent.as_ref()).filter(|_| is_one_process);
        new.rate = samples.and_then(|(old, new)| new.rate_since(old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(edge: u16, missing: u64) -> PortReport {
        let mut port = PortReport { edge, frames_sent: 10, missing, ..PortReport::default() };
        port.injected.insert("dropped".to_owned(), 4);
        port.dropped.insert("hop-check".to_owned(), 3);
        port
    }

    fn star() -> Plan {
        Plan::parse("{name: r, shape: {star: {nodes: 3, planes: 2}}}", "r").expect("a plan")
    }

    #[test]
    fn a_link_of_a_silent_member_is_described_by_its_other_end() {
        let plan = star();
        let number = plan.links.iter().position(|link| link.edge.a == NodeId(0) || link.edge.b == NodeId(0));
        let number = number.expect("n0 has a link") as u16;
        let answer = SeatStatus { ports: vec![port(number, 2)], ..SeatStatus::default() };
        let mut answers = vec![None; plan.members.len()];
        answers[0] = Some(&answer);
        let links = of_rack(&plan, &Here::default(), &answers);
        assert_eq!(links.len(), 2 * plan.links.len());
        let find = |name: &str| links.iter().find(|link| link.name == name).expect("there is such a link");
        let (out, back) = (find("n0->s0"), find("s0->n0"));
        assert_eq!(out.sent.as_ref().map(|sent| sent.frames), Some(10));
        assert_eq!((out.missing, &out.unanswered[..]), (None, &["s0".to_owned()][..]));
        assert_eq!(out.dropped, Some(BTreeMap::from([("injected".to_owned(), 4)])));
        assert_eq!((&back.sent, back.missing), (&None, Some(2)));
        assert_eq!(back.dropped, Some(BTreeMap::from([("hop-check".to_owned(), 3)])));
        let unknown = find("n1->s0");
        assert_eq!((&unknown.sent, &unknown.dropped, unknown.unanswered.len()), (&None, &None, 2));
    }

    #[test]
    fn numbers_outside_of_the_plan_are_left_out() {
        let plan = star();
        let answer = SeatStatus {
            ports: vec![port(u16::MAX, 2)],
            paths: vec![vec![0, 1, 77]; 40],
            ..SeatStatus::default()
        };
        let answers = vec![Some(&answer); plan.members.len()];
        assert!(of_rack(&plan, &Here::default(), &answers).iter().all(|link| link.sent.is_none()));
        let paths = paths_of(&plan, NodeId(0), Some(&answer)).expect("an answer");
        let seen: Vec<_> = paths.iter().map(|path| (path.to.as_str(), path.live, &path.planes[..])).collect();
        assert_eq!(seen, [("n1", 2, &[0, 1][..]), ("n2", 2, &[0, 1][..])]);
        assert_eq!(paths[0].links, ["n0->s0", "n0->s1"]);
        assert_eq!(paths_of(&plan, NodeId(0), None), None);
    }
}
