//! A fault script, played: one scheduler per member, polled after each poll of the member, whose actions are applied to the rack.
//!
//! Real members use the same schedulers. So a member that is paused or dead changes nothing on its links until
//! it continues. A trigger of another member takes effect at once here; real members need a moment for it.

use rackloom_jobs::collective::Inputs;
use rackloom_plan::faults::{
    Conditions, FaultAction, FaultScheduler, FaultScript, LinkDirection, MemoryConditions, MemoryFaults,
};
use rackloom_plan::impair::Judge;
use rackloom_plan::{Clock, JobKind, Plan};
use rackloom_protocol::{Event, Incarnation, Instant, NodeId, PortId};

use super::actions::Action;
use super::script::{Return, Script};
use super::{Simulation, body_of, incarnation, seat_job};
use crate::ids::ChannelId;
use crate::link::LinkStatistics;
use crate::local::Owner;
use crate::outcome::FaultTransition;
use crate::queue::QueuedEvent;
use crate::seat::{Activity, Body, Seat};

impl Simulation {
    /// Plays a fault script in the rack of this plan. Call it before the run.
    pub fn play(&mut self, script: &FaultScript, plan: &Plan, seed: u64) {
        let members = 0..plan.members.len() as u16;
        let schedulers: Vec<_> =
            members.map(|member| FaultScheduler::new(script, plan, NodeId(member))).collect();
        if script.corrupts() || script.picks() {
            self.fabric.keep_whole();
        }
        for link_direction in schedulers.iter().flatten().flat_map(FaultScheduler::directions) {
            let link = &plan.links[usize::from(link_direction.edge)];
            let judge = || Judge::new(seed, &link.name, link_direction.direction, &link.profile);
            if let Some(channel) = self.fabric.channel_mut(channel_of(link_direction)) {
                channel.expect_faults(judge);
            }
        }
        let due_at = vec![Instant::NEVER; schedulers.len()];
        // The identity of the rack on the wire stays that of the whole plan.
        let mut successors = plan.clone();
        successors.job.kind = JobKind::None;
        let (fault_transitions, returns) = (Vec::new(), Vec::new());
        let wait_max_ns = plan.timers_on(Clock::Virtual).detection_ns();
        let script = Script { schedulers, due_at, fault_transitions, returns, wait_max_ns, successors, seed };
        self.script = Some(Box::new(script));
    }

    /// Returns all begins and ends of faults until now, in order.
    #[must_use]
    pub fn fault_transitions(&self) -> &[FaultTransition] {
        self.script.as_ref().map_or(&[], |script| &script.fault_transitions)
    }

    /// Runs a member's scheduler after a poll in which the member reported `events`.
    pub(super) fn play_faults(&mut self, member: NodeId, events: &[Event]) {
        let Some(mut script) = self.script.take() else { return };
        let mut notices = Vec::new();
        if let Some(scheduler) = &mut script.schedulers[member.index()] {
            let now = self.now;
            events.iter().for_each(|event| scheduler.handle_event(now, event));
            let frames = |direction| self.statistics_of(direction).data_frames_sent;
            scheduler.advance(now, frames, || self.seats[member].job.as_ref()?.reached());
            notices.extend(std::iter::from_fn(|| scheduler.poll_notification()));
            self.apply_actions(&mut script, member);
            self.take_back(&mut script, member);
        }
        notices.into_iter().for_each(|event| self.broadcast(&mut script, member, event));
        self.script = Some(script);
    }

    fn broadcast(&mut self, script: &mut Script, seen_by: NodeId, event: usize) {
        for number in 0..script.schedulers.len() {
            let member = NodeId(number as u16);
            let is_alive = self.seats[member].activity == Activity::Alive;
            if let Some(scheduler) = &mut script.schedulers[number]
                && member != seen_by
                && is_alive
            {
                scheduler.event_began(self.now, event);
                self.apply_actions(script, member);
            }
        }
    }

    /// Applies the actions of a member's scheduler, and schedules its next poll.
    fn apply_actions(&mut self, script: &mut Script, member: NodeId) {
        let Some(scheduler) = &mut script.schedulers[member.index()] else { return };
        while let Some(action) = scheduler.poll() {
            match action {
                FaultAction::Report { event, begins, time } => {
                    script.fault_transitions.push(FaultTransition {
                        at: self.now,
                        member,
                        event,
                        begins,
                        time,
                    });
                }
                FaultAction::Set { direction, conditions } => {
                    self.set_conditions(member, direction, &conditions)
                }
                FaultAction::Drop { direction, numbers } => {
                    if let Some(channel) = self.fabric.channel_mut(channel_of(direction)) {
                        channel.drop_from_now(&numbers);
                    }
                }
                FaultAction::Memory(conditions) => {
                    let has_memory_fault = conditions != MemoryConditions::default();
                    self.owner(member).into_iter().for_each(|owner| owner.withhold(has_memory_fault));
                    let seat = &mut self.seats[member];
                    let new = || Box::new(MemoryFaults::new(script.seed, &self.names[member.index()]));
                    seat.memory_faults.get_or_insert_with(new).set(&conditions);
                }
                FaultAction::Revoke => self.revoke(member),
                // Members of a simulation have no programs.
                FaultAction::QueuePairs(_) => {}
                FaultAction::Pause { for_ns } => {
                    self.act(Action::Pause { member }, &mut Vec::new());
                    self.schedule(self.now + for_ns, Action::Resume { member });
                }
                FaultAction::Kill { event, restart_after_ns } => {
                    self.act(Action::Kill { member }, &mut Vec::new());
                    if let Some(after_ns) = restart_after_ns {
                        script.returns.push(Return { member, event, until: None });
                        self.awaited += 1;
                        self.schedule(self.now + after_ns, Action::Restart { member });
                    }
                }
            }
        }
        let due = scheduler.next_due(self.now).max(self.now + 1);
        let known = &mut script.due_at[member.index()];
        if due < Instant::NEVER && (due < *known || *known <= self.now) {
            *known = due;
            self.fabric.queue.push(due, QueuedEvent::Wake(member));
        }
    }

    /// Sets the conditions of a link. The sender's carrier follows the cable.
    fn set_conditions(&mut self, member: NodeId, direction: LinkDirection, conditions: &Conditions) {
        let id = channel_of(direction);
        let Some(channel) = self.fabric.channel_mut(id) else { return };
        if !channel.set_conditions(conditions) {
            return;
        }
        let ports = &self.seats[member].outgoing;
        if let Some(port) = ports.iter().position(|outgoing| *outgoing == id) {
            let (port, up) = (PortId(port as u16), !conditions.is_unplugged);
            self.schedule(self.now, Action::Carrier { member, port, up });
        }
    }

    /// Revokes the keys of the job's regions. The region by which peers meet keeps its key.
    fn revoke(&mut self, member: NodeId) {
        self.owner(member).into_iter().for_each(Owner::revoke);
        let seat = &mut self.seats[member];
        let (Some(job), Body::Endpoint(endpoint)) = (&seat.job, &mut seat.body) else { return };
        rackloom_jobs::data_regions(&**job).for_each(|region| endpoint.revoke(region));
    }

    /// Ends the wait for a successor once its links are up, or its deadline has passed.
    fn take_back(&mut self, script: &mut Script, member: NodeId) {
        let links_have_been_up =
            script.schedulers[member.index()].as_ref().is_some_and(FaultScheduler::links_have_been_up);
        let now = self.now;
        let is_over = |one: &Return| {
            one.member == member && one.until.is_some_and(|until| links_have_been_up || until <= now)
        };
        let awaited = script.returns.len();
        script.returns.retain(|one| !is_over(one));
        self.awaited -= awaited - script.returns.len();
    }

    /// Starts a new incarnation in a member's seat, without state of the old one. The script does not affect it any more.
    pub(super) fn restart(&mut self, member: NodeId) {
        let Some(mut script) = self.script.take() else { return };
        if self.seats.get(member).is_some_and(|seat| seat.activity == Activity::Dead) {
            let (plan, seed) = (&script.successors, script.seed);
            let mut scheduler = FaultScheduler::without_faults(plan, member);
            let neighbours =
                (0..).zip(plan.graph().ports(member)).map(|(port, end)| (PortId(port), end.neighbour));
            scheduler.exclude_ports(
                neighbours
                    .filter(|(_, neighbour)| self.seats[*neighbour].activity == Activity::Dead)
                    .map(|(port, _)| port),
            );
            script.schedulers[member.index()] = Some(scheduler);
            let incarnation_id = Incarnation(incarnation(seed, member).0 + (1 << 32));
            let outgoing = std::mem::take(&mut self.seats[member].outgoing);
            for id in &outgoing {
                if let Some(channel) = self.fabric.channel_mut(*id) {
                    channel.set_conditions(&Conditions::default());
                }
            }
            let config = plan.member_config_on(Clock::Virtual, member, incarnation_id);
            self.memories.with_ledger(|ledger| ledger.begin_incarnation(member));
            let mut seat = Seat::new(member, body_of(plan.members[member.index()].role, config), outgoing);
            seat.has_predecessors = true;
            if plan.members[member.index()].role.has_job() {
                let job = rackloom_jobs::build_on(plan, member, seed, &Inputs::Pattern);
                seat_job(&mut seat, self.memories.renew(member), job);
            }
            self.awaited += usize::from(seat.is_awaited());
            self.seats[member] = seat;
            self.equip(member, plan.members[member.index()].device);
            self.owner(member).into_iter().for_each(Owner::begin_anew);
            self.fabric.queue.push(self.now, QueuedEvent::Wake(member));
            let until = self.now + script.wait_max_ns;
            for one in script.returns.iter_mut().filter(|one| one.member == member) {
                one.until = Some(until);
                let transition =
                    FaultTransition { at: self.now, member, event: one.event, begins: false, time: 1 };
                script.fault_transitions.push(transition);
                self.fabric.queue.push(until, QueuedEvent::Wake(member));
            }
        }
        self.script = Some(script);
    }

    fn statistics_of(&self, link_direction: LinkDirection) -> &LinkStatistics {
        self.link_statistics(link_direction.edge, link_direction.direction)
    }
}

const fn channel_of(link_direction: LinkDirection) -> ChannelId {
    ChannelId::new(link_direction.edge, link_direction.direction)
}
