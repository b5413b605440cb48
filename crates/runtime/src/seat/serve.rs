//! Loop of a seat: it polls the member, the job and the control socket.
//!
//! The loop continues after the job: peers may still read this member's memory or send through it. It ends with the control socket.

use std::io;
use std::sync::Arc;

use rackloom::availability::own_waited_ns;
use rackloom::seat::FaultPlayer;
use rackloom::seat::wires::Cabling;
use rackloom::{Ports, Runtime};
use rackloom_control::grant::NewCable;
use rackloom_control::notice::{Notice, SeatStatus};
use rackloom_control::order::Order;
use rackloom_jobs::Seeds;
use rackloom_jobs::report::HostShortage;
use rackloom_jobs::rest::Rest;
use rackloom_plan::faults::{FaultAction, MemoryConditions};
use rackloom_protocol::{Event, Inspect, Instant, MemberRole, NodeId, PortId, Switch};

use super::afterwards::Afterwards;
use super::conduct::Notices;
use super::leave::{Leave, Next};
use super::observe::Observer;
use super::work::Work;
use crate::channel::seat::{Channel, Heard};
use crate::machine::interruption::Interruption;
use crate::machine::logging;
use crate::units;

/// A busy seat looks at its control socket this often, so that a look costs the data path nothing.
const CONTROL_INTERVAL_NS: u64 = 10_000_000;
/// After a sleep longer than this a seat looks at once: it may have been the supervisor who rang.
const NAP_NS: u64 = 1_000_000;
/// A seat without anything to do wakes this often for its control socket, where nobody can ring.
const IDLE_WAIT_NS: u64 = 20_000_000;
/// And this often where the supervisor rings after every order: only for the socket's end. Each wake of an idle seat costs a
/// switch of processes, and a rack may have dozens of them on one processor.
const RUNG_IDLE_WAIT_NS: u64 = 500_000_000;
/// Longest time that a report waits until peers have unmapped this seat's memory.
const LET_GO_PATIENCE_NS: u64 = 2_000_000_000;
/// Time between two polls meanwhile.
const LET_GO_INTERVAL_NS: u64 = 1_000_000;
/// Time between two reports of progress, which are made with a look at the control socket and only if there was any.
const PROGRESS_INTERVAL_NS: u64 = 250_000_000;

/// Member in the seat.
pub(super) enum Body {
    Endpoint(Box<Work>),
    Switch(Box<Runtime<Switch>>),
}

/// Seat that has opened everything and is ready to run.
pub(super) struct Seat {
    body: Body,
    observer: Observer,
    faults: FaultPlayer,
    events: Vec<Event>,
    control_due: Instant,
    progress_due: Instant,
    /// By port: who is at the other end.
    neighbours: Vec<NodeId>,
    /// Of the run's jobs.
    seeds: Seeds,
    /// The job's count when it was told last.
    progress: u64,
    /// When a change of that count was last seen, on the run's clock.
    progress_at: Instant,
    cabling: Cabling,
    /// True if events are reported at once.
    tells_events: bool,
    /// True once the supervisor has the notice that all peers are mapped.
    told_mapped: bool,
    /// True once the supervisor has the notice that the log cannot be written.
    told_log_error: bool,
    /// Deadline of a requested report.
    report_by: Option<Instant>,
    leave: Leave,
    /// The job is over everywhere, and everything is healed.
    afterwards: Option<Afterwards>,
}

impl Body {
    fn now(&self) -> Instant {
        match self {
            Self::Endpoint(work) => work.runtime.now(),
            Self::Switch(runtime) => runtime.now(),
        }
    }

    fn turn(&mut self, now: Instant, events: &mut Vec<Event>) -> (bool, Instant) {
        match self {
            Self::Endpoint(work) => work.turn(now, events),
            Self::Switch(runtime) => (runtime.turn(now, &mut |event| events.push(event)), Instant::NEVER),
        }
    }

    fn wait(&mut self, until: Instant) {
        match self {
            Self::Endpoint(work) => work.wait(until),
            Self::Switch(runtime) => runtime.wait(until),
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            Self::Endpoint(work) => work.finished,
            Self::Switch(_) => true,
        }
    }

    fn member(&self) -> &dyn Inspect {
        match self {
            Self::Endpoint(work) => work.runtime.member(),
            Self::Switch(runtime) => runtime.member(),
        }
    }

    fn timer_late_max_ns(&self) -> u64 {
        match self {
            Self::Endpoint(work) => work.runtime.timer_late_max_ns(),
            Self::Switch(runtime) => runtime.timer_late_max_ns(),
        }
    }

    /// Lets the member look at the processes of its neighbours before it calls them dead. `processes`: by place in the plan.
    pub(super) fn watch_processes(&mut self, neighbours: &[NodeId], processes: &[Option<u32>]) {
        for (port, neighbour) in neighbours.iter().enumerate() {
            self.watch_process(PortId(port as u16), processes.get(neighbour.index()).copied().flatten());
        }
    }

    fn watch_process(&mut self, port: PortId, process: Option<u32>) {
        match self {
            Self::Endpoint(work) => work.runtime.watch_process(port, process),
            Self::Switch(runtime) => runtime.watch_process(port, process),
        }
    }

    /// Processor time that this member and its neighbours waited for.
    fn shortage(&self) -> HostShortage {
        let seen = match self {
            Self::Endpoint(work) => work.runtime.shortage(),
            Self::Switch(runtime) => runtime.shortage(),
        };
        HostShortage {
            waited_ns: own_waited_ns().unwrap_or(0),
            neighbour_waited_max_ns: seen.excused_max_ns,
            deaths_put_off: seen.deaths_put_off,
        }
    }

    fn ports(&self) -> &Ports {
        match self {
            Self::Endpoint(work) => work.runtime.ports(),
            Self::Switch(runtime) => runtime.ports(),
        }
    }

    fn ports_mut(&mut self) -> &mut Ports {
        match self {
            Self::Endpoint(work) => work.runtime.ports_mut(),
            Self::Switch(runtime) => runtime.ports_mut(),
        }
    }

    fn waiting_for(&self) -> Vec<String> {
        let Self::Endpoint(work) = self else { return Vec::new() };
        let mut lines =
            if work.finished { Vec::new() } else { vec![format!("job: {}", work.job.waiting_for())] };
        lines.extend(work.runtime.member().waiting_for().into_iter().map(|line| format!("endpoint: {line}")));
        lines
    }
}

impl Seat {
    pub(super) fn new(
        body: Body,
        observer: Observer,
        faults: FaultPlayer,
        cabling: Cabling,
        tells_events: bool,
        neighbours: Vec<NodeId>,
        seeds: Seeds,
    ) -> Self {
        let (control_due, progress_due) = (Instant::ZERO, Instant::ZERO);
        Self {
            body,
            observer,
            faults,
            events: Vec::new(),
            control_due,
            progress_due,
            neighbours,
            seeds,
            progress: 0,
            progress_at: Instant::ZERO,
            cabling,
            tells_events,
            told_mapped: false,
            told_log_error: false,
            report_by: None,
            leave: Leave::default(),
            afterwards: None,
        }
    }

    /// Makes the seat leave on an interruption.
    pub(super) fn leaving_when(self, told: Option<Arc<Interruption>>) -> Self {
        Self { leave: Leave::when_asked(told), ..self }
    }

    pub(super) fn name(&self) -> &str {
        self.observer.name()
    }

    /// Live until the control socket ends.
    pub(super) fn serve(mut self, channel: &mut Channel) -> io::Result<()> {
        self.faults.prepare(self.body.ports_mut());
        if self.observer.is_lit() {
            // Every neighbour's seat is vacant.
            channel.say(&Notice::LinksUp)?;
        }
        loop {
            let now = self.body.now();
            let was_finished = self.body.is_finished();
            let (happened, wake_at) = self.body.turn(now, &mut self.events);
            if self.body.is_finished() && !was_finished {
                channel.say(&Notice::Finished)?;
            }
            let told = self.tell_events(now, channel)? | self.conduct(now, channel)?;
            if let (false, Body::Endpoint(work)) = (self.told_mapped, &self.body)
                && work.sharing.is_settled()
            {
                self.told_mapped = true;
                channel.say(&Notice::Mapped)?;
            }
            if now >= self.control_due && self.control(now, channel)? {
                return Ok(());
            }
            let look_again = match self.leave(now) {
                Next::Go => return Ok(()),
                Next::Wait(until) => until,
                Next::Stay | Next::Dismiss => Instant::NEVER,
            };
            let asked = self.ask_for_words(now);
            if let Some(until) = self.report_by
                && (now >= until || !self.awaits_importers())
            {
                self.report(now, channel)?;
            }
            if !happened && !told && !asked {
                let due = self.faults.next_due(now);
                self.body.wait(wake_at.min(now + self.idle_wait_ns()).min(due).min(look_again));
                if self.body.now().since(now) > NAP_NS {
                    self.control_due = Instant::ZERO;
                }
            }
        }
    }

    /// How long a seat without anything to do may go without a look at its control socket.
    fn idle_wait_ns(&self) -> u64 {
        match (self.report_by, self.cabling.doorbell()) {
            (Some(_), _) => LET_GO_INTERVAL_NS,
            (None, Some(_)) => RUNG_IDLE_WAIT_NS,
            (None, None) => IDLE_WAIT_NS,
        }
    }

    /// A step on the way out, if somebody has told the seat to go.
    fn leave(&mut self, now: Instant) -> Next {
        let Body::Endpoint(work) = &mut self.body else { return self.leave.advance(now, None) };
        let next = self.leave.advance(now, Some(work.runtime.member_mut()));
        if next == Next::Dismiss {
            work.dismiss();
        }
        next
    }

    /// Applies the fault script.
    fn conduct(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        match &mut self.body {
            Body::Endpoint(work) => {
                let job = &work.job;
                let actions = self.faults.play(
                    now,
                    work.runtime.ports_mut(),
                    || job.reached(),
                    &mut Notices(channel),
                )?;
                actions.iter().for_each(|action| work.obey(now, action, || self.faults.memory_faults()));
                Ok(!actions.is_empty())
            }
            Body::Switch(runtime) => {
                let actions = self.faults.play(now, runtime.ports_mut(), || None, &mut Notices(channel))?;
                Ok(!actions.is_empty())
            }
        }
    }

    /// Events to the observer and the job. Returns whether there were any: the job then deserves another turn.
    fn tell_events(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        let any = !self.events.is_empty();
        for event in self.events.drain(..) {
            if self.afterwards.as_mut().is_some_and(|afterwards| afterwards.hear(&event)) {
                continue;
            }
            self.faults.handle_event(now, &event);
            let seen = self.observer.see(now, &event);
            if seen.links_up {
                channel.say(&Notice::LinksUp)?;
            }
            if let (true, Some(record)) = (self.tells_events, seen.record) {
                channel.say_if_heard(&Notice::Happened(record))?;
            }
            if let Body::Endpoint(work) = &mut self.body {
                if let Event::NodeLost { node } = event
                    && work.runtime.member().config().graph.members.get(node.index())
                        == Some(&MemberRole::Endpoint)
                {
                    channel.say(&Notice::Lost { member: node.0 })?;
                }
                work.sharing.hear(now, &event);
                work.job.handle_event(now, &event);
            }
        }
        Ok(any)
    }

    /// A look at the control socket. Returns whether it has ended.
    fn control(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        self.control_due = now + CONTROL_INTERVAL_NS;
        self.tell_log_error(channel)?;
        if now >= self.progress_due {
            self.progress_due = now + PROGRESS_INTERVAL_NS;
            if let Body::Endpoint(work) = &self.body
                && work.job.progress_count() != self.progress
            {
                self.progress = work.job.progress_count();
                self.progress_at = now;
                let (count, portion) = (self.progress, work.job.portion());
                channel.say_if_heard(&Notice::Progress { count, portion })?;
            }
        }
        channel.flush()?;
        loop {
            match channel.hear::<Order>()? {
                Heard::Message(Order::SayWaiting) => {
                    let lines = self.waiting_lines();
                    channel.say(&Notice::Waiting { lines })?;
                }
                Heard::Message(Order::Inject { first, text }) => {
                    if let Err(error) = self.faults.inject(now, first, &text, self.body.ports_mut()) {
                        tracing::error!("cannot read what was injected: {error}");
                    }
                }
                Heard::Message(Order::SetOff { event }) => self.faults.handle_set_off(now, event),
                Heard::Message(Order::Heal { living }) => {
                    self.heal(now, &living);
                    channel.say(&Notice::Rested(self.rest()))?;
                }
                Heard::Message(Order::SayStatus) => channel.say(&Notice::Status(self.status()))?,
                Heard::Message(Order::Plug(cable)) => self.exchange(&cable, channel)?,
                Heard::Message(Order::Report) => {
                    self.report_by = Some(now + LET_GO_PATIENCE_NS);
                    if let Body::Endpoint(work) = &mut self.body {
                        work.dismiss();
                    }
                }
                Heard::Message(Order::Leave) => {
                    self.report_by = Some(now + LET_GO_PATIENCE_NS);
                    if let Body::Endpoint(work) = &mut self.body {
                        work.dismiss();
                        work.runtime.member_mut().begin_departure(now);
                    }
                }
                Heard::Message(Order::Seated { member, process, is_successor }) => {
                    self.watch_newcomer(NodeId(member), process);
                    if let (Body::Endpoint(work), false) = (&mut self.body, is_successor) {
                        work.sharing.seated(now, NodeId(member), process);
                    }
                }
                Heard::Message(Order::Unknown) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "an order that this version does not have",
                    ));
                }
                Heard::Message(Order::Start(_) | Order::Follow(_)) | Heard::Nothing => return Ok(false),
                Heard::End => return Ok(true),
            }
        }
    }

    /// Reports the first error of writing the log to the supervisor, once.
    fn tell_log_error(&mut self, channel: &mut Channel) -> io::Result<()> {
        let Some(what) = logging::first_error().filter(|_| !self.told_log_error) else { return Ok(()) };
        self.told_log_error = true;
        channel.say(&Notice::LogFailed { what: what.to_owned() })
    }

    /// Operations and peers that this member waits for, and since when its job has made no progress.
    fn waiting_lines(&self) -> Vec<String> {
        let lines = self.body.waiting_for();
        let lines = lines.iter().map(|line| self.observer.with_names(line));
        let since = (!self.body.is_finished())
            .then(|| format!("no progress of the job since {}", units::time(self.progress_at.0)));
        self.observer.unheard().map(str::to_owned).chain(since).chain(lines).collect()
    }

    /// Sets the process at the other end of the links to this member.
    fn watch_newcomer(&mut self, newcomer: NodeId, process: u32) {
        let ports = self.neighbours.iter().enumerate().filter(|(_, neighbour)| **neighbour == newcomer);
        ports.for_each(|(port, _)| self.body.watch_process(PortId(port as u16), Some(process)));
    }

    /// The job is over: what the script did ends, and what is told of the run is what happened until now.
    fn heal(&mut self, now: Instant, living: &[u16]) {
        if self.afterwards.is_some() {
            return;
        }
        let before = self.observer.report(now, self.body.member(), self.body.ports(), None, true);
        let had_faults = self.faults.heal(self.body.ports_mut());
        if let (Body::Endpoint(work), true) = (&mut self.body, had_faults) {
            let healed = FaultAction::Memory(MemoryConditions::default());
            work.obey(now, &healed, || self.faults.memory_faults());
        }
        let living: Vec<_> = living.iter().copied().map(NodeId).collect();
        let regions = if let Body::Endpoint(work) = &self.body { work.job.regions() } else { Vec::new() };
        let (plan, node) = (self.faults.plan(), self.observer.node());
        let afterwards = Afterwards::begin(plan, node, &living, self.seeds, &regions, before);
        self.afterwards = Some(afterwards);
        self.ask_for_words(now);
    }

    fn rest(&self) -> Rest {
        let rest = |afterwards: &Afterwards| afterwards.rest(self.body.member(), self.observer.edges());
        self.afterwards.as_ref().map(rest).unwrap_or_default()
    }

    /// Ask neighbours for a word, if that is what is done now. Returns whether a question has left.
    fn ask_for_words(&mut self, now: Instant) -> bool {
        match (&mut self.afterwards, &mut self.body) {
            (Some(afterwards), Body::Endpoint(work)) => afterwards.ask(now, work.runtime.member_mut()),
            _ => false,
        }
    }

    /// Somebody else sits at the other end of a link now. Without a cable the port stays dark, and this seat lives on.
    fn exchange(&mut self, cable: &NewCable, channel: &mut Channel) -> io::Result<()> {
        let wires = channel.take_descriptors(cable.descriptors()).ok_or(io::ErrorKind::InvalidData)?;
        let conditions = self.faults.conditions(cable.port());
        if let Err(why) = self.cabling.exchange_under(cable, wires, conditions) {
            tracing::error!("{why}");
        }
        Ok(())
    }

    /// Whether a peer may still let go of this seat's memory.
    fn awaits_importers(&self) -> bool {
        matches!(&self.body, Body::Endpoint(work) if work.awaits_importers())
    }

    fn status(&mut self) -> SeatStatus {
        let mut status = SeatStatus {
            links_up: self.observer.links_up() as u16,
            links_down: self.observer.links_down(),
            finished: self.body.is_finished(),
            at_ns: self.body.now().0,
            ports: self.observer.ports(self.body.member(), self.body.ports()),
            ..SeatStatus::default()
        };
        if let Body::Endpoint(work) = &mut self.body {
            status.memory = Some(Box::new(work.memory()));
            status.verdict = work.verdict();
            status.paths = work.paths();
            status.carried = work.sharing.report();
        }
        status
    }

    fn report(&mut self, now: Instant, channel: &mut Channel) -> io::Result<()> {
        self.report_by = None;
        self.tell_log_error(channel)?;
        let job = match &mut self.body {
            Body::Endpoint(work) => Some(work.result()),
            Body::Switch(_) => None,
        };
        let mut report =
            self.observer.report(now, self.body.member(), self.body.ports(), job, self.body.is_finished());
        report.timer_late_max_ns = self.body.timer_late_max_ns();
        report.shortage = self.body.shortage();
        if !self.body.is_finished() {
            report.waiting = self.waiting_lines();
        }
        if let Some(afterwards) = self.afterwards.take() {
            afterwards.keep_what_was(&mut report);
        }
        channel.say(&Notice::Report(Box::new(report)))
    }
}
