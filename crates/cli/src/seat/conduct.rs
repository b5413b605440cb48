//! The fault script in a seat: its member's conductor, asked after each turn, and what it says done for real.
//!
//! Links change in this seat's own devices. A member that is to stand still stops itself, as by SIGSTOP, and one that is to die
//! kills itself, in the very turn in which the script says so; memory stays mapped and handles outstanding, as in any crash.
//! The supervisor hears of it before, because nobody else can set a stopped process going again or start one in a dead one's place, and the dead report nothing.

use std::io;

use rackloom::Ports;
use rackloom::wires::FaultHand;
use rackloom_jobs::report::EventRecord;
use rackloom_plan::Plan;
use rackloom_plan::faults::{Conditions, Conductor, Deed, FaultScript, Place, Troubles, Way};
use rackloom_protocol::{Event, Instant, MemberConfig, NodeId, PortId};
use rustix::process::{Signal, getpid, kill_process};

use crate::control::{Channel, Notice};

/// The faults of one seat; nothing to do where the script has none for it.
pub(super) struct Faults {
    plan: Plan,
    node: NodeId,
    /// Links of the plan by port.
    edges: Vec<u16>,
    conductor: Option<Conductor>,
    /// Faults may come later: every port has somebody who can apply them.
    takes_more: bool,
}

impl Faults {
    /// What the script has for this member. In a rack that stays more may be injected.
    pub(super) fn of(
        script: Option<&FaultScript>,
        plan: &Plan,
        config: &MemberConfig,
        vacant: &[u16],
        takes_more: bool,
    ) -> Self {
        let mut conductor = script.and_then(|script| Conductor::new(script, plan, config.node));
        if let Some(conductor) = &mut conductor {
            let ports = (0..).zip(&config.ports);
            let dark = ports.filter(|(_, port)| vacant.contains(&port.neighbour.0));
            conductor.does_not_await(dark.map(|(port, _)| PortId(port)));
        }
        let edges = config.ports.iter().map(|port| port.edge).collect();
        Self { plan: plan.clone(), node: config.node, edges, conductor, takes_more }
    }

    /// Links whose frames a script touches, or may touch, when they leave here.
    pub(super) fn edges(&self) -> Vec<u16> {
        if self.takes_more {
            return self.edges.clone();
        }
        self.conductor.iter().flat_map(Conductor::ways).map(|way| way.edge).collect()
    }

    /// What holds now at a port, so that a new cable there is no better than the old one.
    pub(super) fn conditions(&self, port: usize) -> Option<&Conditions> {
        self.conductor.as_ref()?.conditions(*self.edges.get(port)?)
    }

    /// See to it that frames are counted and judged where the script will act.
    pub(super) fn begin(&self, ports: &mut Ports) {
        for port in (0..self.edges.len() as u16).map(PortId).filter(|_| self.conductor.is_some()) {
            if let Some(hand) = ports.faults(port) {
                hand.begin();
            }
        }
    }

    /// More faults, from now on, numbered from `first` on. The supervisor has read the script before.
    pub(super) fn inject(&mut self, now: Instant, first: usize, text: &str, ports: &mut Ports) {
        let script = match FaultScript::parse(text, "inject", &self.plan) {
            Ok(script) => script,
            Err(error) => return tracing::error!("cannot read what was injected: {error}"),
        };
        let Self { plan, node, conductor, .. } = self;
        let conductor = conductor.get_or_insert_with(|| Conductor::without_faults(plan, *node));
        conductor.add(first, &script.events, plan, *node, Some(now));
        self.begin(ports);
    }

    /// Nothing of the script holds any longer, and nothing more comes of it. Returns whether anything could have held.
    pub(super) fn heal(&mut self, ports: &mut Ports) -> bool {
        for port in (0..self.edges.len() as u16).map(PortId).filter(|_| self.conductor.is_some()) {
            if let Some(hand) = ports.faults(port) {
                hand.set(&Conditions::default());
            }
        }
        self.conductor.take().is_some()
    }

    /// Something happened at the member.
    pub(super) fn hear(&mut self, now: Instant, event: &Event) {
        if let Some(conductor) = &mut self.conductor {
            conductor.hear(now, event);
        }
    }

    /// Another seat has seen what sets this event off.
    pub(super) fn told(&mut self, now: Instant, event: usize) {
        if let Some(conductor) = &mut self.conductor {
            conductor.told(now, event);
        }
    }

    /// When the next look is due.
    pub(super) fn next_due(&self, now: Instant) -> Instant {
        self.conductor.as_ref().map_or(Instant::NEVER, |conductor| conductor.next_due(now))
    }

    /// Do what is to be done after a turn in which the job came to `place`. Returns what was: links may be others now, and what
    /// concerns memory is left to whoever holds that.
    pub(super) fn act(
        &mut self,
        now: Instant,
        ports: &mut Ports,
        place: impl FnOnce() -> Option<Place>,
        channel: &mut Channel,
    ) -> io::Result<Vec<Deed>> {
        let Self { conductor: Some(conductor), edges, .. } = self else { return Ok(Vec::new()) };
        let hands = std::cell::RefCell::new(&mut *ports);
        let frames = |way: Way| {
            let mut ports = hands.borrow_mut();
            port_of(edges, way).and_then(|port| Some(ports.faults(port)?.data_frames())).unwrap_or(0)
        };
        conductor.look(now, frames, place);
        while let Some(event) = conductor.poll_tell() {
            channel.say(&Notice::SetOff { event })?;
        }
        let deeds: Vec<_> = std::iter::from_fn(|| conductor.poll()).collect();
        for deed in &deeds {
            self.obey(now, deed, ports, channel)?;
        }
        Ok(deeds)
    }

    /// What is said when an event of the script begins or ends here.
    fn line(&self, now: Instant, (number, time): (usize, u64), begins: bool) -> Option<EventRecord> {
        let event = self.conductor.as_ref()?.event(number)?;
        let name = &self.plan.members[self.node.index()].name;
        Some(EventRecord::of_fault(now, name, (number, time), event, begins))
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The dice for this member's memory.
    pub(super) fn troubles(&self) -> Troubles {
        Troubles::new(self.plan.seed, &self.plan.members[self.node.index()].name)
    }

    fn obey(&self, now: Instant, deed: &Deed, ports: &mut Ports, channel: &mut Channel) -> io::Result<()> {
        let mut hand = |way: Way, act: &dyn Fn(&mut dyn FaultHand)| {
            if let Some(hand) = port_of(&self.edges, way).and_then(|port| ports.faults(port)) {
                act(hand);
            }
        };
        match deed {
            Deed::Say { event: number, begins, time } => {
                let Some(record) = self.line(now, (*number, *time), *begins) else { return Ok(()) };
                tracing::info!(at_ns = now.0, "fault: {}", record.text);
                channel.say(&Notice::Fault(record))?;
            }
            Deed::Set { way, conditions } => hand(*way, &|hand| hand.set(conditions)),
            Deed::Drop { way, numbers } => hand(*way, &|hand| hand.drop_from_now(numbers)),
            Deed::Memory(_) | Deed::Revoke => {}
            Deed::Pause { for_ns } => {
                channel.say(&Notice::Pausing { for_ns: *for_ns })?;
                // A process may always signal itself.
                let _ = kill_process(getpid(), Signal::STOP);
            }
            Deed::Kill { event, restart_after_ns } => {
                channel.say(&Notice::Dying)?;
                if let (Some(after_ns), Some(ends)) = (*restart_after_ns, self.line(now, (*event, 1), false))
                {
                    channel.say(&Notice::Returning { after_ns, ends })?;
                }
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
        Ok(())
    }
}

fn port_of(edges: &[u16], way: Way) -> Option<PortId> {
    let port = edges.iter().position(|edge| *edge == way.edge)?;
    Some(PortId(port as u16))
}
