//! Ranks by server: which ranks share a server, and the place of each rank among them.
//!
//! Servers are in ascending order of their numbers in the request, and ranks of a server in ascending order. Ranks of one
//! server need not be consecutive, and servers may have different numbers of ranks.

use std::collections::BTreeMap;

/// Ranks of a collective by server.
pub(crate) struct Servers {
    /// Ranks of each server.
    members: Vec<Vec<usize>>,
    /// By rank: index of its server.
    server_of: Vec<usize>,
    /// By rank: index among the ranks of its server.
    local_of: Vec<usize>,
}

impl Servers {
    /// Groups the ranks. `servers` is the list of a request; if it is empty, each rank has a server of its own.
    pub(crate) fn new(servers: &[usize], ranks: usize) -> Self {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for rank in 0..ranks {
            groups.entry(servers.get(rank).copied().unwrap_or(rank)).or_default().push(rank);
        }
        let members: Vec<_> = groups.into_values().collect();
        let (mut server_of, mut local_of) = (vec![0; ranks], vec![0; ranks]);
        for (server, group) in members.iter().enumerate() {
            for (local, &rank) in group.iter().enumerate() {
                (server_of[rank], local_of[rank]) = (server, local);
            }
        }
        Self { members, server_of, local_of }
    }

    /// Returns the number of servers.
    pub(crate) const fn count(&self) -> usize {
        self.members.len()
    }

    /// Returns the ranks of a server.
    pub(crate) fn members(&self, server: usize) -> &[usize] {
        &self.members[server]
    }

    /// Returns the ranks of each server.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.members.iter().map(Vec::as_slice)
    }

    /// Returns the index of a rank's server.
    pub(crate) fn server_of(&self, rank: usize) -> usize {
        self.server_of[rank]
    }

    /// Returns the index of a rank among the ranks of its server.
    pub(crate) fn local_of(&self, rank: usize) -> usize {
        self.local_of[rank]
    }

    /// Returns the number of lanes, which is the number of ranks of the smallest server.
    pub(crate) fn lanes(&self) -> usize {
        self.members.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Returns the number of ranks of the largest server.
    pub(crate) fn largest(&self) -> usize {
        self.members.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns true if there are several servers, and one of them has several ranks.
    pub(crate) fn are_two_levels(&self) -> bool {
        self.count() > 1 && self.largest() > 1
    }
}

/// Returns the other members of a group, the one after `member` first.
pub(crate) fn others_after(group: &[usize], member: usize) -> impl Iterator<Item = usize> + '_ {
    let at = group.iter().position(|&rank| rank == member).unwrap_or(0);
    group[at..].iter().chain(&group[..at]).copied().filter(move |&rank| rank != member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_grouped_by_server_in_ascending_order() {
        let servers = Servers::new(&[7, 2, 7, 2, 7], 5);
        assert_eq!(servers.iter().collect::<Vec<_>>(), [&[1, 3][..], &[0, 2, 4]]);
        assert_eq!((servers.lanes(), servers.largest(), servers.are_two_levels()), (2, 3, true));
        assert_eq!((servers.server_of(4), servers.local_of(4)), (1, 2));
        assert_eq!(others_after(servers.members(1), 2).collect::<Vec<_>>(), [4, 0]);
    }

    #[test]
    fn one_server_or_one_rank_per_server_are_one_level() {
        assert!(!Servers::new(&[], 4).are_two_levels());
        assert!(!Servers::new(&[3; 4], 4).are_two_levels());
    }
}
