//! Barriers: signals without data.
//!
//! *Dissemination*: in round *k* each rank signals the rank that is 2^k higher and waits for the rank that is 2^k lower, modulo N. After
//! ceil(log2 N) rounds each rank depends on a signal of every rank, directly or through other ranks.
//!
//! *Two levels*: the ranks of one server signal their leader, which is the lowest of them. The leaders disseminate, and each
//! leader then releases its ranks. Signals within a server cross no link if the executor has shared memory there.

use super::servers::Servers;
use crate::builder::{Builder, Sent};

/// Signals that each member must wait for before its next step, by index of the member.
type Waits = Vec<Vec<Sent>>;

/// Lays out a dissemination barrier among all ranks.
pub(super) fn flat(builder: &mut Builder) {
    let all_ranks: Vec<usize> = (0..builder.ranks).collect();
    let (waits, round) = disseminate(builder, &all_ranks, vec![Vec::new(); builder.ranks], 0);
    for (&rank, waits) in all_ranks.iter().zip(&waits) {
        open(builder, rank, round, waits);
    }
}

/// Lays out a barrier of two levels: the ranks of each server, then one leader per server.
pub(super) fn two_level(builder: &mut Builder, servers: &[usize]) {
    let servers = Servers::new(servers, builder.ranks);
    let (mut leaders, mut waits) = (Vec::new(), Vec::new());
    for group in servers.iter() {
        let followers = group[1..].iter();
        waits.push(followers.map(|&rank| signal_leader(builder, rank, group[0])).collect());
        leaders.push(group[0]);
    }
    let (waits, round) = disseminate(builder, &leaders, waits, 1);
    for (group, waits) in servers.iter().zip(&waits) {
        open(builder, group[0], round, waits);
        for &follower in &group[1..] {
            let release = builder.signal(group[0], follower);
            open(builder, follower, round + 1, &[release]);
        }
    }
}

/// Signals the leader that a follower has entered the barrier.
fn signal_leader(builder: &mut Builder, rank: usize, leader: usize) -> Sent {
    builder.step(rank, 0);
    builder.signal(rank, leader)
}

/// Returns the last signals that each member waits for, and the number of the round after the last.
fn disseminate(
    builder: &mut Builder,
    members: &[usize],
    mut waits: Waits,
    first_round: usize,
) -> (Waits, usize) {
    let (mut distance, mut round) = (1, first_round);
    while distance < members.len() {
        let mut next: Waits = vec![Vec::new(); members.len()];
        for (index, &rank) in members.iter().enumerate() {
            open(builder, rank, round, &waits[index]);
            let ahead = (index + distance) % members.len();
            next[ahead].push(builder.signal(rank, members[ahead]));
        }
        waits = next;
        distance *= 2;
        round += 1;
    }
    (waits, round)
}

fn open(builder: &mut Builder, rank: usize, round: usize, waits: &[Sent]) {
    builder.step(rank, round);
    for &wait in waits {
        builder.wait(rank, wait);
    }
}
