//! Distribution of the members of a rack over threads.
//!
//! Switches and endpoints are shared evenly, each kind for itself, because they often have work in turn: in a step of a collective
//! all ranks send, and one delay later the switches pass the frames on. Switches are taken with the most links first, each to the thread with
//! the fewest, from the first thread on. Endpoints fill the threads from the last one on in order of their numbers, because neighbours often
//! have close numbers.

use rackloom_protocol::NodeId;
use rackloom_protocol::route::graph::SharedGraph;

/// Returns the thread of each member. Each thread gets at least one, if there are enough.
pub(super) fn partition(graph: &SharedGraph, threads: usize) -> Vec<u8> {
    let member = |number: usize| (number, graph.links(NodeId(number as u16)).len());
    let (mut switches, endpoints): (Vec<_>, Vec<_>) =
        (0..graph.members.len()).map(member).partition(|(number, _)| graph.members[*number].is_switch());
    let mut of_member = vec![0; graph.members.len()];
    let mut loads = vec![0; threads];
    switches.sort_by_key(|(number, links)| (std::cmp::Reverse(*links), *number));
    for (number, links) in switches {
        let thread = (0..threads).min_by_key(|thread| loads[*thread]).unwrap_or(0);
        of_member[number] = thread as u8;
        loads[thread] += links;
    }
    let share = endpoints.iter().map(|(_, links)| links).sum::<usize>().div_ceil(threads);
    let (mut thread, mut load) = (threads - 1, 0);
    for (number, links) in endpoints {
        if thread > 0 && load + links / 2 >= share {
            (thread, load) = (thread - 1, 0);
        }
        of_member[number] = thread as u8;
        load += links;
    }
    of_member
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;

    use super::*;

    /// Returns the links of the endpoints, or of the switches, of each thread.
    fn loads(rack: &str, threads: usize, of_switches: bool) -> Vec<usize> {
        let plan = Plan::parse(rack, "rack").unwrap();
        let graph = SharedGraph::from(plan.graph());
        let of_member = partition(&graph, threads);
        assert_eq!(of_member.len(), graph.members.len());
        let mut loads = vec![0; threads];
        for (node, thread) in (0..).map(NodeId).zip(&of_member) {
            if graph.members[node.index()].is_switch() == of_switches {
                loads[usize::from(*thread)] += graph.links(node).len();
            }
        }
        loads
    }

    #[test]
    fn loads_of_common_shapes_are_even() {
        for (rack, threads) in [
            ("{name: r, shape: {star: {nodes: 96}}}", 2),
            ("{name: r, shape: {ring: {nodes: 100}}}", 2),
            ("{name: r, shape: {ring: {nodes: 100}}}", 3),
            ("{name: r, shape: {star: {nodes: 64, planes: 4}}}", 4),
            ("{name: r, shape: {full-mesh: {nodes: 24}}}", 5),
        ] {
            let loads = loads(rack, threads, false);
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(most * 10 <= least * 14, "{rack}: {loads:?}");
        }
        assert_eq!(loads("{name: r, shape: {star: {nodes: 64, planes: 4}}}", 2, true), [128, 128]);
        assert_eq!(loads("{name: r, shape: {star: {nodes: 96}}}", 2, false), [48, 48]);
    }

    #[test]
    fn each_thread_has_a_member() {
        let plan = Plan::parse("{name: r, shape: {star: {nodes: 3}}}", "rack").unwrap();
        let mut of_member = partition(&SharedGraph::from(plan.graph()), 4);
        of_member.sort_unstable();
        assert_eq!(of_member, [0, 1, 2, 3]);
    }

    #[test]
    fn nodes_of_a_ring_are_cut_at_as_few_links_as_possible() {
        let plan = Plan::parse("{name: r, shape: {ring: {nodes: 40}}}", "rack").unwrap();
        let of_member = partition(&SharedGraph::from(plan.graph()), 4);
        let cuts = (0..40).filter(|node| of_member[*node] != of_member[(node + 1) % 40]).count();
        assert_eq!(cuts, 4);
    }
}
