//! `rackloom up`, `status`, `inject` and `down`: control of standing racks.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use rackloom_control::request::RackStatus;
use rackloom_jobs::report::{EventRecord, Report};
use rackloom_plan::{JobKind, printable, printable_lines};
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::outcome::findings::exit_of;
use rackloom_runtime::request::work::read_faults;
use rackloom_runtime::run::RackObserver;
use rackloom_runtime::standing::{self, EventStream, RackEvent, StandingRack};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::arguments::{
    DownArguments, EventsArguments, HealArguments, InjectArguments, Injected, Output, StatusArguments,
    UpArguments, command_line_with,
};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_print};
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
    let metrics = status.metrics.as_ref().map(|address| format!("\nmetrics at http://{address}/metrics"));
    reporting::print_text(&Output { json: None }, &(text + &metrics.unwrap_or_default()))?;
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
    if let Some(interval_ns) = arguments.watch {
        return watch(arguments, Duration::from_nanos(interval_ns));
    }
    let racks = racks_of(arguments)?;
    let (racks_up, first_failure) = standing::status_with_rates(racks);
    if arguments.json {
        let racks = Racks { racks: &racks_up };
        let text = serde_json::to_string_pretty(&racks).map_err(cannot_print)?;
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

/// Returns the rack of the name, or all racks.
fn racks_of(arguments: &StatusArguments) -> Result<Vec<StandingRack>, Failure> {
    match &arguments.name {
        Some(name) => Ok(vec![StandingRack::named(name)?]),
        None => StandingRack::all(),
    }
}

/// `rackloom status --watch`: prints the status of all racks after each interval.
fn watch(arguments: &StatusArguments, interval: Duration) -> Result<Exit, Failure> {
    let is_screen = std::io::stdout().is_terminal() && !arguments.json;
    // Racks that were up at the last look.
    let mut seen: Vec<String> = Vec::new();
    loop {
        let racks = match racks_of(arguments) {
            Err(_) if !seen.is_empty() => return end_of(&seen),
            racks => racks?,
        };
        if racks.is_empty() {
            return if seen.is_empty() { Err(no_rack()) } else { end_of(&seen) };
        }
        seen = racks.iter().map(|rack| rack.name().to_owned()).collect();
        let (racks_up, failure) = standing::watched_status(racks);
        // A rack that is taken down during a look is no failure. The next look shows the others.
        seen.retain(|name| racks_up.iter().all(|rack| rack.name != *name));
        let first_failure = failure.filter(|_| end_of(&seen).is_err());
        seen.extend(racks_up.iter().map(|rack| rack.name.clone()));
        if racks_up.is_empty() && first_failure.is_none() {
            return Ok(Exit::Pass);
        }
        let text = if arguments.json {
            serde_json::to_string(&Racks { racks: &racks_up }).map_err(cannot_print)?
        } else {
            // Clears the screen, so that the tables stay in place.
            let clear = if is_screen { "\u{1b}[H\u{1b}[2J" } else { "" };
            let tables: Vec<_> = racks_up.iter().map(present::rack_status).collect();
            format!("{clear}{}\n", printable_lines(&tables.join("\n\n")))
        };
        if !print_line(&text)? {
            return Ok(Exit::Pass);
        }
        if let Some(failure) = first_failure {
            return Err(failure);
        }
        if reader_ends_within(interval) {
            return Ok(Exit::Pass);
        }
    }
}

/// Returns the end of a view of racks that do not answer: pass if all of them were taken down.
pub(crate) fn end_of(names: &[String]) -> Result<Exit, Failure> {
    match names.iter().find(|name| !standing::was_taken_down(name)) {
        None => Ok(Exit::Pass),
        Some(name) => {
            let what = format!("rack {name} does not answer any more, and was not taken down");
            Err(Failure::new(Exit::Stalled, what).hint("its supervisor may have died"))
        }
    }
}

/// Waits for an interval. Returns true as soon as the reader of standard output has ended.
fn reader_ends_within(interval: Duration) -> bool {
    let deadline = Instant::now() + interval;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        let output = std::io::stdout();
        // The end of a reader is an error of the output, for which every wait looks.
        let mut ends = [PollFd::new(&output, PollFlags::empty())];
        match poll(&mut ends, Some(&timeout)) {
            Ok(_) if !ends[0].revents().is_empty() => return true,
            Ok(_) => return false,
            Err(_) if Instant::now() >= deadline => return false,
            Err(_) => {}
        }
    }
}

/// `rackloom events`: prints events of a rack that is up.
pub(crate) fn events(arguments: &EventsArguments) -> Result<Exit, Failure> {
    let rack = only(arguments.name.as_deref())?;
    // First the subscription, so that no event is between it and the list.
    let mut stream = arguments.follow.then(|| EventStream::of(rack.name())).transpose()?;
    let known = rack.events()?;
    if known.omitted > 0 && !arguments.json {
        reporting::print_to_stderr(&format!("{} earlier events are not kept", known.omitted));
    }
    for event in &known.events {
        if !print_event(event, arguments.json)? {
            return Ok(Exit::Pass);
        }
    }
    let Some(stream) = &mut stream else { return Ok(Exit::Pass) };
    loop {
        if matches!(stream.wait_beside(std::io::stdout()), Ok(false)) {
            return Ok(Exit::Pass);
        }
        match stream.next(EVENT_WAIT) {
            Ok(None) => {}
            // An event of the list may come again over the subscription.
            Ok(Some(RackEvent::Happened(event))) if known.events.contains(&event) => {}
            Ok(Some(RackEvent::Happened(event))) => {
                if !print_event(&event, arguments.json)? {
                    return Ok(Exit::Pass);
                }
            }
            Ok(Some(RackEvent::Missed(count))) => {
                reporting::print_to_stderr(&format!("{count} events came too fast and are lost"));
            }
            Err(_) => return end_of(&[rack.name().to_owned()]),
        }
    }
}

/// Longest wait for the rest of an event that has begun to arrive.
const EVENT_WAIT: Duration = Duration::from_secs(1);

/// Prints an event. Returns false if the reader has closed the pipe.
fn print_event(event: &EventRecord, is_json: bool) -> Result<bool, Failure> {
    let line = if is_json {
        serde_json::to_string(event).map_err(cannot_print)?
    } else {
        let at = present::units::time(event.at_ns);
        let line = format!("{at:>12}  {:<8}  {:<16}  {}", event.member, event.kind, event.text);
        reporting::for_people(&printable(&line)).into_owned()
    };
    print_line(&line)
}

/// Prints a line. Returns false if the reader has closed the pipe.
fn print_line(text: &str) -> Result<bool, Failure> {
    use std::io::Write as _;
    let mut output = std::io::stdout();
    let written = output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush());
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(cannot_print(error)),
    }
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
    let rack = only_by_option(arguments.rack.as_deref())?;
    let events = rack
        .inject(script, inline)
        .map_err(|failure| failure.rephrased(|text| arguments.what.in_options(text)))?;
    let (name, faults) = (rack.name(), if events == 1 { "fault" } else { "faults" });
    let text = format!("rack {name}: {events} {faults} injected; `rackloom status {name}` shows its effect");
    reporting::print_text(&Output { json: None }, &text)?;
    Ok(Exit::Pass)
}

/// `rackloom heal`: ends all faults of a rack that is up.
pub(crate) fn heal(arguments: &HealArguments) -> Result<Exit, Failure> {
    let rack = only(arguments.name.as_deref())?;
    rack.end_faults()?;
    let name = rack.name();
    let text = format!("rack {name}: all faults end; `rackloom status {name}` shows the effect");
    reporting::print_text(&Output { json: None }, &text)?;
    Ok(Exit::Pass)
}

/// Returns the rack of this name, or the only one that is up. The name is an argument of the command.
pub(crate) fn only(name: Option<&str>) -> Result<StandingRack, Failure> {
    only_or(name, |first| format!("name one of them, such as `{}`", command_line_with(first)))
}

/// Returns the rack of this name, or the only one that is up. The name is the value of `--rack`.
pub(crate) fn only_by_option(name: Option<&str>) -> Result<StandingRack, Failure> {
    only_or(name, |_| "name one of them with --rack".to_owned())
}

/// Returns the rack of this name, or the only one that is up. `hint` says how to name one of several, of which it gets the first.
fn only_or(name: Option<&str>, hint: impl Fn(&str) -> String) -> Result<StandingRack, Failure> {
    if let Some(name) = name {
        return StandingRack::named(name);
    }
    let mut racks = StandingRack::all()?;
    match (racks.pop(), racks.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(no_rack()),
        (Some(last), _) => {
            let names: Vec<_> = racks.iter().map(StandingRack::name).chain([last.name()]).collect();
            let what = format!("several racks are up: {}", names.join(", "));
            Err(Failure::bad_input(what).hint(hint(names[0])))
        }
    }
}

fn no_rack() -> Failure {
    Failure::bad_input("no rack is up").hint("`rackloom up FILE` starts one")
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
        return Err(no_rack());
    }
    Err(Failure::bad_input(format!("several racks are up: {}", names.join(", ")))
        .hint("name one of them, or use --all"))
}
