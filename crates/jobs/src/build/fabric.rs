//! Kind of a plan's topology, as the choice of an algorithm distinguishes them.
//!
//! The links decide, not the name in the file: a rack that lists its links one by one may be a ring, too.

use rackloom_collectives::choose::{self, TopologyKind};
use rackloom_plan::{LocalPath, Plan};

/// Returns the kind of the topology, and the number of planes of a star, or of leaves and spines.
pub(super) fn kind(plan: &Plan) -> (TopologyKind, u32) {
    let switches = plan.members.iter().filter(|member| member.role.is_switch()).count();
    let links: Vec<_> = plan.links.iter().map(|link| (link.edge.a.index(), link.edge.b.index())).collect();
    choose::kind_of(plan.endpoint_count(), switches, &links)
}

/// Returns the rate of the slowest link in one direction, in bits per second; `None` unless every link states a rate.
pub(super) fn slowest_bits_per_s(plan: &Plan) -> Option<u64> {
    let rates: Option<Vec<u64>> = plan.links.iter().map(|link| link.profile.rate_bits_per_s).collect();
    rates?.into_iter().min()
}

/// Returns the longest latency and the lowest rate of the local paths of all servers.
pub(super) fn slowest_local_path(plan: &Plan) -> LocalPath {
    let paths = plan.servers().into_iter().map(|(server, _)| plan.local.of(server));
    let slower = |left: LocalPath, right: LocalPath| LocalPath {
        latency_ns: left.latency_ns.max(right.latency_ns),
        // A path without a rate takes no time for its bytes.
        rate_bits_per_s: left.rate_bits_per_s.into_iter().chain(right.rate_bits_per_s).min(),
    };
    paths.reduce(slower).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(shape: &str) -> (TopologyKind, u32) {
        kind(&Plan::parse(&format!("name: r\nshape: {{{shape}}}\n"), "test").unwrap())
    }

    #[test]
    fn shapes_are_known_by_their_links() {
        assert_eq!(kind_of("ring: {nodes: 5}"), (TopologyKind::Ring, 1));
        assert_eq!(kind_of("ring: {nodes: 2}").0, TopologyKind::Mesh, "two ranks are linked to each other");
        assert_eq!(kind_of("full-mesh: {nodes: 4}"), (TopologyKind::Mesh, 1));
        assert_eq!(kind_of("star: {nodes: 4, planes: 3}"), (TopologyKind::Star, 3));
        for (shape, sizes) in
            [("x: 4, y: 3", [4, 3, 1]), ("x: 2, y: 3", [2, 3, 1]), ("x: 4, y: 2, z: 2", [4, 2, 2])]
        {
            assert_eq!(
                kind_of(&format!("torus: {{{shape}}}")),
                (TopologyKind::Torus { sizes }, 1),
                "{shape}"
            );
        }
        assert_eq!(kind_of("hypercube: {dimensions: 4}"), (TopologyKind::Hypercube, 1));
        let leaves = TopologyKind::LeafSpine { ranks_per_leaf: 4, uplinks: 6 };
        let shape = "leaf-spine: {leaves: 4, nodes_per_leaf: 4, spines: 3, parallel: 2, planes: 2}";
        assert_eq!(kind_of(shape), (leaves, 2));
        assert_eq!(
            kind_of("custom: {nodes: [a, b, c], links: [{a: a, b: b}, {a: b, b: c}]}").0,
            TopologyKind::Custom
        );
    }

    #[test]
    fn the_rate_of_the_links_is_that_of_the_slowest() {
        let rate = |more: &str| {
            let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{more}\n");
            slowest_bits_per_s(&Plan::parse(&text, "test").unwrap())
        };
        assert_eq!(rate("link: {rate: 10Gbit/s}"), Some(10_000_000_000));
        let one_slow = "link: {rate: 10Gbit/s}\nlinks: {n0--n1: {rate: 1Gbit/s}}";
        assert_eq!(rate(one_slow), Some(1_000_000_000));
        assert_eq!(rate("links: {n0--n1: {rate: 1Gbit/s}}"), None, "the others state no rate");
        assert_eq!(rate(""), None);
    }

    #[test]
    fn a_ring_that_lost_a_link_is_custom() {
        let mut plan = Plan::parse("name: r\nshape: {ring: {nodes: 5}}\n", "test").unwrap();
        plan.change(|plan| plan.links.truncate(4));
        assert_eq!(kind(&plan).0, TopologyKind::Custom);
    }

    #[test]
    fn the_local_path_is_that_of_the_slowest_server() {
        let text = "name: r\nshape: {ring: {nodes: 4}}\nlocal: {latency: 10ns, rate: 8Gbit/s}\n\
                    servers: {a: {nodes: [n0, n1], local: {latency: 1us}}, b: {nodes: [n2, n3], local: {rate: 1Gbit/s}}}\n";
        let plan = Plan::parse(text, "test").unwrap();
        let expected = LocalPath { latency_ns: 1_000, rate_bits_per_s: Some(1_000_000_000) };
        assert_eq!(slowest_local_path(&plan), expected);
    }
}
