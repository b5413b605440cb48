//! `rackloom run`: a rack for the length of one job.

use std::io;
use std::path::Path;

use rackloom_plan::Plan;

use super::{Alarms, Conclusion, Logs, Milestone, Supervisor, runtime};
use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Bar;

use crate::source::Source;
use crate::standing::{Claim, RunDirectory};
use crate::{exclusive, present, reporting};

/// Run a rack as processes.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let source = Source::read(&arguments.file, &arguments.overrides)?.for_processes(&arguments.processes)?;
    let work = source.ready_work(&arguments.processes)?;
    let source = source.with_snapshots(&arguments.checkpoints, &work.plan)?;
    reporting::must_be_writable(&arguments.output)?;
    if let Some(path) = &arguments.pids {
        reporting::must_be_writable_at(path)?;
    }
    let (plan, faults) = (work.plan, work.faults);
    let logs = Logs::new(arguments.logging.log_dir.as_deref(), arguments.logging.level())?;
    // Before the wires: these may take the process into a namespace where it is somebody else.
    let claim = claim(&plan)?;
    let mut supervisor = Supervisor::prepare(source, plan, faults, logs)?;
    if let Some(claim) = claim {
        supervisor.share_in_claimed(claim);
    }
    let runtime = runtime()?;
    {
        let _within = runtime.enter();
        supervisor.fill_seats()?;
    }
    runtime.block_on(async {
        let mut alarms = Alarms::set()?;
        let bar = Bar::begin(supervisor.plan.job.kind.name(), supervisor.plan.endpoint_count());
        loop {
            match supervisor.next_milestone(&mut alarms).await {
                Milestone::LinksUp => announce(&supervisor, arguments)?,
                Milestone::Further(headway) => bar.standing().set(headway),
                Milestone::StatusKnown | Milestone::Happened(_) | Milestone::Left(_) => {}
                Milestone::Over => return Ok::<_, Failure>(()),
            }
        }
    })?;
    let Conclusion { report, exit } = supervisor.conclude()?;
    reporting::deliver(&report, &arguments.output, exit)
}

/// A directory of this run's own, if nodes of one server will look for each other's memory in it.
fn claim(plan: &Plan) -> Result<Option<Claim>, Failure> {
    if !plan.has_local_paths() {
        return Ok(None);
    }
    RunDirectory::open()?.claim(&format!("run-{}", std::process::id())).map(Some)
}

/// All links are up: who is who, for people and for scripts.
fn announce(supervisor: &Supervisor, arguments: &RunArguments) -> Result<(), Failure> {
    let pids: Vec<u32> = supervisor.rack.seats.iter().map(|seat| seat.pid).collect();
    let took = present::units::time(supervisor.clock.now().0);
    let table = present::members(&supervisor.plan, Some(&pids));
    let links = supervisor.here.links(&supervisor.plan);
    reporting::say(&arguments.output, &format!("{table}\n\n{links} links up after {took}\n"))?;
    match &arguments.pids {
        Some(path) => write_pids(path, supervisor, &pids)
            .map_err(|error| Failure::could_not_start("cannot write the process ids", error).at_path(path)),
        None => Ok(()),
    }
}

/// Writes the file of process ids. A script that waits for it finds it whole.
fn write_pids(path: &Path, supervisor: &Supervisor, pids: &[u32]) -> io::Result<()> {
    let members = supervisor.plan.members.iter().zip(pids).filter(|(_, pid)| **pid != 0);
    let members: Vec<_> =
        members.map(|(member, pid)| serde_json::json!({"name": member.name, "pid": pid})).collect();
    let origin_monotonic_ns = supervisor.clock.origin_ns();
    let text =
        serde_json::json!({"origin_monotonic_ns": origin_monotonic_ns, "members": members}).to_string();
    exclusive::replace(path, text.as_bytes())
}
