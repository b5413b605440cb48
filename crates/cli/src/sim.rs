//! `rackloom sim`: runs the plan in virtual time, with the core, the jobs and the report of `rackloom run`.

use std::io;
use std::path::Path;

use rackloom_control::report::injected::InjectedFaults;
use rackloom_control::source::Overrides;
use rackloom_jobs::report::{
    EventLog, EventRecord, HostShortage, MemberReport, MemberState, PortReport, Report, WireBytes,
};
use rackloom_jobs::{Job, JobResult};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::impair::Direction;
use rackloom_plan::{JobName, Plan};
use rackloom_protocol::{MemberRole, NodeId, PortId};
use rackloom_runtime::capture;
use rackloom_runtime::outcome::findings::{self, Findings};
use rackloom_runtime::outcome::progress::RunProgress;
use rackloom_runtime::outcome::{expectations, meta};
use rackloom_runtime::request::arrays::{self, ArrayWriter};
use rackloom_runtime::request::work::{RackRequest, Work};
use rackloom_simulator::{FaultTransition, LinkStatistics, RecordedEvent, Simulation, Stalled};

use crate::arguments::{SimArguments, command_line};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::reporting;
use crate::simulated_links::SimulatedLinks;
use crate::trace;

/// Number of events between two updates of the progress bar: a few milliseconds of wall time.
const EVENTS_PER_UPDATE: u64 = 1 << 12;

/// Largest rack whose oracles are watched without a fault script. Simulations of larger racks shall be fast.
const WATCHED_MEMBERS_MAX: usize = 64;

/// Runs a rack in virtual time.
pub(crate) fn run(arguments: &SimArguments) -> Result<Exit, Failure> {
    let mut overrides = Overrides { payload: arguments.payload, ..(&arguments.overrides).into() };
    if arguments.trace.is_some() {
        // The file's own job does not run, so its expectations do not apply.
        overrides.job.job = Some(JobName::None);
    }
    let given_arrays = (&arguments.arrays).into();
    let request = RackRequest::read(&arguments.file, &overrides)?
        .with_command(command_line())
        .with_faults(arguments.faults.faults.as_deref())?
        .with_arrays(&given_arrays)?
        .with_capture(&(&arguments.capture).into())?;
    let work = request.possible_work()?;
    let source = request.into_source();
    must_have_a_model(&work.plan)?;
    arrays::make_destination(&given_arrays, &work.is_written())?;
    reporting::must_be_writable(&arguments.output)?;
    capture::make_directory(&source.capture)?;
    let Work { plan, faults, inputs, result_shapes } = work;
    let jobs = match &arguments.trace {
        Some(file) => trace::jobs(file, &plan)?,
        None => rackloom_jobs::build_all(&plan, plan.settings.seed, &inputs),
    };
    let mut simulation = Simulation::new(&plan, plan.settings.seed, jobs);
    if faults.is_some() || plan.members.len() <= WATCHED_MEMBERS_MAX {
        simulation.watch();
    }
    if let Some(script) = &faults {
        simulation.play(script, &plan, plan.settings.seed);
    }
    let captures = capture::files_of(&source.capture, u64::from(std::process::id()));
    if let Some(files) = &captures {
        simulation.observe_frames(SimulatedLinks::begin(files, &plan).map_err(cannot_capture)?);
    }
    let bar = Bar::begin(plan.job.kind.name(), plan.endpoint_count());
    let stalled = run_with_bar(&mut simulation, plan.endpoint_count(), &bar).err();
    drop(bar);
    if let Some(directory) = &source.arrays.output {
        write_results(&mut simulation, directory, &result_shapes).map_err(|error| {
            Failure::could_not_start("cannot write the results", error).at_path(directory)
        })?;
    }
    let mut report = report(&plan, faults.as_ref(), &mut simulation, stalled.as_ref());
    if arguments.trace.is_some() {
        "trace".clone_into(&mut report.job);
    }
    if plan.is_sealed() {
        report.notes.push("the key of `security` has no effect in virtual time".to_owned());
    }
    if stalled.is_none() {
        expectations::judge(&plan, faults.as_ref(), &mut report);
        if faults.is_some() {
            simulation.heal_and_probe();
        }
    }
    report.add_oracles(&simulation.verdicts());
    report.judge_refusals(expectations::refusals(faults.as_ref()));
    drop(simulation);
    let captured = captures.map_or(Ok(Vec::new()), |files| files.join(&plan));
    let exit = if stalled.is_some() { Exit::Stalled } else { findings::exit_of(&report) };
    let exit = reporting::note_captures(&mut report, captured, exit);
    report.meta = Some(meta::of(&plan, &source.command));
    reporting::deliver(&report, &arguments.output, exit)
}

/// Checks that the plan has no bridge of the kernel. The simulator has no model of one.
pub(crate) fn must_have_a_model(plan: &Plan) -> Result<(), Failure> {
    if !plan.has_bridges() {
        return Ok(());
    }
    let what = "`switch: bridge` is a bridge of the kernel, of which virtual time has no model";
    let hint =
        "use `rackloom run`, or leave `switch: bridge` out to simulate the star with a rackloom switch";
    Err(Failure::bad_input(what).at("shape.star.switch").hint(hint))
}

fn cannot_capture(error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "choose a directory of your own",
        _ => "each link needs a file; `ulimit -n` shows the limit of open files",
    };
    Failure::could_not_start("cannot write the captures", error).hint(hint)
}

/// Runs the simulation to its end, and updates the progress bar now and then.
fn run_with_bar(simulation: &mut Simulation, ranks: usize, bar: &Bar) -> Result<(), Stalled> {
    simulation.run_watched(EVENTS_PER_UPDATE, |simulation| {
        let ranks = || (0..ranks).map(|rank| NodeId(rank as u16));
        let is_over = |rank: &NodeId| simulation.state(*rank) != rackloom_simulator::MemberState::Running;
        let working = ranks().filter(|rank| !is_over(rank)).filter_map(|rank| simulation.job(rank));
        let progress = RunProgress::of(ranks().filter(is_over).count(), working.filter_map(Job::portion));
        bar.progress().set(progress);
    })?;
    Ok(())
}

/// Writes the result of each rank to a file.
fn write_results(
    simulation: &mut Simulation,
    directory: &Path,
    shapes: &[Option<Vec<u64>>],
) -> io::Result<()> {
    for (rank, shape) in shapes.iter().enumerate() {
        let Some(shape) = shape else { continue };
        let node = NodeId(rank as u16);
        let Some(output) = simulation.job(node).and_then(Job::output) else { continue };
        let mut writer = ArrayWriter::begin(directory, rank, output, shape)?;
        while !writer.advance(simulation.memory_mut(node))? {}
    }
    Ok(())
}

pub(crate) fn report(
    plan: &Plan,
    faults: Option<&FaultScript>,
    simulation: &mut Simulation,
    stalled: Option<&Stalled>,
) -> Report {
    let findings = Findings {
        failures: stalled.map(failures).unwrap_or_default(),
        elapsed_ns: simulation.now().0,
        wire: "simulated",
        clock: "virtual",
        trace_hash: Some(format!("{:016x}", simulation.trace_hash())),
        events: faults.map(|script| fault_lines(plan, script, simulation)).unwrap_or_default(),
    };
    let mut logs = event_logs(plan, simulation);
    let mut jobs = simulation.take_jobs().into_iter();
    let members: Vec<_> = plan
        .members
        .iter()
        .zip(logs.drain(..))
        .enumerate()
        .map(|(index, (member, events))| {
            let node = NodeId(index as u16);
            let has_job = member.role == MemberRole::Endpoint;
            MemberReport {
                name: member.name.clone(),
                pid: None,
                state: state(simulation.state(node), has_job),
                job: if has_job { jobs.next().map(|job| result(job, node, simulation)) } else { None },
                ports: port_reports(plan, simulation, node),
                events,
                waiting: Vec::new(),
                timer_late_max_ns: 0,
                shortage: HostShortage::default(),
            }
        })
        .collect();
    let statistics = simulation.statistics();
    let mut report = Report::assemble(findings::context(plan, findings), &members);
    report.wire_bytes =
        Some(WireBytes { sent: statistics.wire_bytes, accounted: statistics.accounted_bytes });
    report
}

/// Returns the result of a rank's job, with the paths of its operations.
fn result(mut job: Box<dyn Job>, node: NodeId, simulation: &Simulation) -> JobResult {
    let mut result = job.result();
    result.paths = simulation.paths(node);
    result.notes.extend(simulation.path_notes(node));
    result
}

fn fault_lines(plan: &Plan, script: &FaultScript, simulation: &Simulation) -> Vec<EventRecord> {
    let line = |one: &FaultTransition| {
        let member = &plan.members[one.member.index()].name;
        EventRecord::of_fault(one.at, member, one.event, one.time, &script.events[one.event], one.begins)
    };
    simulation.fault_transitions().iter().map(line).collect()
}

fn failures(stalled: &Stalled) -> Vec<String> {
    stalled.to_string().lines().map(|line| line.trim().to_owned()).collect()
}

fn event_logs(plan: &Plan, simulation: &Simulation) -> Vec<EventLog> {
    let names: Vec<_> = plan.members.iter().map(|member| member.name.clone()).collect();
    let mut logs = vec![EventLog::default(); names.len()];
    for RecordedEvent { at, node, event } in simulation.events() {
        logs[node.index()].push_event(*at, *node, event, &names);
    }
    for (edge, link) in plan.links.iter().enumerate() {
        let ends = [
            (Direction::Forward, link.edge.a, link.edge.a_port),
            (Direction::Backward, link.edge.b, link.edge.b_port),
        ];
        for (direction, sender, port) in ends {
            let line = injected(simulation.link_statistics(edge as u16, direction));
            let line = line.record(simulation.now(), &names[sender.index()], port);
            line.into_iter().for_each(|line| logs[sender.index()].push(line));
        }
    }
    logs
}

fn injected(statistics: &LinkStatistics) -> InjectedFaults {
    InjectedFaults {
        dropped: statistics.frames_dropped,
        corrupted: statistics.frames_corrupted,
        duplicated: statistics.frames_duplicated,
        reordered: statistics.frames_reordered,
    }
}

fn port_reports(plan: &Plan, simulation: &Simulation, node: NodeId) -> Vec<PortReport> {
    let ports = plan.graph().ports(node).into_iter().enumerate();
    ports
        .map(|(port, end)| {
            let edge = end.edge;
            let link = &plan.links[usize::from(edge)];
            let direction = if link.edge.a == node { Direction::Forward } else { Direction::Backward };
            let injected = injected(simulation.link_statistics(edge, direction)).by_name();
            let counters = simulation.counters(node, PortId(port as u16));
            PortReport { injected, ..PortReport::new(edge, counters) }
        })
        .collect()
}

/// Returns the state of a member for the report. A switch has no job, so a live switch has finished.
fn state(state: rackloom_simulator::MemberState, has_job: bool) -> MemberState {
    match state {
        rackloom_simulator::MemberState::Finished => MemberState::Finished,
        rackloom_simulator::MemberState::Running if !has_job => MemberState::Finished,
        rackloom_simulator::MemberState::Running | rackloom_simulator::MemberState::Paused => {
            MemberState::Running
        }
        rackloom_simulator::MemberState::Killed => MemberState::Killed,
    }
}
