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
mod inputs;
mod local;
mod page;
mod plot;
mod point;
mod rows;
mod summary;
mod workers;

use std::path::Path;

use rackloom_control::source::{ComputeMode, Overrides, WorkloadFile};
use rackloom_plan::{JobName, TextFile, Unreadable};
use rackloom_runtime::request::work::RackRequest;

use self::engines::Engine;
use self::folder::Folder;
pub(crate) use self::folder::PointResult;
use self::grid::{Grid, Point};
use self::inputs::Inputs;
use self::workers::Died;
use crate::arguments::{SweepArguments, SweepEngine, passed_on, sim_arguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::Files;
use crate::reporting::page_must_be_writable;
use crate::{sim, trace, workload};

/// Runs a sweep, or the part of one that the options name.
pub(crate) fn run(arguments: &SweepArguments) -> Result<Exit, Failure> {
    options_must_fit_engine(arguments)?;
    let folder = Folder::at(&arguments.out);
    if let Some(index) = arguments.point {
        return point::run(&folder, index);
    }
    if let Some(share) = arguments.share {
        return local::run_share(&folder, share);
    }
    let Some(file) = &arguments.file else {
        page_must_be_writable(&arguments.page)?;
        return collect::results(&folder, &folder.points()?, &Died::new(), &arguments.page);
    };
    Files::default()
        .reads("the rack file", [file])
        .reads("the fault script of --faults", &arguments.faults.faults)
        .reads("the workload of --workload", &arguments.workload)
        .reads("the trace of --trace", &arguments.trace)
        .writes("--html", &arguments.page.html)
        .must_differ()?;
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

/// Refuses options of engines that do not run the points.
fn options_must_fit_engine(arguments: &SweepArguments) -> Result<(), Failure> {
    let SweepArguments { engine, no_submit, image, volume_claim, ray_address, .. } = arguments;
    let starts_ray = *engine == SweepEngine::Ray && !no_submit;
    let is_kubernetes = *engine == SweepEngine::Kubernetes;
    for (option, is_given, has_effect, hint) in [
        (
            "--no-submit",
            *no_submit,
            *engine != SweepEngine::Local,
            "name another engine, such as --engine slurm",
        ),
        ("--ray-address", ray_address.is_some(), starts_ray, "use --engine ray without --no-submit"),
        ("--image", image.is_some(), is_kubernetes, "use --engine kubernetes"),
        ("--volume-claim", volume_claim.is_some(), is_kubernetes, "use --engine kubernetes"),
    ] {
        if is_given && !has_effect {
            let what = format!("{option} has no effect on this sweep");
            return Err(Failure::bad_input(what).hint(format!("leave it out, or {hint}")));
        }
    }
    Ok(())
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
    page_must_be_writable(&arguments.page)
}

/// Checks the grid and writes its manifest.
fn prepare(file: &Path, folder: &Folder, arguments: &SweepArguments) -> Result<(), Failure> {
    let text = rackloom_plan::text_of(file, TextFile::Rack)
        .map_err(|Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint))?;
    let inputs = Inputs::read(arguments)?;
    let mut common = passed_on(SweepArguments::OWN, SweepArguments::OWN_FLAGS);
    common.extend(inputs.options());
    let grid = Grid::of(arguments, common)?;
    let workload = workload::file(&arguments.workload, ComputeMode::Sleep)?;
    grid.probes().iter().try_for_each(|probe| check(file, probe, &inputs, workload.as_ref()))?;
    folder.prepare(&text, &inputs, grid.points())
}

/// Checks that a point can run.
fn check(
    file: &Path,
    point: &Point,
    inputs: &Inputs,
    workload: Option<&WorkloadFile>,
) -> Result<(), Failure> {
    let simulated = inputs::located(sim_arguments(file, &point.arguments)?, |copy| inputs.source_of(copy));
    let mut overrides = Overrides { payload: simulated.payload, ..(&simulated.overrides).into() };
    if simulated.trace.is_some() {
        overrides.job.job = Some(JobName::None);
    }
    let request = RackRequest::read(file, &overrides)?
        .with_faults(simulated.faults.faults.as_deref())?
        .with_workload(workload.cloned());
    let work = request.possible_work()?;
    if let Some(file) = &simulated.trace {
        trace::jobs(file, &work.plan)?;
    }
    sim::must_have_a_model(&work.plan)
}
