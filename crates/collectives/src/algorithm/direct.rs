//! Every pair talks at once: one message per pair and phase.
//!
//! Good where each pair has a path of its own (full mesh) or the switch has space for all (star), and for small messages
//! anywhere, because latency is paid once per phase. Contributions lie in slots of their own until all are there, and are
//! then folded in the order of ranks, `((x[0] op x[1]) op x[2]) op ...`, in one go: memory is written once, and 16-bit values
//! are rounded once, which a ring cannot do because its partial results travel in the type of the array.
//!
//! Each rank sends first to the rank after it, so that receivers are not all sent to by the same rank first.

use std::ops::Range;

use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;
use crate::schedule::Span;

/// Lays out a collective of one phase.
pub(super) fn lay_out(builder: &mut Builder) {
    match builder.collective {
        Collective::ReduceScatter => {
            let target = |builder: &Builder, rank| output(0..own(builder, rank).len());
            reduce_parts(builder, own, target);
        }
        Collective::AllGather => all_gather(builder),
        Collective::Reduce { root } => reduce(builder, root),
        Collective::Gather { root } => gather(builder, root),
        Collective::Scatter { root } => scatter(builder, root),
        _ => all_to_all(builder),
    }
}

/// Lays out an all-reduce in one phase: N-1 times the array leaves each rank.
pub(super) fn one_shot(builder: &mut Builder) {
    reduce_parts(builder, whole, |builder, _| output(0..builder.elements));
}

/// Lays out an all-reduce in two phases: each rank reduces its part for all, then gives it to all.
pub(super) fn two_shot(builder: &mut Builder) {
    reduce_parts(builder, own, |builder, rank| output(own(builder, rank)));
    let arrivals = fan_out(builder, 1, |builder, rank, to| {
        let reduced = output(own(builder, rank));
        builder.send(rank, to, reduced, reduced)
    });
    wait_for_all(builder, &arrivals, 2);
}

/// Lays out an all-to-all, one partner after the other: a rank goes on to distance *k* + 1 when it has received from distance *k*.
pub(super) fn pairwise(builder: &mut Builder) {
    let ranks = builder.ranks;
    let mut arrivals: Vec<Sent> = vec![None; ranks];
    for distance in 1..ranks {
        let mut arriving = vec![None; ranks];
        for (rank, &arrival) in arrivals.iter().enumerate() {
            let to = (rank + distance) % ranks;
            builder.step(rank, distance - 1);
            builder.wait(rank, arrival);
            arriving[to] = exchange(builder, rank, to);
        }
        arrivals = arriving;
    }
    for (rank, arrival) in arrivals.into_iter().enumerate() {
        builder.step(rank, ranks - 1);
        builder.wait(rank, arrival);
        keep_own_block(builder, rank);
    }
}

fn all_to_all(builder: &mut Builder) {
    let arrivals = fan_out(builder, 0, exchange);
    for rank in 0..builder.ranks {
        builder.step(rank, 1);
        keep_own_block(builder, rank);
    }
    wait_for_all(builder, &arrivals, 1);
}

fn all_gather(builder: &mut Builder) {
    let arrivals = fan_out(builder, 0, |builder, rank, to| {
        let part = own(builder, rank);
        builder.send(rank, to, input(0..part.len()), output(part))
    });
    for rank in 0..builder.ranks {
        let part = own(builder, rank);
        builder.step(rank, 1);
        builder.copy(rank, input(0..part.len()), output(part));
    }
    wait_for_all(builder, &arrivals, 1);
}

/// Lays out a reduce: the root folds the inputs of all ranks; no other rank computes.
fn reduce(builder: &mut Builder, root: usize) {
    let all = 0..builder.elements;
    let mut operands = Vec::with_capacity(builder.ranks);
    for rank in 0..builder.ranks {
        if rank == root {
            operands.push(input(all.clone()));
            continue;
        }
        let target = builder.slot(root, all.len());
        builder.step(rank, 0);
        let arrival = builder.send(rank, root, input(all.clone()), target);
        builder.step(root, 1);
        builder.wait(root, arrival);
        operands.push(target);
    }
    builder.fold(root, &operands, output(all));
}

fn gather(builder: &mut Builder, root: usize) {
    for rank in others(root, builder.ranks) {
        let part = own(builder, rank);
        builder.step(rank, 0);
        let arrival = builder.send(rank, root, input(0..part.len()), output(part));
        builder.step(root, 1);
        builder.wait(root, arrival);
    }
    let part = own(builder, root);
    builder.step(root, 1);
    builder.copy(root, input(0..part.len()), output(part));
}

fn scatter(builder: &mut Builder, root: usize) {
    builder.step(root, 0);
    for rank in others(root, builder.ranks) {
        let part = own(builder, rank);
        let arrival = builder.send(root, rank, input(part.clone()), output(0..part.len()));
        builder.step(rank, 1);
        builder.wait(rank, arrival);
    }
    let part = own(builder, root);
    builder.step(root, 1);
    builder.copy(root, input(part.clone()), output(0..part.len()));
}

/// Lays out a reduction of parts: every rank sends `piece(to)` of its input to each other rank, which folds the
/// received pieces at `target(to)`.
fn reduce_parts(
    builder: &mut Builder,
    piece: impl Fn(&Builder, usize) -> Range<usize>,
    target: impl Fn(&Builder, usize) -> Span,
) {
    let landed = fan_out(builder, 0, |builder, rank, to| {
        let source = input(piece(builder, to));
        let target = builder.slot(to, source.length);
        (builder.send(rank, to, source, target), target)
    });
    for (rank, contributions) in landed.into_iter().enumerate() {
        let (mine, result) = (input(piece(builder, rank)), target(builder, rank));
        builder.step(rank, 1);
        contributions.iter().for_each(|(arrival, _)| builder.wait(rank, *arrival));
        // The contributions are in the order of the other ranks.
        let mut operands: Vec<_> = contributions.into_iter().map(|(_, values)| values).collect();
        operands.insert(rank, mine);
        builder.fold(rank, &operands, result);
    }
}

/// Lets each rank send to every other in one step. Returns the transfers by receiver, in the order of senders.
fn fan_out<T>(
    builder: &mut Builder,
    round: usize,
    mut send: impl FnMut(&mut Builder, usize, usize) -> T,
) -> Vec<Vec<T>> {
    let ranks = builder.ranks;
    let mut sent: Vec<Vec<T>> = (0..ranks).map(|_| Vec::with_capacity(ranks)).collect();
    for rank in 0..ranks {
        builder.step(rank, round);
        for to in others(rank, ranks) {
            sent[to].push(send(builder, rank, to));
        }
    }
    sent
}

/// Sends the block that `to` gets from `rank` in an all-to-all.
fn exchange(builder: &mut Builder, rank: usize, to: usize) -> Sent {
    let parts = builder.parts();
    let (sent, received) = (parts.sent_block(rank, to), parts.received_block(rank, to));
    builder.send(rank, to, input(sent), output(received))
}

fn keep_own_block(builder: &mut Builder, rank: usize) {
    let parts = builder.parts();
    let (sent, received) = (parts.sent_block(rank, rank), parts.received_block(rank, rank));
    builder.copy(rank, input(sent), output(received));
}

/// Makes each rank wait for its transfers.
pub(super) fn wait_for_all(builder: &mut Builder, arrivals: &[Vec<Sent>], round: usize) {
    for (rank, arrivals) in arrivals.iter().enumerate() {
        builder.step(rank, round);
        for &arrival in arrivals {
            builder.wait(rank, arrival);
        }
    }
}

/// Returns all other ranks, the one after `rank` first.
pub(super) fn others(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (1..ranks).map(move |distance| (rank + distance) % ranks)
}

fn own(builder: &Builder, rank: usize) -> Range<usize> {
    builder.part(rank)
}

fn whole(builder: &Builder, _: usize) -> Range<usize> {
    0..builder.elements
}
