//! Distribution of the members of a rack over threads.
//!
//! An endpoint costs about four times as much as a port of a switch, measured with a permutation in a star of 1024. So links are
//! counted, those of endpoints four times. Switches come first, the largest at once, each to the thread with
//! the least. Endpoints fill the threads in order of their numbers, because neighbours often have close numbers.

use rackloom_protocol::NodeId;
use rackloom_protocol::route::graph::SharedGraph;

/// Cost of a link of an endpoint, in links of a switch.
const ENDPOINT_WEIGHT: u64 = 4;

/// Returns the thread of each member. Each thread gets at least one, if there are enough.
pub(super) fn partition(graph: &SharedGraph, threads: usize) -> Vec<u8> {
    let member = |number: usize| (number, weight(graph, NodeId(number as u16)));
    let (mut switches, endpoints): (Vec<_>, Vec<_>) =
        (0..graph.members.len()).map(member).partition(|(number, _)| graph.members[*number].is_switch());
    let mut of_member = vec![0; graph.members.len()];
    let mut loads = vec![0; threads];
    switches.sort_by_key(|(number, weight)| (std::cmp::Reverse(*weight), *number));
    for (number, weight) in switches {
        let thread = (0..threads).min_by_key(|thread| loads[*thread]).unwrap_or(0);
        of_member[number] = thread as u8;
        loads[thread] += weight;
    }
    let total: u64 = loads.iter().sum::<u64>() + endpoints.iter().map(|(_, weight)| weight).sum::<u64>();
    let share = total.div_ceil(threads as u64);
    let mut thread = 0;
    for (number, weight) in endpoints {
        while thread + 1 < threads && loads[thread] + weight / 2 >= share {
            thread += 1;
        }
        of_member[number] = thread as u8;
        loads[thread] += weight;
    }
    of_member
}

fn weight(graph: &SharedGraph, member: NodeId) -> u64 {
    let links = graph.links(member).len() as u64;
    if graph.members[member.index()].is_switch() { links } else { ENDPOINT_WEIGHT * links }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;

    use super::*;

    fn loads(rack: &str, threads: usize) -> Vec<u64> {
        let plan = Plan::parse(rack, "rack").unwrap();
        let graph = SharedGraph::from(plan.graph());
        let of_member = partition(&graph, threads);
        assert_eq!(of_member.len(), graph.members.len());
        let mut loads = vec![0; threads];
        (0..).map(NodeId).zip(&of_member).for_each(|(node, thread)| {
            loads[usize::from(*thread)] += weight(&graph, node);
        });
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
            let loads = loads(rack, threads);
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(most * 10 <= least * 14, "{rack}: {loads:?}");
        }
    }

    #[test]
    fn nodes_of_a_ring_are_cut_at_as_few_links_as_possible() {
        let plan = Plan::parse("{name: r, shape: {ring: {nodes: 40}}}", "rack").unwrap();
        let of_member = partition(&SharedGraph::from(plan.graph()), 4);
        let cuts = (0..40).filter(|node| of_member[*node] != of_member[(node + 1) % 40]).count();
        assert_eq!(cuts, 4);
    }
}
