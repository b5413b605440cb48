//! `rackloom run`: a rack for the length of one job.

use std::io;
use std::path::Path;

use rackloom_plan::Plan;
use rackloom_runtime::machine::exclusive;
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::outcome::progress::RunProgress;
use rackloom_runtime::outcome::workload::JOB;
use rackloom_runtime::request::options::RunOptions;
use rackloom_runtime::run::{Conclusion, RackObserver, RackUp, Run};

use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::files::Files;
use crate::progress::Bar;
use crate::recorded::Outputs;
use crate::{present, reporting, workload};

/// Runs a rack as processes.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let outputs =
        Outputs { report: &arguments.output, page: &arguments.page, recording: &arguments.recording };
    outputs.files(files(arguments)).must_differ()?;
    outputs.must_have_series()?;
    if arguments.compute.is_some() && arguments.workload.files.is_empty() {
        let what = "--compute has no effect without a workload";
        return Err(Failure::bad_input(what).hint("leave it out, or name a workload with --workload"));
    }
    let mut options = RunOptions::from(arguments);
    options.processes.recording = outputs.recording();
    options.workload =
        workload::file(&arguments.workload.files, arguments.compute.unwrap_or_default().into())?;
    let run = Run::prepare(&options)?;
    outputs.must_be_writable()?;
    if let Some(path) = &arguments.pids {
        reporting::must_be_writable_at(path)?;
    }
    let mut display = Display { arguments, bar: None };
    let concluded = run.execute(&Program::current(), &mut display);
    drop(display);
    let Conclusion { report, exit, capture_failure } = concluded?;
    if let Some(failure) = capture_failure {
        failure::print(&failure);
    }
    outputs.deliver(&report, exit)
}

/// Returns the files of the command, without the outputs that all engines have.
fn files(arguments: &RunArguments) -> Files {
    Files::default()
        .reads("the rack file", [&arguments.file])
        .reads("the fault script of --faults", &arguments.processes.faults.faults)
        .reads("the workload of --workload", &arguments.workload.files)
        .writes("--pids", &arguments.pids)
}

/// Shows a running rack: a table when its links are up, and a progress bar.
struct Display<'a> {
    arguments: &'a RunArguments,
    bar: Option<Bar>,
}

impl RackObserver for Display<'_> {
    fn started(&mut self, plan: &Plan) {
        let is_workload = !self.arguments.workload.files.is_empty();
        let job = if is_workload { JOB } else { plan.job.kind.name() };
        self.bar = Some(Bar::begin(job, plan.endpoint_count()));
    }

    fn links_up(&mut self, rack: &RackUp<'_>) -> Result<(), Failure> {
        let took = present::units::time(rack.elapsed_ns);
        let table = present::members(rack.plan, Some(&rack.pids));
        let links = rack.links;
        reporting::print_text(
            &self.arguments.output,
            &format!("{table}\n\n{links} links up after {took}\n"),
        )?;
        match &self.arguments.pids {
            Some(path) => write_pids(path, rack).map_err(|error| {
                Failure::could_not_start("cannot write the process ids", error).at_path(path)
            }),
            None => Ok(()),
        }
    }

    fn progress(&mut self, progress: RunProgress) {
        if let Some(bar) = &self.bar {
            bar.update(|| progress);
        }
    }

    fn warning(&mut self, warning: &str) {
        reporting::print_to_stderr(warning);
    }
}

/// Writes the file of process ids. A waiting program never sees an incomplete file.
fn write_pids(path: &Path, rack: &RackUp<'_>) -> io::Result<()> {
    let members = rack.plan.members.iter().zip(&rack.pids).filter(|(_, pid)| **pid != 0);
    let members: Vec<_> =
        members.map(|(member, pid)| serde_json::json!({"name": member.name, "pid": pid})).collect();
    let origin_monotonic_ns = rack.origin_monotonic_ns;
    let text =
        serde_json::json!({"origin_monotonic_ns": origin_monotonic_ns, "members": members}).to_string();
    exclusive::replace(path, text.as_bytes())
}
