//! Loop of a seat. It polls the member, the job and the control socket.
//!
//! The loop continues after the job: peers may still read this member's memory or send through it. It ends
//! when the control socket is closed.

use std::io;
use std::sync::Arc;

use rackloom::availability::own_waited_ns;
use rackloom::clock::process_time_ns;
use rackloom::seat::FaultPlayer;
use rackloom::seat::report::{injected_faults, port_figures};
use rackloom::seat::wires::Cabling;
use rackloom::{Ports, Runtime};
use rackloom_control::grant::NewCable;
use rackloom_control::notice::{Notice, SeatStatus};
use rackloom_control::order::Order;
use rackloom_control::recorder::{MemberSeries, Recorder};
use rackloom_jobs::Seeds;
use rackloom_jobs::report::HostShortage;
use rackloom_jobs::rest::Rest;
use rackloom_plan::faults::{FaultAction, MemoryConditions};
use rackloom_protocol::{Event, Inspect, Instant, MemberRole, NodeId, PortId, Switch};

use super::fault_notices::Notices;
use super::ip::IpPort;
use super::leave::{Leave, Next};
use super::observe::Observer;
use super::program::SeatProgram;
use super::publisher::Publisher;
use super::rest_check::RestCheck;
use super::work::Work;
use crate::channel::seat::{Channel, Received};
use crate::machine::interruption::Interruption;
use crate::machine::logging;
use crate::units;

/// Time between two polls of the control socket by a busy seat. The poll is rare, so that it costs the data
/// path nothing.
const CONTROL_INTERVAL_NS: u64 = 10_000_000;
/// Sleep after which a seat polls the control socket at once. The supervisor may have rung the doorbell.
const LONG_SLEEP_NS: u64 = 1_000_000;
/// Longest sleep of an idle seat without a doorbell. It wakes to poll the control socket.
const IDLE_WAIT_NS: u64 = 20_000_000;
/// Longest sleep of an idle seat with a doorbell. The supervisor rings after each order, so the seat wakes
/// only to see the end of the socket. Each wake costs a context switch, and a rack may have dozens of idle
/// seats on one processor.
const IDLE_WAIT_WITH_DOORBELL_NS: u64 = 500_000_000;
/// Longest time that a report waits until peers have unmapped this seat's memory.
const UNMAP_TIMEOUT_NS: u64 = 2_000_000_000;
/// Time between two polls meanwhile.
const UNMAP_INTERVAL_NS: u64 = 1_000_000;
/// Time between two progress notices. They are sent with a poll of the control socket, and only after
/// progress.
const PROGRESS_INTERVAL_NS: u64 = 250_000_000;

/// Member in the seat.
pub(super) enum Body {
    Endpoint(Box<Work>),
    Switch(Box<Runtime<Switch>>),
}

/// Seat with open wires and registered memory, ready to run.
pub(super) struct Seat {
    body: Body,
    observer: Observer,
    faults: FaultPlayer,
    events: Vec<Event>,
    control_due: Instant,
    progress_due: Instant,
    /// Member at the other end of each port.
    neighbours: Vec<NodeId>,
    /// Seeds of the run's jobs.
    seeds: Seeds,
    /// Progress count of the last notice.
    progress: u64,
    /// Time of the last change of that count.
    progress_at: Instant,
    cabling: Cabling,
    /// True if events are sent to the supervisor at once.
    sends_events: bool,
    /// True once the supervisor has the notice that all peers are mapped.
    sent_mapped: bool,
    /// True once the supervisor has the notice that the log cannot be written.
    sent_log_error: bool,
    /// Deadline of a requested report.
    report_by: Option<Instant>,
    leave: Leave,
    /// Program that holds the seat, if this process is its agent.
    program: Option<Arc<SeatProgram>>,
    /// Recorder of time series, if the run records them.
    recorder: Option<Box<Recorder>>,
    /// Writer of the status page, if the seat has one.
    publisher: Option<Publisher>,
    /// Reads after the end of the job. Present once the supervisor has sent the order `heal`.
    rest_check: Option<RestCheck>,
}

impl Body {
    fn now(&self) -> Instant {
        match self {
            Self::Endpoint(work) => work.runtime.now(),
            Self::Switch(runtime) => runtime.now(),
        }
    }

    fn poll(&mut self, now: Instant, events: &mut Vec<Event>) -> (bool, Instant) {
        match self {
            Self::Endpoint(work) => work.poll(now, events),
            Self::Switch(runtime) => (runtime.poll(now, &mut |event| events.push(event)), Instant::NEVER),
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

    /// Records what has changed since the last sample.
    fn sample(&mut self, now: Instant, recorder: &mut Recorder) {
        self.note_injected(recorder);
        match self {
            Self::Endpoint(work) => {
                recorder.sample(now, work.runtime.member(), || work.job.take_recent());
            }
            Self::Switch(runtime) => recorder.sample(now, runtime.member(), || None),
        }
    }

    /// Returns the time series until now.
    fn series(&mut self, now: Instant, mut recorder: Recorder) -> MemberSeries {
        self.note_injected(&mut recorder);
        match self {
            Self::Endpoint(work) => recorder.finish(now, work.runtime.member(), || work.job.take_recent()),
            Self::Switch(runtime) => recorder.finish(now, runtime.member(), || None),
        }
    }

    /// Passes the numbers of frames that injected faults of the ports have dropped to the recorder.
    fn note_injected(&self, recorder: &mut Recorder) {
        for port in (0..self.member().port_count()).map(|port| PortId(port as u16)) {
            recorder.set_injected(port, injected_faults(&self.ports().counters(port)).dropped);
        }
    }

    fn timer_late_max_ns(&self) -> u64 {
        match self {
            Self::Endpoint(work) => work.runtime.timer_late_max_ns(),
            Self::Switch(runtime) => runtime.timer_late_max_ns(),
        }
    }

    /// Sets the processes of the neighbours. The member checks them before it reports a neighbour dead.
    /// `processes`: by member of the plan.
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

    fn handle_new_cable(&mut self, port: PortId) {
        match self {
            Self::Endpoint(work) => work.runtime.handle_new_cable(port),
            Self::Switch(runtime) => runtime.handle_new_cable(port),
        }
    }

    /// Returns the processor time that this member and its neighbours waited for.
    fn shortage(&self) -> HostShortage {
        let seen = match self {
            Self::Endpoint(work) => work.runtime.shortage(),
            Self::Switch(runtime) => runtime.shortage(),
        };
        HostShortage {
            waited_ns: own_waited_ns().unwrap_or(0),
            neighbour_waited_max_ns: seen.extension_max_ns,
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
        sends_events: bool,
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
            sends_events,
            sent_mapped: false,
            sent_log_error: false,
            report_by: None,
            leave: Leave::default(),
            program: None,
            recorder: None,
            publisher: None,
            rest_check: None,
        }
    }

    /// Sets the interruption on which the seat leaves, and its program. Without them it never leaves by itself.
    pub(super) fn held_by(
        mut self,
        interruption: Option<Arc<Interruption>>,
        program: Option<Arc<SeatProgram>>,
    ) -> Self {
        if let Some(program) = &program {
            self.faults.set_program(program.process());
        }
        Self { leave: Leave::when_interrupted(interruption), program, ..self }
    }

    /// Sets the recorder of time series.
    pub(super) fn recorded_by(self, recorder: Option<Recorder>) -> Self {
        Self { recorder: recorder.map(Box::new), ..self }
    }

    /// Sets the writer of the status page.
    pub(super) fn published_by(self, publisher: Option<Publisher>) -> Self {
        Self { publisher, ..self }
    }

    pub(super) fn name(&self) -> &str {
        self.observer.name()
    }

    /// Runs the loop until the control socket is closed or the seat has left.
    pub(super) fn serve(mut self, channel: &mut Channel) -> io::Result<()> {
        self.faults.prepare(self.body.ports_mut());
        if self.observer.is_up() {
            // Every neighbour's seat is vacant.
            channel.send(&Notice::LinksUp)?;
        }
        loop {
            if let Some(program) = &self.program {
                program.wait_while_stopped();
            }
            let now = self.body.now();
            if let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_due(now)) {
                self.body.sample(now, recorder);
            }
            let was_finished = self.body.is_finished();
            let (happened, wake_at) = self.body.poll(now, &mut self.events);
            if self.body.is_finished() && !was_finished {
                channel.send(&Notice::Finished)?;
            }
            let had_events = self.handle_events(now, channel)? | self.play_faults(now, channel)?;
            if let (false, Body::Endpoint(work)) = (self.sent_mapped, &self.body)
                && work.sharing.is_settled()
            {
                self.sent_mapped = true;
                channel.send(&Notice::Mapped)?;
            }
            if now >= self.control_due && self.control(now, channel)? {
                return Ok(());
            }
            let leave_due = match self.leave(now) {
                Next::End => return Ok(()),
                Next::Wait(until) => until,
                Next::Stay | Next::EndJob => Instant::NEVER,
            };
            let has_read = self.read_neighbours(now);
            if let Some(until) = self.report_by
                && (now >= until || !self.awaits_importers())
            {
                self.report(now, channel)?;
            }
            if self.publisher.as_mut().is_some_and(|publisher| publisher.is_due(now)) {
                self.publish(now);
            }
            if !happened && !had_events && !has_read {
                let due = self.faults.next_due(now);
                let until = wake_at.min(now + self.idle_wait_ns()).min(due).min(leave_due);
                if self.publisher.as_ref().is_some_and(|publisher| publisher.precedes_sleep(now, until)) {
                    self.publish(now);
                }
                self.body.wait(until);
                if self.body.now().since(now) > LONG_SLEEP_NS {
                    self.control_due = Instant::ZERO;
                }
            }
        }
    }

    /// Returns the longest sleep of this seat when it has nothing to do.
    fn idle_wait_ns(&self) -> u64 {
        match (self.report_by, self.cabling.doorbell()) {
            (Some(_), _) => UNMAP_INTERVAL_NS,
            (None, Some(_)) => IDLE_WAIT_WITH_DOORBELL_NS,
            (None, None) => IDLE_WAIT_NS,
        }
    }

    /// Performs a step of the departure, if the seat leaves.
    fn leave(&mut self, now: Instant) -> Next {
        let Body::Endpoint(work) = &mut self.body else { return self.leave.advance(now, None) };
        let next = self.leave.advance(now, Some(work.runtime.member_mut()));
        if next == Next::EndJob {
            work.end_job();
        }
        next
    }

    /// Performs the due actions of the fault script. Returns true if there were any.
    fn play_faults(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        match &mut self.body {
            Body::Endpoint(work) => {
                let job = &work.job;
                let actions = self.faults.play(
                    now,
                    work.runtime.ports_mut(),
                    || job.reached(),
                    &mut Notices(channel),
                )?;
                actions
                    .iter()
                    .for_each(|action| work.apply_fault(now, action, || self.faults.memory_faults()));
                Ok(!actions.is_empty())
            }
            Body::Switch(runtime) => {
                let actions = self.faults.play(now, runtime.ports_mut(), || None, &mut Notices(channel))?;
                Ok(!actions.is_empty())
            }
        }
    }

    /// Passes events to the observer and the job. Returns true if there were any: the job must then be polled
    /// again.
    fn handle_events(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        let any = !self.events.is_empty();
        for event in self.events.drain(..) {
            if self.rest_check.as_mut().is_some_and(|check| check.handle_event(&event)) {
                continue;
            }
            if let Body::Endpoint(work) = &mut self.body
                && work.ip.as_mut().is_some_and(|ip| ip.handle_event(&event))
            {
                continue;
            }
            self.faults.handle_event(now, &event);
            let seen = self.observer.see(now, &event);
            if seen.links_up {
                channel.send(&Notice::LinksUp)?;
            }
            if let (true, Some(record)) = (self.sends_events, seen.record) {
                channel.try_send(&Notice::Happened(record))?;
            }
            if let Body::Endpoint(work) = &mut self.body {
                if let Event::NodeLost { node } = event
                    && work.runtime.member().config().graph.members.get(node.index())
                        == Some(&MemberRole::Endpoint)
                {
                    channel.send(&Notice::Lost { member: node.0 })?;
                }
                work.sharing.handle_event(now, &event);
                work.handle_event(now, &event);
            }
        }
        Ok(any)
    }

    /// Polls the control socket. Returns true if it is closed.
    fn control(&mut self, now: Instant, channel: &mut Channel) -> io::Result<bool> {
        self.control_due = now + CONTROL_INTERVAL_NS;
        self.report_log_error(channel)?;
        if now >= self.progress_due {
            self.progress_due = now + PROGRESS_INTERVAL_NS;
            if let Body::Endpoint(work) = &self.body
                && work.job.progress_count() != self.progress
            {
                self.progress = work.job.progress_count();
                self.progress_at = now;
                let (count, portion) = (self.progress, work.job.portion());
                channel.try_send(&Notice::Progress { count, portion })?;
            }
        }
        channel.flush()?;
        loop {
            match channel.receive::<Order>()? {
                Received::Message(Order::SayWaiting) => {
                    let lines = self.waiting_lines();
                    channel.send(&Notice::Waiting { lines })?;
                }
                Received::Message(Order::Inject { first, text }) => {
                    if let Err(error) = self.faults.inject(now, first, &text, self.body.ports_mut()) {
                        tracing::error!("cannot read the injected script: {error}");
                    }
                }
                Received::Message(Order::EndFaults) => self.faults.end_faults(now),
                Received::Message(Order::SetOff { event }) => self.faults.handle_set_off(now, event),
                Received::Message(Order::Heal { living }) => {
                    self.heal(now, &living);
                    channel.send(&Notice::Rested(self.rest()))?;
                }
                Received::Message(Order::SayStatus { brief }) => {
                    tracing::debug!(brief, "status requested");
                    channel.send(&Notice::Status(self.status(brief)))?;
                }
                Received::Message(Order::Plug(cable)) => self.replace_cable(&cable, channel)?,
                Received::Message(Order::Report) => {
                    self.report_by = Some(now + UNMAP_TIMEOUT_NS);
                    if let Body::Endpoint(work) = &mut self.body {
                        work.end_job();
                    }
                }
                Received::Message(Order::Leave) => {
                    self.report_by = Some(now + UNMAP_TIMEOUT_NS);
                    if let Body::Endpoint(work) = &mut self.body {
                        work.end_job();
                        work.runtime.member_mut().begin_departure(now);
                    }
                }
                Received::Message(Order::Seated { member, process, is_successor }) => {
                    self.watch_successor(NodeId(member), process);
                    if let (Body::Endpoint(work), false) = (&mut self.body, is_successor) {
                        work.sharing.seated(now, NodeId(member), process);
                    }
                }
                Received::Message(Order::Free { members }) => {
                    let was_up = self.observer.is_up();
                    let node = match &self.body {
                        Body::Endpoint(work) => Some(work.runtime.member().config()),
                        Body::Switch(_) => None,
                    };
                    self.observer.await_none_of(&members, &self.neighbours, node);
                    if self.observer.is_up() && !was_up {
                        channel.send(&Notice::LinksUp)?;
                    }
                }
                Received::Message(Order::Unknown) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "an order that this version does not have",
                    ));
                }
                Received::Message(Order::Start(_) | Order::Follow(_)) | Received::Nothing => {
                    return Ok(false);
                }
                Received::End => return Ok(true),
            }
        }
    }

    /// Reports the first error of writing the log to the supervisor, once.
    fn report_log_error(&mut self, channel: &mut Channel) -> io::Result<()> {
        let Some(what) = logging::first_error().filter(|_| !self.sent_log_error) else { return Ok(()) };
        self.sent_log_error = true;
        channel.send(&Notice::LogFailed { what: what.to_owned() })
    }

    /// Returns the operations and peers that this member waits for, and the time since which its job has made
    /// no progress.
    fn waiting_lines(&self) -> Vec<String> {
        let lines = self.body.waiting_for();
        let lines = lines.iter().map(|line| self.observer.with_names(line));
        let since = (!self.body.is_finished())
            .then(|| format!("no progress of the job since {}", units::time(self.progress_at.0)));
        self.observer.silent_neighbours().map(str::to_owned).chain(since).chain(lines).collect()
    }

    /// Sets the process of a neighbour that has a new process.
    fn watch_successor(&mut self, member: NodeId, process: u32) {
        let ports = self.neighbours.iter().enumerate().filter(|(_, neighbour)| **neighbour == member);
        ports.for_each(|(port, _)| self.body.watch_process(PortId(port as u16), Some(process)));
    }

    /// Ends the faults of the script and starts the reads of the state at rest. The report keeps the counters
    /// of this moment.
    fn heal(&mut self, now: Instant, living: &[u16]) {
        if self.rest_check.is_some() {
            return;
        }
        let mut before = self.observer.report(now, self.body.member(), self.body.ports(), None, true);
        // The series end where the counters of the report end, so that their sums are equal.
        before.series = self.recorder.take().map(|recorder| self.body.series(now, *recorder));
        let had_faults = self.faults.heal(self.body.ports_mut());
        if let (Body::Endpoint(work), true) = (&mut self.body, had_faults) {
            let healed = FaultAction::Memory(MemoryConditions::default());
            work.apply_fault(now, &healed, || self.faults.memory_faults());
        }
        let living: Vec<_> = living.iter().copied().map(NodeId).collect();
        let regions = if let Body::Endpoint(work) = &self.body { work.job.regions() } else { Vec::new() };
        let (plan, node) = (self.faults.plan(), self.observer.node());
        let check = RestCheck::begin(plan, node, &living, self.seeds, &regions, before);
        self.rest_check = Some(check);
        self.read_neighbours(now);
    }

    fn rest(&self) -> Rest {
        let rest = |check: &RestCheck| check.rest(self.body.member(), self.observer.edges());
        self.rest_check.as_ref().map(rest).unwrap_or_default()
    }

    /// Starts reads of neighbours during the check of the state at rest. Returns true if a read was started.
    fn read_neighbours(&mut self, now: Instant) -> bool {
        match (&mut self.rest_check, &mut self.body) {
            (Some(check), Body::Endpoint(work)) => check.start_reads(now, work.runtime.member_mut()),
            _ => false,
        }
    }

    /// Replaces the cable of a link whose other end has a new process. If that fails, the port stays down and
    /// the seat continues.
    fn replace_cable(&mut self, cable: &NewCable, channel: &mut Channel) -> io::Result<()> {
        let wires = channel.take_descriptors(cable.descriptors()).ok_or(io::ErrorKind::InvalidData)?;
        let conditions = self.faults.conditions(cable.port());
        match self.cabling.exchange_under(cable, wires, conditions) {
            Ok(()) => self.body.handle_new_cable(PortId(cable.port() as u16)),
            Err(reason) => tracing::error!("{reason}"),
        }
        Ok(())
    }

    /// Returns true if a peer may still unmap this seat's memory.
    fn awaits_importers(&self) -> bool {
        matches!(&self.body, Body::Endpoint(work) if work.awaits_importers())
    }

    /// Writes the status page.
    fn publish(&mut self, now: Instant) {
        let status = self.state();
        if let Some(publisher) = &mut self.publisher {
            let ports = port_figures(self.body.member(), self.body.ports(), self.observer.links());
            publisher.write(now, status, ports);
        }
    }

    /// Returns the answer to a request for the status.
    fn status(&mut self, brief: bool) -> SeatStatus {
        let mut status = SeatStatus {
            links_up: self.observer.links_up() as u16,
            links_down: self.observer.links_down(),
            ports: self.observer.ports(self.body.member(), self.body.ports()),
            ..self.state()
        };
        if let (Body::Endpoint(work), false) = (&self.body, brief) {
            status.paths = work.paths();
        }
        status
    }

    /// Returns the status without links and paths.
    fn state(&mut self) -> SeatStatus {
        let mut status = SeatStatus {
            finished: self.body.is_finished(),
            at_ns: self.body.now().0,
            processor_ns: process_time_ns(),
            incarnation: self.observer.incarnation().0,
            ..SeatStatus::default()
        };
        if let Body::Endpoint(work) = &mut self.body {
            status.memory = Some(Box::new(work.memory()));
            status.verdict = work.verdict();
            status.carried = work.sharing.report();
            status.ip = work.ip.as_ref().map(IpPort::counters);
        }
        status
    }

    fn report(&mut self, now: Instant, channel: &mut Channel) -> io::Result<()> {
        self.report_by = None;
        self.report_log_error(channel)?;
        let job = match &mut self.body {
            Body::Endpoint(work) => Some(work.result()),
            Body::Switch(_) => None,
        };
        let mut report =
            self.observer.report(now, self.body.member(), self.body.ports(), job, self.body.is_finished());
        report.timer_late_max_ns = self.body.timer_late_max_ns();
        report.shortage = self.body.shortage();
        report.series = self.recorder.take().map(|recorder| self.body.series(now, *recorder));
        if !self.body.is_finished() {
            report.waiting = self.waiting_lines();
        }
        if let Some(check) = self.rest_check.take() {
            check.restore_earlier(&mut report);
        }
        channel.send(&Notice::Report(Box::new(report)))
    }
}
