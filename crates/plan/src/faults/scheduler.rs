//! Faults of one member over time. Both engines have one [`FaultScheduler`] per member.
//!
//! Its inputs are events of the member (its links come up), the number of data frames sent, the progress of
//! the job, and the time. Its outputs are [`FaultAction`]s: changes of an outgoing direction, or a stop or kill of the member.
//! Active conditions are computed anew from all active events, so that overlapping faults leave no residue.
//!
//! A trigger that is observed here and affects another member goes to the engine ([`FaultScheduler::poll_notification`]), which passes it to the
//! scheduler of that member ([`FaultScheduler::event_began`]). The scheduler applies no fault and reads no clock.

use std::collections::VecDeque;

use rackloom_protocol::{Event, Instant, LinkState, NodeId, PortId};

use super::{
    Conditions, Fault, FaultEvent, FaultScript, JobPosition, LinkDirection, MemoryConditions, QueuePairFault,
    Trigger,
};
use crate::model::plan::Plan;

/// Action of a fault that an engine performs for a member.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// Report that an event of the script begins or ends.
    Report {
        /// Index of the event in the script.
        event: usize,
        /// True for a beginning, false for an end.
        begins: bool,
        /// Number of the beginning, counted from one. Beginnings that were over before the member polled are counted too.
        time: u64,
    },
    /// Apply conditions to frames of an outgoing direction from now on.
    Set {
        /// Direction. This member is its sender.
        direction: LinkDirection,
        /// Conditions to apply.
        conditions: Conditions,
    },
    /// Lose single data frames of an outgoing direction.
    Drop {
        /// Direction. This member is its sender.
        direction: LinkDirection,
        /// Numbers of the frames. 1 is the next data frame.
        numbers: Vec<u64>,
    },
    /// Apply conditions to this member's memory from now on, for requests of other members.
    Memory(MemoryConditions),
    /// Apply these faults, and no others, to the queue pairs of this member, a process of a GPU node, from now on.
    QueuePairs(Vec<QueuePairFault>),
    /// Revoke the keys of all regions that the job has registered at this member.
    Revoke,
    /// Stop the member, and continue after a time.
    Pause {
        /// Duration in nanoseconds.
        for_ns: u64,
    },
    /// Kill the member at once.
    Kill {
        /// Index of the event in the script. Its end is reported when a new incarnation begins.
        event: usize,
        /// Time until a new incarnation begins, in nanoseconds. `None` if none does.
        restart_after_ns: Option<u64>,
    },
}

/// Members that observe the trigger of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TriggerWatch {
    /// A different member observes it.
    Elsewhere,
    /// This member observes it, and other affected members observe it themselves or do not exist.
    Here,
    /// This member observes it, and must notify other affected members.
    HereForOthers,
}

/// State of one event at this member.
#[derive(Clone, Debug)]
struct Part {
    /// Number of the event in actions and notifications.
    number: usize,
    event: FaultEvent,
    /// Time from which the trigger counts. `None` is the time at which the links came up.
    origin: Option<Instant>,
    /// Affected directions that this member sends in.
    directions: Vec<LinkDirection>,
    /// True if this member itself is affected.
    affects_member: bool,
    /// Affected queue pairs of this member. Its GPU node reports the event.
    queue_pairs: Vec<Option<u32>>,
    trigger_watch: TriggerWatch,
    since: Option<Instant>,
    is_on: bool,
    /// True if the event was ended before its time, or before it began.
    is_cancelled: bool,
    /// Number of beginnings that have been handled.
    begun: u64,
}

impl Part {
    fn of(number: usize, event: &FaultEvent, plan: &Plan, member: NodeId, origin: Option<Instant>) -> Self {
        let chosen = event.fault.directions();
        let own: Vec<_> =
            chosen.iter().copied().filter(|direction| direction.sender(plan) == member).collect();
        let members = event.fault.members();
        let is_watched = match event.trigger {
            Trigger::At(_) => true,
            Trigger::Frames { direction, .. } => direction.sender(plan) == member,
            Trigger::Reached { node, .. } => node == member,
        };
        let is_alone = own.len() == chosen.len() && members.iter().all(|affected| *affected == member);
        Self {
            number,
            event: event.clone(),
            origin,
            directions: own,
            affects_member: members.contains(&member),
            queue_pairs: plan
                .node_of_process(member)
                .map_or_else(Vec::new, |node| event.fault.queue_pairs_of(node)),
            trigger_watch: match event.trigger {
                _ if !is_watched => TriggerWatch::Elsewhere,
                Trigger::At(_) => TriggerWatch::Here,
                _ if is_alone => TriggerWatch::Here,
                _ => TriggerWatch::HereForOthers,
            },
            since: None,
            is_on: false,
            is_cancelled: false,
            begun: 0,
        }
    }

    /// Returns true if the trigger is observed at this member.
    fn is_watched(&self) -> bool {
        self.trigger_watch != TriggerWatch::Elsewhere
    }

    fn is_affected(&self) -> bool {
        self.is_reported() || !self.queue_pairs.is_empty()
    }

    /// Returns true if this member reports beginnings and ends.
    const fn is_reported(&self) -> bool {
        self.affects_member || !self.directions.is_empty()
    }

    fn strength(&self, now: Instant) -> Option<f64> {
        if self.is_cancelled {
            return None;
        }
        self.event.timing.strength(now.since(self.since?))
    }
}

/// Active faults of one member.
#[derive(Clone, Debug)]
pub struct FaultScheduler {
    parts: Vec<Part>,
    /// For each port, true if it has never been up and must come up first.
    is_awaited: Vec<bool>,
    links_up_at: Option<Instant>,
    /// Conditions that are set on each direction with link faults.
    set: Vec<(LinkDirection, Conditions)>,
    /// Conditions that are set on this member's memory.
    memory: MemoryConditions,
    /// Faults that are set on this member's queue pairs.
    queue_pairs: Vec<QueuePairFault>,
    actions: VecDeque<FaultAction>,
    notifications: VecDeque<usize>,
    needs_place: bool,
    position: JobPosition,
}

impl FaultScheduler {
    /// Returns the faults of `member`, or `None` if no fault affects it and it observes no trigger.
    #[must_use]
    pub fn new(script: &FaultScript, plan: &Plan, member: NodeId) -> Option<Self> {
        let mut scheduler = Self::without_faults(plan, member);
        scheduler.add(0, &script.events, plan, member, None);
        let is_seen = |part: &Part| part.is_watched() && !matches!(part.event.trigger, Trigger::At(_));
        scheduler.parts.iter().any(|part| part.is_affected() || is_seen(part)).then_some(scheduler)
    }

    /// Returns a scheduler without faults.
    #[must_use]
    pub fn without_faults(plan: &Plan, member: NodeId) -> Self {
        Self {
            parts: Vec::new(),
            is_awaited: vec![true; plan.graph().ports(member).len()],
            links_up_at: None,
            set: Vec::new(),
            memory: MemoryConditions::default(),
            queue_pairs: Vec::new(),
            actions: VecDeque::new(),
            notifications: VecDeque::new(),
            needs_place: false,
            position: JobPosition::default(),
        }
    }

    /// Adds faults, numbered from `first` on. Their time counts from `origin`, or from the moment at which the links came up.
    pub fn add(
        &mut self,
        first: usize,
        events: &[FaultEvent],
        plan: &Plan,
        member: NodeId,
        origin: Option<Instant>,
    ) {
        let numbered = (first..).zip(events);
        let parts: Vec<_> =
            numbered.map(|(number, event)| Part::of(number, event, plan, member, origin)).collect();
        for direction in parts.iter().flat_map(|part| &part.directions) {
            if !self.set.iter().any(|(known, _)| known == direction) {
                self.set.push((*direction, Conditions::default()));
            }
        }
        let is_place = |part: &Part| matches!(part.event.trigger, Trigger::Reached { .. });
        self.needs_place |= parts.iter().any(|part| part.is_watched() && is_place(part));
        self.parts.extend(parts);
    }

    /// Returns the event with this number.
    #[must_use]
    pub fn event(&self, number: usize) -> Option<&FaultEvent> {
        self.parts.iter().find(|part| part.number == number).map(|part| &part.event)
    }

    /// Returns the directions that link faults may affect. Only these need an impairment layer.
    pub fn directions(&self) -> impl Iterator<Item = LinkDirection> {
        self.set.iter().map(|(direction, _)| *direction)
    }

    /// Returns the active conditions on an outgoing direction, or `None` if no fault ever affects it.
    #[must_use]
    pub fn conditions(&self, edge: u16) -> Option<&Conditions> {
        self.set.iter().find(|(direction, _)| direction.edge == edge).map(|(_, conditions)| conditions)
    }

    /// Excludes ports from the wait for links, because the members at their other ends start later.
    pub fn exclude_ports(&mut self, ports: impl IntoIterator<Item = PortId>) {
        for port in ports {
            if let Some(is_awaited) = self.is_awaited.get_mut(port.index()) {
                *is_awaited = false;
            }
        }
    }

    /// Returns true if every link that must come up first has been up.
    #[must_use]
    pub const fn links_have_been_up(&self) -> bool {
        self.links_up_at.is_some()
    }

    /// Handles an event of the member. Time counts from the moment at which its last link has come up.
    pub fn handle_event(&mut self, now: Instant, event: &Event) {
        let Event::LinkChanged { port, to: LinkState::Up, .. } = *event else { return };
        let was_awaited = self.is_awaited.get_mut(port.index()).is_some_and(std::mem::take);
        if was_awaited && !self.is_awaited.contains(&true) {
            self.links_up_at = Some(now);
        }
    }

    /// Handles a notification that another member has observed the trigger of this event.
    pub fn event_began(&mut self, now: Instant, event: usize) {
        let part = self.parts.iter_mut().find(|part| part.number == event && !part.is_cancelled);
        if let Some(part) = part.filter(|part| part.is_affected()) {
            part.since.get_or_insert(now);
            self.act(now);
        }
    }

    /// Updates triggers and conditions. Call it after each poll of the member. `data_frames` returns the number of data frames sent in
    /// a direction, and `position` the progress of the job.
    pub fn advance(
        &mut self,
        now: Instant,
        data_frames: impl Fn(LinkDirection) -> u64,
        position: impl FnOnce() -> Option<JobPosition>,
    ) {
        if self.needs_place {
            self.position = self.position.max(position().unwrap_or_default());
        }
        let (here, links_up_at, notifications) = (self.position, self.links_up_at, &mut self.notifications);
        for part in &mut self.parts {
            let Some(origin) = part.origin.or(links_up_at) else { continue };
            if part.is_cancelled || part.since.is_some() || !part.is_watched() {
                continue;
            }
            let (is_due, since) = match part.event.trigger {
                Trigger::At(at_ns) => (now.since(origin) >= at_ns, origin + at_ns),
                Trigger::Frames { direction, count } => (data_frames(direction) >= count, now),
                Trigger::Reached { position, .. } => (here >= position, now),
            };
            if is_due {
                part.since = Some(since);
                if part.trigger_watch == TriggerWatch::HereForOthers {
                    notifications.push_back(part.number);
                }
            }
        }
        self.act(now);
    }

    /// Ends all events, those that have not begun included. Deaths, revocations and dropped frames are not undone. Events that are added later
    /// are not concerned.
    pub fn cancel_all(&mut self, now: Instant) {
        // Events that have ended by their own time are reported first.
        self.act(now);
        self.parts.iter_mut().for_each(|part| part.is_cancelled = true);
        self.act(now);
    }

    /// Returns an event of the script whose trigger other members must be notified of.
    pub fn poll_notification(&mut self) -> Option<usize> {
        self.notifications.pop_front()
    }

    /// Returns the next action to perform.
    pub fn poll(&mut self) -> Option<FaultAction> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call of [`FaultScheduler::advance`], if no other event comes first.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Instant {
        let due = |part: &Part| match (part.since, part.event.trigger, part.origin.or(self.links_up_at)) {
            _ if part.is_cancelled || !part.is_affected() => None,
            (Some(since), ..) => part.event.timing.next_change_ns(now.since(since)).map(|ns| since + ns),
            (None, Trigger::At(at_ns), Some(origin)) => Some(origin + at_ns),
            _ => None,
        };
        self.parts.iter().filter_map(due).min().unwrap_or(Instant::NEVER)
    }

    /// Updates the active conditions.
    fn act(&mut self, now: Instant) {
        for index in 0..self.parts.len() {
            self.begin_or_end(now, index);
        }
        let parts = &self.parts;
        for (direction, known) in &mut self.set {
            let on = parts.iter().filter(|part| part.directions.contains(direction));
            let holds = on.filter_map(|part| match (&part.event.fault, part.strength(now)) {
                (Fault::Links { conditions, .. }, Some(strength)) => Some(conditions.scaled(strength)),
                _ => None,
            });
            let holds = holds.fold(Conditions::default(), |all, one| all.joined(&one));
            if holds != *known {
                *known = holds;
                self.actions.push_back(FaultAction::Set { direction: *direction, conditions: holds });
            }
        }
        self.act_on_memory(now);
        self.act_on_queue_pairs(now);
    }

    fn act_on_queue_pairs(&mut self, now: Instant) {
        let active = self.parts.iter().filter(|part| part.strength(now).is_some());
        let faults = active.flat_map(|part| {
            let Fault::QueuePairs { effect, .. } = part.event.fault else { return Vec::new() };
            let fault = |number: &Option<u32>| QueuePairFault {
                beginning: (part.number, part.begun),
                number: *number,
                effect,
            };
            part.queue_pairs.iter().map(fault).collect()
        });
        let faults: Vec<_> = faults.collect();
        if faults != self.queue_pairs {
            self.queue_pairs.clone_from(&faults);
            self.actions.push_back(FaultAction::QueuePairs(faults));
        }
    }

    fn act_on_memory(&mut self, now: Instant) {
        let affected = self.parts.iter().filter(|part| part.affects_member);
        let holds = affected.filter_map(|part| match (&part.event.fault, part.strength(now)) {
            (Fault::Memory { conditions, .. }, Some(strength)) => Some(conditions.scaled(strength)),
            _ => None,
        });
        let holds = holds.fold(MemoryConditions::default(), |all, one| all.joined(&one));
        if holds != self.memory {
            self.memory = holds;
            self.actions.push_back(FaultAction::Memory(holds));
        }
    }

    fn begin_or_end(&mut self, now: Instant, index: usize) {
        let part = &mut self.parts[index];
        let number = part.number;
        let Some(since) = part.since.filter(|_| part.is_affected()) else { return };
        let is_on = part.strength(now).is_some();
        let begun = if part.is_cancelled { part.begun } else { part.event.timing.begun(now.since(since)) };
        let begins = begun > part.begun;
        if !part.is_reported() {
            (part.begun, part.is_on) = (begun, is_on);
            return;
        }
        let report = |begins, time| FaultAction::Report { event: number, begins, time };
        if part.is_on && (begins || !is_on) {
            self.actions.push_back(report(false, part.begun));
        }
        if begins {
            self.actions.push_back(report(true, begun));
            self.actions.extend(one_time_actions(part, is_on.then(|| now.since(since))));
        }
        // A late call finds that an event is over which it never found active. The event has begun and ended nevertheless.
        if begins && !is_on {
            self.actions.push_back(report(false, begun));
        }
        (part.begun, part.is_on) = (begun, is_on);
    }
}

/// Returns the one-time actions of the beginning of an event. `on_since_ns` is `None` if the event is over already: a member that polls
/// late because of one pause does not stop again for another pause in the past.
fn one_time_actions(part: &Part, on_since_ns: Option<u64>) -> Vec<FaultAction> {
    match &part.event.fault {
        Fault::Drop { numbers, .. } => part
            .directions
            .iter()
            .map(|direction| FaultAction::Drop { direction: *direction, numbers: numbers.clone() })
            .collect(),
        Fault::Pause(_) if part.affects_member => {
            let left_ns = on_since_ns.and_then(|since_ns| part.event.timing.left_ns(since_ns));
            left_ns.map(|for_ns| FaultAction::Pause { for_ns }).into_iter().collect()
        }
        Fault::Kill(_) if part.affects_member => {
            vec![FaultAction::Kill { event: part.number, restart_after_ns: part.event.timing.for_ns }]
        }
        Fault::Revoke(_) if part.affects_member => vec![FaultAction::Revoke],
        Fault::Links { .. }
        | Fault::Memory { .. }
        | Fault::QueuePairs { .. }
        | Fault::Revoke(_)
        | Fault::Pause(_)
        | Fault::Kill(_) => Vec::new(),
    }
}
