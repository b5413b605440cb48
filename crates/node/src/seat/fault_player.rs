//! Plays the fault script of one seat: applies it to the seat's ports and to its process.
//!
//! After every poll of the member the seat calls [`FaultPlayer::play`]. Faults of links change the seat's own devices. A pause stops the process, as
//! SIGSTOP does. A kill ends it, as SIGKILL does. The supervisor gets a notice first, because only the supervisor can continue a stopped process, and
//! an ended process reports nothing. The command's seats and the seats that a program takes ([`crate::fabric::Node::join`]) use the same code and
//! differ in how they send notices ([`FaultNotices`]).
//!
//! Faults of memory and revocations are returned to the caller, which owns the memory.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rackloom_plan::Plan;
use rackloom_plan::faults::{
    Conditions, FaultAction, FaultEvent, FaultScheduler, FaultScript, JobPosition, LinkDirection,
    MemoryFaults,
};
use rackloom_protocol::{Event, Instant, MemberConfig, NodeId, PortId};
use rustix::process::{Signal, getpid, kill_process, pidfd_send_signal};

use crate::wires::{FaultHand, Ports};

/// One event of a fault script that begins or ends at a member.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct FaultLine<'a> {
    /// Time of the event.
    pub at: Instant,
    /// Name of the member.
    pub member: &'a str,
    /// Number of the event in the script, from 0.
    pub number: usize,
    /// The event.
    pub event: &'a FaultEvent,
    /// Number of this repetition of the event, from 1.
    pub time: u64,
    /// Set if the event begins; otherwise it ends.
    pub begins: bool,
}

/// Interface through which a seat sends its supervisor notices about faults.
///
/// `Send`, not `Sync`: the thread that polls the member sends them.
pub trait FaultNotices: Send {
    /// Reports that an event begins or ends at this member.
    ///
    /// # Errors
    /// The connection to the supervisor is broken. The same applies to the methods below.
    fn fault(&mut self, line: FaultLine<'_>) -> io::Result<()>;
    /// Reports that this member has detected the trigger of an event in which other members take part.
    fn set_off(&mut self, event: usize) -> io::Result<()>;
    /// Reports that the process is about to stop itself and has to be continued after `for_ns` nanoseconds.
    fn pausing(&mut self, for_ns: u64) -> io::Result<()>;
    /// Reports that the process is about to kill itself.
    fn dying(&mut self) -> io::Result<()>;
    /// Reports that the process is about to kill itself, and that a new one is to follow after `after_ns` nanoseconds.
    fn returning(&mut self, after_ns: u64, ends: FaultLine<'_>) -> io::Result<()>;
}

/// The faults of one seat. It does nothing while the script has none for the seat.
///
/// `Send` and `Sync`: plain data, changed through exclusive references only.
#[derive(Debug)]
pub struct FaultPlayer {
    plan: Plan,
    node: NodeId,
    /// Links of the plan, by port.
    edges: Vec<u16>,
    scheduler: Option<FaultScheduler>,
    /// Process that is paused and killed together with this one.
    program: Option<Arc<OwnedFd>>,
}

impl FaultPlayer {
    /// Creates the faults of this member from `script`. `vacant`: members whose links do not come up with the rack.
    #[must_use]
    pub fn new(script: Option<&FaultScript>, plan: &Plan, config: &MemberConfig, vacant: &[u16]) -> Self {
        let mut scheduler = script.and_then(|script| FaultScheduler::new(script, plan, config.node));
        if let Some(scheduler) = &mut scheduler {
            let ports = (0..).zip(&config.ports);
            let dark = ports.filter(|(_, port)| vacant.contains(&port.neighbour.0));
            scheduler.exclude_ports(dark.map(|(port, _)| PortId(port)));
        }
        let edges = config.ports.iter().map(|port| port.edge).collect();
        Self { plan: plan.clone(), node: config.node, edges, scheduler, program: None }
    }

    /// Sets a process (a pidfd) that pauses and kills of this seat affect as well: the program whose seat this process holds.
    pub fn set_program(&mut self, program: Arc<OwnedFd>) {
        self.program = Some(program);
    }

    /// Sends a signal to the program. It may have ended.
    fn signal_program(&self, signal: Signal) {
        if let Some(program) = &self.program {
            let _ = pidfd_send_signal(program, signal);
        }
    }

    /// Returns the links of all ports.
    #[must_use]
    pub fn edges(&self) -> &[u16] {
        &self.edges
    }

    /// Returns the links on which the script affects the frames that this member sends.
    #[must_use]
    pub fn scripted_edges(&self) -> Vec<u16> {
        self.scheduler.iter().flat_map(FaultScheduler::directions).map(|direction| direction.edge).collect()
    }

    /// Returns whether there are faults to play.
    #[must_use]
    pub const fn has_faults(&self) -> bool {
        self.scheduler.is_some()
    }

    /// Returns the conditions that apply at a port now. A new cable there needs them too.
    #[must_use]
    pub fn conditions(&self, port: usize) -> Option<&Conditions> {
        self.scheduler.as_ref()?.conditions(*self.edges.get(port)?)
    }

    /// Makes the ports count and judge their frames, if there are faults to play.
    pub fn prepare(&self, ports: &mut Ports) {
        for port in (0..self.edges.len() as u16).map(PortId).filter(|_| self.scheduler.is_some()) {
            if let Some(hand) = ports.faults(port) {
                hand.begin();
            }
        }
    }

    /// Adds faults whose times count from now and whose numbers begin at `first`.
    ///
    /// # Errors
    /// A message, if the text is not a fault script for this plan. The supervisor has checked it before.
    pub fn inject(
        &mut self,
        now: Instant,
        first: usize,
        text: &str,
        ports: &mut Ports,
    ) -> Result<(), String> {
        let script = FaultScript::parse(text, "inject", &self.plan).map_err(|error| error.to_string())?;
        let Self { plan, node, scheduler, .. } = self;
        let scheduler = scheduler.get_or_insert_with(|| FaultScheduler::without_faults(plan, *node));
        scheduler.add(first, &script.events, plan, *node, Some(now));
        self.prepare(ports);
        Ok(())
    }

    /// Ends all faults that are in effect or still to come, except deaths and revocations.
    pub fn end_faults(&mut self, now: Instant) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.cancel_all(now);
        }
    }

    /// Ends all faults of links, and discards the script. Returns whether there was one.
    pub fn heal(&mut self, ports: &mut Ports) -> bool {
        for port in (0..self.edges.len() as u16).map(PortId).filter(|_| self.scheduler.is_some()) {
            if let Some(hand) = ports.faults(port) {
                hand.set(&Conditions::default());
            }
        }
        self.scheduler.take().is_some()
    }

    /// Handles an event of the member.
    pub fn handle_event(&mut self, now: Instant, event: &Event) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.handle_event(now, event);
        }
    }

    /// Handles a notification that another member has detected the trigger of this event.
    pub fn handle_set_off(&mut self, now: Instant, event: usize) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.event_began(now, event);
        }
    }

    /// Returns the time at which [`Self::play`] has to be called next.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Instant {
        self.scheduler.as_ref().map_or(Instant::NEVER, |scheduler| scheduler.next_due(now))
    }

    /// Plays the actions that are due after a poll of the member. `position` returns the position of the job. Returns the actions played. The caller
    /// performs faults of memory and revocations.
    ///
    /// # Errors
    /// A notice could not be sent.
    pub fn play(
        &mut self,
        now: Instant,
        ports: &mut Ports,
        position: impl FnOnce() -> Option<JobPosition>,
        notices: &mut impl FaultNotices,
    ) -> io::Result<Vec<FaultAction>> {
        let Self { scheduler: Some(scheduler), edges, .. } = self else { return Ok(Vec::new()) };
        let hands = RefCell::new(&mut *ports);
        let frames = |direction: LinkDirection| {
            let mut ports = hands.borrow_mut();
            port_of(edges, direction).and_then(|port| Some(ports.faults(port)?.data_frames())).unwrap_or(0)
        };
        scheduler.advance(now, frames, position);
        while let Some(event) = scheduler.poll_notification() {
            notices.set_off(event)?;
        }
        let actions: Vec<_> = std::iter::from_fn(|| scheduler.poll()).collect();
        for action in &actions {
            self.apply(now, action, ports, notices)?;
        }
        Ok(actions)
    }

    /// Returns the plan of the rack.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the random numbers for faults of this member's memory.
    #[must_use]
    pub fn memory_faults(&self) -> MemoryFaults {
        MemoryFaults::new(self.plan.settings.seed, self.name())
    }

    fn name(&self) -> &str {
        &self.plan.members[self.node.index()].name
    }

    fn line(&self, at: Instant, number: usize, time: u64, begins: bool) -> Option<FaultLine<'_>> {
        let event = self.scheduler.as_ref()?.event(number)?;
        Some(FaultLine { at, member: self.name(), number, event, time, begins })
    }

    fn apply(
        &self,
        now: Instant,
        action: &FaultAction,
        ports: &mut Ports,
        notices: &mut impl FaultNotices,
    ) -> io::Result<()> {
        let mut hand = |direction: LinkDirection, act: &dyn Fn(&mut dyn FaultHand)| {
            if let Some(hand) = port_of(&self.edges, direction).and_then(|port| ports.faults(port)) {
                act(hand);
            }
        };
        match action {
            FaultAction::Report { event: number, begins, time } => {
                if let Some(line) = self.line(now, *number, *time, *begins) {
                    notices.fault(line)?;
                }
            }
            FaultAction::Set { direction, conditions } => hand(*direction, &|hand| hand.set(conditions)),
            FaultAction::Drop { direction, numbers } => hand(*direction, &|hand| hand.drop_from_now(numbers)),
            FaultAction::Memory(_) | FaultAction::QueuePairs(_) | FaultAction::Revoke => {}
            FaultAction::Pause { for_ns } => {
                notices.pausing(*for_ns)?;
                self.signal_program(Signal::STOP);
                // A process may always signal itself.
                let _ = kill_process(getpid(), Signal::STOP);
                self.signal_program(Signal::CONT);
            }
            FaultAction::Kill { event, restart_after_ns } => {
                notices.dying()?;
                if let (Some(after_ns), Some(ends)) = (*restart_after_ns, self.line(now, *event, 1, false)) {
                    notices.returning(after_ns, ends)?;
                }
                self.signal_program(Signal::KILL);
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
        Ok(())
    }
}

fn port_of(edges: &[u16], direction: LinkDirection) -> Option<PortId> {
    let port = edges.iter().position(|edge| *edge == direction.edge)?;
    Some(PortId(port as u16))
}
