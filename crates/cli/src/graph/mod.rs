//! `rackloom graph`: a picture of a rack file, with the use and the faults of a run if there is a report.

mod report;

use std::path::Path;

use rackloom_control::source::Overrides;
use rackloom_drawing::graph::Graph;
use rackloom_page::rack;
use rackloom_runtime::outcome::topology::topology;
use rackloom_runtime::request::work::RackRequest;

use crate::arguments::{GraphArguments, GraphFormat};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write};
use crate::files::Files;
use crate::report_file;
use crate::reporting::{must_be_writable_at, print_data};

/// Draws a rack file.
pub(crate) fn run(arguments: &GraphArguments) -> Result<Exit, Failure> {
    Files::default()
        .reads("the rack file", [&arguments.file])
        .reads("the report of --report", &arguments.report)
        .writes("--output", &arguments.output)
        .must_differ()?;
    let output = arguments.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = output {
        must_be_writable_at(path)?;
    }
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let plan = RackRequest::read(&arguments.file, &overrides)?.plan()?;
    let topology = topology(&plan);
    let names: Vec<&str> = plan.members.iter().map(|member| member.name.as_str()).collect();
    let mut graph = rack::graph(&plan.name, &names, &topology);
    if let Some(path) = &arguments.report {
        let report = report_file::read(path)?;
        report::check(&plan, &topology, &report).map_err(|failure| failure.at_path(path))?;
        rack::add_report(&mut graph, &topology, &report);
    }
    write(&text(&graph, arguments.format), output)?;
    Ok(Exit::Pass)
}

fn text(graph: &Graph, format: GraphFormat) -> String {
    match format {
        GraphFormat::Svg => graph.svg(),
        GraphFormat::Dot => graph.dot(),
        GraphFormat::Mermaid => graph.mermaid(),
    }
}

fn write(text: &str, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => print_data(text.trim_end()),
        Some(path) => std::fs::write(path, text).map_err(|error| cannot_write("the picture", &error, path)),
    }
}
