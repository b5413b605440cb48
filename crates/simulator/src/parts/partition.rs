//! Distribution of the members of a rack over parts.
//!
//! Switches and endpoints are shared evenly, each kind for itself, because they often have work in turn: in a step of a collective
//! all ranks send, and one delay later the switches pass the frames on. Switches are taken with the most links first, each to the part with
//! the fewest, from the first part on. Endpoints fill the parts from the last one on in order of their numbers, because neighbours often
//! have close numbers.

use rackloom_protocol::NodeId;
use rackloom_protocol::route::graph::SharedGraph;

/// Returns the part of each member. Each part gets at least one, if there are enough.
pub(super) fn partition(graph: &SharedGraph, parts: usize) -> Vec<u8> {
    let member = |number: usize| (number, graph.links(NodeId(number as u16)).len());
    let (mut switches, endpoints): (Vec<_>, Vec<_>) =
        (0..graph.members.len()).map(member).partition(|(number, _)| graph.members[*number].is_switch());
    let mut of_member = vec![0; graph.members.len()];
    let mut loads = vec![0; parts];
    switches.sort_by_key(|(number, links)| (std::cmp::Reverse(*links), *number));
    for (number, links) in switches {
        let part = (0..parts).min_by_key(|part| loads[*part]).unwrap_or(0);
        of_member[number] = part as u8;
        loads[part] += links;
    }
    let share = endpoints.iter().map(|(_, links)| links).sum::<usize>().div_ceil(parts);
    let (mut part, mut load) = (parts - 1, 0);
    for (number, links) in endpoints {
        if part > 0 && load + links / 2 >= share {
            (part, load) = (part - 1, 0);
        }
        of_member[number] = part as u8;
        load += links;
    }
    of_member
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;

    use super::*;

    /// Returns the links of the endpoints, or of the switches, of each part.
    fn loads(rack: &str, parts: usize, of_switches: bool) -> Vec<usize> {
        let plan = Plan::parse(rack, "rack").unwrap();
        let graph = SharedGraph::from(plan.graph());
        let of_member = partition(&graph, parts);
        assert_eq!(of_member.len(), graph.members.len());
        let mut loads = vec![0; parts];
        for (node, part) in (0..).map(NodeId).zip(&of_member) {
            if graph.members[node.index()].is_switch() == of_switches {
                loads[usize::from(*part)] += graph.links(node).len();
            }
        }
        loads
    }

    #[test]
    fn loads_of_common_shapes_are_even() {
        for (rack, parts) in [
            ("{name: r, shape: {star: {nodes: 96}}}", 2),
            ("{name: r, shape: {star: {nodes: 96}}}", 16),
            ("{name: r, shape: {ring: {nodes: 100}}}", 2),
            ("{name: r, shape: {ring: {nodes: 100}}}", 3),
            ("{name: r, shape: {star: {nodes: 64, planes: 4}}}", 4),
            ("{name: r, shape: {full-mesh: {nodes: 24}}}", 5),
        ] {
            let loads = loads(rack, parts, false);
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(most * 10 <= least * 14, "{rack}: {loads:?}");
        }
        assert_eq!(loads("{name: r, shape: {star: {nodes: 64, planes: 4}}}", 2, true), [128, 128]);
        assert_eq!(loads("{name: r, shape: {star: {nodes: 96}}}", 2, false), [48, 48]);
    }

    #[test]
    fn each_part_has_a_member() {
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
