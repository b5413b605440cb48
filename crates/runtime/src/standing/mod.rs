//! Racks that stay: `rackloom up`, `rackloom status`, `rackloom inject`, `rackloom down`, and whoever takes a vacant seat.
//!
//! Reading order: [`directory`] (where they live, and which of them are dead) · [`keeper`] (the supervisor in the
//! background) · [`door`] (its control socket) · [`state`] (what it says about itself) · [`links`] (traffic, losses and paths) · [`client`] (the other end) ·
//! [`join`] (a seat in a process from elsewhere).
//!
//! What is said over the socket is [`crate::control::request`] and `docs/control-socket.md`. There is no daemon and no
//! registry: what is up is what the run directory holds.

mod client;
#[path = "../machine/directory.rs"]
mod directory;
mod door;
mod join;
mod keeper;
mod links;
mod state;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rackloom_jobs::report::{Report, Verdict};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{JobKind, Plan};
use rackloom_protocol::{Edge, NodeId};
use serde::Serialize;

pub(crate) use self::directory::{Claim, RunDirectory};
pub(crate) use self::join::join;
pub(crate) use self::keeper::keep;

use self::keeper::{Keep, Outcome};
use crate::arguments::{DownArguments, InjectArguments, Injected, Job, Output, StatusArguments, UpArguments};
use crate::control::request::{Answer, Inject, Injection, Join, Nothing, RackStatus, Request};
use crate::control::{Channel, Heard};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::overrides::member_named;
use crate::source::{FaultFile, Source};
use crate::{present, reporting};

/// How long a rack may take to say how it is.
const STATUS_PATIENCE: Duration = Duration::from_secs(10);
/// Time between the two samples from which `status` states rates. A round of counters takes a few milliseconds, so this is long enough for
/// the samples to differ and short enough to wait for.
const RATE_INTERVAL: Duration = Duration::from_millis(200);
/// How long `up` waits for links that have come up and have fallen back.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);
/// How long a rack may take to go: its members get time to report and time to leave.
const DOWN_PATIENCE: Duration = Duration::from_secs(30);

/// `rackloom up`: a rack in the background; returns once it is up.
pub(crate) fn up(arguments: &UpArguments) -> Result<Exit, Failure> {
    let mut overrides = arguments.overrides.clone();
    // A rack that stays works for those who come; it does the file's job only if it is told to.
    if overrides.job.collective.is_none() {
        overrides.job.job.get_or_insert(Job::None);
    }
    let source = Source::read(&arguments.file, &overrides)?
        .named(arguments.name.clone())
        .for_processes(&arguments.processes)?;
    let work = source.ready_work(&arguments.processes)?;
    let plan = work.plan;
    directory::check_name(&plan.name)?;
    let vacant = vacant(&plan, &arguments.vacant)?;
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| Failure::bad_input(error.to_string()));
    let keep = Keep {
        source,
        vacant,
        log_dir: arguments.logging.log_dir.as_deref().map(absolute).transpose()?,
        log_level: arguments.logging.level().map(str::to_owned),
    };
    let run = RunDirectory::open()?;
    start(&keep)?;
    let stream = run.connect(&plan.name)?.ok_or_else(|| {
        Failure::new(Exit::NodeLost, format!("rack {} came up and is gone already", plan.name))
    })?;
    let required = required_links(&plan, &keep.vacant, work.faults.as_ref());
    let status = settled_status(&stream, &plan, &required)?;
    let took = present::units::time(status.uptime_ns);
    let text = format!(
        "{}\n\n{} of {} links up after {took}; `rackloom down {}` ends the rack",
        present::members_status(&status),
        status.links_up,
        status.links_total,
        status.name
    );
    reporting::say(&Output { json: None }, &text)?;
    Ok(Exit::Pass)
}

/// Returns the status once every required link carries data at both ends: all links between members that are started, except those that
/// a fault script takes down. A link may fall back for a moment on a busy host after it has come up. If that lasts, the rack is taken down.
fn settled_status(stream: &UnixStream, plan: &Plan, required: &[u16]) -> Result<RackStatus, Failure> {
    let until = Instant::now() + SETTLE_PATIENCE;
    loop {
        let status = ask_status(stream, &plan.name)?;
        let missing = missing_links(&status, plan, required);
        if missing.is_empty() {
            return Ok(status);
        }
        if Instant::now() >= until {
            let what = format!(
                "{} of {} links carry data {} s after all had come up; missing: {}",
                status.links_up,
                status.links_total,
                SETTLE_PATIENCE.as_secs(),
                missing.join(", ")
            );
            let _ = client::ask(stream, &plan.name, &Request::Down(Nothing {}), DOWN_PATIENCE);
            return Err(Failure::new(Exit::Stalled, what).hint(
                "the host may be too busy for the heartbeats; `timers` of the rack file can be longer",
            ));
        }
        std::thread::sleep(SETTLE_INTERVAL);
    }
}

/// Links that `up` waits for, by place in the plan.
fn required_links(plan: &Plan, vacant: &[u16], script: Option<&FaultScript>) -> Vec<u16> {
    let is_vacant = |node: NodeId| vacant.contains(&node.0);
    let is_struck = |number: u16, edge: &Edge| {
        script.iter().flat_map(|script| &script.events).any(|event| {
            let fault = &event.fault;
            let members = fault.members();
            fault.ways().iter().any(|way| way.edge == number)
                || members.contains(&edge.a)
                || members.contains(&edge.b)
        })
    };
    let links = (0..).zip(&plan.links).map(|(number, link)| (number, &link.edge));
    let links =
        links.filter(|(number, edge)| !is_vacant(edge.a) && !is_vacant(edge.b) && !is_struck(*number, edge));
    links.map(|(number, _)| number).collect()
}

/// Names of required links that carry no data at one of their ends. A member that did not answer misses all of its links.
fn missing_links(status: &RackStatus, plan: &Plan, required: &[u16]) -> Vec<String> {
    let is_down = |number: u16, end: NodeId| {
        let member = &status.members[end.index()];
        match member.links_up {
            Some(_) => member.links_down.contains(&number),
            // Another host runs it, or it has ended; its neighbour says how the link is.
            None => member.state == "silent",
        }
    };
    let links = required.iter().map(|number| (*number, &plan.links[usize::from(*number)].edge));
    let missing = links.filter(|(number, edge)| is_down(*number, edge.a) || is_down(*number, edge.b));
    let name = |node: NodeId| plan.members[node.index()].name.as_str();
    missing.map(|(_, edge)| format!("{}--{}", name(edge.a), name(edge.b))).collect()
}

/// `rackloom status`: how racks are.
pub(crate) fn status(arguments: &StatusArguments) -> Result<Exit, Failure> {
    let run = RunDirectory::open()?;
    let racks = match &arguments.name {
        Some(name) => vec![(name.clone(), run.connect(name)?.ok_or_else(|| not_up(name))?)],
        None => run.living()?,
    };
    let (mut racks_up, mut first_failure) = (Vec::new(), None);
    for (name, stream) in racks {
        match ask_status(&stream, &name) {
            Ok(status) => racks_up.push((stream, status)),
            // The others are shown all the same.
            Err(failure) => first_failure = first_failure.or(Some(failure)),
        }
    }
    if !racks_up.is_empty() {
        std::thread::sleep(RATE_INTERVAL);
    }
    let racks_up: Vec<_> = racks_up.into_iter().map(|(stream, status)| with_rates(&stream, status)).collect();
    let text = if arguments.json {
        let racks = Racks { racks: &racks_up };
        serde_json::to_string_pretty(&racks)
            .map_err(|error| Failure::could_not_start("cannot print", error))?
    } else if racks_up.is_empty() && first_failure.is_none() {
        "no rack is up".to_owned()
    } else {
        racks_up.iter().map(present::rack_status).collect::<Vec<_>>().join("\n\n")
    };
    reporting::say(&Output { json: None }, &text)?;
    first_failure.map_or(Ok(Exit::Pass), Err)
}

/// Returns the status a little later than `earlier`, with the rates in between. If the rack does not answer again, returns `earlier`, which has
/// no rates: it may be going, or have no place left for more than one request.
fn with_rates(stream: &UnixStream, earlier: RackStatus) -> RackStatus {
    match ask_status(stream, &earlier.name) {
        Ok(mut later) => {
            links::add_rates(&earlier, &mut later);
            later
        }
        Err(_) => earlier,
    }
}

/// What `status --json` prints.
#[derive(Serialize)]
struct Racks<'a> {
    racks: &'a [RackStatus],
}

/// `rackloom down`: end racks; returns once nothing of them is left.
pub(crate) fn down(arguments: &DownArguments) -> Result<Exit, Failure> {
    let run = RunDirectory::open()?;
    if let Some(seat) = &arguments.seat {
        return leave(&run, arguments, seat);
    }
    let mut exit = Exit::Pass;
    for (name, stream) in chosen(&run, arguments)? {
        let supervisor = client::peer(&stream);
        let answer = client::ask(&stream, &name, &Request::Down(Nothing {}), DOWN_PATIENCE)?;
        let Answer::Down(report) = answer else { return Err(client::beside_the_point(&name)) };
        if let Some(supervisor) = supervisor {
            client::wait_for_end(&supervisor, DOWN_PATIENCE);
        }
        let had_job = report.job != JobKind::None.name();
        let departure = departure(&name, &report, had_job);
        if had_job || report.verdict != Verdict::Pass {
            reporting::print(&report, &arguments.output)?;
        } else {
            report.notes.iter().for_each(|note| reporting::say_aside(&format!("note: {note}")));
        }
        reporting::say(&arguments.output, &departure)?;
        if exit == Exit::Pass {
            exit = reporting::exit_of(&report);
        }
        reporting::write(&report, &arguments.output)?;
    }
    Ok(exit)
}

/// `rackloom down --seat`: one member leaves, and the rack stays.
fn leave(run: &RunDirectory, arguments: &DownArguments, seat: &str) -> Result<Exit, Failure> {
    let (name, stream) = only(run, arguments.name.as_deref())?;
    let request = Request::Leave(Join { seat: seat.to_owned() });
    match client::ask(&stream, &name, &request, DOWN_PATIENCE)? {
        Answer::Left(Nothing {}) => {
            let text = format!(
                "rack {name}: nobody sits in {seat} any more; `rackloom seat --join {name}/{seat}` takes it"
            );
            reporting::say(&arguments.output, &text)?;
            Ok(Exit::Pass)
        }
        _ => Err(client::beside_the_point(&name)),
    }
}

/// `rackloom inject`: faults into a rack that is up; returns once its members have been told.
pub(crate) fn inject(arguments: &InjectArguments) -> Result<Exit, Failure> {
    let inline = !matches!(arguments.what, Injected::Script { .. });
    let script = match &arguments.what {
        Injected::Link(faults) => faults.script()?,
        Injected::Node(fault) => fault.script()?,
        Injected::Partition(partition) => partition.script()?,
        Injected::Script { file } => FaultFile::read(file)?.text,
    };
    let run = RunDirectory::open()?;
    let (name, stream) = only(&run, arguments.rack.as_deref())?;
    let request = Request::Inject(Inject { script, inline });
    match client::ask(&stream, &name, &request, STATUS_PATIENCE)? {
        Answer::Injected(Injection { events }) => {
            let faults = if events == 1 { "fault" } else { "faults" };
            let text = format!(
                "rack {name}: {events} {faults} injected; `rackloom status {name}` shows what becomes of it"
            );
            reporting::say(&Output { json: None }, &text)?;
            Ok(Exit::Pass)
        }
        _ => Err(client::beside_the_point(&name)),
    }
}

/// The rack that is named, or the only one that is up.
fn only(run: &RunDirectory, name: Option<&str>) -> Result<(String, UnixStream), Failure> {
    if let Some(name) = name {
        return Ok((name.to_owned(), run.connect(name)?.ok_or_else(|| not_up(name))?));
    }
    let mut racks = run.living()?;
    match (racks.pop(), racks.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(Failure::bad_input("no rack is up").hint("`rackloom up FILE` starts one")),
        (Some((last, _)), _) => {
            let names: Vec<_> = racks.iter().map(|(name, _)| name.as_str()).chain([last.as_str()]).collect();
            let what = format!("several racks are up: {}", names.join(", "));
            Err(Failure::bad_input(what).hint("name one of them with --rack"))
        }
    }
}

fn departure(name: &str, report: &Report, had_job: bool) -> String {
    let uptime = present::units::time(report.elapsed_ns);
    let mut text = format!("rack {name} is down after {uptime}");
    if had_job {
        text += &format!("; {}: {}", report.job, report.verdict.name());
    }
    text
}

/// The racks that `down` means.
fn chosen(run: &RunDirectory, arguments: &DownArguments) -> Result<Vec<(String, UnixStream)>, Failure> {
    if let Some(name) = &arguments.name {
        return Ok(vec![(name.clone(), run.connect(name)?.ok_or_else(|| not_up(name))?)]);
    }
    let racks = run.living()?;
    if arguments.all || racks.len() == 1 {
        return Ok(racks);
    }
    let names: Vec<_> = racks.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return Err(Failure::bad_input("no rack is up"));
    }
    Err(Failure::bad_input(format!("several racks are up: {}", names.join(", ")))
        .hint("name one of them, or say --all"))
}

fn not_up(name: &str) -> Failure {
    Failure::bad_input(format!("no rack named {name} is up"))
        .hint("`rackloom status` lists the racks that are")
}

fn ask_status(stream: &UnixStream, name: &str) -> Result<RackStatus, Failure> {
    match client::ask(stream, name, &Request::Status(Nothing {}), STATUS_PATIENCE)? {
        Answer::Status(status) => Ok(*status),
        _ => Err(client::beside_the_point(name)),
    }
}

/// Seats that are left for others, by place in the plan.
fn vacant(plan: &Plan, names: &[String]) -> Result<Vec<u16>, Failure> {
    names.iter().map(|name| Ok(member_named(plan, "--vacant", name)?.0)).collect()
}

/// Start the supervisor, and wait until it says how it went.
fn start(keep: &Keep) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::could_not_start("cannot start the supervisor", error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("keep").stdin(std::os::fd::OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    command.current_dir("/");
    leave_the_terminal(&mut command);
    let mut supervisor = command.spawn().map_err(failed)?;
    // The command holds the other end until it is dropped; then the end of the supervisor is the end of the socket.
    drop(command);
    let mut channel = Channel::new(ours).map_err(failed)?;
    channel.say(keep).map_err(failed)?;
    let heard = loop {
        channel.flush().map_err(failed)?;
        match channel.hear_first::<Outcome>().map_err(failed)? {
            Heard::Nothing => {}
            heard => break heard,
        }
    };
    match heard {
        Heard::Message(Outcome::Up {}) => Ok(()),
        Heard::Message(Outcome::Failed { exit, what }) => {
            // It has nothing more to say; what it held is free once it has ended.
            let _ = supervisor.wait();
            Err(Failure::new(exit, what))
        }
        Heard::End | Heard::Nothing => {
            let how = supervisor.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            Err(Failure::new(Exit::CouldNotStart, format!("the supervisor ended without a word ({how})")))
        }
    }
}

/// A session of its own: neither Ctrl-C nor a closed terminal reaches it.
fn leave_the_terminal(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: needed because only the child can leave its session. Between fork and exec the closure makes one system
    // call: it allocates nothing, takes no lock and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RING: &str = "name: ring\nshape: {ring: {nodes: 4}}\n";

    /// A status in which these members have links that carry no data.
    fn status(plan: &Plan, down: &[(usize, u16)]) -> RackStatus {
        let member = |(index, member): (usize, &rackloom_plan::MemberPlan)| {
            let links: Vec<_> = down.iter().filter(|(who, _)| *who == index).map(|(_, link)| link).collect();
            json!({"name": member.name, "role": "gpu node", "pid": 1, "server": "s", "tenant": 0, "state": "up",
                "memory_used_bytes": 0, "memory_bytes": 1, "links_up": 2 - links.len(), "links_down": links,
                "links_total": 2, "uptime_ns": 1})
        };
        let members: Vec<_> = plan.members.iter().enumerate().map(member).collect();
        let status = json!({"protocol": 1, "name": "ring", "pid": 1, "state": "up", "wire": "udp", "job": "none",
            "epoch": 1, "config_hash": "", "uptime_ns": 1, "links_up": 4, "links_total": 4, "members": members});
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn up_waits_for_every_link_that_is_down_at_either_end_and_names_it() {
        let plan = Plan::parse(RING, "ring.yaml").expect("a plan");
        let required = required_links(&plan, &[], None);
        assert_eq!(required, [0, 1, 2, 3]);
        assert_eq!(missing_links(&status(&plan, &[]), &plan, &required), [""; 0]);
        let one_end = missing_links(&status(&plan, &[(1, 1)]), &plan, &required);
        assert_eq!(one_end, ["n1--n2"]);
        assert_eq!(missing_links(&status(&plan, &[(1, 1), (2, 1), (3, 3)]), &plan, &required).len(), 2);
    }

    #[test]
    fn links_of_vacant_seats_and_links_that_a_script_takes_down_are_not_awaited() {
        let plan = Plan::parse(RING, "ring.yaml").expect("a plan");
        assert_eq!(required_links(&plan, &[1], None), [2, 3]);
        let text = "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 1ms, for: 1ms}\n";
        let script = FaultScript::parse(text, "cut.yaml", &plan).expect("a script");
        assert_eq!(required_links(&plan, &[], Some(&script)), [1, 2, 3]);
    }
}
