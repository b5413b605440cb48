//! Choice of nodes that reach each other. Nodes without a process forward nothing, so the nodes of a job must be connected by links between
//! them, by switches, and by members that run.

use std::collections::{BTreeSet, HashMap};

use rackloom_protocol::Graph;

/// Links of the rack.
#[derive(Debug)]
pub(super) struct Connections {
    /// Members at the other ends of the links of each member.
    neighbours: Vec<Vec<usize>>,
    is_switch: Vec<bool>,
}

impl Connections {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut neighbours = vec![Vec::new(); graph.members.len()];
        for edge in &graph.edges {
            neighbours[edge.a.index()].push(edge.b.index());
            neighbours[edge.b.index()].push(edge.a.index());
        }
        Self { neighbours, is_switch: graph.members.iter().map(|role| role.is_switch()).collect() }
    }

    /// Returns `count` of the free members that reach each other, as sorted positions in `free`; those with low numbers are preferred.
    /// `forwards` says which other members pass frames on.
    pub(super) fn choose(
        &self,
        free: &[usize],
        count: usize,
        forwards: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let positions: HashMap<_, _> =
            free.iter().enumerate().map(|(position, member)| (*member, position)).collect();
        (0..free.len()).find_map(|first| {
            let mut chosen = BTreeSet::from([first]);
            let mut candidates = BTreeSet::new();
            let mut seen = vec![false; self.neighbours.len()];
            self.spread(free[first], &positions, &mut seen, &mut candidates, &forwards);
            while chosen.len() < count {
                let next = candidates.pop_first()?;
                if chosen.insert(next) {
                    self.spread(free[next], &positions, &mut seen, &mut candidates, &forwards);
                }
            }
            Some(chosen.into_iter().collect())
        })
    }

    /// Adds to `candidates` the positions of all free members that `from` reaches through members that forward.
    fn spread(
        &self,
        from: usize,
        positions: &HashMap<usize, usize>,
        seen: &mut [bool],
        candidates: &mut BTreeSet<usize>,
        forwards: &impl Fn(usize) -> bool,
    ) {
        let mut through = vec![from];
        while let Some(member) = through.pop() {
            for &neighbour in &self.neighbours[member] {
                if let Some(position) = positions.get(&neighbour) {
                    candidates.insert(*position);
                } else if !seen[neighbour] && self.passes(neighbour, forwards) {
                    seen[neighbour] = true;
                    through.push(neighbour);
                }
            }
        }
    }

    /// Returns the positions of two of these members of which the first does not reach the second, if there are such.
    pub(super) fn find_apart(
        &self,
        members: &[usize],
        forwards: impl Fn(usize) -> bool,
    ) -> Option<[usize; 2]> {
        let mut reached = vec![false; self.neighbours.len()];
        let mut through = vec![*members.first()?];
        reached[through[0]] = true;
        while let Some(member) = through.pop() {
            for &neighbour in &self.neighbours[member] {
                let passes = members.contains(&neighbour) || self.passes(neighbour, &forwards);
                if passes && !std::mem::replace(&mut reached[neighbour], true) {
                    through.push(neighbour);
                }
            }
        }
        members.iter().position(|member| !reached[*member]).map(|position| [0, position])
    }

    fn passes(&self, member: usize, forwards: &impl Fn(usize) -> bool) -> bool {
        self.is_switch[member] || forwards(member)
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;

    use super::*;

    fn connections(shape: &str) -> Connections {
        let plan = Plan::parse(&format!("name: r\nshape: {{{shape}}}\n"), "rack").expect("a rack");
        Connections::new(&plan.graph())
    }

    #[test]
    fn nodes_of_a_ring_are_chosen_side_by_side() {
        let ring = connections("ring: {nodes: 6}");
        let choose = |free: &[usize], count, running: &[usize]| {
            ring.choose(free, count, |member| running.contains(&member))
        };
        assert_eq!(choose(&[0, 1, 2, 3, 4, 5], 3, &[]), Some(vec![0, 1, 2]));
        assert_eq!(choose(&[0, 2, 3], 2, &[]), Some(vec![1, 2]), "members 2 and 3");
        assert_eq!(choose(&[0, 2, 3], 2, &[1]), Some(vec![0, 1]), "member 1 forwards");
        assert_eq!(choose(&[0, 2, 4], 2, &[]), None);
        assert_eq!(choose(&[0, 2, 4], 2, &[5]), Some(vec![0, 2]), "members 0 and 4 over member 5");
        assert_eq!(choose(&[0, 2, 4], 1, &[]), Some(vec![0]));
        // The ring is closed.
        assert_eq!(choose(&[0, 3, 5], 2, &[]), Some(vec![0, 2]));
    }

    #[test]
    fn any_nodes_of_a_star_or_a_mesh_reach_each_other() {
        for shape in ["star: {nodes: 5}", "full-mesh: {nodes: 5}"] {
            let rack = connections(shape);
            assert_eq!(rack.choose(&[1, 3, 4], 2, |_| false), Some(vec![0, 1]), "{shape}");
            assert_eq!(rack.find_apart(&[0, 2, 4], |_| false), None, "{shape}");
        }
    }

    #[test]
    fn members_that_do_not_reach_each_other_are_found() {
        let ring = connections("ring: {nodes: 6}");
        assert_eq!(ring.find_apart(&[2, 3, 5], |_| false), Some([0, 2]));
        assert_eq!(ring.find_apart(&[2, 3, 5], |member| member == 4), None);
        assert_eq!(ring.find_apart(&[2, 3, 5], |member| member == 0), Some([0, 2]), "only one side of it");
        assert_eq!(ring.find_apart(&[], |_| false), None);
    }
}
