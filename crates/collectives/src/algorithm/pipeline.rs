//! Broadcast along the ring, in segments that follow each other: N - 2 + M steps of 1/M of the array.
//!
//! Counted from the root, rank *v* forwards segment *i* in round *i* + *v*. With many segments the array moves at the
//! rate of one link for any number of ranks. With few segments the latency is lower.

use crate::builder::{Builder, Sent, input, output};
use crate::partition::part;

/// Lays out the broadcast in `segments` segments. There must be at least two ranks.
pub(super) fn broadcast(builder: &mut Builder, segments: usize) {
    let ranks = builder.ranks;
    let root = builder.collective.root().unwrap_or(0);
    let mut arrivals: Vec<Sent> = vec![None; segments];
    for round in 0..ranks - 2 + segments {
        // The ranks of one round pass on different segments, so a segment's arrival has one reader and one writer.
        for distance in 0..ranks - 1 {
            let Some(segment) = round.checked_sub(distance).filter(|&segment| segment < segments) else {
                continue;
            };
            let (rank, to) = ((root + distance) % ranks, (root + distance + 1) % ranks);
            let range = part(builder.elements, segments, segment);
            builder.step(rank, round);
            builder.wait(rank, arrivals[segment].take());
            let source = if distance == 0 { input(range.clone()) } else { output(range.clone()) };
            arrivals[segment] = builder.send(rank, to, source, output(range));
        }
    }
    let last = (root + ranks - 1) % ranks;
    for (segment, arrival) in arrivals.into_iter().enumerate() {
        builder.step(last, ranks - 1 + segment);
        builder.wait(last, arrival);
    }
    let all = 0..builder.elements;
    builder.step(root, segments);
    builder.copy(root, input(all.clone()), output(all));
}
