//! Choice of the algorithm: the one with the least estimated time, and the estimates of all others as the reason.
//!
//! `estimate.rs` names the sources of the estimates. Their inputs are the size, the number of ranks, the kind of topology and
//! a few measured numbers. They ignore contention with other traffic, and frames. The choice decides
//! the order of reduction and with it the last bits of floating-point sums, so every rank must be given the same numbers.

use core::fmt;
use core::num::NonZeroUsize;

use crate::algorithm::{self, Algorithm, Refused, Request, candidates};
use crate::collective::Collective;
use crate::estimate;

pub use crate::fabric::{Fabric, Spread, Spreading, TopologyKind, TransferLimit, kind_of};

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
    /// Estimates of all [`candidates`], the fastest first.
    pub estimates: Vec<Estimate>,
}

/// Chooses an algorithm for a collective on elements of this size in bytes. Of equal estimates the first of
/// [`Algorithm::all`] is taken.
///
/// # Errors
/// If the request itself is out of bounds.
pub fn choose(request: &Request<'_>, element_bytes: usize, fabric: &Fabric) -> Result<Choice, Refused> {
    let whole = request.elements as f64 * element_bytes as f64;
    // Listed blocks of an all-to-all are counted over all pairs, and estimates count a rank's array.
    let are_blocks = request.collective == Collective::AllToAll && !request.parts.is_empty();
    let bytes = if are_blocks { whole / request.ranks as f64 } else { whole };
    let mut estimates = Vec::new();
    for algorithm in candidates(request.collective, NonZeroUsize::MIN, request.servers) {
        let algorithm = match algorithm {
            Algorithm::RingPipeline { .. } => {
                Algorithm::RingPipeline { segments: estimate::best_segments(request, bytes, fabric) }
            }
            other => other,
        };
        estimates.push(estimate_of(request, bytes, fabric, algorithm)?);
    }
    estimates.sort_by(|left, right| left.time_ns.total_cmp(&right.time_ns));
    Ok(Choice { algorithm: estimates[0].algorithm, estimates })
}

/// Returns the estimate of an all-reduce or another collective by reduction units in this many switches. [`choose`] does not know whether
/// switches have them.
///
/// # Errors
/// The units cannot perform the collective, or the request itself is out of bounds.
pub fn in_switches(
    request: &Request<'_>,
    element_bytes: usize,
    fabric: &Fabric,
    switches: NonZeroUsize,
) -> Result<Estimate, Refused> {
    let bytes = request.elements as f64 * element_bytes as f64;
    estimate_of(request, bytes, fabric, Algorithm::InSwitch { switches })
}

fn estimate_of(
    request: &Request<'_>,
    bytes: f64,
    fabric: &Fabric,
    algorithm: Algorithm,
) -> Result<Estimate, Refused> {
    algorithm::check(request, algorithm)?;
    let reduced_bytes = estimate::reduced_bytes(request, bytes, algorithm);
    let moved_bytes = estimate::moved_bytes(request, bytes, algorithm);
    let work_ns = (reduced_bytes * fabric.reduce_ns_per_byte).max(moved_bytes * fabric.memory_ns_per_byte);
    let time_ns = estimate::time_ns(request, bytes, fabric, algorithm) + work_ns;
    Ok(Estimate { algorithm, time_ns })
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
