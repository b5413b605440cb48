//! Reads a rack file: text to a plan, or to all mistakes of the file.
//!
//! All tables are read first, and the result is checked afterwards. Only a syntax error hides other mistakes. Every other value that
//! cannot be read is reported and replaced by its default, so that the rest of the file is read too.

mod channels;
pub(crate) mod document;
mod expect;
pub(crate) mod fields;
mod hosts;
mod job;
mod link_names;
mod links;
mod members;
pub(crate) mod mistake;
mod pause;
pub(crate) mod positions;
mod retry;
mod seats;
mod security;
pub(crate) mod setting_lines;
mod settings;
pub(crate) mod text;
mod topology;
pub mod trace;
pub mod units;

use crate::model::defaults;
use crate::model::job::JobPlan;
use crate::model::link::LinkPlan;
use crate::model::plan::Plan;
use crate::model::stated::Reach;
use crate::model::wire::{Checks, PayloadMode, Reception, WireKind};
use crate::read::document::Value;
use crate::read::mistake::{Complaint, quoted};
use crate::schema;
use crate::setting::quantity::{nanoseconds, whole};
use fields::{Fields, Reader};
use job::Jobs;
use settings::bytes_as;
pub(crate) use topology::{NAME_CHARACTERS_MAX, listed, member_name};

/// Values of all tables.
pub(crate) struct RackFile {
    pub(crate) plan: Plan,
    /// All jobs that the file names.
    pub(crate) jobs: Vec<JobPlan>,
    /// True if a shape could be built.
    pub(crate) has_shape: bool,
}

/// Reads all tables.
pub(crate) fn plan(reader: &mut Reader<'_>, document: &Value) -> RackFile {
    let rack = reader.open(Some(document), String::new(), &schema::RACK);
    let shape = topology::read(reader, &rack, document.position);
    let members = members::read(reader, &rack, shape.as_ref());
    let local = members::local(reader, &rack);
    let hosts = hosts::read(reader, &rack, shape.as_ref());
    let tenants = members::tenants(reader, &rack);
    let profiles = links::read(reader, &rack, shape.as_ref());
    let Jobs { job, all: jobs } = job::read(reader, &rack, shape.as_ref());
    let expect = expect::read(reader, &rack, shape.as_ref());
    let credit_choice = settings::credits(reader, &rack);
    let channels = channels::read(reader, &rack, shape.as_ref());
    let has_shape = shape.is_some();
    let (edges, switch) = shape.map(|shape| (shape.links, shape.switch)).unwrap_or_default();
    // The wire does not matter here: `settle` computes the credits of every link.
    let credits = credit_choice.resolve(WireKind::SharedMemory, defaults::RING_BYTES);
    let links = edges.into_iter().zip(profiles);
    let links = links
        .map(|((name, edge), profile)| LinkPlan {
            name,
            edge,
            profile,
            credits,
            updates: credits.usual_updates(),
        })
        .collect();
    let mut plan = Plan {
        name: name(reader, &rack, document),
        seed: reader.value(&rack, "seed", 1, whole),
        epoch: 0,
        config_hash: 0,
        members,
        hosts,
        links,
        security: security::read(reader, &rack),
        switch,
        wire: wire(reader, &rack),
        force_wire: reader.flag(&rack, "force_wire", false),
        local,
        checks: checks(reader, &rack),
        timers: settings::timers(reader, &rack),
        transport: settings::transport(reader, &rack),
        stated: settings::stated(&rack),
        reach: Reach::default(),
        paths: settings::paths(reader, &rack),
        packing: settings::packing(reader, &rack),
        forwarding: settings::forwarding(reader, &rack),
        channels,
        frame_bytes_max: reader.value(&rack, "frame_bytes_max", defaults::FRAME_BYTES_MAX, bytes_as),
        outstanding_loads_max: reader.value(
            &rack,
            "outstanding_loads_max",
            defaults::OUTSTANDING_LOADS_MAX,
            whole,
        ),
        ether_type: reader.value(&rack, "ether_type", defaults::ETHER_TYPE, whole),
        reception: reception(reader, &rack),
        udp_port: reader.value(&rack, "udp_port", defaults::UDP_PORT, whole),
        ring_bytes: reader.value(&rack, "ring_bytes", defaults::RING_BYTES, bytes_as),
        rdma_threshold_bytes: reader.value(
            &rack,
            "rdma_threshold_bytes",
            defaults::RDMA_THRESHOLD_BYTES,
            bytes_as,
        ),
        payload: payload(reader, &rack),
        job,
        expect,
        tenants,
        watchdog_ns: reader.value(&rack, "watchdog", defaults::WATCHDOG_NS, nanoseconds),
        credit_choice,
    };
    plan.settle_levels();
    plan.settle();
    RackFile { plan, jobs, has_shape }
}

fn name(reader: &mut Reader<'_>, rack: &Fields<'_>, document: &Value) -> String {
    if rack.find("name").is_none() {
        let complaint = Complaint::about("the rack has no `name`").hint("add a line like `name: ring-4`");
        reader.complain(document.position, complaint);
    }
    reader.value(rack, "name", String::new(), |text| {
        member_name(text)
            .map_err(|complaint| complaint.reworded(format!("{} is not a name of a rack", quoted(text))))
    })
}

fn wire(reader: &mut Reader<'_>, rack: &Fields<'_>) -> WireKind {
    reader.word(rack, "wire", WireKind::default())
}

fn checks(reader: &mut Reader<'_>, rack: &Fields<'_>) -> Checks {
    reader.word(rack, "checks", Checks::default())
}

fn reception(reader: &mut Reader<'_>, rack: &Fields<'_>) -> Reception {
    reader.word(rack, "reception", Reception::default())
}

fn payload(reader: &mut Reader<'_>, rack: &Fields<'_>) -> PayloadMode {
    reader.word(rack, "payload", PayloadMode::default())
}
