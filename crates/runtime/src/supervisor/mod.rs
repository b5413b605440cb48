//! Supervisor of a rack of processes. There is one process per member. The supervisor's process is the
//! control plane only.
//!
//! The supervisor makes the wires, starts the seats, waits, and joins their reports. It is never on the path
//! of a frame and never reports a death to a seat. While it is stopped, the rack continues. When it dies, the
//! rack ends.
//!
//! Two drivers advance a supervisor from one [`Milestone`] to the next: a rack for one job ([`crate::run`])
//! and a standing rack ([`crate::standing`]).

mod conclude;
mod hosts;
pub(crate) mod ip;
mod kept_faults;
pub(crate) mod rack;
mod seats;
mod starved;
mod successor;
pub(crate) mod wires;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rackloom::Clock;
use rackloom::seal::RackKey;
use rackloom_control::order::{Order, SharedServer, Start};
use rackloom_control::request::IpStatus;
use rackloom_control::source::Source;
use rackloom_jobs::Verdicts;
use rackloom_jobs::report::{EventRecord, FaultLines};
use rackloom_jobs::rest;
use rackloom_plan::Plan;
use rackloom_plan::faults::{Fault, FaultEvent, FaultScript};
use rackloom_protocol::{MemberRole, NodeId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

pub use self::conclude::Conclusion;
pub(crate) use self::seats::logs::Logs;
pub use self::seats::process::LOG_VARIABLE;
pub(crate) use self::seats::service::SeatService;
pub use self::wires::names::sweep_names;

use self::hosts::Hosts;
use self::kept_faults::KeptFaults;
use self::rack::{Rack, Step, TICK_NS};
use self::seats::page::SeatPage;
use self::seats::process::Process;
use self::seats::socket::SeatMessage;
use self::wires::contract::{Takeover, Wiring};
use self::wires::names;
use crate::machine::directory::Claim;
use crate::machine::here::Here;
use crate::machine::program::{Program, start_failure};
use crate::outcome::failure::Failure;
use crate::outcome::progress::RunProgress;

/// Time for members to detect a death, in addition to that of the heartbeats: scheduling and flooding.
const DETECTION_SLACK_NS: u64 = 1_000_000_000;

/// Time for links and credits to return after all faults, in addition to that of the links.
const HEALING_SLACK_NS: u64 = 10_000_000_000;

/// Time for members of a rack without faults to come to rest.
const RESTING_SLACK_NS: u64 = 3_000_000_000;
/// Longest time for a rack to come to rest before it is taken down, with faults or without.
const HEALING_BEFORE_END_MAX_NS: u64 = 15_000_000_000;

/// Change of a rack that its driver handles.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// All links have been up.
    LinksUp,
    /// The answer to [`Supervisor::request_status`] is in the rack.
    StatusKnown,
    /// A seat has reported an event.
    Happened(EventRecord),
    /// This member has left in order.
    Left(usize),
    /// The job has made progress.
    Progress(RunProgress),
    /// A problem was found that does not end the run.
    Warning(String),
    /// No process is left.
    Over,
}

/// Returns the names of the events of a script.
fn names_of(script: &FaultScript) -> impl Iterator<Item = String> {
    script.events.iter().map(FaultEvent::name)
}

/// Rack of processes, from the start of the first process to the end of the last.
pub(crate) struct Supervisor {
    pub(crate) plan: Plan,
    pub(crate) rack: Rack,
    pub(crate) clock: Clock,
    /// True if the latest request for a status was without paths.
    is_brief: bool,
    /// Fault script, which the seats perform.
    faults: Option<FaultScript>,
    /// Lines of the seats about the script.
    fault_lines: FaultLines,
    /// Times, in nanoseconds, at which events have begun that have not ended, by number and member. Numbers count from one.
    pub(crate) active_faults: BTreeMap<(usize, String), u64>,
    /// Names of the events of the script and of all injected scripts, in the order of their numbers.
    pub(crate) fault_names: Vec<String>,
    /// Faults for processes that start later.
    kept_faults: KeptFaults,
    /// Time at which the job had ended and all faults were ended; `None` before.
    finished_at_ns: Option<u64>,
    source: Source,
    key_seed: u64,
    program: Program,
    logs: Logs,
    stays: bool,
    wiring: Box<dyn Wiring>,
    /// Part of the rack that this host runs.
    pub(crate) here: Here,
    /// The other hosts, if there are any.
    hosts: Option<Hosts>,
    /// IP over the fabric, in a rack for programs.
    pub(crate) ip: Option<IpStatus>,
    /// Names of the members' namespaces, if requested.
    names: Option<names::NamespaceNames>,
    /// Processes by member; `None` for a vacant seat.
    processes: Vec<Option<Process>>,
    messages: UnboundedSender<(usize, SeatMessage)>,
    received: UnboundedReceiver<(usize, SeatMessage)>,
    steps: VecDeque<Step>,
    /// Directory through which seats of one server map each other's memory.
    run_directory: Option<PathBuf>,
    /// Claim on that directory, if only this rack uses it. It is dropped once all members have mapped their peers.
    claim: Option<Claim>,
    /// Bytes that a node may register with the fabric, for seats of submitted jobs, by member.
    memory_max_bytes: BTreeMap<usize, u64>,
}

/// Signals and ticks that wake a supervisor.
pub(crate) struct Alarms {
    signals: [Signal; 3],
    ticks: Interval,
    are_counted: bool,
}

impl Alarms {
    /// Sets up the signals and the ticks. Call it within a runtime.
    pub(crate) fn set() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::could_not_start("cannot listen to signals", error));
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hang_up] = kinds.map(listen);
        let signals = [interrupt?, terminate?, hang_up?];
        let mut ticks = interval(Duration::from_nanos(TICK_NS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { signals, ticks, are_counted: true })
    }

    /// Sets whether ticks are counted from now on. The first tick after a pause comes after a full interval.
    fn count(&mut self, are_counted: bool) {
        if are_counted && !self.are_counted {
            self.ticks.reset();
        }
        self.are_counted = are_counted;
    }
}

/// Returns a runtime without threads of its own.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::could_not_start("cannot start the supervisor", error))
}

impl Supervisor {
    /// Makes the wires, and starts no process. Call it before the first thread: the kernel refuses a
    /// namespace to a process with several threads.
    pub(crate) fn prepare(
        source: Source,
        plan: Plan,
        faults: Option<FaultScript>,
        logs: Logs,
        program: Program,
    ) -> Result<Self, Failure> {
        let here = Here::of(&plan, source.host.as_deref())?;
        let hosts = Hosts::open(&plan, &here, incarnation())?;
        let key_seed = key_seed(&plan, &here)?;
        let names = names::begin(&source, &plan, &program)?;
        let wiring = wires::prepare(&plan, &here)?;
        let ip = ip::prepare(&source, &plan);
        let members =
            plan.members.iter().map(|member| (member.name.clone(), member.role == MemberRole::Endpoint));
        let detection_ns = plan.timers.detection_ns();
        let mut rack = Rack::new(members, plan.settings.watchdog_ns, detection_ns + DETECTION_SLACK_NS);
        let nodes = (0..plan.endpoint_count()).flat_map(|node| {
            let processes = plan.processes_of(NodeId(node as u16));
            processes.map(move |process| (process.index(), node)).collect::<Vec<_>>()
        });
        rack.set_processes(nodes);
        rack.set_elsewhere(&here.elsewhere(&plan));
        if let Some(script) = &faults {
            rack.wait_for_lost(script.longest_pause_ns());
            rack.heal_after_job(healing_ns(&plan));
        }
        let (messages, received) = unbounded_channel();
        Ok(Self {
            plan,
            rack,
            clock: Clock::begin(),
            fault_names: faults.iter().flat_map(names_of).collect(),
            is_brief: false,
            faults,
            kept_faults: KeptFaults::default(),
            fault_lines: FaultLines::default(),
            active_faults: BTreeMap::new(),
            finished_at_ns: None,
            source,
            key_seed,
            program,
            logs,
            stays: false,
            wiring,
            here,
            hosts,
            ip,
            names,
            processes: Vec::new(),
            messages,
            received,
            steps: VecDeque::new(),
            run_directory: None,
            claim: None,
            memory_max_bytes: BTreeMap::new(),
        })
    }

    /// Lets seats of one server map each other's memory, through a private directory.
    pub(crate) fn share_in(&mut self, directory: &Path) {
        if self.plan.has_local_paths() {
            self.run_directory = Some(directory.to_owned());
        }
    }

    /// Lets seats of one server map each other's memory, through a directory that is removed once all have done so.
    pub(crate) fn share_in_claimed(&mut self, claim: Claim) {
        self.share_in(claim.path());
        self.claim = Some(claim);
    }

    /// Makes it a standing rack, with vacant seats.
    pub(crate) fn stay(&mut self, vacant: &[usize]) {
        self.stays = true;
        self.rack.stay(vacant);
    }

    /// Starts one process per member that is not vacant, then sends the first line to each. If one cannot be
    /// started, the others end with this function's error. Call it within a runtime, because processes and
    /// sockets register with it, but not from asynchronous code, because making cables blocks.
    pub(crate) fn fill_seats(&mut self) -> Result<(), Failure> {
        let mut grants = Vec::new();
        let vacant: Vec<_> = self.rack.seats.iter().map(|seat| seat.is_vacant()).collect();
        let mut edges = self.edges_of_members();
        for (member, seat) in self.rack.seats.iter_mut().enumerate() {
            let is_vacant = |node: NodeId| vacant[node.index()];
            let wires = self.wiring.seat_wires(&self.plan, NodeId(member as u16), &is_vacant);
            if seat.is_vacant() {
                // Its cables are made when a process takes the seat.
                self.processes.push(None);
                grants.push(None);
                continue;
            }
            let no_process = |error: std::io::Error| {
                start_failure(format!("cannot start a process for {}", seat.name), &error)
            };
            let log = self.logs.of_member(&seat.name)?;
            let process = Process::start(
                member,
                self.program.seat(),
                &wires.environment,
                page_of(self.stays, std::mem::take(&mut edges[member])),
                log,
                self.logs.level(),
                self.messages.clone(),
            )
            .map_err(no_process)?;
            (seat.pid, seat.taken_at_ns) = (process.pid, self.clock.now().0);
            self.processes.push(Some(process));
            grants.push(Some(wires.grant));
        }
        let pids = self.pids();
        self.wiring.connect(&self.plan, &pids)?;
        names::add_all(&mut self.names, &self.plan, &pids)?;
        for (member, grant) in grants.into_iter().enumerate() {
            if let (Some(process), Some(grant)) = (&self.processes[member], grant) {
                let status_page = process.page_descriptor;
                let start = Start { status_page, ..self.start_of(member, grant) };
                process.send(Order::Start(Box::new(start)));
            }
        }
        Ok(())
    }

    /// Advances the rack until its driver has something to handle. Cancel safe.
    ///
    /// Messages of seats come first, so that a supervisor that was stopped for a while handles all of them
    /// before it counts time.
    pub(crate) async fn next_milestone(&mut self, alarms: &mut Alarms) -> Milestone {
        loop {
            while let Some(step) = self.steps.pop_front() {
                if let Some(milestone) = self.perform(step) {
                    return milestone;
                }
            }
            let counts_time = self.hosts.is_some() || self.rack.counts_time();
            alarms.count(counts_time);
            let [interrupt, terminate, hang_up] = &mut alarms.signals;
            let steps = tokio::select! {
                biased;
                Some((member, what)) = self.received.recv() => match what {
                    SeatMessage::Notice(notice) => self.rack.handle_notice(member, notice),
                    SeatMessage::SuccessorDue => self.start_successor(member),
                    SeatMessage::Ended(how) => {
                        names::remove(&mut self.names, &self.rack.seats[member].name);
                        self.rack.ended(member, how)
                    }
                },
                _ = interrupt.recv() => self.rack.interrupted(),
                _ = terminate.recv() => self.rack.interrupted(),
                _ = hang_up.recv() => self.rack.interrupted(),
                _ = alarms.ticks.tick(), if counts_time => {
                    let hosts = self.hosts.as_mut();
                    let mut steps = hosts.map_or_else(Vec::new, |hosts| hosts.tick(&mut self.rack));
                    steps.extend(self.rack.tick());
                    steps
                }
            };
            self.steps.extend(steps);
        }
    }

    /// Interrupts the rack, as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        let steps = self.rack.interrupted();
        self.steps.extend(steps);
    }

    /// Takes a standing rack down, in order.
    pub(crate) fn take_down(&mut self) {
        let steps = self.rack.request_down(self.healing_before_end_ns());
        self.steps.extend(steps);
    }

    /// Returns the time for members of a standing rack to come to rest before they end. `None` if that cannot
    /// be judged, because programs hold seats or other hosts run members and continue their work, or if it
    /// takes too long for a user.
    fn healing_before_end_ns(&self) -> Option<u64> {
        let is_ours = |member: usize| self.processes[member].as_ref().is_some_and(|process| process.is_ours);
        let is_known = self.hosts.is_none() && self.rack.live().all(is_ours);
        let healing_ns = if self.fault_names.is_empty() { RESTING_SLACK_NS } else { healing_ns(&self.plan) };
        (is_known && healing_ns <= HEALING_BEFORE_END_MAX_NS).then_some(healing_ns)
    }

    /// Requests the status of every live seat, without paths if it is `brief`. Seats with a recent status page are not sent a request for a brief one. [`Milestone::StatusKnown`] follows in bounded time.
    pub(crate) fn request_status(&mut self, brief: bool) {
        self.is_brief = brief;
        let Self { rack, processes, clock, .. } = self;
        let mut words = Vec::new();
        let steps = rack.request_status(|member, earlier| {
            let page = processes[member].as_ref()?.page.as_ref().filter(|_| brief)?;
            page.look(clock, earlier, &mut words)
        });
        self.steps.extend(steps);
    }

    /// Grants a vacant seat, or one whose process died, to a process of this user.
    pub(crate) fn grant_seat(&mut self, member: usize, pid: u32) -> Result<SeatService, String> {
        let (start, wires) = self.cable(member, pid)?;
        let (process, service) = Process::elsewhere(member, pid, start, wires, self.messages.clone());
        self.seat(member, process);
        Ok(service)
    }

    /// Makes the cables for a process that takes a seat of the running rack, and sends the other ends to its
    /// neighbours.
    fn cable(&mut self, member: usize, pid: u32) -> Result<(Start, Vec<OwnedFd>), String> {
        let node = NodeId(member as u16);
        let pids = self.pids();
        let Takeover { grant, wires, neighbours } = self.wiring.takeover(&self.plan, node, pid, &pids)?;
        for (neighbour, cable, wires) in neighbours {
            if let Some(process) = &self.processes[neighbour] {
                process.send_with(Order::Plug(cable), wires);
            }
            self.wiring.wake(neighbour);
        }
        Ok((self.start_of(member, grant), wires))
    }

    /// Records that a process has taken a seat of the running rack.
    fn seat(&mut self, member: usize, process: Process) {
        let (pid, is_successor) = (process.pid, self.rack.seats[member].has_ended());
        self.processes[member] = Some(process);
        let seat = &self.rack.seats[member];
        // The process of a GPU node has no namespace of its own.
        if seat.process_of.is_none()
            && let Err(warning) = names::add(&mut self.names, &seat.name, pid)
        {
            self.steps.push_back(Step::Warn(warning));
        }
        self.rack.taken(member, pid, self.clock.now().0);
        self.announce(member, pid, is_successor);
        if let Some(process) = &self.processes[member] {
            let orders = self.kept_faults.orders_for(&self.plan, NodeId(member as u16));
            orders.for_each(|order| process.send(order));
        }
    }

    /// Injects faults. Returns the number of events, or the reason why they cannot be performed.
    pub(crate) fn inject(&mut self, text: &str, inline: bool) -> Result<usize, String> {
        if !self.rack.is_running() {
            return Err("the rack is not up".to_owned());
        }
        let script = FaultScript::parse(text, "the script", &self.plan).map_err(|error| match inline {
            // The user has written options and no script, so the error shows no line of one.
            true => without_positions(&error),
            false => error.to_string(),
        })?;
        if script.corrupts() && !self.plan.end_to_end_check() {
            return Err("the frames of this rack carry no check, so a flipped bit would not be detected: it needs `checks: always`".to_owned());
        }
        let is_live =
            |node: NodeId| self.processes[node.index()].is_some() && self.rack.seats[node.index()].is_alive();
        for event in &script.events {
            let senders: Vec<_> =
                event.fault.directions().iter().map(|direction| direction.sender(&self.plan)).collect();
            // A vacant seat sends no frames, so a fault of many links has an effect without it. A member of another host would need its supervisor.
            let elsewhere = senders.iter().find(|node| self.rack.seats[node.index()].is_elsewhere());
            let absent = if senders.iter().any(|node| is_live(*node)) { None } else { senders.first() };
            let absent = elsewhere.or(absent).copied();
            // Programs that start later get faults of queue pairs as well.
            let must_live = !matches!(event.fault, Fault::QueuePairs { .. }) || event.timing.for_ns.is_some();
            let struck = event.fault.members().iter().copied().find(|node| must_live && !is_live(*node));
            if let Some(node) = absent.or(struck) {
                let name = &self.rack.seats[node.index()].name;
                return Err(format!("{name} cannot perform a fault: no process on this host holds its seat"));
            }
        }
        let first = self.fault_names.len();
        self.kept_faults.keep(first, &script, &self.plan)?;
        self.fault_names.extend(names_of(&script));
        let text = text.to_owned();
        self.send_to_live(|| Order::Inject { first, text: text.clone() });
        Ok(script.events.len())
    }

    /// Ends all faults of the rack that are in effect or still to come. Deaths and revocations are not undone.
    pub(crate) fn end_faults(&mut self) {
        self.kept_faults.clear();
        self.send_to_live(|| Order::EndFaults);
    }

    /// Returns the process of each member; `None` for a seat without a process.
    fn pids(&self) -> Vec<Option<u32>> {
        self.rack.seats.iter().map(|seat| seat.is_alive().then_some(seat.pid)).collect()
    }

    /// Announces a new process to all other members: its neighbours watch it, and its peers map its memory.
    fn announce(&self, new_member: usize, process: u32, is_successor: bool) {
        for member in self.rack.live().filter(|member| *member != new_member) {
            if let Some(seat) = &self.processes[member] {
                seat.send(Order::Seated { member: new_member as u16, process, is_successor });
            }
            self.wiring.wake(member);
        }
    }

    /// Announces the free seats to the members that start: they wait for none of them.
    fn announce_free_seats(&self) {
        let seats = self.rack.seats.iter().enumerate();
        let free = seats.filter(|(_, seat)| !seat.is_alive() && !seat.is_elsewhere());
        let members: Vec<_> = free.map(|(member, _)| member as u16).collect();
        for member in self.rack.starting() {
            if let Some(seat) = &self.processes[member] {
                seat.send(Order::Free { members: members.clone() });
            }
            self.wiring.wake(member);
        }
    }

    /// Returns the links of each member, by port.
    fn edges_of_members(&self) -> Vec<Vec<u16>> {
        let graph = self.plan.graph();
        let members = 0..self.plan.members.len() as u16;
        members.map(|node| graph.ports(NodeId(node)).iter().map(|port| port.edge).collect()).collect()
    }

    /// Returns the start order of a seat.
    fn start_of(&self, member: usize, grant: rackloom_control::grant::Grant) -> Start {
        let process = |seat: &rack::Seat| (seat.is_alive() && seat.pid != 0).then_some(seat.pid);
        let processes = self.rack.seats.iter().map(process).collect();
        let seats = self.rack.seats.iter().enumerate();
        let vacant =
            seats.filter(|(other, seat)| *other != member && !seat.is_alive() && !seat.is_elsewhere());
        Start {
            source: self.source.clone(),
            member: member as u16,
            incarnation: incarnation(),
            key_seed: self.key_seed,
            origin_monotonic_ns: self.clock.origin_ns(),
            grant,
            server: self.run_directory.clone().map(|directory| SharedServer { directory }),
            processes,
            vacant: vacant.map(|(other, _)| other as u16).collect(),
            stays: self.stays,
            is_successor: self.rack.seats[member].has_ended(),
            memory_max_bytes: self
                .memory_max_bytes
                .get(&self.rack.seats[member].process_of.unwrap_or(member))
                .copied(),
            status_page: None,
        }
    }

    fn perform(&mut self, step: Step) -> Option<Milestone> {
        match step {
            Step::LinksUp => return Some(Milestone::LinksUp),
            Step::StatusKnown => return Some(Milestone::StatusKnown),
            Step::Happened(record) => return Some(Milestone::Happened(record)),
            Step::LogFailed(member) => return self.log_failed(member).map(Milestone::Warning),
            Step::Warn(warning) => return Some(Milestone::Warning(warning)),
            Step::Progress => return Some(Milestone::Progress(self.rack.progress())),
            Step::Over => return Some(Milestone::Over),
            Step::Fault(record) => {
                self.fault_lines.push(record.clone());
                self.note_active(&record);
                return Some(Milestone::Happened(record));
            }
            Step::SetOff(member, event) => {
                self.send_to(|other| other != member, || Order::SetOff { event });
            }
            Step::ResumeAfter(member, after_ns) => self.resume_after(member, after_ns),
            Step::StartSuccessorAfter(member, after_ns) => self.schedule_successor(member, after_ns),
            Step::AllMapped => self.claim = None,
            Step::RequestLeave(member) => self.send_to(|other| other == member, || Order::Leave),
            Step::CloseSocket(member) => self.close_socket(member),
            Step::SeatFreed => self.announce_free_seats(),
            Step::Left(member) => return Some(Milestone::Left(member)),
            Step::RequestWaiting => self.send_to_live(|| Order::SayWaiting),
            Step::RequestStatus => {
                let brief = self.is_brief;
                self.send_to(
                    |member| self.rack.seats[member].status.is_none(),
                    || Order::SayStatus { brief },
                );
            }
            Step::Heal => self.heal(),
            Step::JudgeRest => {
                if self.verdicts_at_rest().failures().is_empty() {
                    let steps = self.rack.is_at_rest();
                    self.steps.extend(steps);
                }
            }
            Step::RequestReports => self.send_to_live(|| Order::Report),
            Step::CloseSockets => {
                let live: Vec<_> = self.rack.live().collect();
                live.into_iter().for_each(|member| self.close_socket(member));
            }
            Step::Kill(members) => {
                members
                    .into_iter()
                    .filter_map(|member| self.processes[member].as_ref())
                    .for_each(Process::kill);
            }
        }
        None
    }

    /// Returns a warning that a log cannot be written, once for the whole rack. The report names all members.
    fn log_failed(&self, member: usize) -> Option<String> {
        let seats = &self.rack.seats;
        let is_first = seats.iter().filter(|seat| seat.log_error.is_some()).count() == 1;
        let what = seats[member].log_error.as_deref().filter(|_| is_first)?;
        Some(format!("cannot write the log of {}: {what}; the run continues", seats[member].name))
    }

    /// Adds a fault that begins to those in effect, or removes one that ends.
    fn note_active(&mut self, record: &EventRecord) {
        let field = |name: &str| record.fields.get(name).map_or("", String::as_str);
        let Ok(number) = field("event").parse() else { return };
        let key = (number, record.member.clone());
        if field("begins") == "true" {
            self.active_faults.insert(key, record.at_ns);
        } else {
            self.active_faults.remove(&key);
        }
    }

    /// Ends all faults after the job, and resumes stopped members.
    fn heal(&mut self) {
        self.finished_at_ns.get_or_insert(self.clock.now().0);
        let live: Vec<_> = self.rack.live().map(|member| member as u16).collect();
        if !self.fault_names.is_empty() {
            live.iter().for_each(|member| self.resume_after(usize::from(*member), 0));
        }
        self.send_to_live(|| Order::Heal { living: live.clone() });
    }

    /// Returns the verdicts about the state at rest, from the reports of the members.
    fn verdicts_at_rest(&self) -> Verdicts {
        let edges: Vec<_> = self.plan.links.iter().map(|link| link.edge).collect();
        let seats = &self.rack.seats;
        let is_dead = |node: NodeId| seats[node.index()].dies_by_script;
        let rests: Vec<_> =
            seats.iter().map(|seat| Some(seat.rest.clone()?.without_the_dead(is_dead))).collect();
        rest::judge(&edges, &rests, |node| self.plan.members[node.index()].name.clone())
    }

    fn close_socket(&mut self, member: usize) {
        if let Some(process) = &mut self.processes[member] {
            process.close();
        }
        self.wiring.wake(member);
    }

    /// Makes a member of a standing rack leave in order. [`Milestone::Left`] follows.
    pub(crate) fn take_out(&mut self, member: usize) {
        let steps = self.rack.request_leave(member);
        self.steps.extend(steps);
    }

    /// Limits the memory of a node, for processes that take its seat until [`Supervisor::vacate`].
    pub(crate) fn limit_memory(&mut self, member: usize, bytes: u64) {
        self.memory_max_bytes.insert(member, bytes);
    }

    /// Closes the socket of the process that holds this seat. The seat ends soon after.
    pub(crate) fn evict(&self, member: usize) {
        if let Some(process) = &self.processes[member] {
            process.kill();
        }
    }

    /// Makes the seat of a member vacant whose process has ended with its job.
    pub(crate) fn vacate(&mut self, member: usize) {
        self.memory_max_bytes.remove(&member);
        self.rack.vacate(member);
    }

    /// Resumes a stopped seat after a time, unless its process has ended by then.
    fn resume_after(&self, member: usize, after_ns: u64) {
        let Some(process) = &self.processes[member] else { return };
        process.resume_after(Duration::from_nanos(after_ns));
    }

    fn send_to_live(&self, order: impl Fn() -> Order) {
        self.send_to(|_| true, order);
    }

    fn send_to(&self, is_receiver: impl Fn(usize) -> bool, order: impl Fn() -> Order) {
        for member in self.rack.live().filter(|member| is_receiver(*member)) {
            if let Some(process) = &self.processes[member] {
                process.send(order());
            }
            self.wiring.wake(member);
        }
    }
}

/// Returns a status page for a member with these links, with its file; `None` in a rack that does not stay, or if the system refuses one. The seat is
/// sent requests then.
fn page_of(stays: bool, edges: Vec<u16>) -> Option<(SeatPage, OwnedFd)> {
    let page = stays.then(|| SeatPage::create(edges))?;
    page.inspect_err(|error| tracing::warn!(%error, "a seat has no status page")).ok()
}

/// Formats the mistakes without their positions.
fn without_positions(error: &rackloom_plan::PlanError) -> String {
    let lines = error.mistakes.iter().map(|mistake| format!("{}; hint: {}", mistake.message, mistake.hint));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the time for links, credits and grants to return, once all faults have ended. Grants that nothing uses return after one idle
/// interval, or two.
fn healing_ns(plan: &Plan) -> u64 {
    let of_grants_ns = plan.transport.grant_pool().map_or(0, |_| 2 * plan.transport.timeout_max_ns);
    2 * plan.timers.detection_ns() + plan.timers.hold_down_ns + of_grants_ns + HEALING_SLACK_NS
}

/// Returns the seed of the keys of the job's regions. On one host it is a secret of the run.
///
/// Supervisors of several hosts exchange no secret before their seats begin, so their seed follows from the
/// rack's key. Without a key it is the rack file's seed, which is no secret.
fn key_seed(plan: &Plan, here: &Here) -> Result<u64, Failure> {
    if here.host.is_none() {
        let mut secret = [0; 8];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
            Failure::could_not_start(
                "cannot get random bytes for keys of regions",
                std::io::Error::from(error),
            )
        })?;
        return Ok(u64::from_ne_bytes(secret));
    }
    let Some(path) = &plan.security.key_file else { return Ok(plan.settings.seed) };
    let key = RackKey::read(path).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(key.region_seed())
}

/// Returns a number that is larger for each later incarnation, also after a crash: wall time, with random low
/// bits.
fn incarnation() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 2];
    // The call may fail. Racks that start at different times differ in their incarnations without it.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::NONBLOCK);
    let nanoseconds = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds & !0xffff | u64::from(u16::from_ne_bytes(random))
}
