//! What kind of rack a plan describes, as far as the choice of an algorithm can tell racks apart.
//!
//! Judged by the links, not by the word in the file: a rack that lists its links one by one may be a ring, too.

use rackloom_collectives::choose::TopologyKind;
use rackloom_plan::Plan;
use rackloom_protocol::MemberRole;

/// The kind, and the planes of a star.
pub(super) fn kind(plan: &Plan) -> (TopologyKind, u32) {
    let ranks = plan.endpoint_count();
    let switches = plan.members.iter().filter(|member| member.role == MemberRole::Switch).count();
    let has_link = |left: usize, right: usize| {
        plan.links.iter().any(|link| {
            let ends = (link.edge.a.index(), link.edge.b.index());
            ends == (left, right) || ends == (right, left)
        })
    };
    let is_star =
        switches > 0 && (0..ranks).all(|rank| (ranks..ranks + switches).all(|switch| has_link(rank, switch)));
    let is_ring = plan.links.len() == ranks && (0..ranks).all(|rank| has_link(rank, (rank + 1) % ranks));
    let is_mesh = (0..ranks).all(|left| (0..left).all(|right| has_link(left, right)));
    match switches {
        0 if ranks > 2 && is_ring => (TopologyKind::Ring, 1),
        0 if is_mesh => (TopologyKind::Mesh, 1),
        _ if is_star => (TopologyKind::Star, switches as u32),
        _ => (TopologyKind::Custom, 1),
    }
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
    }

    #[test]
    fn a_ring_that_lost_a_link_is_custom() {
        let mut plan = Plan::parse("name: r\nshape: {ring: {nodes: 5}}\n", "test").unwrap();
        plan.change(|plan| plan.links.truncate(4));
        assert_eq!(kind(&plan).0, TopologyKind::Custom);
    }
}
