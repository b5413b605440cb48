//! The supervisor of a rack of processes: one process per member, and nothing but the control plane in this one.
//!
//! It makes the wires, starts the seats, waits, and joins their reports. It is never on the path of a frame and never reports a
//! death to a seat. While it is stopped, the rack continues; when it dies, the rack ends.
//!
//! A rack for one job ([`crate::run`]) and a standing rack ([`crate::standing`]) drive the same supervisor from one
//! [`Milestone`] to the next.

mod attendance;
mod bridged;
mod conclude;
mod conversation;
mod follow;
mod hosts;
mod joints;
mod logs;
mod named;
mod packet;
mod process;
pub(crate) mod rack;
mod starved;
mod takeover;
mod udp;
mod wiring;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rackloom::Clock;
use rackloom::seal::RackKey;
use rackloom_control::order::{Order, SharedServer, Start};
use rackloom_control::source::Source;
use rackloom_jobs::Verdicts;
use rackloom_jobs::report::{EventRecord, FaultLines};
use rackloom_jobs::rest;
use rackloom_plan::Plan;
use rackloom_plan::faults::FaultScript;
use rackloom_protocol::{MemberRole, NodeId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

pub(crate) use self::attendance::Attendance;
pub use self::conclude::Conclusion;
pub(crate) use self::logs::Logs;
pub use self::named::sweep_names;
pub use self::process::LOG_VARIABLE;

use self::conversation::Heard;
use self::hosts::Hosts;
use self::process::Process;
use self::rack::{Rack, Step, TICK_NS};
use self::takeover::{Takeover, takeover};
use self::wiring::Wiring;
use crate::machine::directory::Claim;
use crate::machine::here::Here;
use crate::machine::program::Program;
use crate::outcome::failure::Failure;
use crate::outcome::headway::Headway;

/// Time beyond that of the heartbeats for members to detect a death: scheduling and flooding.
const NAMING_SLACK_NS: u64 = 1_000_000_000;

/// Time beyond that of the links for links and credits to return, once all faults have ended.
const HEALING_SLACK_NS: u64 = 10_000_000_000;

/// What members of a rack to which nothing was done may take to say that they are at rest, and how long somebody who takes a rack down waits
/// for such things at the most.
const RESTING_SLACK_NS: u64 = 3_000_000_000;
const HEALING_BEFORE_END_MAX_NS: u64 = 15_000_000_000;

/// State of a rack on which the driver of a supervisor acts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// All links have been up.
    LinksUp,
    /// The answer to [`Supervisor::ask_status`] is in the rack.
    StatusKnown,
    /// A seat has reported an event.
    Happened(EventRecord),
    /// This member has left in order.
    Left(usize),
    /// The job has made progress.
    Further(Headway),
    /// Something is wrong that does not end the run.
    Warning(String),
    /// No process is left.
    Over,
}

/// A rack of processes, from the first one to the last.
pub(crate) struct Supervisor {
    pub(crate) plan: Plan,
    pub(crate) rack: Rack,
    pub(crate) clock: Clock,
    /// Fault script, which the seats play.
    faults: Option<FaultScript>,
    /// Lines of the seats about it.
    fault_lines: FaultLines,
    /// Events that have begun and have not ended, by number and member.
    pub(crate) active_faults: BTreeMap<(String, String), EventRecord>,
    /// Events of the script and of all that was injected.
    fault_events: usize,
    /// Time at which the job was over and all faults were ended; `None` before.
    finished_at_ns: Option<u64>,
    source: Source,
    key_seed: u64,
    program: Program,
    logs: Logs,
    stays: bool,
    wiring: Wiring,
    /// Whose share of the rack this is.
    pub(crate) here: Here,
    /// The other hosts, if there are any.
    hosts: Option<Hosts>,
    /// Names of the members' namespaces, if requested.
    names: Option<named::Named>,
    /// Processes by member; `None` for a vacant seat.
    processes: Vec<Option<Process>>,
    told: UnboundedSender<(usize, Heard)>,
    heard: UnboundedReceiver<(usize, Heard)>,
    steps: VecDeque<Step>,
    /// Directory through which seats of one server map each other's memory.
    run_directory: Option<PathBuf>,
    /// Claim on that directory, if only this rack uses it. It is dropped once all members have mapped their peers.
    claim: Option<Claim>,
}

/// Signals and ticks that wake a supervisor.
pub(crate) struct Alarms {
    signals: [Signal; 3],
    ticks: Interval,
    are_counted: bool,
}

impl Alarms {
    /// Needs a runtime.
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

    /// Sets whether ticks count from now on. The first tick after a pause is a whole one.
    fn count(&mut self, are_counted: bool) {
        if are_counted && !self.are_counted {
            self.ticks.reset();
        }
        self.are_counted = are_counted;
    }
}

/// The supervisor's own threads: none.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::could_not_start("cannot start the supervisor", error))
}

impl Supervisor {
    /// Wires, and no process yet. To be called before the first thread: a namespace of one's own is refused to a process
    /// that has several.
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
        let names = named::begin(&source, &plan, &program)?;
        let wiring = Wiring::prepare(&plan, &here)?;
        let members =
            plan.members.iter().map(|member| (member.name.clone(), member.role == MemberRole::Endpoint));
        let detection_ns = plan.timers.detection_ns();
        let mut rack = Rack::new(members, plan.watchdog_ns, detection_ns + NAMING_SLACK_NS);
        rack.leave_elsewhere(&here.elsewhere(&plan));
        if let Some(script) = &faults {
            rack.wait_for_the_lost(script.longest_pause_ns());
            rack.heal_afterwards(healing_ns(&plan));
        }
        let (told, heard) = unbounded_channel();
        Ok(Self {
            plan,
            rack,
            clock: Clock::begin(),
            fault_events: faults.as_ref().map_or(0, |script| script.events.len()),
            faults,
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
            names,
            processes: Vec::new(),
            told,
            heard,
            steps: VecDeque::new(),
            run_directory: None,
            claim: None,
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

    /// One process per member that is not vacant, then the first line to each. If one cannot be started, the others end
    /// with this function's error. To be called within a runtime, because processes and sockets register with it, but
    /// not from asynchronous code, because cables are laid here.
    pub(crate) fn fill_seats(&mut self) -> Result<(), Failure> {
        let mut grants = Vec::new();
        let vacant: Vec<_> = self.rack.seats.iter().map(|seat| seat.is_vacant).collect();
        for (member, seat) in self.rack.seats.iter_mut().enumerate() {
            let is_vacant = |node: NodeId| vacant[node.index()];
            let plugs = self.wiring.plugs(&self.plan, NodeId(member as u16), is_vacant);
            if seat.is_vacant {
                // Its cables are made when a process takes it.
                self.processes.push(None);
                grants.push(None);
                continue;
            }
            let no_process =
                |error| Failure::could_not_start(format!("cannot start a process for {}", seat.name), error);
            let log = self.logs.of_member(&seat.name)?;
            let process = Process::start(
                member,
                self.program.seat(),
                &plugs.place,
                log,
                self.logs.level(),
                self.told.clone(),
            )
            .map_err(no_process)?;
            (seat.pid, seat.taken_at_ns) = (process.pid, self.clock.now().0);
            self.processes.push(Some(process));
            grants.push(Some(plugs.grant));
        }
        let pids = self.pids();
        self.wiring.connect(&self.plan, &pids)?;
        named::give_all(&mut self.names, &self.plan, &pids)?;
        for (member, grant) in grants.into_iter().enumerate() {
            if let (Some(process), Some(grant)) = (&self.processes[member], grant) {
                process.say(Order::Start(Box::new(self.start_of(member, grant))));
            }
        }
        Ok(())
    }

    /// Drive the rack until there is something to act on. Dropping the future loses nothing.
    ///
    /// What seats have said goes first, so that a supervisor that was stopped for a while hears everything before it
    /// counts time.
    pub(crate) async fn next_milestone(&mut self, alarms: &mut Alarms) -> Milestone {
        loop {
            while let Some(step) = self.steps.pop_front() {
                if let Some(milestone) = self.take(step) {
                    return milestone;
                }
            }
            let counts_time = self.hosts.is_some() || self.rack.counts_time();
            alarms.count(counts_time);
            let [interrupt, terminate, hang_up] = &mut alarms.signals;
            let steps = tokio::select! {
                biased;
                Some((member, what)) = self.heard.recv() => match what {
                    Heard::Notice(notice) => self.rack.heard(member, notice),
                    Heard::Due => self.follow(member),
                    Heard::Ended(how) => {
                        named::take(&mut self.names, &self.rack.seats[member].name);
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
        let steps = self.rack.asked_down(self.healing_before_end_ns());
        self.steps.extend(steps);
    }

    /// How long members of a rack that stays may take to come to rest before they go. Nothing where nobody can say whether they are: programs
    /// have taken seats and go on with what they do, or other hosts do; or where the user would wait for it too long.
    fn healing_before_end_ns(&self) -> Option<u64> {
        let is_ours = |member: usize| self.processes[member].as_ref().is_some_and(|process| process.is_ours);
        let can_tell = self.hosts.is_none() && self.rack.living().all(is_ours);
        let healing_ns = if self.fault_events == 0 { RESTING_SLACK_NS } else { healing_ns(&self.plan) };
        (can_tell && healing_ns <= HEALING_BEFORE_END_MAX_NS).then_some(healing_ns)
    }

    /// Requests the status of every live seat. [`Milestone::StatusKnown`] follows in bounded time.
    pub(crate) fn ask_status(&mut self) {
        let steps = self.rack.asked_status();
        self.steps.extend(steps);
    }

    /// Gives a vacant seat, or one whose process died, to a process of this user.
    pub(crate) fn give_seat(&mut self, member: usize, pid: u32) -> Result<Attendance, String> {
        let (start, wires) = self.cable(member, pid)?;
        let (process, attendance) = Process::elsewhere(member, pid, start, wires, self.told.clone());
        self.seat(member, process);
        Ok(attendance)
    }

    /// Cables for who takes a seat while the rack runs. Its neighbours have got their ends afterwards.
    fn cable(&mut self, member: usize, pid: u32) -> Result<(Start, Vec<OwnedFd>), String> {
        let node = NodeId(member as u16);
        let pids = self.pids();
        let Takeover { grant, wires, neighbours } = takeover(&mut self.wiring, &self.plan, node, pid, &pids)?;
        for (neighbour, cable, wires) in neighbours {
            if let Some(process) = &self.processes[neighbour] {
                process.say_with(Order::Plug(cable), wires);
            }
            self.wiring.wake(neighbour);
        }
        Ok((self.start_of(member, grant), wires))
    }

    /// Records that a process has taken a seat of the running rack.
    fn seat(&mut self, member: usize, process: Process) {
        let (pid, is_successor) = (process.pid, self.rack.seats[member].ended);
        self.processes[member] = Some(process);
        if let Err(warning) = named::give_later(&mut self.names, &self.rack.seats[member].name, pid) {
            self.steps.push_back(Step::Warn(warning));
        }
        self.rack.taken(member, pid, self.clock.now().0);
        self.tell_of_the_new(member, pid, is_successor);
    }

    /// Injects faults. Returns the number of events, or the reason why they cannot be played.
    pub(crate) fn inject(&mut self, text: &str, inline: bool) -> Result<usize, String> {
        if !self.rack.is_running() {
            return Err("the rack is not up".to_owned());
        }
        let script = FaultScript::parse(text, "the script", &self.plan).map_err(|error| match inline {
            // The user has written no script, so no line of one is shown.
            true => without_places(&error),
            false => error.to_string(),
        })?;
        if script.corrupts() && !self.plan.end_to_end_check() {
            return Err("the frames of this rack carry no check, so nobody would notice a flipped bit: it needs `checks: always`".to_owned());
        }
        let senders =
            script.events.iter().flat_map(|event| event.fault.ways()).map(|way| way.sender(&self.plan));
        let struck = script.events.iter().flat_map(|event| event.fault.members()).copied();
        for node in senders.chain(struck) {
            let process = self.processes[node.index()].as_ref();
            if process.is_none() || !self.rack.seats[node.index()].is_alive() {
                let name = &self.rack.seats[node.index()].name;
                return Err(format!("{name} cannot play a fault: no process sits there on this host"));
            }
        }
        let first = self.fault_events;
        self.fault_events += script.events.len();
        let text = text.to_owned();
        self.say_to_living(|| Order::Inject { first, text: text.clone() });
        Ok(script.events.len())
    }

    /// Returns the process of each member; `None` for a seat without a process.
    fn pids(&self) -> Vec<Option<u32>> {
        self.rack.seats.iter().map(|seat| seat.is_alive().then_some(seat.pid)).collect()
    }

    /// Reports a new process to all other members: its neighbours watch it, and its peers map its memory.
    fn tell_of_the_new(&self, newcomer: usize, process: u32, is_successor: bool) {
        for member in self.rack.living().filter(|member| *member != newcomer) {
            if let Some(seat) = &self.processes[member] {
                seat.say(Order::Seated { member: newcomer as u16, process, is_successor });
            }
            self.wiring.wake(member);
        }
    }

    /// Returns the start order of a seat.
    fn start_of(&self, member: usize, grant: rackloom_control::grant::Grant) -> Start {
        let process = |seat: &rack::Seat| (seat.is_alive() && seat.pid != 0).then_some(seat.pid);
        let processes = self.rack.seats.iter().map(process).collect();
        let seats = self.rack.seats.iter().enumerate();
        let vacant = seats.filter(|(other, seat)| *other != member && !seat.is_alive() && !seat.is_elsewhere);
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
            is_successor: self.rack.seats[member].ended,
        }
    }

    fn take(&mut self, step: Step) -> Option<Milestone> {
        match step {
            Step::LinksUp => return Some(Milestone::LinksUp),
            Step::StatusKnown => return Some(Milestone::StatusKnown),
            Step::Happened(record) => return Some(Milestone::Happened(record)),
            Step::LogFailed(member) => return self.log_failed(member).map(Milestone::Warning),
            Step::Warn(warning) => return Some(Milestone::Warning(warning)),
            Step::Further => return Some(Milestone::Further(self.rack.headway())),
            Step::Over => return Some(Milestone::Over),
            Step::Fault(record) => {
                self.fault_lines.push(record.clone());
                self.note_active(&record);
                return Some(Milestone::Happened(record));
            }
            Step::SetOff(member, event) => {
                self.say_to_those(|other| other != member, || Order::SetOff { event });
            }
            Step::ResumeAfter(member, after_ns) => self.resume_after(member, after_ns),
            Step::FollowAfter(member, after_ns) => self.follow_after(member, after_ns),
            Step::AllMapped => self.claim = None,
            Step::AskLeave(member) => self.say_to_those(|other| other == member, || Order::Leave),
            Step::LetGo(member) => self.let_go(member),
            Step::Left(member) => return Some(Milestone::Left(member)),
            Step::AskWaiting => self.say_to_living(|| Order::SayWaiting),
            Step::AskStatus => self.say_to_living(|| Order::SayStatus),
            Step::Heal => self.heal(),
            Step::JudgeRest => {
                if self.verdicts_at_rest().failures().is_empty() {
                    let steps = self.rack.is_at_rest();
                    self.steps.extend(steps);
                }
            }
            Step::AskReports => self.say_to_living(|| Order::Report),
            Step::Release => {
                let living: Vec<_> = self.rack.living().collect();
                living.into_iter().for_each(|member| self.let_go(member));
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
        Some(format!("cannot write the log of {}: {what}; the run goes on", seats[member].name))
    }

    /// Adds a fault that begins to those in effect, or removes one that ends.
    fn note_active(&mut self, record: &EventRecord) {
        let field = |name: &str| record.fields.get(name).cloned().unwrap_or_default();
        let key = (field("event"), record.member.clone());
        if field("begins") == "true" {
            self.active_faults.insert(key, record.clone());
        } else {
            self.active_faults.remove(&key);
        }
    }

    /// Ends all faults after the job, and resumes stopped members.
    fn heal(&mut self) {
        self.finished_at_ns.get_or_insert(self.clock.now().0);
        let living: Vec<_> = self.rack.living().map(|member| member as u16).collect();
        if self.fault_events > 0 {
            living.iter().for_each(|member| self.resume_after(usize::from(*member), 0));
        }
        self.say_to_living(|| Order::Heal { living: living.clone() });
    }

    /// Returns the verdicts about the members at rest, from their reports.
    fn verdicts_at_rest(&self) -> Verdicts {
        let edges: Vec<_> = self.plan.links.iter().map(|link| link.edge).collect();
        let seats = &self.rack.seats;
        let is_dead = |node: NodeId| seats[node.index()].dies_by_script;
        let rests: Vec<_> =
            seats.iter().map(|seat| Some(seat.rest.clone()?.without_the_dead(is_dead))).collect();
        rest::judge(&edges, &rests, |node| self.plan.members[node.index()].name.clone())
    }

    fn let_go(&mut self, member: usize) {
        if let Some(process) = &mut self.processes[member] {
            process.close();
        }
        self.wiring.wake(member);
    }

    /// Makes a member of a standing rack leave in order. [`Milestone::Left`] follows.
    pub(crate) fn take_out(&mut self, member: usize) {
        let steps = self.rack.asked_leave(member);
        self.steps.extend(steps);
    }

    /// Resumes a seat that has stopped itself, unless its process has ended by then.
    fn resume_after(&self, member: usize, after_ns: u64) {
        let Some(process) = &self.processes[member] else { return };
        process.resume_after(Duration::from_nanos(after_ns));
    }

    fn say_to_living(&self, order: impl Fn() -> Order) {
        self.say_to_those(|_| true, order);
    }

    fn say_to_those(&self, is_meant: impl Fn(usize) -> bool, order: impl Fn() -> Order) {
        for member in self.rack.living().filter(|member| is_meant(*member)) {
            if let Some(process) = &self.processes[member] {
                process.say(order());
            }
            self.wiring.wake(member);
        }
    }
}

/// Returns the mistakes without their positions.
fn without_places(error: &rackloom_plan::PlanError) -> String {
    let said = error.mistakes.iter().map(|mistake| format!("{}; hint: {}", mistake.message, mistake.hint));
    said.collect::<Vec<_>>().join("\n")
}

/// Returns the time for links and credits to return, once all faults have ended.
fn healing_ns(plan: &Plan) -> u64 {
    2 * plan.timers.detection_ns() + plan.timers.hold_down_ns + HEALING_SLACK_NS
}

/// Returns the seed of the keys of the job's regions: a secret of the run on one host.
///
/// Supervisors of several hosts exchange no secret before their seats begin, so theirs follows from the rack's key. Without a key it
/// is the rack file's seed, which is no secret.
fn key_seed(plan: &Plan, here: &Here) -> Result<u64, Failure> {
    if here.host.is_none() {
        let mut secret = [0; 8];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
            Failure::could_not_start("cannot draw a secret for keys of regions", std::io::Error::from(error))
        })?;
        return Ok(u64::from_ne_bytes(secret));
    }
    let Some(path) = &plan.security.key_file else { return Ok(plan.seed) };
    let key = RackKey::read(path).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(key.region_seed())
}

/// Returns a number that is larger for each later incarnation, also after a crash: wall time, with random low bits.
fn incarnation() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut chance = [0; 2];
    // Without chance, two racks that start in one moment differ in their epochs all the same.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::NONBLOCK);
    let nanoseconds = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds & !0xffff | u64::from(u16::from_ne_bytes(chance))
}
