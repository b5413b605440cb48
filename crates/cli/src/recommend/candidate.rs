//! Candidates of the search: a shape with a number of nodes and planes, built over the settings of the rack file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use rackloom_collectives::choose::Spread;
use rackloom_control::source::Overrides;
use rackloom_plan::{DeviceModel, Plan};
use rackloom_protocol::MemberRole;
use rackloom_runtime::request::work::RackRequest;

use super::form::{self, Form};
use crate::arguments::{RecommendArguments, ShapeName};
use crate::failure::Failure;

/// Setting of a torus whose rings would close circles of buffers.
const RISE_AT_DATELINES: &str = "channels.rise=dateline";
/// Setting of shapes without datelines.
const NO_RISE: &str = "channels.rise=never";

/// Shape with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) shape: ShapeName,
    pub(super) form: Form,
    pub(super) nodes: u64,
    /// 1 for shapes without switches.
    pub(super) planes: u64,
}

/// Rack of a candidate, with the numbers on which its cost depends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rack {
    /// Settings over those of the rack file.
    pub(super) settings: Vec<String>,
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
    /// Use of planes and spines.
    pub(super) spread: Spread,
    pub(super) device: Device,
}

/// Limits of the slowest node, by the model of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Device {
    /// Time per byte that is read or written in own memory, in nanoseconds.
    pub(super) memory_ns_per_byte: f64,
    /// Time per byte of results of reductions, in nanoseconds.
    pub(super) reduce_ns_per_byte: f64,
    /// Time before a transfer begins, in nanoseconds.
    pub(super) begin_ns: f64,
    /// Largest number of transfers in flight.
    pub(super) in_flight: Option<NonZeroUsize>,
}

impl Device {
    fn of(model: &DeviceModel) -> Self {
        let ns_per_byte = |rate: Option<u64>| rate.map_or(0.0, |rate| 8e9 / rate as f64);
        Self {
            memory_ns_per_byte: ns_per_byte(model.memory_rate_bits_per_s),
            reduce_ns_per_byte: ns_per_byte(model.reduction_rate_bits_per_s),
            begin_ns: model.bulk_latency_ns as f64,
            in_flight: model.bulk_max().and_then(NonZeroUsize::new),
        }
    }

    fn slower(self, other: Self) -> Self {
        Self {
            memory_ns_per_byte: self.memory_ns_per_byte.max(other.memory_ns_per_byte),
            reduce_ns_per_byte: self.reduce_ns_per_byte.max(other.reduce_ns_per_byte),
            begin_ns: self.begin_ns.max(other.begin_ns),
            in_flight: self.in_flight.into_iter().chain(other.in_flight).min(),
        }
    }
}

/// Rack file of all candidates, with the settings over it.
#[derive(Clone, Debug)]
pub(super) struct Base {
    file: PathBuf,
    set: Vec<String>,
}

impl Base {
    pub(super) fn of(arguments: &RecommendArguments) -> Self {
        Self { file: arguments.file.clone(), set: arguments.set.clone() }
    }

    /// Returns all settings of a candidate without channels of its own.
    fn settings(&self, size: Size) -> Result<Vec<String>, Failure> {
        let shape = size.setting().map_err(|reason| {
            Failure::bad_input(reason)
                .hint("name other numbers of nodes with --nodes, or other shapes with --shapes")
        })?;
        Ok(self.set.iter().cloned().chain([shape]).collect())
    }

    fn build(&self, settings: Vec<String>) -> Result<Rack, Failure> {
        let overrides = Overrides { set: settings.clone(), ..Overrides::default() };
        let plan = RackRequest::read(&self.file, &overrides)?.plan()?;
        of_plan(&plan, settings)
    }
}

impl Size {
    /// Returns the setting that gives a rack file this shape, or the reason for which there is none.
    pub(super) fn setting(self) -> Result<String, &'static str> {
        let Self { shape, form, nodes, planes } = self;
        let name = shape.name();
        match form {
            Form::Star => Ok(format!("shape={{star: {{nodes: {nodes}, planes: {planes}}}}}")),
            Form::Ring | Form::FullMesh => Ok(format!("shape={{{name}: {{nodes: {nodes}}}}}")),
            Form::LeafSpine { leaves, nodes_per_leaf, spines } => {
                let sizes = format!("leaves: {leaves}, nodes_per_leaf: {nodes_per_leaf}, spines: {spines}");
                Ok(format!("shape={{leaf-spine: {{{sizes}, planes: {planes}}}}}"))
            }
            Form::Torus([x, y, z]) => Ok(format!("shape={{torus: {{x: {x}, y: {y}, z: {z}}}}}")),
            Form::Hypercube { dimensions } => {
                Ok(format!("shape={{hypercube: {{dimensions: {dimensions}}}}}"))
            }
            Form::Impossible(reason) => Err(reason),
        }
    }

    /// Returns the number of links of each node.
    pub(super) fn links_per_node(self) -> u64 {
        self.form.links_per_node(self.nodes, self.planes)
    }
}

/// Returns all sizes of the search, the largest racks first.
pub(super) fn sizes(arguments: &RecommendArguments) -> Vec<Size> {
    let mut sizes = Vec::new();
    for nodes in arguments.nodes.0.iter().rev().copied().filter(|nodes| *nodes > 1) {
        for shape in arguments.shapes.iter().copied() {
            for form in form::forms(shape, nodes) {
                let with_planes = |planes| Size { shape, form, nodes, planes };
                let one = with_planes(1);
                match form {
                    Form::Star | Form::LeafSpine { .. } => {
                        sizes.extend(arguments.planes.0.iter().copied().map(with_planes));
                    }
                    _ => sizes.push(one),
                }
            }
        }
    }
    sizes
}

/// Builds the rack of a candidate. A torus whose rings need channels gets them, if the settings have none. Another shape loses those of a torus.
///
/// # Errors
/// The rack file, with this shape, is no rack, or its links have no rate.
pub(super) fn rack(base: &Base, size: Size) -> Result<Rack, Failure> {
    let settings = base.settings(size)?;
    base.build(settings.clone()).or_else(|failure| {
        // A torus whose dimensions have two nodes each has no datelines either.
        let channels = match size.shape {
            ShapeName::Torus => &[RISE_AT_DATELINES, NO_RISE][..],
            _ => &[NO_RISE],
        };
        let with = |channels: &&str| settings.iter().cloned().chain([(*channels).to_owned()]).collect();
        // The first refusal is the one of the user's own settings.
        channels.iter().map(with).find_map(|settings| base.build(settings).ok()).ok_or(failure)
    })
}

fn of_plan(plan: &Plan, settings: Vec<String>) -> Result<Rack, Failure> {
    let rates: Option<Vec<u64>> = plan.links.iter().map(|link| link.profile.rate_bits_per_s).collect();
    let Some(rate_bits_per_s) = rates.and_then(|rates| rates.into_iter().min()) else {
        let hint = "add `link: {rate: 400Gbit/s}` to the file, or --set link.rate=400Gbit/s";
        return Err(Failure::bad_input("the links of the rack have no rate").hint(hint));
    };
    let link_ns = plan.links.iter().map(|link| link.profile.latency_ns()).max().unwrap_or(0);
    let nodes = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let devices = nodes.map(|member| Device::of(&member.device));
    Ok(Rack {
        settings,
        links: plan.links.len(),
        switches: plan.members.iter().filter(|member| member.role.is_switch()).count(),
        rate_bits_per_s,
        link_ns: link_ns as f64,
        forwarding_ns: plan.forwarding.latency_ns as f64,
        frame_bytes: u64::from(plan.settings.frame_bytes_max),
        spread: rackloom_plan::spread(&plan.paths.config()),
        device: devices.fold(Device::default(), Device::slower),
    })
}
