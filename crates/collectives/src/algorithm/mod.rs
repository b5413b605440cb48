//! The algorithms, and the one function that builds a schedule.
//!
//! Each file here holds one idea and returns nothing but steps. Orders of reduction are part of an algorithm: they fix
//! the bits of a floating-point result, and they are stated where they are decided. Times are estimated elsewhere
//! ([`choose`](crate::choose)).

mod barrier;
mod direct;
mod halving_doubling;
mod hierarchical;
mod in_switch;
mod name;
mod pipeline;
mod request;
mod ring;
mod scan;
mod servers;
mod tree;

use crate::builder::{Builder, input, output};
use crate::collective::Collective;
use crate::schedule::Schedule;

pub(crate) use self::hierarchical::DIRECT_SERVERS_MAX;
pub use self::name::{Algorithm, AlgorithmKind, UnknownAlgorithm};
pub(crate) use self::request::check;
pub use self::request::{ELEMENTS_MAX, RANKS_MAX, Refused, Request, SEGMENTS_MAX, candidates, suitable};
pub(crate) use self::servers::Servers;

/// Builds the schedule of a collective by an algorithm.
///
/// # Errors
/// If the algorithm cannot perform the collective, or a number is out of its bounds.
pub fn build(request: &Request<'_>, algorithm: Algorithm) -> Result<Schedule, Refused> {
    check(request, algorithm)?;
    let mut builder = Builder::new(request);
    builder.add_units(algorithm.switches());
    if request.ranks == 1 {
        alone(&mut builder);
    } else {
        lay_out(&mut builder, request, algorithm);
    }
    Ok(builder.finish(algorithm))
}

/// Lays out a collective of one rank, which gets its own input, if it gets anything.
fn alone(builder: &mut Builder) {
    if !matches!(builder.collective, Collective::Barrier | Collective::ExclusiveScan) {
        let all = 0..builder.elements;
        builder.step(0, 0);
        builder.copy(0, input(all.clone()), output(all));
    }
}

fn lay_out(builder: &mut Builder, request: &Request<'_>, algorithm: Algorithm) {
    let is_scan = matches!(request.collective, Collective::Scan | Collective::ExclusiveScan);
    match algorithm {
        Algorithm::Ring if is_scan => scan::chain(builder),
        Algorithm::Direct if is_scan => scan::direct(builder),
        Algorithm::Ring => ring::lay_out(builder, 1),
        Algorithm::BidirectionalRing => ring::lay_out(builder, 2),
        Algorithm::OneShot => direct::one_shot(builder),
        Algorithm::TwoShot => direct::two_shot(builder),
        Algorithm::HalvingDoubling => halving_doubling::all_reduce(builder),
        Algorithm::Direct => direct::lay_out(builder),
        Algorithm::Pairwise => direct::pairwise(builder),
        Algorithm::Binomial => tree::lay_out(builder),
        Algorithm::RingPipeline { segments } => pipeline::broadcast(builder, segments.get()),
        Algorithm::Dissemination => barrier::flat(builder),
        Algorithm::TwoLevel => barrier::two_level(builder, request.servers),
        Algorithm::Hierarchical => hierarchical::lay_out(builder, request.servers),
        Algorithm::InSwitch { .. } => in_switch::lay_out(builder),
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use super::*;

    fn request(collective: Collective, ranks: usize) -> Request<'static> {
        Request { collective, ranks, elements: 10, servers: &[], parts: &[] }
    }

    #[test]
    fn every_collective_can_be_done() {
        for collective in Collective::all(0) {
            assert!(suitable(collective, NonZeroUsize::MIN).next().is_some(), "{collective}");
        }
    }

    #[test]
    fn a_refusal_names_valid_values() {
        let reason = |request: &Request<'_>, algorithm| build(request, algorithm).unwrap_err().to_string();
        let refused = reason(&request(Collective::AllToAll, 4), Algorithm::Ring);
        assert_eq!(refused, "ring cannot do all-to-all; hint: all-to-all is done by direct, pairwise");
        let refused = reason(&request(Collective::Broadcast { root: 0 }, 4), Algorithm::Ring);
        assert!(refused.contains("; hint: broadcast is done by "), "{refused}");
        assert_eq!(
            reason(&request(Collective::AllReduce, 0), Algorithm::Ring),
            "0 ranks; hint: between 1 and 16384"
        );
        let rooted = request(Collective::Broadcast { root: 4 }, 4);
        assert_eq!(reason(&rooted, Algorithm::Binomial), "root 4 of 4 ranks; hint: between 0 and 3");
        let barrier = Request { servers: &[0, 0], ..request(Collective::Barrier, 3) };
        assert!(reason(&barrier, Algorithm::TwoLevel).contains("2 servers named for 3 ranks"));
        let huge = Request { elements: ELEMENTS_MAX + 1, ..request(Collective::AllReduce, 3) };
        assert_eq!(build(&huge, Algorithm::Ring), Err(Refused::Elements(ELEMENTS_MAX + 1)));
        let listed = |collective, parts| {
            reason(
                &Request { parts, ..request(collective, 3) },
                suitable(collective, NonZeroUsize::MIN).next().unwrap(),
            )
        };
        assert!(listed(Collective::AllGather, &[1, 9]).starts_with("2 parts listed; hint: list 3:"));
        assert!(listed(Collective::AllToAll, &[1, 2, 7]).starts_with("3 parts listed; hint: list 9:"));
        let sum = listed(Collective::ReduceScatter, &[1, 2, 8]);
        assert!(sum.starts_with("the parts have 11 elements, the array has 10"), "{sum}");
        assert!(
            listed(Collective::Gather { root: 0 }, &[usize::MAX, usize::MAX, 2])
                .contains("36893488147419103232")
        );
        assert!(listed(Collective::AllReduce, &[1, 2, 7]).contains("parts listed for all-reduce"));
        let segments = NonZeroUsize::new(SEGMENTS_MAX + 1).unwrap();
        let fine = Algorithm::RingPipeline { segments };
        let broadcast = request(Collective::Broadcast { root: 0 }, 3);
        assert_eq!(build(&broadcast, fine), Err(Refused::Segments(segments)));
    }
}
