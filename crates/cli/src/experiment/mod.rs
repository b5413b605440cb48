//! `rackloom experiment`: named runs in virtual time, compared with their closed forms.
//!
//! `crates/experiments` defines the experiments. This module finds them by name, and prints and writes their
//! results.

mod page;
mod show;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rackloom_experiments::knob::Refused;
use rackloom_experiments::parallel::processors;
use rackloom_experiments::{Experiment, Findings, Request, all, chart, find};

use crate::arguments::{ExperimentArguments, Output};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write};
use crate::files::Files;
use crate::reporting::{
    must_be_writable_at, must_be_writable_in, page_must_be_writable, print_data, print_text, write_page,
};
use crate::tally::Tally;

/// Runs one experiment or all of them.
pub(crate) fn run(arguments: &ExperimentArguments) -> Result<Exit, Failure> {
    if arguments.name == "list" {
        if arguments.page.html.is_some() {
            let what = "the list of experiments is no result";
            return Err(Failure::bad_input(what).hint("leave --html out, or name an experiment"));
        }
        match arguments.json {
            true => print_data(&show::list_as_json(all()))?,
            false => print(&show::list(all()))?,
        }
        return Ok(Exit::Pass);
    }
    let chosen = chosen(arguments)?;
    let request = request(arguments)?;
    let is_all = arguments.name == "all";
    let files = Files::default().writes("--svg", &arguments.svg).writes("--html", &arguments.page.html);
    files.must_differ()?;
    page_must_be_writable(&arguments.page)?;
    match &arguments.svg {
        Some(path) if is_all => must_be_writable_in(path)?,
        Some(path) => must_be_writable_at(path)?,
        None => {}
    }
    let (mut findings, mut sections) = (Vec::new(), Vec::new());
    // The points of one experiment run in parallel, and experiments one after the other.
    let at_once = processors();
    let points: Result<Vec<usize>, _> = chosen.iter().map(|experiment| experiment.points(&request)).collect();
    let points: usize = points.map_err(bad_request)?.iter().sum();
    let tally = Tally::begin("runs", points as u64, at_once);
    for experiment in chosen {
        let found = experiment.run_with(&request, &|| tally.add()).map_err(bad_request)?;
        if !arguments.json {
            tally.above(|| print(&show::findings(experiment, &found)))?;
        }
        if let Some(path) = &arguments.svg {
            draw(experiment, &found, path, is_all)?;
        }
        if arguments.page.html.is_some() {
            sections.push(page::section(experiment, &found));
        }
        findings.push(found);
    }
    drop(tally);
    write_page(&arguments.page, || page::page(&arguments.name, &findings, sections))?;
    if arguments.json {
        print_data(&show::as_json(&findings))?;
    } else if is_all {
        print(&show::summary(&findings))?;
    }
    Ok(if findings.iter().all(Findings::hold) { Exit::Pass } else { Exit::Fail })
}

fn bad_request(refused: Refused) -> Failure {
    Failure::bad_input(refused.what).hint(refused.hint)
}

fn print(text: &str) -> Result<(), Failure> {
    print_text(&Output { json: None }, text)
}

fn chosen(arguments: &ExperimentArguments) -> Result<Vec<&'static Experiment>, Failure> {
    if arguments.name == "all" {
        return match arguments.vary.is_empty() {
            true => Ok(all().to_vec()),
            false => {
                Err(Failure::bad_input("--vary is for one experiment").hint("name it in place of `all`"))
            }
        };
    }
    find(&arguments.name).map(|experiment| vec![experiment]).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|experiment| experiment.name).collect();
        let what = format!("there is no experiment `{}`", arguments.name);
        Failure::bad_input(what).hint(format!("there are all, list, {}", names.join(", ")))
    })
}

fn request(arguments: &ExperimentArguments) -> Result<Request, Failure> {
    let mut vary = BTreeMap::new();
    for (key, values) in &arguments.vary {
        if vary.insert(key.clone(), values.clone()).is_some() {
            let hint = format!("write all its values at once: --vary {key}=A,B,...");
            return Err(Failure::bad_input(format!("`{key}` is varied twice")).hint(hint));
        }
    }
    let ExperimentArguments { seed, perturb, reduced, .. } = *arguments;
    Ok(Request { seed, vary, perturb, reduced })
}

/// Writes a figure: to the path itself, or to a file in the directory, named after the experiment.
fn draw(experiment: &Experiment, found: &Findings, path: &Path, is_directory: bool) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let figure = chart::figure(experiment, found);
        if !is_directory {
            return std::fs::write(path, figure);
        }
        std::fs::create_dir_all(path)?;
        std::fs::write(path.join(format!("{}.svg", experiment.name)), figure)
    };
    write().map_err(|error| cannot_write("the figure", &error, path))
}
