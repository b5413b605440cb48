//! Scans: each rank ends with the reduction of the ranks before it, and of itself if the scan is inclusive.
//!
//! *Direct*: every rank sends its array to all higher ranks, and each folds what it has in the order of ranks,
//! `((x[0] op x[1]) op x[2]) op ...`, so that 16-bit values are rounded once. *Chain*: a rank waits for the reduction of all lower
//! ranks, reduces its own array into it from the right, and passes it on. The order is the same, but each rank rounds.
//!
//! Rank 0 of an exclusive scan has no result.

use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;

/// Lays out a scan in one phase: rank *r* receives *r* arrays.
pub(super) fn direct(builder: &mut Builder) {
    let (ranks, all) = (builder.ranks, 0..builder.elements);
    let is_inclusive = builder.collective == Collective::Scan;
    // By receiver, in the order of senders.
    let mut landed: Vec<Vec<_>> = (0..ranks).map(Vec::with_capacity).collect();
    for rank in 0..ranks {
        builder.step(rank, 0);
        for (to, landed) in landed.iter_mut().enumerate().skip(rank + 1) {
            let target = builder.slot(to, all.len());
            landed.push((builder.send(rank, to, input(all.clone()), target), target));
        }
    }
    for (rank, landed) in landed.into_iter().enumerate() {
        builder.step(rank, 1);
        let mut operands = Vec::with_capacity(ranks);
        for (arrival, values) in landed {
            builder.wait(rank, arrival);
            operands.push(values);
        }
        if is_inclusive {
            operands.push(input(all.clone()));
        }
        if !operands.is_empty() {
            builder.fold(rank, &operands, output(all.clone()));
        }
    }
}

/// Lays out a scan from rank to rank: N-1 steps of the whole array.
pub(super) fn chain(builder: &mut Builder) {
    let (ranks, all) = (builder.ranks, 0..builder.elements);
    let (own, result) = (input(all.clone()), output(all.clone()));
    let is_inclusive = builder.collective == Collective::Scan;
    let mut arrival: Sent = None;
    for rank in 0..ranks {
        builder.step(rank, rank);
        builder.wait(rank, arrival);
        let is_last = rank + 1 == ranks;
        let passed = match (rank, is_inclusive) {
            (0, false) => own,
            (0, true) => {
                builder.copy(rank, own, result);
                own
            }
            (_, true) => {
                builder.reduce(rank, own, result);
                result
            }
            (_, false) if is_last => result,
            (_, false) => {
                let next = builder.slot(rank, all.len());
                builder.fold(rank, &[result, own], next);
                next
            }
        };
        if !is_last {
            arrival = builder.send(rank, rank + 1, passed, result);
        }
    }
}
