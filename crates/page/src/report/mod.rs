//! Page of a run, from its report.

mod device;
mod events;
mod faults;
mod gpu;
mod load;
mod members;
mod results;
mod series;
mod summary;
mod time_line;

use rackloom_control::report::Report;

use crate::model::{Block, Figure, Page, Section};
use crate::rack;

/// Returns the page of a run.
#[must_use]
pub fn report_page(report: &Report) -> Page {
    let sections = vec![
        Section::new("Result", summary::result(report)),
        Section::new("Repeat this run", summary::repetition(report)),
        Section::new("Rack", picture(report)),
        Section::new("Time line", time_line::time_line(report)),
        Section::new("Sizes and algorithms", results::sweep(&report.sweep)),
        Section::new("Traffic", results::traffic(report.traffic.as_ref())),
        Section::new("Workload", results::workload(report.workload.as_ref())),
        Section::new("Operations", results::operations(report)),
        Section::new("Load of the links", load::load(report)),
        Section::new("Use of the GPUs", [device::device(report), gpu::gpus(report)].concat()),
        Section::new("Over time", series::series(report)),
        Section::new("Faults", faults::faults(&report.faults)),
        Section::new("Oracles", faults::oracles(&report.oracles)),
        Section::new("Nodes", members::nodes(report)),
        Section::new("Links", members::links(report)),
        Section::new("Events", events::events(report)),
        Section::new("Settings", summary::settings(report)),
    ];
    let rack = report.meta.as_ref().map_or("a rack", |meta| meta.rack.as_str());
    Page {
        title: format!("{rack}: {}", report.job),
        subtitle: summary::subtitle(report),
        verdict: Some(summary::verdict(report.verdict)),
        sections,
    }
}

/// Returns the picture of the rack with the use and the faults of its links. Empty if the report has no topology.
fn picture(report: &Report) -> Vec<Block> {
    let Some(topology) = &report.topology else { return Vec::new() };
    let names: Vec<&str> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    let name = report.meta.as_ref().map_or("rack", |meta| meta.rack.as_str());
    let mut graph = rack::graph(name, &names, topology);
    rack::add_report(&mut graph, topology, report);
    vec![Block::figure(Figure::Rack(graph))]
}
