//! Candidates of the search: a shape with a number of nodes and planes, built over the settings of the rack file.

use std::path::Path;

use rackloom_control::source::Overrides;
use rackloom_plan::Plan;
use rackloom_runtime::request::work::RackRequest;

use crate::arguments::{RecommendArguments, ShapeName};
use crate::failure::Failure;

/// Shape with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) shape: ShapeName,
    pub(super) nodes: u64,
    /// 1 for shapes without switches.
    pub(super) planes: u64,
}

/// Rack of a candidate, with the numbers on which its cost depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rack {
    pub(super) links: usize,
    pub(super) switches: usize,
    /// Rate of one link, in bits per second.
    pub(super) rate_bits_per_s: u64,
    /// Time of one link without bytes, in nanoseconds.
    pub(super) link_ns: f64,
    /// Time in which a switch forwards, in nanoseconds.
    pub(super) forwarding_ns: f64,
    /// Largest frame, in bytes.
    pub(super) frame_bytes: u64,
}

impl Size {
    /// Returns the setting that gives a rack file this shape.
    pub(super) fn setting(self) -> String {
        let Self { shape, nodes, planes } = self;
        match shape {
            ShapeName::Star => format!("shape={{star: {{nodes: {nodes}, planes: {planes}}}}}"),
            other => format!("shape={{{}: {{nodes: {nodes}}}}}", other.name()),
        }
    }

    /// Returns the number of links of each node.
    pub(super) const fn links_per_node(self) -> u64 {
        match self.shape {
            ShapeName::Star => self.planes,
            // Two nodes of a ring share one link.
            ShapeName::Ring if self.nodes == 2 => 1,
            ShapeName::Ring => 2,
            ShapeName::FullMesh => self.nodes - 1,
        }
    }
}

/// Returns all sizes of the search, the largest racks first.
pub(super) fn sizes(arguments: &RecommendArguments) -> Vec<Size> {
    let mut sizes = Vec::new();
    for nodes in arguments.nodes.0.iter().rev().copied().filter(|nodes| *nodes > 1) {
        for shape in &arguments.shapes {
            let of_shape = |planes| Size { shape: *shape, nodes, planes };
            match shape {
                ShapeName::Star => sizes.extend(arguments.planes.0.iter().copied().map(of_shape)),
                ShapeName::Ring | ShapeName::FullMesh => sizes.push(of_shape(1)),
            }
        }
    }
    sizes
}

/// Returns all settings of a candidate.
pub(super) fn settings(arguments: &RecommendArguments, size: Size) -> Vec<String> {
    arguments.set.iter().cloned().chain([size.setting()]).collect()
}

/// Builds the rack of a candidate.
///
/// # Errors
/// The rack file, with this shape, is no rack, or its links have no rate.
pub(super) fn rack(file: &Path, settings: Vec<String>) -> Result<Rack, Failure> {
    let plan = RackRequest::read(file, &Overrides { set: settings, ..Overrides::default() })?.plan()?;
    of_plan(&plan)
}

fn of_plan(plan: &Plan) -> Result<Rack, Failure> {
    let rates: Option<Vec<u64>> = plan.links.iter().map(|link| link.profile.rate_bits_per_s).collect();
    let Some(rate_bits_per_s) = rates.and_then(|rates| rates.into_iter().min()) else {
        let hint = "add `link: {rate: 400Gbit/s}` to the file, or --set link.rate=400Gbit/s";
        return Err(Failure::bad_input("the links of the rack have no rate").hint(hint));
    };
    let link_ns = plan.links.iter().map(|link| link.profile.latency_ns()).max().unwrap_or(0);
    Ok(Rack {
        links: plan.links.len(),
        switches: plan.members.iter().filter(|member| member.role.is_switch()).count(),
        rate_bits_per_s,
        link_ns: link_ns as f64,
        forwarding_ns: plan.forwarding.latency_ns as f64,
        frame_bytes: u64::from(plan.settings.frame_bytes_max),
    })
}
