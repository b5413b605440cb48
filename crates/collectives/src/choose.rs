//! Choice of the algorithm: the one with the least estimated time, and the estimates of all others as the reason.
//!
//! `estimate.rs` names the sources of the estimates. Their inputs are the size, the number of ranks, the kind of topology and
//! a few measured numbers. They ignore contention with other traffic, and frames. The choice decides
//! the order of reduction and with it the last bits of floating-point sums, so every rank must be given the same numbers.

use core::fmt;
use core::num::NonZeroUsize;

use crate::algorithm::{self, Algorithm, Refused, Request, suitable};
use crate::estimate;

/// Kind of a rack's topology, as far as estimates distinguish racks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopologyKind {
    /// Each rank linked to the next; a rank has two links.
    Ring,
    /// Each rank linked to one switch per plane.
    Star,
    /// Each rank linked to each other.
    Mesh,
    /// Anything else; estimated like a star of one plane.
    Custom,
}

/// Returns the kind of a rack, and the planes of a star. Derived from the links, not from a name: `links` are pairs of
/// members, of which the first `ranks` are ranks and the next `switches` are switches.
#[must_use]
pub fn kind_of(ranks: usize, switches: usize, links: &[(usize, usize)]) -> (TopologyKind, u32) {
    let has_link =
        |left: usize, right: usize| links.contains(&(left, right)) || links.contains(&(right, left));
    let is_star =
        switches > 0 && (0..ranks).all(|rank| (ranks..ranks + switches).all(|switch| has_link(rank, switch)));
    let is_ring = links.len() == ranks && (0..ranks).all(|rank| has_link(rank, (rank + 1) % ranks));
    let is_mesh = || (0..ranks).all(|left| (0..left).all(|right| has_link(left, right)));
    match switches {
        0 if ranks > 2 && is_ring => (TopologyKind::Ring, 1),
        0 if is_mesh() => (TopologyKind::Mesh, 1),
        _ if is_star => (TopologyKind::Star, switches as u32),
        _ => (TopologyKind::Custom, 1),
    }
}

/// Properties of the fabric for estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Kind of the topology.
    pub kind: TopologyKind,
    /// Planes of a star, over which a rank's traffic spreads.
    pub planes: u32,
    /// Time from a put to its signal at a neighbour, without data: "alpha".
    pub alpha_ns: f64,
    /// Time per byte of one link: "beta", one over the rate.
    pub link_ns_per_byte: f64,
    /// Time of a signal between ranks of one server.
    pub local_alpha_ns: f64,
    /// Time that a rank takes to reduce one byte of an operand into its values: "gamma". Zero if computing costs
    /// nothing, as in virtual time.
    pub reduce_ns_per_byte: f64,
}

/// Expected time of one algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Time from the first start to the last end, in nanoseconds.
    pub time_ns: f64,
}

/// A choice and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The chosen algorithm.
    pub algorithm: Algorithm,
    /// Estimates of all suitable algorithms, the fastest first.
    pub estimates: Vec<Estimate>,
}

/// Chooses an algorithm for a collective on elements of this size in bytes. Of equal estimates the first of
/// [`Algorithm::all`] is taken.
///
/// # Errors
/// If the request itself is out of bounds.
pub fn choose(request: &Request<'_>, element_bytes: usize, fabric: &Fabric) -> Result<Choice, Refused> {
    let bytes = request.elements as f64 * element_bytes as f64;
    let mut estimates = Vec::new();
    for algorithm in suitable(request.collective, NonZeroUsize::MIN) {
        algorithm::check(request, algorithm)?;
        let algorithm = match algorithm {
            Algorithm::RingPipeline { .. } => {
                Algorithm::RingPipeline { segments: estimate::best_segments(request, bytes, fabric) }
            }
            other => other,
        };
        let reduced_bytes = estimate::reduced_bytes(request, bytes, algorithm);
        let time_ns =
            estimate::time_ns(request, bytes, fabric, algorithm) + reduced_bytes * fabric.reduce_ns_per_byte;
        estimates.push(Estimate { algorithm, time_ns });
    }
    estimates.sort_by(|left, right| left.time_ns.total_cmp(&right.time_ns));
    Ok(Choice { algorithm: estimates[0].algorithm, estimates })
}

/// Displays one line for a report: `two-shot, estimated 12.3 us (ring 40.1 us, one-shot 99.0 us)`.
impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, estimate) in self.estimates.iter().enumerate() {
            let before = match index {
                0 => "",
                1 => " (",
                _ => ", ",
            };
            let estimated = if index == 0 { ", estimated" } else { "" };
            let microseconds = estimate.time_ns / 1000.0;
            write!(formatter, "{before}{}{estimated} {microseconds:.1} us", estimate.algorithm)?;
        }
        if self.estimates.len() > 1 { formatter.write_str(")") } else { Ok(()) }
    }
}
