//! `rackloom sim`: runs the plan in virtual time, with the core, the jobs and the report of `rackloom run`.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rackloom_control::recorder::Recording;
use rackloom_control::report::injected::InjectedFaults;
use rackloom_control::source::{ArrayOptions, ComputeMode, Overrides};
use rackloom_jobs::report::{
    EventLog, EventRecord, HostShortage, MemberReport, MemberState, PortReport, Report, WireBytes,
};
use rackloom_jobs::{Job, JobResult, Verdicts};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::impair::Direction;
use rackloom_plan::{JobName, PayloadMode, Plan};
use rackloom_protocol::route::graph::SharedGraph;
use rackloom_protocol::{MemberRole, NodeId};
use rackloom_runtime::capture;
use rackloom_runtime::outcome::findings::{self, Findings};
use rackloom_runtime::outcome::progress::{NodeProgress, RunProgress};
use rackloom_runtime::outcome::{expectations, meta, workload as outcome_of_workload};
use rackloom_runtime::request::arrays::{self, ArrayWriter};
use rackloom_runtime::request::work::{RackRequest, Work};
use rackloom_simulator::{
    FaultTransition, LinkStatistics, MemberResults, RecordedEvent, RunResults, Simulation, Stalled, parts,
};

use crate::arguments::{SimArguments, command_line};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::Bar;
use crate::recorded::Outputs;
use crate::simulated_links::SimulatedLinks;
use crate::{reporting, trace, workload};
use rackloom_experiments::parallel::processors;

/// Number of events between two updates of the progress bar: a few milliseconds of wall time.
const EVENTS_PER_UPDATE: u64 = 1 << 12;

/// Largest rack whose oracles are watched without a fault script. Simulations of larger racks shall be fast.
const WATCHED_MEMBERS_MAX: usize = 64;
/// Members for which a thread is worth its waits, and the largest number of threads without the option.
const MEMBERS_PER_THREAD: usize = 256;
const THREADS_MAX: usize = 16;

/// Runs a rack in virtual time, and prints and writes its report.
pub(crate) fn run(arguments: &SimArguments) -> Result<Exit, Failure> {
    let outputs = outputs(arguments);
    outputs.files(files(arguments)).must_differ()?;
    outputs.must_have_series()?;
    outputs.must_be_writable()?;
    let (report, exit) = simulate(arguments)?;
    outputs.deliver(&report, exit)
}

fn outputs(arguments: &SimArguments) -> Outputs<'_> {
    let SimArguments { output, page, recording, .. } = arguments;
    Outputs { report: output, page, recording }
}

/// Returns the files that are read.
fn files(arguments: &SimArguments) -> Files {
    Files::default()
        .reads("the rack file", [&arguments.file])
        .reads("the fault script of --faults", &arguments.faults.faults)
        .reads("the workload of --workload", &arguments.workload.files)
        .reads("the trace of --trace", &arguments.trace)
}

/// Runs a rack in virtual time. Returns its report and the exit of the run.
pub(crate) fn simulate(arguments: &SimArguments) -> Result<(Report, Exit), Failure> {
    simulated(arguments, None)
}

/// Runs a rack in virtual time on one thread and without a progress bar, as one of several. Returns its report and the exit of the run.
///
/// # Errors
/// The run is refused. Or `goes_on` returned false, and the run was ended before its job: the exit is [`Exit::Interrupted`].
pub(crate) fn simulate_while(
    arguments: &SimArguments,
    goes_on: &dyn Fn() -> bool,
) -> Result<(Report, Exit), Failure> {
    simulated(arguments, Some(goes_on))
}

fn simulated(
    arguments: &SimArguments,
    goes_on: Option<&dyn Fn() -> bool>,
) -> Result<(Report, Exit), Failure> {
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
        .with_capture(&(&arguments.capture).into())?
        .with_recording(outputs(arguments).recording())
        .with_workload(workload::file(&arguments.workload.files, ComputeMode::Sleep)?);
    let work = request.possible_work()?;
    let source = request.into_source();
    must_have_a_model(&work.plan)?;
    must_move_arrays(&work.plan, &source.arrays)?;
    arrays::make_destination(&given_arrays, &work.is_written())?;
    capture::make_directory(&source.capture)?;
    let Work { mut plan, faults, inputs, result_shapes, workload } = work;
    let recording = source.recording;
    let is_open = source.overrides.job.repetitions.is_none() && source.overrides.job.warm_up.is_none();
    let is_shortened = is_open && faults.is_none() && workload.is_none() && plan.shorten_repetitions();
    let mut jobs = match (&arguments.trace, &workload) {
        (Some(file), _) => trace::jobs(file, &plan)?,
        (None, Some(workload)) => workload::jobs(&plan, workload),
        (None, None) => rackloom_jobs::build_all(&plan, plan.settings.seed, &inputs),
    };
    let of_operations = recording.of_operations(plan.endpoint_count());
    jobs.iter_mut().for_each(|job| job.observe(of_operations));
    let captures = capture::files_of(&source.capture, u64::from(std::process::id()));
    let threads = if goes_on.is_some() {
        1
    } else {
        arguments.threads.map_or_else(|| suitable_threads(plan.members.len()), usize::from)
    };
    let is_lowered = threads > processors();
    let threads = threads.min(processors());
    let objection =
        one_thread_reason(&plan, faults.is_some(), captures.is_some(), source.arrays.output.is_some());
    let job = if workload.is_some() { outcome_of_workload::JOB } else { plan.job.kind.name() };
    let bar = if goes_on.is_some() { Bar::hidden() } else { Bar::begin(job, plan.endpoint_count()) };
    let ran = if threads > 1 && objection.is_none() {
        run_on_threads(&plan, jobs, threads, &recording, &bar)
    } else {
        let mut simulation = Simulation::new(&plan, plan.settings.seed, jobs);
        simulation.record_series(&recording);
        if faults.is_some() || plan.members.len() <= WATCHED_MEMBERS_MAX {
            simulation.watch();
        }
        if let Some(script) = &faults {
            simulation.play(script, &plan, plan.settings.seed);
        }
        if let Some(files) = &captures {
            simulation.observe_frames(SimulatedLinks::begin(files, &plan).map_err(cannot_capture)?);
        }
        let ended = run_with_bar(&mut simulation, plan.endpoint_count(), &bar, goes_on);
        if matches!(ended, Ok(false)) {
            return Err(Failure::new(Exit::Interrupted, "the simulation was ended before its job"));
        }
        let stalled = ended.err();
        if let Some(directory) = &source.arrays.output {
            write_results(&mut simulation, directory, &result_shapes).map_err(|error| {
                Failure::could_not_start("cannot write the results", error).at_path(directory)
            })?;
        }
        Ran::of(&mut simulation, stalled, faults.is_some())
    };
    drop(bar);
    let mut report = report(&plan, faults.as_ref(), ran.results, ran.stalled.as_ref());
    if arguments.trace.is_some() {
        "trace".clone_into(&mut report.job);
    }
    if plan.is_sealed() {
        report.notes.push("the key of `security` has no effect in virtual time".to_owned());
    }
    if let Some(reason) = objection.filter(|_| arguments.threads.is_some_and(|threads| threads > 1)) {
        report.notes.push(format!("one thread computed all members: {reason}"));
    }
    if is_lowered && objection.is_none() {
        report.notes.push(format!("threads that computed the members: {threads}, one for each processor"));
    }
    if is_shortened {
        let note = "without faults few repetitions suffice in virtual time; `--repetitions` and `--warm-up` state other numbers";
        report.notes.push(note.to_owned());
    }
    if ran.stalled.is_none() {
        expectations::judge(&plan, faults.as_ref(), &mut report);
    }
    report.add_oracles(&ran.verdicts);
    report.judge_refusals(expectations::refusals(faults.as_ref()));
    let captured = captures.map_or(Ok(Vec::new()), |files| files.join(&plan));
    let exit = if ran.stalled.is_some() { Exit::Stalled } else { findings::exit_of(&report) };
    let exit = reporting::note_captures(&mut report, captured, exit);
    report.meta = Some(meta::of(&plan, &source.command));
    outcome_of_workload::complete(&mut report, &plan, source.workload.as_ref());
    Ok((report, exit))
}

/// Returns the number of threads for a rack: one per processor, but each has several hundred members. Fewer would mostly wait for each other.
fn suitable_threads(members: usize) -> usize {
    (members / MEMBERS_PER_THREAD).clamp(1, processors().min(THREADS_MAX))
}

/// Results of a run, with the verdicts of its oracles.
struct Ran {
    results: RunResults,
    stalled: Option<Stalled>,
    verdicts: Verdicts,
}

impl Ran {
    /// Takes the results. Then heals a rack that had faults, and judges its recovery.
    fn of(simulation: &mut Simulation, stalled: Option<Stalled>, had_faults: bool) -> Self {
        let results = simulation.take_results();
        if had_faults && stalled.is_none() {
            simulation.heal_and_probe();
        }
        Self { results, stalled, verdicts: simulation.verdicts() }
    }
}

/// Returns the reason for which one thread must compute all members, if there is one.
fn one_thread_reason(
    plan: &Plan,
    has_faults: bool,
    has_captures: bool,
    writes_arrays: bool,
) -> Option<&'static str> {
    if has_faults {
        Some("a fault script may change any member at any time")
    } else if has_captures {
        Some("captures contain the frames in the order of time")
    } else if writes_arrays {
        Some("the results are written from the memories of all nodes")
    } else if plan.members.len() <= WATCHED_MEMBERS_MAX {
        Some("the oracles of a rack of up to 64 members compare all of its memories")
    } else {
        parts::objection(plan)
    }
}

/// Runs the rack on several threads. Each part reports the progress of its members.
fn run_on_threads(
    plan: &Plan,
    jobs: Vec<Box<dyn Job>>,
    threads: usize,
    recording: &Recording,
    bar: &Bar,
) -> Ran {
    let progress = Mutex::new(vec![RunProgress::default(); parts::PARTS_MAX]);
    let look = |number: usize, part: &Simulation| {
        bar.update(|| {
            let mut all = progress.lock().unwrap_or_else(PoisonError::into_inner);
            all[number] = progress_of(part, plan.endpoint_count());
            // Parts compute one window of time after the other, so the latest time is that of the run.
            RunProgress::joined(all.iter().copied())
        });
    };
    let seed = plan.settings.seed;
    let (results, stalled) = parts::run(plan, seed, jobs, threads, recording, EVENTS_PER_UPDATE, &look);
    Ran { results, stalled, verdicts: Verdicts::default() }
}

/// Returns the progress of the nodes that are computed here.
fn progress_of(simulation: &Simulation, ranks: usize) -> RunProgress {
    let ranks = (0..ranks).map(|rank| NodeId(rank as u16)).filter(|rank| simulation.is_here(*rank));
    let progress = RunProgress::of(ranks.map(|rank| {
        let portion = simulation.job(rank).and_then(Job::portion);
        match simulation.state(rank) {
            rackloom_simulator::MemberState::Running | rackloom_simulator::MemberState::Paused => {
                NodeProgress::Working(portion)
            }
            rackloom_simulator::MemberState::Finished => NodeProgress::Finished(portion),
            rackloom_simulator::MemberState::Killed => NodeProgress::Lost,
        }
    }));
    RunProgress { virtual_ns: Some(simulation.now().0), ..progress }
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

/// Checks that the bytes of arrays are moved: without them there is nothing to read into and no result to write.
fn must_move_arrays(plan: &Plan, arrays: &ArrayOptions) -> Result<(), Failure> {
    let options = [("--input", arrays.input.is_some()), ("--output", arrays.output.is_some())];
    let given: Vec<_> = options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    let mode = plan.settings.payload;
    if mode == PayloadMode::Full || given.is_empty() {
        return Ok(());
    }
    let given = given.join(" and ");
    let what = format!("`payload` is {mode}, which moves no bytes, and arrays have bytes ({given})");
    Err(Failure::bad_input(what).hint(format!("use --payload full, or leave {given} out")))
}

fn cannot_capture(error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "choose a directory of your own",
        _ => "each link needs a file; `ulimit -n` shows the limit of open files",
    };
    Failure::could_not_start("cannot write the captures", error).hint(hint)
}

/// Runs the simulation to its end, and updates the progress bar now and then. Returns false if `goes_on` did so first.
fn run_with_bar(
    simulation: &mut Simulation,
    ranks: usize,
    bar: &Bar,
    goes_on: Option<&dyn Fn() -> bool>,
) -> Result<bool, Stalled> {
    let outcome = simulation.run_while(EVENTS_PER_UPDATE, |simulation| {
        bar.update(|| progress_of(simulation, ranks));
        goes_on.is_none_or(|goes_on| goes_on())
    })?;
    bar.update(|| progress_of(simulation, ranks));
    Ok(outcome.is_some())
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
    results: RunResults,
    stalled: Option<&Stalled>,
) -> Report {
    let findings = Findings {
        failures: stalled.map(failures).unwrap_or_default(),
        elapsed_ns: results.ended_at.0,
        wire: "simulated",
        clock: "virtual",
        trace_hash: Some(format!("{:016x}", results.trace_hash)),
        events: faults.map(|script| fault_lines(plan, script, &results)).unwrap_or_default(),
    };
    let logs = event_logs(plan, &results);
    let by_node = (0..).map(NodeId).zip(&results.members);
    let graph = SharedGraph::from(plan.graph());
    let ports: Vec<_> =
        by_node.map(|(node, member)| port_reports(plan, graph.links(node), &results, node, member)).collect();
    let statistics = results.statistics;
    let omitted = results.events_omitted;
    let members: Vec<_> = plan
        .members
        .iter()
        .zip(logs)
        .zip(ports)
        .zip(results.members)
        .map(|(((member, events), ports), mut results)| {
            let has_job = member.role == MemberRole::Endpoint;
            let series = results.series.take();
            MemberReport {
                name: member.name.clone(),
                pid: None,
                state: state(results.state, has_job),
                job: if has_job { result(results) } else { None },
                ports,
                events,
                waiting: Vec::new(),
                timer_late_max_ns: 0,
                shortage: HostShortage::default(),
                series,
            }
        })
        .collect();
    let mut report = Report::assemble(findings::context(plan, findings), &members);
    report.add_omitted_events(omitted);
    report.wire_bytes =
        Some(WireBytes { sent: statistics.wire_bytes, accounted: statistics.accounted_bytes });
    report
}

/// Returns the result of a rank's job, with the paths of its operations and the use of its GPU.
fn result(results: MemberResults) -> Option<JobResult> {
    let mut result = results.job?.result();
    result.paths = results.paths;
    result.device = results.device;
    result.notes.extend(results.path_notes);
    Some(result)
}

fn fault_lines(plan: &Plan, script: &FaultScript, results: &RunResults) -> Vec<EventRecord> {
    let line = |one: &FaultTransition| {
        let member = &plan.members[one.member.index()].name;
        EventRecord::of_fault(one.at, member, one.event, one.time, &script.events[one.event], one.begins)
    };
    results.fault_transitions.iter().map(line).collect()
}

fn failures(stalled: &Stalled) -> Vec<String> {
    stalled.to_string().lines().map(|line| line.trim().to_owned()).collect()
}

fn event_logs(plan: &Plan, results: &RunResults) -> Vec<EventLog> {
    let names: Vec<_> = plan.members.iter().map(|member| member.name.clone()).collect();
    let mut logs = vec![EventLog::default(); names.len()];
    for RecordedEvent { at, node, event } in &results.events {
        logs[node.index()].keep_event(*at, *node, event, &names);
    }
    for (edge, link) in plan.links.iter().enumerate() {
        let ends = [
            (Direction::Forward, link.edge.a, link.edge.a_port),
            (Direction::Backward, link.edge.b, link.edge.b_port),
        ];
        for (direction, sender, port) in ends {
            let line = injected(results.link(edge as u16, direction));
            let line = line.record(results.ended_at, &names[sender.index()], port);
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

/// Returns the reports of a member's ports. `links`: edge and neighbour by port.
fn port_reports(
    plan: &Plan,
    links: &[(u16, NodeId)],
    results: &RunResults,
    node: NodeId,
    member: &MemberResults,
) -> Vec<PortReport> {
    links
        .iter()
        .zip(&member.ports)
        .map(|((edge, _), counters)| {
            let edge = *edge;
            let link = &plan.links[usize::from(edge)];
            let direction = if link.edge.a == node { Direction::Forward } else { Direction::Backward };
            let statistics = results.link(edge, direction);
            let injected = injected(statistics).by_name();
            let accounted_bytes = statistics.accounted_bytes;
            PortReport { injected, accounted_bytes, ..PortReport::new(edge, counters) }
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
