//! Start of a standing rack. Its supervisor runs in a session of its own and outlives its launcher.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rackloom_control::request::RackStatus;
use rackloom_control::source::ProcessSeats;
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{JobName, Plan};
use rackloom_protocol::{Edge, NodeId};

use super::background::{KeepOptions, Outcome};
use super::rack::StandingRack;
use crate::channel::seat::{Channel, Received};
use crate::machine::child::start_session;
use crate::machine::directory::{RunDirectory, check_name};
use crate::machine::program::{Program, start_failure};
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::request::options::UpOptions;
use crate::request::overrides::member_named;
use crate::request::work::RackRequest;

/// Longest time for links that have come up and gone down again to be up.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// Starts a standing rack. Returns its status once all its links are up.
///
/// # Errors
/// The options or the rack file are wrong, a rack of this name is up, or the rack did not come up. No process
/// of it remains then.
pub fn up(options: &UpOptions, program: &Program) -> Result<RackStatus, Failure> {
    let mut overrides = options.overrides.clone();
    // A standing rack runs the job of the rack file only on request.
    if overrides.job.collective.is_none() && overrides.job.pattern.is_none() {
        overrides.job.job.get_or_insert(JobName::None);
    }
    let request = RackRequest::read(&options.file, &overrides)?
        .with_command(options.command.clone())
        .named(options.name.clone())
        .for_processes(&options.processes)?;
    let process_seats = match options.process_seats {
        _ if !options.for_programs => ProcessSeats::None,
        Some(count) => ProcessSeats::Number(count),
        None => ProcessSeats::OfFile,
    };
    let request = request.with_process_seats(process_seats);
    let work = request.ready_work(&options.processes)?;
    let plan = work.plan;
    check_process_seats(&plan, process_seats)?;
    check_name(&plan.name)?;
    let spare = numbers(&plan, "--spare", &options.spare)?;
    if let Some(switch) =
        spare.iter().map(|member| &plan.members[usize::from(*member)]).find(|member| member.role.is_switch())
    {
        let what = format!("{} is a switch, and --spare names GPU nodes", switch.name);
        return Err(Failure::bad_input(what).hint("leave the seat of a switch vacant with --vacant"));
    }
    let mut vacant = numbers(&plan, "--vacant", &options.vacant)?;
    if options.for_programs {
        let nodes = (0..)
            .zip(&plan.members)
            .filter(|(_, member)| member.role.is_endpoint() && !member.role.is_switch());
        let nodes: Vec<u16> = nodes.map(|(number, _)| number).collect();
        vacant.extend(nodes.into_iter().filter(|node| !vacant.contains(node)).collect::<Vec<_>>());
    }
    vacant.extend(spare.iter().filter(|member| !vacant.contains(member)).copied().collect::<Vec<_>>());
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| Failure::bad_input(error.to_string()));
    let keep = KeepOptions {
        source: request.into_source(),
        vacant,
        spare,
        log_dir: options.logs.directory.as_deref().map(absolute).transpose()?,
        log_level: options.logs.level.clone(),
        metrics: options.metrics,
    };
    let run = RunDirectory::open()?;
    start(&keep, program)?;
    let stream = run.connect(&plan.name)?.ok_or_else(|| {
        Failure::new(Exit::NodeLost, format!("rack {} came up and has already ended", plan.name))
    })?;
    let rack = StandingRack::new(plan.name.clone(), stream);
    let required = required_links(&plan, &keep.vacant, work.faults.as_ref());
    settled_status(&rack, &plan, &required)
}

/// Checks that the rack has as many process seats as were requested.
fn check_process_seats(plan: &Plan, requested: ProcessSeats) -> Result<(), Failure> {
    let requested = match requested {
        ProcessSeats::None => 0,
        ProcessSeats::OfFile => plan.settings.processes.unwrap_or(0),
        ProcessSeats::Number(count) => count,
    };
    let present = plan.process_ports_of(NodeId(0)).len();
    if present >= usize::from(requested) {
        return Ok(());
    }
    let what =
        format!("rack {} can have {present} process seats of each GPU node, and not {requested}", plan.name);
    Err(Failure::bad_input(what).hint(format!("start it with --processes {present}")))
}

/// Returns the status once every required link carries data at both ends. Required are all links between
/// started members, except those that a fault script takes down. On a busy host a link may go down for a
/// moment after it has come up. If that lasts, the rack is taken down.
fn settled_status(rack: &StandingRack, plan: &Plan, required: &[u16]) -> Result<RackStatus, Failure> {
    let until = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let status = rack.status()?;
        let missing = missing_links(&status, plan, required);
        if missing.is_empty() {
            return Ok(status);
        }
        if Instant::now() >= until {
            let what = format!(
                "{} of {} links carry data {} s after all had come up; missing: {}",
                status.links_up,
                status.links_total,
                SETTLE_TIMEOUT.as_secs(),
                missing.join(", ")
            );
            let _ = rack.request_down();
            return Err(Failure::new(Exit::Stalled, what).hint(
                "the host may be too busy for the heartbeats; `timers` of the rack file can be longer",
            ));
        }
        std::thread::sleep(SETTLE_INTERVAL);
    }
}

/// Returns the links that `up` waits for, by index in the plan.
fn required_links(plan: &Plan, vacant: &[u16], script: Option<&FaultScript>) -> Vec<u16> {
    let is_vacant = |node: NodeId| vacant.contains(&node.0);
    let is_struck = |number: u16, edge: &Edge| {
        script.iter().flat_map(|script| &script.events).any(|event| {
            let fault = &event.fault;
            let members = fault.members();
            fault.directions().iter().any(|direction| direction.edge == number)
                || members.contains(&edge.a)
                || members.contains(&edge.b)
        })
    };
    let links = (0..).zip(&plan.links).map(|(number, link)| (number, &link.edge));
    let links =
        links.filter(|(number, edge)| !is_vacant(edge.a) && !is_vacant(edge.b) && !is_struck(*number, edge));
    links.map(|(number, _)| number).collect()
}

/// Returns the names of required links that carry no data at one of their ends. A silent member has no such
/// link up.
fn missing_links(status: &RackStatus, plan: &Plan, required: &[u16]) -> Vec<String> {
    let is_down = |number: u16, end: NodeId| {
        let member = &status.members[end.index()];
        match member.links_up {
            Some(_) => member.links_down.contains(&number),
            // The member is on another host or has ended. The status of its neighbour decides.
            None => member.state == "silent",
        }
    };
    let links = required.iter().map(|number| (*number, &plan.links[usize::from(*number)].edge));
    let missing = links.filter(|(number, edge)| is_down(*number, edge.a) || is_down(*number, edge.b));
    let name = |node: NodeId| plan.members[node.index()].name.as_str();
    missing.map(|(_, edge)| format!("{}--{}", name(edge.a), name(edge.b))).collect()
}

/// Returns the numbers of the members that an option names.
fn numbers(plan: &Plan, option: &str, names: &[String]) -> Result<Vec<u16>, Failure> {
    names.iter().map(|name| Ok(member_named(plan, option, name)?.0)).collect()
}

/// Starts the supervisor, and waits for its outcome.
fn start(keep: &KeepOptions, program: &Program) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::could_not_start("cannot start the supervisor", error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = program.keep();
    command.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    command.current_dir("/");
    start_session(&mut command);
    let mut supervisor =
        command.spawn().map_err(|error| start_failure("cannot start the supervisor", &error))?;
    // The command holds the other end until it is dropped. Without the drop, the end of the supervisor would
    // not close the socket.
    drop(command);
    let mut channel = Channel::new(ours).map_err(failed)?;
    channel.send(keep).map_err(failed)?;
    let received = loop {
        channel.flush().map_err(failed)?;
        match channel.wait_for_message::<Outcome>().map_err(failed)? {
            Received::Nothing => {}
            received => break received,
        }
    };
    match received {
        Received::Message(Outcome::Up {}) => Ok(()),
        Received::Message(Outcome::Failed { exit, what }) => {
            // The directory and the name of the rack are free once the supervisor has ended.
            let _ = supervisor.wait();
            Err(Failure::new(exit, what))
        }
        Received::End | Received::Nothing => {
            let status =
                supervisor.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            Err(Failure::new(
                Exit::CouldNotStart,
                format!("the supervisor ended without a message ({status})"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RING: &str = "name: ring\nshape: {ring: {nodes: 4}}\n";

    #[test]
    fn a_rack_at_its_limits_refuses_more_process_seats() {
        let text = "name: star\nshape: {star: {nodes: 1040}}\nprocesses: 15\n";
        let mut plan = Plan::parse(text, "test").expect("a plan");
        plan.add_processes(15);
        let refused =
            check_process_seats(&plan, ProcessSeats::OfFile).expect_err("there are 16384 members at most");
        assert!(refused.to_string().contains("--processes 14"), "{refused}");
        assert!(check_process_seats(&plan, ProcessSeats::Number(14)).is_ok());
    }

    /// Returns a status in which these ends of links, given as member and link, carry no data.
    fn status(plan: &Plan, down: &[(usize, u16)]) -> RackStatus {
        let member = |(index, member): (usize, &rackloom_plan::MemberPlan)| {
            let links: Vec<_> = down.iter().filter(|(at, _)| *at == index).map(|(_, link)| link).collect();
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
    fn links_that_are_down_at_one_end_are_missing() {
        let plan = Plan::parse(RING, "ring.yaml").expect("a plan");
        let required = required_links(&plan, &[], None);
        assert_eq!(required, [0, 1, 2, 3]);
        assert_eq!(missing_links(&status(&plan, &[]), &plan, &required), [""; 0]);
        let one_end = missing_links(&status(&plan, &[(1, 1)]), &plan, &required);
        assert_eq!(one_end, ["n1--n2"]);
        assert_eq!(missing_links(&status(&plan, &[(1, 1), (2, 1), (3, 3)]), &plan, &required).len(), 2);
    }

    #[test]
    fn links_of_vacant_seats_and_links_that_a_script_takes_down_are_not_required() {
        let plan = Plan::parse(RING, "ring.yaml").expect("a plan");
        assert_eq!(required_links(&plan, &[1], None), [2, 3]);
        let text = "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 1ms, for: 1ms}\n";
        let script = FaultScript::parse(text, "cut.yaml", &plan).expect("a script");
        assert_eq!(required_links(&plan, &[], Some(&script)), [1, 2, 3]);
    }
}
