//! Rings: each rank sends to one neighbour and receives from the other, as often as there are other ranks.
//!
//! Reduce-scatter: the partial result of chunk *c* starts at the rank after *c* and travels around the ring until it
//! reaches *c*, so the order of reduction of chunk *c* is `((x[c+1] op x[c+2]) op ...) op x[c]` (ranks modulo N, the
//! opposite order in the second ring). All-gather: the finished chunks travel once around. All-reduce is a reduce-scatter
//! and then an all-gather: 2(N-1) steps, each rank sends 2(N-1)/N of the array (Patarasuk and Yuan 2009).
//!
//! A *lane* is one direction with its share of every part. Two lanes never touch the same elements; their steps
//! alternate, so that neither direction waits for the other longer than one step.

use std::ops::Range;

use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;
use crate::partition::part_of;
use crate::schedule::Span;

/// Lays out a reduce-scatter, all-gather or all-reduce over one or two lanes.
pub(super) fn lay_out(builder: &mut Builder, lanes: usize) {
    let mut lanes: Vec<_> = (0..lanes).map(|index| Lane::new(builder, index, lanes)).collect();
    let hops = builder.ranks - 1;
    let all_gather = builder.collective == Collective::AllGather;
    let reduce_scatter = builder.collective == Collective::ReduceScatter;
    let mut round = 0;
    if !all_gather {
        for hop in 0..hops {
            lanes.iter_mut().for_each(|lane| lane.reduce_onwards(builder, hop, reduce_scatter));
        }
        round = hops;
    }
    if !reduce_scatter {
        for hop in 0..hops {
            lanes.iter_mut().for_each(|lane| lane.pass_onwards(builder, round + hop, hop));
        }
        round += hops;
    }
    lanes.iter_mut().for_each(|lane| lane.end(builder, round));
    if all_gather {
        keep_own_part(builder, round);
    }
}

/// The data that a rank received last.
#[derive(Clone, Copy)]
struct Held {
    arrival: Sent,
    span: Span,
    /// The rank's own contribution has yet to be reduced into it.
    partial: bool,
}

struct Lane {
    forward: bool,
    ranks: usize,
    /// This lane's share of each rank's part, as positions in the whole array.
    pieces: Vec<Range<usize>>,
    held: Vec<Held>,
}

impl Lane {
    fn new(builder: &Builder, index: usize, lanes: usize) -> Self {
        let ranks = builder.ranks;
        let pieces: Vec<_> = (0..ranks).map(|rank| part_of(&builder.part(rank), lanes, index)).collect();
        // Only an all-gather uses the initial value: the rank's own part.
        let held = |rank: usize| {
            let start = builder.part(rank).start;
            let piece: &Range<usize> = &pieces[rank];
            Held { arrival: None, span: input(piece.start - start..piece.end - start), partial: false }
        };
        let held = (0..ranks).map(held).collect();
        Self { forward: index == 0, ranks, pieces, held }
    }

    fn ahead(&self, rank: usize) -> usize {
        self.behind(rank, self.ranks - 1)
    }

    /// Returns the rank that is `distance` hops away, against the direction of travel.
    fn behind(&self, rank: usize, distance: usize) -> usize {
        if self.forward {
            (rank + self.ranks - distance % self.ranks) % self.ranks
        } else {
            (rank + distance) % self.ranks
        }
    }

    /// Lays out one hop of the reduce-scatter. The last hop ends in the output: at the part's offset, or at the start if the
    /// output is only that part.
    fn reduce_onwards(&mut self, builder: &mut Builder, hop: usize, only_part: bool) {
        let mut arriving = self.held.clone();
        for rank in 0..self.ranks {
            let chunk = self.behind(rank, hop + 1);
            let piece = self.pieces[chunk].clone();
            builder.step(rank, hop);
            let source = if hop == 0 { input(piece.clone()) } else { self.take(builder, rank, chunk) };
            let to = self.ahead(rank);
            let start = if only_part { builder.part(chunk).start } else { 0 };
            let target = if hop + 2 == self.ranks {
                output(piece.start - start..piece.end - start)
            } else {
                builder.slot(to, piece.len())
            };
            let arrival = builder.send(rank, to, source, target);
            arriving[to] = Held { arrival, span: target, partial: true };
        }
        self.held = arriving;
    }

    /// Lays out one hop of the all-gather.
    fn pass_onwards(&mut self, builder: &mut Builder, round: usize, hop: usize) {
        let mut arriving = self.held.clone();
        for rank in 0..self.ranks {
            let chunk = self.behind(rank, hop);
            builder.step(rank, round);
            let source = self.take(builder, rank, chunk);
            let (to, target) = (self.ahead(rank), output(self.pieces[chunk].clone()));
            let arrival = builder.send(rank, to, source, target);
            arriving[to] = Held { arrival, span: target, partial: false };
        }
        self.held = arriving;
    }

    /// Makes every rank wait for its last transfer.
    fn end(&mut self, builder: &mut Builder, round: usize) {
        for rank in 0..self.ranks {
            builder.step(rank, round);
            self.take(builder, rank, rank);
        }
    }

    /// Waits for the data that the rank holds next, reduces the rank's own contribution to `chunk` into it if that is missing, and
    /// returns its span.
    fn take(&self, builder: &mut Builder, rank: usize, chunk: usize) -> Span {
        let held = self.held[rank];
        builder.wait(rank, held.arrival);
        if held.partial {
            builder.reduce(rank, input(self.pieces[chunk].clone()), held.span);
        }
        held.span
    }
}

fn keep_own_part(builder: &mut Builder, round: usize) {
    for rank in 0..builder.ranks {
        let own = builder.part(rank);
        builder.step(rank, round);
        builder.copy(rank, input(0..own.len()), output(own));
    }
}
