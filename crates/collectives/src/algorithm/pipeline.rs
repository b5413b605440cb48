//! Broadcast along the ring, in segments that follow each other: N - 2 + M steps of 1/M of the array.
//!
//! Counted from the root, rank *v* passes segment *i* on in round *i* + *v*. With many segments the whole moves at the
//! rate of one link however many ranks there are; with few, latency is lower.

use crate::builder::{Builder, Sent, input, output};
use crate::partition::part;

/// At least two ranks.
pub(super) fn broadcast(builder: &mut Builder, segments: usize) {
    let ranks = builder.ranks;
    let root = builder.collective.root().unwrap_or(0);
    let mut arrivals: Vec<Sent> = vec![None; segments];
    for round in 0..ranks - 2 + segments {
        // The ranks of one round pass on different segments, so a segment's arrival has one reader and one writer.
        for place in 0..ranks - 1 {
            let Some(segment) = round.checked_sub(place).filter(|&segment| segment < segments) else {
                continue;
            };
            let (rank, to) = ((root + place) % ranks, (root + place + 1) % ranks);
            let range = part(builder.elements, segments, segment);
            builder.step(rank, round);
            builder.wait(rank, arrivals[segment].take());
            let source = if place == 0 { input(range.clone()) } else { output(range.clone()) };
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
