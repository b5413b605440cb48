//! `rackloom up`, `status`, `inject` and `down`: control of standing racks.

use rackloom_control::request::RackStatus;
use rackloom_jobs::report::Report;
use rackloom_plan::JobKind;
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::outcome::findings::exit_of;
use rackloom_runtime::request::work::read_faults;
use rackloom_runtime::run::RackObserver;
use rackloom_runtime::standing::{self, StandingRack};
use serde::Serialize;

use crate::arguments::{DownArguments, InjectArguments, Injected, Output, StatusArguments, UpArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{present, reporting};

/// `rackloom up`: starts a rack in the background and returns once it is up.
pub(crate) fn up(arguments: &UpArguments) -> Result<Exit, Failure> {
    let status = standing::up(&arguments.into(), &Program::current())?;
    let took = present::units::time(status.uptime_ns);
    let missing = present::missing_ip(&status).map_or_else(String::new, |line| format!("\n\n{line}"));
    let text = format!(
        "{}{missing}\n\n{} of {} links up after {took}; `rackloom down {}` ends the rack",
        present::members_status(&status),
        status.links_up,
        status.links_total,
        status.name
    );
    reporting::print_text(&Output { json: None }, &text)?;
    Ok(Exit::Pass)
}

/// `rackloom keep`: the supervisor of a standing rack. Its standard error is the rack's log.
pub(crate) fn keep() -> Result<Exit, Failure> {
    struct Log;
    impl RackObserver for Log {
        fn warning(&mut self, warning: &str) {
            reporting::print_to_stderr(warning);
        }
    }
    standing::keep(&Program::current(), &mut Log)
}

/// `rackloom status`: shows racks that are up.
pub(crate) fn status(arguments: &StatusArguments) -> Result<Exit, Failure> {
    let racks = match &arguments.name {
        Some(name) => vec![StandingRack::named(name)?],
        None => StandingRack::all()?,
    };
    let (racks_up, first_failure) = standing::status_with_rates(racks);
    if arguments.json {
        let racks = Racks { racks: &racks_up };
        let text = serde_json::to_string_pretty(&racks)
            .map_err(|error| Failure::could_not_start("cannot print", error))?;
        reporting::print_data(&text)?;
        return first_failure.map_or(Ok(Exit::Pass), Err);
    }
    let text = if racks_up.is_empty() && first_failure.is_none() {
        "no rack is up".to_owned()
    } else {
        racks_up.iter().map(present::rack_status).collect::<Vec<_>>().join("\n\n")
    };
    reporting::print_text(&Output { json: None }, &text)?;
    first_failure.map_or(Ok(Exit::Pass), Err)
}

/// Output of `status --json`.
#[derive(Serialize)]
struct Racks<'a> {
    racks: &'a [RackStatus],
}

/// `rackloom down`: ends racks and returns once their processes have ended.
pub(crate) fn down(arguments: &DownArguments) -> Result<Exit, Failure> {
    if let Some(seat) = &arguments.seat {
        return leave(arguments, seat);
    }
    let mut exit = Exit::Pass;
    for rack in chosen(arguments)? {
        let report = rack.down()?;
        reporting::print(&report, &arguments.output)?;
        reporting::print_text(&arguments.output, &departure(rack.name(), &report))?;
        if exit == Exit::Pass {
            exit = exit_of(&report);
        }
        reporting::write(&report, &arguments.output)?;
    }
    Ok(exit)
}

/// `rackloom down --seat`: one member leaves, and the rack stays.
fn leave(arguments: &DownArguments, seat: &str) -> Result<Exit, Failure> {
    let rack = only(arguments.name.as_deref())?;
    rack.leave(seat)?;
    let name = rack.name();
    let text =
        format!("rack {name}: seat {seat} is vacant now; `rackloom seat --join {name}/{seat}` takes it");
    reporting::print_text(&arguments.output, &text)?;
    Ok(Exit::Pass)
}

/// `rackloom inject`: injects faults into a rack that is up and returns once its members have received them.
pub(crate) fn inject(arguments: &InjectArguments) -> Result<Exit, Failure> {
    let inline = !matches!(arguments.what, Injected::Script { .. });
    let script = match &arguments.what {
        Injected::Link(faults) => faults.script()?,
        Injected::Node(fault) => fault.script()?,
        Injected::Partition(partition) => partition.script()?,
        Injected::Script { file } => read_faults(file)?.text,
    };
    let rack = only(arguments.rack.as_deref())?;
    let events = rack.inject(script, inline)?;
    let (name, faults) = (rack.name(), if events == 1 { "fault" } else { "faults" });
    let text = format!("rack {name}: {events} {faults} injected; `rackloom status {name}` shows its effect");
    reporting::print_text(&Output { json: None }, &text)?;
    Ok(Exit::Pass)
}

/// Returns the rack of this name, or the only one that is up.
pub(crate) fn only(name: Option<&str>) -> Result<StandingRack, Failure> {
    if let Some(name) = name {
        return StandingRack::named(name);
    }
    let mut racks = StandingRack::all()?;
    match (racks.pop(), racks.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(Failure::bad_input("no rack is up").hint("`rackloom up FILE` starts one")),
        (Some(last), _) => {
            let names: Vec<_> = racks.iter().map(StandingRack::name).chain([last.name()]).collect();
            let what = format!("several racks are up: {}", names.join(", "));
            Err(Failure::bad_input(what).hint("name one of them with --rack"))
        }
    }
}

fn departure(name: &str, report: &Report) -> String {
    let uptime = present::units::time(report.elapsed_ns);
    let mut text = format!("rack {name} is down after {uptime}");
    if report.job != JobKind::None.name() {
        text += &format!("; {}: {}", report.job, report.verdict.name());
    }
    text
}

/// Returns the racks that `down` ends.
fn chosen(arguments: &DownArguments) -> Result<Vec<StandingRack>, Failure> {
    if let Some(name) = &arguments.name {
        return Ok(vec![StandingRack::named(name)?]);
    }
    let racks = StandingRack::all()?;
    if arguments.all || racks.len() == 1 {
        return Ok(racks);
    }
    let names: Vec<_> = racks.iter().map(StandingRack::name).collect();
    if names.is_empty() {
        return Err(Failure::bad_input("no rack is up"));
    }
    Err(Failure::bad_input(format!("several racks are up: {}", names.join(", ")))
        .hint("name one of them, or use --all"))
}
