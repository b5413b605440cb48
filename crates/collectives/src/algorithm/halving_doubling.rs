//! All-reduce by recursive halving, then recursive doubling (Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005).
//!
//! Partners at distance 1, 2, 4, ... each keep one half of what they still hold and give the other half away, so after
//! log2 N rounds each rank has the result of 1/N of the array; then the same partners, in reverse, give each other
//! their parts. The nearest partner comes first, when most is moved: on a ring the large messages take the short path.
//! A rank reduces `received op own`, so the order is a tree over the bits of the rank; each element is reduced at one
//! rank only, and all ranks end with the same bits.
//!
//! Other rank counts fold: with P the largest power of two, rank P + i first gives its whole input to rank i, and takes
//! the whole result from it in the end. That costs two messages of full size.

use std::ops::Range;

use crate::builder::{Builder, Sent, input, output};
use crate::partition::part_of;
use crate::schedule::Span;

/// Part of the array that a rank holds.
#[derive(Clone)]
struct Held {
    arrival: Sent,
    /// Own values that have yet to be reduced into `values`.
    own: Option<Span>,
    /// Span of the values of `range`.
    values: Span,
    range: Range<usize>,
}

/// Lays out an all-reduce of all ranks; there must be at least two.
pub(super) fn all_reduce(builder: &mut Builder) {
    let core = 1 << builder.ranks.ilog2();
    let mut held = fold_in(builder, core);
    let masks: Vec<usize> = (0..core.ilog2()).map(|bit| 1 << bit).collect();
    let mut round = 1;
    let mut parents = Vec::new();
    for &mask in &masks {
        parents.push(held.iter().map(|held| held.range.clone()).collect::<Vec<_>>());
        held = halve(builder, &held, mask, round);
        round += 1;
    }
    for &mask in masks.iter().rev() {
        held = double(builder, &held, mask, round);
        for (held, parent) in held.iter_mut().zip(parents.pop().unwrap_or_default()) {
            held.range = parent;
        }
        round += 1;
    }
    fold_out(builder, &held, round);
}

/// Lets the ranks beyond the power of two hand over their input.
fn fold_in(builder: &mut Builder, core: usize) -> Vec<Held> {
    let all = 0..builder.elements;
    let mine = input(all.clone());
    (0..core)
        .map(|rank| {
            let extra = rank + core;
            if extra >= builder.ranks {
                return Held { arrival: None, own: None, values: mine, range: all.clone() };
            }
            let slot = builder.slot(rank, all.len());
            builder.step(extra, 0);
            let arrival = builder.send(extra, rank, mine, slot);
            Held { arrival, own: Some(mine), values: slot, range: all.clone() }
        })
        .collect()
}

/// Keeps one half, and gives the other to the partner. The last halving ends in the output.
fn halve(builder: &mut Builder, held: &[Held], mask: usize, round: usize) -> Vec<Held> {
    let last = 2 * mask == held.len();
    let mut next = held.to_vec();
    for (rank, mine) in held.iter().enumerate() {
        let (partner, upper) = (rank ^ mask, usize::from(rank & mask != 0));
        builder.step(rank, round);
        complete(builder, rank, mine);
        let given = part_of(&mine.range, 2, 1 - upper);
        let target = if last { output(given.clone()) } else { builder.slot(partner, given.len()) };
        next[partner].arrival = builder.send(rank, partner, within(mine, &given), target);
        next[partner].values = target;
        let kept = part_of(&mine.range, 2, upper);
        next[rank].own = Some(within(mine, &kept));
        next[rank].range = kept;
    }
    next
}

/// Gives the partner the held values, which are in the output.
fn double(builder: &mut Builder, held: &[Held], mask: usize, round: usize) -> Vec<Held> {
    let mut next = held.to_vec();
    for (rank, mine) in held.iter().enumerate() {
        builder.step(rank, round);
        complete(builder, rank, mine);
        let given = output(mine.range.clone());
        next[rank ^ mask].arrival = builder.send(rank, rank ^ mask, given, given);
        next[rank].own = None;
    }
    next
}

/// Waits for the last half, and gives the result to the ranks beyond the power of two.
fn fold_out(builder: &mut Builder, held: &[Held], round: usize) {
    let all = output(0..builder.elements);
    for (rank, mine) in held.iter().enumerate() {
        builder.step(rank, round);
        complete(builder, rank, mine);
        let extra = rank + held.len();
        if extra < builder.ranks {
            let arrival = builder.send(rank, extra, all, all);
            builder.step(extra, round + 1);
            builder.wait(extra, arrival);
        }
    }
}

/// Waits for the transfer to this rank, and reduces its own values into it.
fn complete(builder: &mut Builder, rank: usize, held: &Held) {
    builder.wait(rank, held.arrival);
    if let Some(own) = held.own {
        builder.reduce(rank, own, held.values);
    }
}

/// Returns the span of a part of the held values.
fn within(held: &Held, range: &Range<usize>) -> Span {
    let start = held.values.start + (range.start - held.range.start);
    Span { buffer: held.values.buffer, start, length: range.len() }
}
