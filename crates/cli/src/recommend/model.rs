//! Cost of a candidate: the estimates by which a running job chooses its algorithm, with times that follow from the rack file in place of
//! measured ones.

use std::num::NonZeroUsize;

use rackloom_collectives::choose::{Estimate, Fabric, TopologyKind, TransferLimit, choose, in_switches};
use rackloom_collectives::{Algorithm, AlgorithmKind, Collective, ElementType, Request};

use super::candidate::{Device, Rack, Size};
use super::form::Form;
use crate::arguments::Target;

/// Bytes before and behind each frame on a cable: preamble, check and gap.
const GAP_BYTES: f64 = 24.0;
/// Bytes of a data frame that are no payload.
const HEADER_BYTES: u64 = 130;
/// Pieces of long transfers are multiples of this many bytes.
const PIECE_BYTES: u64 = 256;

/// Collective of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) collective: Collective,
    pub(super) element: ElementType,
    pub(super) bytes: u64,
}

/// Payload bytes of a full frame.
pub(super) fn payload_bytes(rack: &Rack) -> u64 {
    (rack.frame_bytes.saturating_sub(HEADER_BYTES) / PIECE_BYTES * PIECE_BYTES).max(PIECE_BYTES)
}

/// Returns the properties of the fabric for estimates. Work in virtual time costs what the model of the device says.
fn fabric(size: Size, rack: &Rack) -> Fabric {
    let payload = payload_bytes(rack) as f64;
    let on_wire = (payload + HEADER_BYTES as f64 + GAP_BYTES) / payload;
    // A path to a neighbour crosses a switch, or none.
    let (kind, hops) = match size.form {
        Form::Star => (TopologyKind::Star, 2.0),
        Form::Ring if size.nodes > 2 => (TopologyKind::Ring, 1.0),
        Form::Ring | Form::FullMesh => (TopologyKind::Mesh, 1.0),
        Form::LeafSpine { nodes_per_leaf, spines, .. } => {
            let kind = TopologyKind::LeafSpine {
                ranks_per_leaf: saturated(nodes_per_leaf),
                uplinks: saturated(spines),
            };
            (kind, 2.0)
        }
        Form::Torus(sizes) => (TopologyKind::Torus { sizes: sizes.map(saturated) }, 1.0),
        Form::Hypercube { .. } => (TopologyKind::Hypercube, 1.0),
        // Such a candidate has no rack, and no estimate.
        Form::Impossible(_) => (TopologyKind::Custom, 1.0),
    };
    let path_ns = hops * rack.link_ns + (hops - 1.0) * rack.forwarding_ns;
    let Device { memory_ns_per_byte, reduce_ns_per_byte, begin_ns, in_flight } = rack.device;
    Fabric {
        kind,
        planes: saturated(size.planes),
        spread: rack.spread,
        alpha_ns: path_ns,
        link_ns_per_byte: 8e9 / rack.rate_bits_per_s as f64 * on_wire,
        local_alpha_ns: 0.0,
        local_ns_per_byte: 0.0,
        reduce_ns_per_byte,
        memory_ns_per_byte,
        begin_ns,
        transfer_limit: in_flight.map(|in_flight| TransferLimit { in_flight, end_ns: path_ns }),
    }
}

fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the estimate of the fastest of the algorithms; of all that nodes perform alone, if none is named: a rack file does not say that
/// its switches reduce. `None` if none of them can perform the collective.
pub(super) fn best(work: Work, size: Size, rack: &Rack, algorithms: &[AlgorithmKind]) -> Option<Estimate> {
    estimates(work, size, rack).into_iter().find(|estimate| {
        let kind = estimate.algorithm.kind();
        if algorithms.is_empty() { kind != AlgorithmKind::InSwitch } else { algorithms.contains(&kind) }
    })
}

/// Returns the estimated time of one algorithm for this work, in nanoseconds.
pub(super) fn time_ns(work: Work, size: Size, rack: &Rack, kind: AlgorithmKind) -> Option<f64> {
    estimates(work, size, rack)
        .into_iter()
        .find(|estimate| estimate.algorithm.kind() == kind)
        .map(|estimate| estimate.time_ns)
}

/// Returns the estimates of all algorithms, the fastest first.
fn estimates(work: Work, size: Size, rack: &Rack) -> Vec<Estimate> {
    let request = Request {
        collective: work.collective,
        ranks: usize::try_from(size.nodes).unwrap_or(usize::MAX),
        elements: usize::try_from(work.bytes / work.element.bytes() as u64).unwrap_or(usize::MAX),
        servers: &[],
        parts: &[],
    };
    let (fabric, element_bytes) = (fabric(size, rack), work.element.bytes());
    let mut estimates =
        choose(&request, element_bytes, &fabric).map_or_else(|_| Vec::new(), |it| it.estimates);
    // Every node is linked to every switch.
    if let Form::Star = size.form
        && let Some(switches) = usize::try_from(size.planes).ok().and_then(NonZeroUsize::new)
    {
        estimates.extend(in_switches(&request, element_bytes, &fabric, switches));
        estimates.sort_by(|left, right| left.time_ns.total_cmp(&right.time_ns));
    }
    estimates
}

/// Returns the bus bandwidth in 10^9 bytes per second.
pub(super) fn bus_gbps(work: Work, size: Size, time_ns: f64) -> f64 {
    let factor = work.collective.bus_factor(usize::try_from(size.nodes).unwrap_or(usize::MAX));
    work.bytes as f64 / time_ns.max(1.0) * factor.unwrap_or(0.0)
}

/// Returns the bus bandwidth as a share of the target: 1 and more meets it.
pub(super) fn of_target(target: Target, size: Size, rack: &Rack, gbps: f64) -> f64 {
    match target {
        Target::Gbps(wanted) => gbps / wanted,
        Target::OfNode(share) => of_node(size, rack, gbps) / share,
    }
}

/// Returns a bandwidth as a share of the rate of all links of a node, in one direction.
pub(super) fn of_node(size: Size, rack: &Rack, gbps: f64) -> f64 {
    gbps * 8e9 / (size.links_per_node() as f64 * rack.rate_bits_per_s as f64)
}

/// Returns the largest size of the array, from that of the work downwards by halves, with which a run has at most this many frames on all
/// links.
pub(super) fn simulated_bytes(
    work: Work,
    size: Size,
    rack: &Rack,
    algorithm: Algorithm,
    frames_max: u64,
) -> u64 {
    let least = (size.nodes * work.element.bytes() as u64).min(work.bytes);
    let mut bytes = work.bytes;
    while frames(Work { bytes, ..work }, size, rack, algorithm) > frames_max as f64 && bytes / 2 >= least {
        bytes /= 2;
    }
    let unit = work.element.bytes() as u64;
    bytes / unit * unit
}

/// Returns the number of frames of a run, on all links together. A frame counts on each link that it crosses.
pub(super) fn frames(work: Work, size: Size, rack: &Rack, algorithm: Algorithm) -> f64 {
    let nodes = size.nodes as f64;
    let copies = match (algorithm, work.collective) {
        // Each node sends its array to the units and receives the result: two links, where others cross two for each copy.
        (Algorithm::InSwitch { .. }, _) => nodes,
        (Algorithm::OneShot, _) => nodes * (nodes - 1.0),
        (_, Collective::AllReduce) => 2.0 * (nodes - 1.0),
        _ => nodes - 1.0,
    };
    let is_to_next =
        matches!(algorithm, Algorithm::Ring | Algorithm::BidirectionalRing | Algorithm::RingPipeline { .. });
    let links = size.form.links_crossed(size.nodes, is_to_next);
    work.bytes as f64 * copies * links / payload_bytes(rack) as f64
}

/// Returns the number of segments of a pipelined algorithm, or 1.
pub(super) fn segments(algorithm: Algorithm) -> NonZeroUsize {
    match algorithm {
        Algorithm::RingPipeline { segments } => segments,
        _ => NonZeroUsize::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ShapeName;
    use rackloom_collectives::choose::Spread;

    const RACK: Rack = Rack {
        settings: Vec::new(),
        links: 8,
        switches: 1,
        rate_bits_per_s: 100_000_000_000,
        link_ns: 500.0,
        forwarding_ns: 0.0,
        frame_bytes: 4240,
        spread: Spread::EQUAL,
        device: Device { memory_ns_per_byte: 0.0, reduce_ns_per_byte: 0.0, begin_ns: 0.0, in_flight: None },
    };
    const WORK: Work = Work { collective: Collective::AllReduce, element: ElementType::F32, bytes: 1 << 30 };

    const fn size(shape: ShapeName, form: Form, nodes: u64, planes: u64) -> Size {
        Size { shape, form, nodes, planes }
    }

    const fn star(planes: u64) -> Size {
        size(ShapeName::Star, Form::Star, 8, planes)
    }

    #[test]
    fn a_large_array_on_a_star_takes_the_time_of_its_bytes() {
        let estimate = best(WORK, star(1), &RACK, &[]).unwrap();
        // 2 x 7/8 GiB at 12.5 bytes per nanosecond, with 154 bytes around each 4096.
        let expected_ns = 1.75 * f64::from(1 << 30) / 12.5 * (4096.0 + 154.0) / 4096.0;
        assert!((estimate.time_ns / expected_ns - 1.0).abs() < 0.001, "{estimate:?}, {expected_ns}");
    }

    #[test]
    fn a_named_algorithm_is_taken_and_an_unsuitable_one_is_not() {
        let star = star(1);
        let ring = best(WORK, star, &RACK, &[AlgorithmKind::Ring]).unwrap();
        assert_eq!(ring.algorithm, Algorithm::Ring);
        assert_eq!(best(WORK, star, &RACK, &[AlgorithmKind::Pairwise]), None);
    }

    #[test]
    fn switches_that_reduce_are_taken_only_if_named_and_only_on_a_star() {
        let of = |size, algorithms: &[AlgorithmKind]| best(WORK, size, &RACK, algorithms);
        let named = of(star(2), &[AlgorithmKind::Ring, AlgorithmKind::InSwitch]).unwrap();
        assert_eq!(named.algorithm.switches(), 2);
        assert!(named.time_ns < of(star(2), &[]).unwrap().time_ns * 0.6, "{named:?}");
        let mesh = size(ShapeName::FullMesh, Form::FullMesh, 8, 1);
        assert_eq!(of(mesh, &[AlgorithmKind::InSwitch]), None);
    }

    #[test]
    fn targets_are_shares_of_all_links_of_a_node_or_absolute() {
        let star = star(2);
        // Two links of 12.5 GB/s.
        assert_eq!(of_node(star, &RACK, 20.0), 0.8);
        assert_eq!(of_target(Target::OfNode(0.8), star, &RACK, 20.0), 1.0);
        assert_eq!(of_target(Target::Gbps(40.0), star, &RACK, 20.0), 0.5);
        assert_eq!(of_node(size(ShapeName::FullMesh, Form::FullMesh, 5, 1), &RACK, 50.0), 1.0);
    }

    #[test]
    fn a_simulated_array_has_a_bounded_number_of_frames() {
        let star = star(1);
        let bytes = simulated_bytes(WORK, star, &RACK, Algorithm::TwoShot, 100_000);
        // 14 copies over two links each.
        assert!(bytes as f64 * 14.0 * 2.0 / 4096.0 <= 100_000.0, "{bytes}");
        assert!(bytes as f64 * 14.0 * 2.0 * 2.0 / 4096.0 > 100_000.0, "{bytes}");
        assert_eq!(simulated_bytes(WORK, star, &RACK, Algorithm::TwoShot, u64::MAX), 1 << 30);
    }

    #[test]
    fn shapes_with_narrower_halves_take_longer() {
        let two_shot = |form| {
            let size = Size { form, ..size(ShapeName::Torus, form, 16, 1) };
            best(WORK, size, &RACK, &[AlgorithmKind::TwoShot]).unwrap().time_ns
        };
        let narrow = two_shot(Form::LeafSpine { leaves: 4, nodes_per_leaf: 4, spines: 1 });
        let wide = two_shot(Form::LeafSpine { leaves: 4, nodes_per_leaf: 4, spines: 4 });
        // Four nodes send to twelve over one link, and otherwise each to fifteen over its own.
        assert!((narrow / wide - 48.0 / 15.0).abs() < 0.001, "{narrow}, {wide}");
        let torus = two_shot(Form::Torus([8, 2, 1]));
        let cube = two_shot(Form::Hypercube { dimensions: 4 });
        // Rings of eight: two nodes each send one, two, three and four hops in a direction; eight messages cross a link of a cube.
        assert!((torus / cube - 2.5).abs() < 0.001, "{torus}, {cube}");
    }
}
