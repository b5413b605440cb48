//! Wait-for graph of frames in transit, and search for a cycle in it.
//!
//! A frame that a member holds for forwarding takes a slot in its buffer until the next member has one free. If the
//! slots there are taken by frames that wait in turn, and so on back to the first, nothing will ever move: the
//! credits are correct, and no member has any. A member sees only its own queues; a caller with all of them can find
//! the cycle.
//!
//! This file does not break cycles.

use alloc::vec::Vec;

use crate::ids::{Channel, NodeId};

/// Frames that wait at a port for credits of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Member that holds the frames.
    pub member: NodeId,
    /// Member whose buffer they wait for.
    pub toward: NodeId,
    /// Edge number of the link between the two.
    pub edge: u16,
    /// Channel of that link; `None` if links have only one.
    pub channel: Option<Channel>,
    /// Number of frames.
    pub frames: usize,
    /// Links over which the frames arrived, with the channel.
    pub arrived_over: Vec<(u16, Channel)>,
}

/// Returns a cycle among the waits of all members: each waits for the next and the last for the first.
#[must_use]
pub fn cycle(waits: &[Wait]) -> Option<Vec<&Wait>> {
    let mut is_done = alloc::vec![false; waits.len()];
    for start in 0..waits.len() {
        // The path walked so far; each entry with the number of its successors tried.
        let mut path: Vec<(usize, usize)> = alloc::vec![(start, 0)];
        while let Some((here, tried)) = path.last_mut() {
            let here = *here;
            let next = successors(waits, here).nth(*tried);
            *tried += 1;
            match next {
                Some(next) => {
                    if let Some(first) = path.iter().position(|(on_path, _)| *on_path == next) {
                        return Some(path[first..].iter().map(|(index, _)| &waits[*index]).collect());
                    }
                    if !is_done[next] {
                        path.push((next, 0));
                    }
                }
                None => {
                    is_done[here] = true;
                    path.pop();
                }
            }
        }
    }
    None
}

/// Iterates over the waits that hold the slots that this one waits for.
fn successors(waits: &[Wait], index: usize) -> impl Iterator<Item = usize> {
    let wait = &waits[index];
    let lane = (wait.edge, wait.channel.unwrap_or_default());
    let holds = move |other: &Wait| other.member == wait.toward && other.arrived_over.contains(&lane);
    (0..waits.len()).zip(waits).filter(move |(_, other)| holds(other)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn wait(member: u16, edge: u16, toward: u16, arrived_over: &[u16]) -> Wait {
        Wait {
            member: NodeId(member),
            toward: NodeId(toward),
            edge,
            channel: None,
            frames: 1,
            arrived_over: arrived_over.iter().map(|edge| (*edge, Channel(0))).collect(),
        }
    }

    #[test]
    fn a_ring_in_which_all_members_wait_is_a_cycle() {
        let mut waits: Vec<Wait> = (0..5).map(|n| wait(n, n, (n + 1) % 5, &[(n + 4) % 5])).collect();
        let found: Vec<u16> = cycle(&waits).expect("a cycle").iter().map(|wait| wait.edge).collect();
        assert_eq!(found, [0, 1, 2, 3, 4]);
        // One member that holds nothing of the link before it breaks the cycle.
        waits[3].arrived_over = vec![(9, Channel(0))];
        assert_eq!(cycle(&waits), None);
    }

    #[test]
    fn frames_on_another_channel_block_no_frame() {
        let mut waits: Vec<Wait> = (0..5).map(|n| wait(n, n, (n + 1) % 5, &[(n + 4) % 5])).collect();
        waits.iter_mut().for_each(|wait| wait.channel = Some(Channel(0)));
        assert!(cycle(&waits).is_some());
        waits[2].arrived_over = vec![(1, Channel(1))];
        assert_eq!(cycle(&waits), None);
    }

    #[test]
    fn a_tail_that_leads_into_a_cycle_is_not_part_of_it() {
        let waits = [wait(7, 7, 0, &[8]), wait(0, 0, 1, &[7, 1]), wait(1, 1, 0, &[0])];
        let found: Vec<u16> = cycle(&waits).expect("a cycle").iter().map(|wait| wait.edge).collect();
        assert_eq!(found, [0, 1]);
    }

    #[test]
    fn a_chain_of_waits_that_ends_is_no_cycle() {
        assert_eq!(cycle(&[wait(0, 0, 1, &[3]), wait(1, 1, 2, &[0])]), None);
        assert_eq!(cycle(&[]), None);
    }
}
