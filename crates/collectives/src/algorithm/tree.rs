//! Binomial trees: ceil(log2 N) rounds, the whole array each time.
//!
//! Counted from the root, rank *v* exchanges messages with *v* + 2^j. A broadcast goes from the largest distance to the smallest, so
//! that on a ring the messages of one round share no link; a reduce is the same in reverse. A rank of a reduce computes
//! `received op own` for its children in the order of their distance, nearest first.

use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;
use crate::schedule::Span;

/// Lays out a broadcast or a reduce.
pub(super) fn lay_out(builder: &mut Builder) {
    match builder.collective {
        Collective::Reduce { root } => reduce(builder, root),
        collective => broadcast(builder, collective.root().unwrap_or(0)),
    }
}

fn broadcast(builder: &mut Builder, root: usize) {
    let (ranks, all) = (builder.ranks, 0..builder.elements);
    let mut arrivals: Vec<Sent> = vec![None; ranks];
    let levels = levels(ranks);
    for (round, level) in (0..levels).rev().enumerate() {
        for from in (0..ranks).step_by(2 << level).filter(|from| from + (1 << level) < ranks) {
            let (rank, child) = ((from + root) % ranks, (from + (1 << level) + root) % ranks);
            builder.step(rank, round);
            builder.wait(rank, arrivals[rank].take());
            let source = if rank == root { input(all.clone()) } else { output(all.clone()) };
            arrivals[child] = builder.send(rank, child, source, output(all.clone()));
        }
    }
    for (rank, arrival) in arrivals.into_iter().enumerate() {
        builder.step(rank, levels);
        builder.wait(rank, arrival);
    }
    builder.copy(root, input(all.clone()), output(all));
}

/// Partial result that a rank has reduced so far.
#[derive(Clone, Copy)]
struct Held {
    arrival: Sent,
    /// Earlier result that has yet to be reduced into `span`.
    own: Option<Span>,
    span: Span,
}

impl Held {
    fn complete(self, builder: &mut Builder, rank: usize) -> Span {
        builder.wait(rank, self.arrival);
        if let Some(own) = self.own {
            builder.reduce(rank, own, self.span);
        }
        self.span
    }
}

fn reduce(builder: &mut Builder, root: usize) {
    let (ranks, all) = (builder.ranks, 0..builder.elements);
    let mut held = vec![Held { arrival: None, own: None, span: input(all.clone()) }; ranks];
    let levels = levels(ranks);
    for level in 0..levels {
        for to in (0..ranks).step_by(2 << level).filter(|to| to + (1 << level) < ranks) {
            let (rank, child) = ((to + root) % ranks, (to + (1 << level) + root) % ranks);
            builder.step(child, level);
            let source = held[child].complete(builder, child);
            builder.step(rank, level);
            let own = held[rank].complete(builder, rank);
            let last = rank == root && level + 1 == levels;
            let span = if last { output(all.clone()) } else { builder.slot(rank, all.len()) };
            let arrival = builder.send(child, rank, source, span);
            held[rank] = Held { arrival, own: Some(own), span };
        }
    }
    builder.step(root, levels);
    held[root].complete(builder, root);
}

fn levels(ranks: usize) -> usize {
    ranks.next_power_of_two().ilog2() as usize
}
