//! `rackloom run`: one process per member, and nothing but the control plane in this one.
//!
//! The supervisor makes the wires, starts the seats, waits, and joins their reports. It is never on the path of a frame
//! and never tells a seat that another one died. While it is stopped, the rack goes on; when it dies, the rack ends.

mod process;
mod rack;
mod wiring;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rackloom::Clock;
use rackloom_jobs::report::{MemberReport, MemberState, Report};
use rackloom_plan::Plan;
use rackloom_protocol::{MemberRole, NodeId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use self::process::{Heard, Process};
use self::rack::{Ending, Rack, Step, TICK_NS};
use self::wiring::Wiring;
use crate::arguments::RunArguments;
use crate::control::{Order, Start};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::present;
use crate::reporting::{self, Findings};
use crate::source::Source;

/// Run a rack as processes.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let source = Source::read(&arguments.file, &arguments.overrides, arguments.wire)?;
    let plan = source.plan()?;
    // Before the first thread: a namespace of one's own is refused to a process that has several.
    let wiring = Wiring::prepare(&plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::could_not_start("cannot start the supervisor", error))?;
    let (told, heard) = unbounded_channel();
    let mut supervisor = Supervisor::new(&plan, wiring, arguments);
    {
        // Processes and sockets register with the runtime, but cables are laid outside of it.
        let _within = runtime.enter();
        supervisor.fill_seats(&source, &told)?;
    }
    let (rack, elapsed_ns) = runtime.block_on(supervisor.supervise(heard))?;
    conclude(&plan, rack, elapsed_ns, arguments)
}

struct Supervisor<'a> {
    plan: &'a Plan,
    arguments: &'a RunArguments,
    wiring: Wiring,
    rack: Rack,
    processes: Vec<Process>,
    clock: Clock,
}

impl<'a> Supervisor<'a> {
    fn new(plan: &'a Plan, wiring: Wiring, arguments: &'a RunArguments) -> Self {
        let members =
            plan.members.iter().map(|member| (member.name.clone(), member.role == MemberRole::Endpoint));
        let rack = Rack::new(members, plan.watchdog_ns);
        Self { plan, arguments, wiring, rack, processes: Vec::new(), clock: Clock::begin() }
    }

    /// From the first process to the last. Returns what is known then, and how long it took.
    async fn supervise(
        mut self,
        mut heard: UnboundedReceiver<(usize, Heard)>,
    ) -> Result<(Rack, u64), Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::could_not_start("cannot listen to signals", error));
        let mut signals = [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?];
        let mut ticks = interval(Duration::from_nanos(TICK_NS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let steps = self.next_steps(&mut heard, &mut signals, &mut ticks).await;
            for step in steps {
                if step == Step::Over {
                    let elapsed_ns = self.clock.now().0;
                    return Ok((self.rack, elapsed_ns));
                }
                self.take(step)?;
            }
        }
    }

    /// Wait for something to happen. What seats have said goes first, so that a supervisor that was stopped for a while
    /// hears everything before it counts time.
    async fn next_steps(
        &mut self,
        heard: &mut UnboundedReceiver<(usize, Heard)>,
        [interrupt, terminate]: &mut [Signal; 2],
        ticks: &mut tokio::time::Interval,
    ) -> Vec<Step> {
        tokio::select! {
            biased;
            Some((member, what)) = heard.recv() => match what {
                Heard::Notice(notice) => self.rack.heard(member, notice),
                Heard::Ended(how) => self.rack.ended(member, how),
            },
            _ = interrupt.recv() => self.rack.interrupted(),
            _ = terminate.recv() => self.rack.interrupted(),
            _ = ticks.tick() => self.rack.tick(),
        }
    }

    /// One process per member, then the first line to each. If one cannot be started, the others end with this
    /// function's error.
    fn fill_seats(&mut self, source: &Source, told: &UnboundedSender<(usize, Heard)>) -> Result<(), Failure> {
        let mut grants = Vec::new();
        for (member, seat) in self.rack.seats.iter_mut().enumerate() {
            let plugs = self.wiring.plugs(self.plan, NodeId(member as u16));
            let process = Process::start(member, &plugs, told.clone()).map_err(|error| {
                Failure::could_not_start(format!("cannot start a process for {}", seat.name), error)
            })?;
            seat.pid = process.pid;
            self.processes.push(process);
            grants.push(plugs.grant);
        }
        let pids: Vec<_> = self.processes.iter().map(|process| process.pid).collect();
        self.wiring.connect(self.plan, &pids)?;
        for (member, (process, grant)) in self.processes.iter().zip(grants).enumerate() {
            process.say(Order::Start(Box::new(Start {
                source: source.clone(),
                member: member as u16,
                incarnation: incarnation(),
                origin_monotonic_ns: self.clock.origin_ns(),
                grant,
            })));
        }
        Ok(())
    }

    fn take(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::LinksUp => self.announce()?,
            Step::AskWaiting => self.say_to_living(|| Order::SayWaiting),
            Step::AskReports => self.say_to_living(|| Order::Report),
            Step::Release => {
                for member in self.rack.living() {
                    self.processes[member].close();
                    self.wiring.wake(member);
                }
            }
            Step::Kill(members) => members.into_iter().for_each(|member| self.processes[member].kill()),
            Step::Over => {}
        }
        Ok(())
    }

    fn say_to_living(&self, order: impl Fn() -> Order) {
        for member in self.rack.living() {
            self.processes[member].say(order());
            self.wiring.wake(member);
        }
    }

    /// All links are up: who is who, for people and for scripts.
    fn announce(&self) -> Result<(), Failure> {
        let pids: Vec<u32> = self.rack.seats.iter().map(|seat| seat.pid).collect();
        let took = present::units::time(self.clock.now().0);
        let table = present::members(self.plan, Some(&pids));
        let links = self.plan.links.len();
        reporting::say(&self.arguments.output, &format!("{table}\n\n{links} links up after {took}\n"))?;
        match &self.arguments.pids {
            Some(path) => write_pids(path, self.plan, &pids, self.clock.origin_ns()).map_err(|error| {
                Failure::could_not_start("cannot write the process ids", error).at_path(path)
            }),
            None => Ok(()),
        }
    }
}

/// A later life has a larger number, also after a crash that left no record: wall time, and chance below it.
fn incarnation() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut chance = [0; 2];
    // Without chance, two racks that start in one moment differ in their epochs all the same.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::NONBLOCK);
    let nanoseconds = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds & !0xffff | u64::from(u16::from_ne_bytes(chance))
}

/// Written beside and renamed, so that whoever waits for the file finds it whole.
fn write_pids(path: &Path, plan: &Plan, pids: &[u32], origin_monotonic_ns: u64) -> io::Result<()> {
    let members: Vec<_> = plan
        .members
        .iter()
        .zip(pids)
        .map(|(member, pid)| serde_json::json!({"name": member.name, "pid": pid}))
        .collect();
    let text =
        serde_json::json!({"origin_monotonic_ns": origin_monotonic_ns, "members": members}).to_string();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = std::fs::File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&beside, path)
}

/// Join the reports, print, and say how it went.
fn conclude(plan: &Plan, rack: Rack, elapsed_ns: u64, arguments: &RunArguments) -> Result<Exit, Failure> {
    let ending = rack.ending.clone().unwrap_or(Ending::Complete);
    if let Ending::CouldNotStart(what) = ending {
        return Err(Failure::new(Exit::CouldNotStart, what));
    }
    let node_lost = rack.seats.iter().any(|seat| seat.is_endpoint && seat.death.is_some());
    let mut failures = Vec::new();
    if ending == Ending::Interrupted {
        failures.push("interrupted".to_owned());
    }
    if ending == Ending::Stalled {
        failures.push(format!("no progress for {}", present::units::time(plan.watchdog_ns)));
        for seat in &rack.seats {
            let lines = seat.waiting.as_deref().unwrap_or(&[]);
            failures.extend(lines.iter().map(|line| format!("{} waits: {line}", seat.name)));
        }
    }
    let members: Vec<_> = rack.seats.into_iter().map(member_report).collect();
    let findings = Findings { failures, elapsed_ns, wire: plan.wire.name(), clock: "wall", trace_hash: None };
    let report = Report::assemble(reporting::context(plan, findings), &members);
    reporting::deliver(&report, &arguments.output)?;
    Ok(match ending {
        Ending::Interrupted => Exit::Interrupted,
        Ending::Stalled => Exit::Stalled,
        _ if node_lost => Exit::NodeLost,
        _ => reporting::exit_of(&report),
    })
}

/// What a seat said, or what can be said about a dead one.
fn member_report(seat: rack::Seat) -> MemberReport {
    let state = match &seat.death {
        None => MemberState::Lost,
        Some(how) if how.starts_with("killed") => MemberState::Killed,
        Some(_) => MemberState::Exited,
    };
    let mut report = seat.report.unwrap_or_else(|| MemberReport::silent(seat.name, Some(seat.pid), state));
    report.pid = Some(seat.pid);
    report
}
