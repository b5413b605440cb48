//! `rackloom init`: rack files and a fault script to start from, with comments.
//!
//! The templates are part of the program, so it needs no other file to begin.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use clap::builder::PossibleValue;

use crate::arguments::{InitArguments, Output};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write_file};
use crate::present::table::{Column, Table};
use crate::reporting;

/// Text to start from.
struct Template {
    name: &'static str,
    /// Meaning in one line.
    summary: &'static str,
    text: &'static str,
}

const TEMPLATES: [Template; 8] = [
    Template {
        name: "star",
        summary: "nodes around one switch per plane; two hops between any two nodes",
        text: include_str!("../templates/star.yaml"),
    },
    Template {
        name: "ring",
        summary: "each node linked to the next; few links, many hops",
        text: include_str!("../templates/ring.yaml"),
    },
    Template {
        name: "full-mesh",
        summary: "a link between every two nodes; one hop, many links",
        text: include_str!("../templates/full-mesh.yaml"),
    },
    Template {
        name: "leaf-spine",
        summary: "leaf switches with nodes, and spine switches above them",
        text: include_str!("../templates/leaf-spine.yaml"),
    },
    Template {
        name: "torus",
        summary: "rows and columns that are rings; many nodes without switches",
        text: include_str!("../templates/torus.yaml"),
    },
    Template {
        name: "hypercube",
        summary: "nodes at the corners of a cube of any dimension; few hops without switches",
        text: include_str!("../templates/hypercube.yaml"),
    },
    Template {
        name: "custom",
        summary: "members, links, servers and groups of your own, one by one",
        text: include_str!("../templates/custom.yaml"),
    },
    Template {
        name: "faults",
        summary: "a fault script for --faults: what fails, when, and how the run must end",
        text: include_str!("../templates/faults.yaml"),
    },
];

/// Returns the names of the templates with their meaning.
pub(crate) fn values() -> impl Iterator<Item = PossibleValue> {
    TEMPLATES.iter().map(|template| PossibleValue::new(template.name).help(template.summary))
}

/// Prints the list of templates, or writes one.
pub(crate) fn run(arguments: &InitArguments) -> Result<Exit, Failure> {
    let Some(name) = &arguments.template else {
        reporting::print_text(&Output { json: None }, &list())?;
        return Ok(Exit::Pass);
    };
    let template = TEMPLATES
        .iter()
        .find(|template| template.name == name)
        .ok_or_else(|| Failure::bad_input(format!("there is no template `{name}`")))?;
    match arguments.output.as_deref().filter(|path| path.as_os_str() != "-") {
        None => reporting::print_data(template.text.trim_end())?,
        Some(path) => {
            write(path, template.text, arguments.force)?;
            reporting::print_text(&Output { json: None }, &next(template, path))?;
        }
    }
    Ok(Exit::Pass)
}

fn list() -> String {
    let mut table = Table::new(&[Column::Left("template"), Column::Left("content")]);
    for Template { name, summary, .. } in &TEMPLATES {
        table.row([(*name).to_owned(), (*summary).to_owned()]);
    }
    format!("{}\n\n`rackloom init star -o rack.yaml` writes one to a file", table.render())
}

/// Writes a file, and replaces one only with `--force`.
fn write(path: &Path, text: &str, is_forced: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    match is_forced {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::bad_input("this file exists")
            .at_path(path)
            .hint("name another file, or replace it with --force"),
        _ => cannot_write_file(&error, path),
    })
}

/// Returns the command with which the user goes on.
fn next(template: &Template, path: &Path) -> String {
    let path = path.display();
    let next = match template.name {
        "faults" => format!("`rackloom sim RACK --faults {path}` plays it"),
        _ => format!("`rackloom check {path}` shows the rack, and `rackloom sim {path}` runs it"),
    };
    format!("{path} is written; {next}")
}
