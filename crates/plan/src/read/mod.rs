//! Reads a rack file: text to a plan, or to all mistakes of the file.
//!
//! All tables are read first, and the result is checked afterwards. Only a syntax error hides other mistakes. Every other value that
//! cannot be read is reported and replaced by its default, so that the rest of the file is read too.

pub(crate) mod document;
pub(crate) mod fields;
pub(crate) mod full_key;
pub(crate) mod mistake;
pub(crate) mod positions;
mod sections;
pub(crate) mod setting_lines;
pub(crate) mod text;
pub mod trace;
pub mod units;

use crate::model::jobs::job::JobPlan;
use crate::model::links::link::LinkPlan;
use crate::model::links::wire::WireKind;
use crate::model::members::shape::{Shape, ShapeLink};
use crate::model::plan::Plan;
use crate::model::rack_settings::RackSettings;
use crate::model::times::stated::Reach;
use crate::read::document::Value;
use crate::read::mistake::Complaint;
use crate::schema;
use fields::{Fields, Reader};
use sections::job::Jobs;
pub(crate) use sections::topology::listed;
use sections::{channels, expect, hosts, job, links, members, security, settings, topology};

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
    let device = settings::device(reader, &rack);
    let members = members::read(reader, &rack, shape.as_ref(), device);
    let local = members::local(reader, &rack);
    let hosts = hosts::read(reader, &rack, shape.as_ref());
    let tenants = members::tenants(reader, &rack);
    let profiles = links::read(reader, &rack, shape.as_ref());
    let Jobs { job, all: jobs } = job::read(reader, &rack, shape.as_ref());
    let expect = expect::read(reader, &rack, shape.as_ref());
    let credit_choice = settings::credits(reader, &rack);
    let channels = channels::read(reader, &rack, shape.as_ref());
    let has_shape = shape.is_some();
    let Shape { links, switch, .. } = shape.unwrap_or_default();
    // The wire does not matter here: `settle` computes the credits of every link.
    let credits = credit_choice.resolve(WireKind::SharedMemory, 0);
    let links = links.into_iter().zip(profiles);
    let links = links
        .map(|(ShapeLink { name, edge, dimension }, profile)| LinkPlan {
            name,
            edge,
            dimension,
            profile,
            credits,
            updates: credits.usual_updates(),
        })
        .collect();
    let mut plan = Plan {
        name: name(reader, &rack, document),
        epoch: 0,
        config_hash: 0,
        members,
        hosts,
        links,
        security: security::read(reader, &rack),
        switch,
        local,
        device,
        timers: settings::timers(reader, &rack),
        transport: settings::transport(reader, &rack),
        stated: settings::stated(&rack),
        states_repetitions: reader.positions.first_written(&REPETITIONS).is_some(),
        reach: Reach::default(),
        paths: settings::paths(reader, &rack),
        packing: settings::packing(reader, &rack),
        forwarding: settings::forwarding(reader, &rack),
        channels,
        job,
        workload: None,
        expect,
        tenants,
        credit_choice,
        settings: reader.section(&rack, RackSettings::default()),
    };
    plan.settle_levels();
    plan.settle();
    RackFile { plan, jobs, has_shape }
}

/// Keys that state how often a collective is repeated.
const REPETITIONS: [&str; 2] = ["job.collective.repetitions", "job.collective.warm_up"];

fn name(reader: &mut Reader<'_>, rack: &Fields<'_>, document: &Value) -> String {
    if rack.find("name").is_none() {
        let complaint = Complaint::about("the rack has no `name`").hint("add a line like `name: ring-4`");
        reader.complain(document.position, complaint);
    }
    reader.declared(rack, "name", String::new())
}
