//! `rackloom sweep`: runs in virtual time at every point of a grid, in parallel and resumable.
//!
//! The options state a grid ([`grid`]). Its points are written to a manifest ([`folder`]), and each is an independent process with a result
//! of its own ([`point`]). This machine runs them ([`local`], [`workers`]), or an engine that exists: an array job of Slurm, tasks of Ray, an
//! Indexed Job of Kubernetes ([`engines`]). There is no scheduler here. [`collect`] makes a table ([`rows`], [`csv`]), a summary and a figure
//! from all results, wherever they were made.

mod collect;
mod csv;
mod engines;
mod folder;
mod grid;
mod local;
mod page;
mod plot;
mod point;
mod rows;
mod summary;
mod workers;

use std::path::Path;

use rackloom_control::source::Overrides;
use rackloom_plan::{TextFile, Unreadable};
use rackloom_runtime::request::work::RackRequest;

use self::engines::Engine;
use self::folder::Folder;
use self::grid::{Grid, Point};
use self::workers::Died;
use crate::arguments::{SweepArguments, SweepEngine, passed_on, sim_arguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting::page_must_be_writable;
use crate::sim;

/// Runs a sweep, or the part of one that the options name.
pub(crate) fn run(arguments: &SweepArguments) -> Result<Exit, Failure> {
    let folder = Folder::at(&arguments.out);
    if let Some(index) = arguments.point {
        return point::run(&folder, index);
    }
    if let Some(share) = arguments.share {
        return local::run_share(&folder, share);
    }
    let Some(file) = &arguments.file else {
        page_must_be_writable(&arguments.page, None)?;
        return collect::results(&folder, &folder.points()?, &Died::new(), &arguments.page);
    };
    page_must_be_made_here(arguments)?;
    prepare(file, &folder, arguments)?;
    let engine = match arguments.engine {
        SweepEngine::Local => return local::run(&folder, arguments),
        SweepEngine::Slurm => Engine::Slurm,
        SweepEngine::Ray => Engine::Ray,
        SweepEngine::Kubernetes => Engine::Kubernetes,
    };
    engines::run(engine, &folder, arguments)
}

/// Checks that the page can be written. Engines that only submit the points make no results.
fn page_must_be_made_here(arguments: &SweepArguments) -> Result<(), Failure> {
    let makes_results = match arguments.engine {
        SweepEngine::Local => true,
        SweepEngine::Ray => !arguments.no_submit,
        SweepEngine::Slurm | SweepEngine::Kubernetes => false,
    };
    if arguments.page.html.is_some() && !makes_results {
        let hint = "leave --html out here, and give it to `rackloom sweep --collect --out DIR` when all points have run";
        return Err(
            Failure::bad_input("this engine makes no results here, so that there is no page").hint(hint)
        );
    }
    page_must_be_writable(&arguments.page, None)
}

/// Checks the grid and writes its manifest.
fn prepare(file: &Path, folder: &Folder, arguments: &SweepArguments) -> Result<(), Failure> {
    let text = rackloom_plan::text_of(file, TextFile::Rack)
        .map_err(|Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint))?;
    let common = passed_on(SweepArguments::OWN, SweepArguments::OWN_FLAGS);
    let grid = Grid::of(arguments, common)?;
    grid.probes().iter().try_for_each(|probe| check(file, probe))?;
    folder.prepare(&text, grid.points())
}

/// Checks that a point can run.
fn check(file: &Path, point: &Point) -> Result<(), Failure> {
    let simulated = sim_arguments(file, &point.arguments)?;
    let overrides = Overrides { payload: simulated.payload, ..(&simulated.overrides).into() };
    let work = RackRequest::read(file, &overrides)?.possible_work()?;
    sim::must_have_a_model(&work.plan)
}
