//! Who says, for one member, which faults hold now. One per member, in both engines.
//!
//! It is told what it needs to know: events of the member (its links come up), how many data frames have left, where
//! the job is, and the time. It answers with [`FaultAction`]s: what to change on an outgoing direction, or that the member shall
//! stop or die. What holds is computed anew from all events that are on, so that overlapping faults leave nothing behind.
//!
//! A trigger that is seen here and concerns another member is told to the engine ([`Conductor::poll_tell`]), which lets that member's
//! conductor know ([`Conductor::told`]). The conductor applies nothing and knows no clock.

use std::collections::VecDeque;

use rackloom_protocol::{Event, Instant, LinkState, NodeId, PortId};

use super::{Conditions, Fault, FaultEvent, FaultScript, MemoryConditions, Place, Trigger, Way};
use crate::plan::Plan;

/// What an engine has to do for a member.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// For the report: this event of the script begins or ends here.
    Say {
        /// Its place in the script.
        event: usize,
        /// Or ends.
        begins: bool,
        /// Which beginning of the event it is, counted from one. Beginnings that were over before the member looked are counted too.
        time: u64,
    },
    /// Frames that leave in this direction meet these conditions from now on.
    Set {
        /// The direction; its sender is this member.
        way: Way,
        /// What holds.
        conditions: Conditions,
    },
    /// Lose the data frames with these numbers, counted from one for the next that leaves.
    Drop {
        /// The direction; its sender is this member.
        way: Way,
        /// Which.
        numbers: Vec<u64>,
    },
    /// This member's memory is like this from now on, for requests of others.
    Memory(MemoryConditions),
    /// Revoke the keys of what the job has registered at this member.
    Revoke,
    /// Stand still, and be set going again after this time.
    Pause {
        /// How long.
        for_ns: u64,
    },
    /// Die at once.
    Kill {
        /// By which event of the script, so that its end can be told when a new life begins.
        event: usize,
        /// After how long a new life begins, if one does.
        restart_after_ns: Option<u64>,
    },
}

/// An event as this member sees it.
#[derive(Clone, Debug)]
struct Part {
    /// By which the event is told.
    number: usize,
    event: FaultEvent,
    /// From when time counts, if that is not when the links came up.
    origin: Option<Instant>,
    /// Directions that are this member's to change.
    ways: Vec<Way>,
    /// Whether it strikes this member itself.
    strikes: bool,
    /// Whether somebody else has a part in it.
    is_shared: bool,
    /// Whether its trigger is seen here.
    is_watched: bool,
    since: Option<Instant>,
    is_on: bool,
    /// How often its beginning has been acted upon.
    begun: u64,
}

impl Part {
    fn of(number: usize, event: &FaultEvent, plan: &Plan, member: NodeId, origin: Option<Instant>) -> Self {
        let ways = event.fault.ways();
        let own: Vec<_> = ways.iter().copied().filter(|way| way.sender(plan) == member).collect();
        let members = event.fault.members();
        let is_watched = match event.trigger {
            Trigger::At(_) => true,
            Trigger::Frames { way, .. } => way.sender(plan) == member,
            Trigger::Reached { node, .. } => node == member,
        };
        let is_alone = own.len() == ways.len() && members.iter().all(|struck| *struck == member);
        Self {
            number,
            event: event.clone(),
            origin,
            ways: own,
            strikes: members.contains(&member),
            is_shared: !is_alone && !matches!(event.trigger, Trigger::At(_)),
            is_watched,
            since: None,
            is_on: false,
            begun: 0,
        }
    }

    fn has_a_part(&self) -> bool {
        self.strikes || !self.ways.is_empty()
    }

    fn strength(&self, now: Instant) -> Option<f64> {
        self.event.timing.strength(now.since(self.since?))
    }
}

/// The faults of one member.
#[derive(Clone, Debug)]
pub struct Conductor {
    parts: Vec<Part>,
    /// Ports that have never been up.
    dark: Vec<bool>,
    lit_at: Option<Instant>,
    /// What each direction that may change is told to be like.
    set: Vec<(Way, Conditions)>,
    /// What this member's memory is told to be like.
    memory: MemoryConditions,
    actions: VecDeque<FaultAction>,
    tells: VecDeque<usize>,
    wants_place: bool,
    place: Place,
}

impl Conductor {
    /// The faults of `member`; `None` if it has no part in any and sees nothing that sets one off.
    #[must_use]
    pub fn new(script: &FaultScript, plan: &Plan, member: NodeId) -> Option<Self> {
        let mut conductor = Self::without_faults(plan, member);
        conductor.add(0, &script.events, plan, member, None);
        let is_seen = |part: &Part| part.is_watched && !matches!(part.event.trigger, Trigger::At(_));
        conductor.parts.iter().any(|part| part.has_a_part() || is_seen(part)).then_some(conductor)
    }

    /// Of a member that has no faults yet.
    #[must_use]
    pub fn without_faults(plan: &Plan, member: NodeId) -> Self {
        Self {
            parts: Vec::new(),
            dark: vec![true; plan.graph().ports(member).len()],
            lit_at: None,
            set: Vec::new(),
            memory: MemoryConditions::default(),
            actions: VecDeque::new(),
            tells: VecDeque::new(),
            wants_place: false,
            place: Place::default(),
        }
    }

    /// More faults, numbered from `first` on; their time counts from `origin`, or from when the links came up.
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
        for way in parts.iter().flat_map(|part| &part.ways) {
            if !self.set.iter().any(|(known, _)| known == way) {
                self.set.push((*way, Conditions::default()));
            }
        }
        let is_place = |part: &Part| matches!(part.event.trigger, Trigger::Reached { .. });
        self.wants_place |= parts.iter().any(|part| part.is_watched && is_place(part));
        self.parts.extend(parts);
    }

    /// The event that is told by this number.
    #[must_use]
    pub fn event(&self, number: usize) -> Option<&FaultEvent> {
        self.parts.iter().find(|part| part.number == number).map(|part| &part.event)
    }

    /// The directions that may change, so that only those need somebody who can change them.
    pub fn ways(&self) -> impl Iterator<Item = Way> {
        self.set.iter().map(|(way, _)| *way)
    }

    /// What holds now on this link, in the direction that is this member's to change; nothing if no fault will ever be there.
    #[must_use]
    pub fn conditions(&self, edge: u16) -> Option<&Conditions> {
        self.set.iter().find(|(way, _)| way.edge == edge).map(|(_, conditions)| conditions)
    }

    /// Nobody waits for the links of these ports: whoever is at their other ends comes later.
    pub fn does_not_await(&mut self, ports: impl IntoIterator<Item = PortId>) {
        for port in ports {
            if let Some(dark) = self.dark.get_mut(port.index()) {
                *dark = false;
            }
        }
    }

    /// Whether every link that somebody waits for has been up.
    #[must_use]
    pub const fn is_lit(&self) -> bool {
        self.lit_at.is_some()
    }

    /// Something happened at the member. Time counts from the moment at which its last link has come up.
    pub fn hear(&mut self, now: Instant, event: &Event) {
        let Event::LinkChanged { port, to: LinkState::Up, .. } = *event else { return };
        let lights = self.dark.get_mut(port.index()).is_some_and(std::mem::take);
        if lights && !self.dark.contains(&true) {
            self.lit_at = Some(now);
        }
    }

    /// Another member has seen what sets this event off.
    pub fn told(&mut self, now: Instant, event: usize) {
        let part = self.parts.iter_mut().find(|part| part.number == event);
        if let Some(part) = part.filter(|part| part.has_a_part()) {
            part.since.get_or_insert(now);
            self.act(now);
        }
    }

    /// A look after a turn: `data_frames` have been sent in a direction, and the job is at `place`.
    pub fn look(
        &mut self,
        now: Instant,
        data_frames: impl Fn(Way) -> u64,
        place: impl FnOnce() -> Option<Place>,
    ) {
        if self.wants_place {
            self.place = self.place.max(place().unwrap_or_default());
        }
        let (here, lit_at, tells) = (self.place, self.lit_at, &mut self.tells);
        for part in &mut self.parts {
            let Some(origin) = part.origin.or(lit_at) else { continue };
            if part.since.is_some() || !part.is_watched {
                continue;
            }
            let (is_due, since) = match part.event.trigger {
                Trigger::At(at_ns) => (now.since(origin) >= at_ns, origin + at_ns),
                Trigger::Frames { way, count } => (data_frames(way) >= count, now),
                Trigger::Reached { place, .. } => (here >= place, now),
            };
            if is_due {
                part.since = Some(since);
                if part.is_shared {
                    tells.push_back(part.number);
                }
            }
        }
        self.act(now);
    }

    /// An event of the script that others must hear of.
    pub fn poll_tell(&mut self) -> Option<usize> {
        self.tells.pop_front()
    }

    /// What is to be done now.
    pub fn poll(&mut self) -> Option<FaultAction> {
        self.actions.pop_front()
    }

    /// When the next look is due, if nothing happens before.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Instant {
        let due = |part: &Part| match (part.since, part.event.trigger, part.origin.or(self.lit_at)) {
            _ if !part.has_a_part() => None,
            (Some(since), ..) => part.event.timing.next_change_ns(now.since(since)).map(|ns| since + ns),
            (None, Trigger::At(at_ns), Some(origin)) => Some(origin + at_ns),
            _ => None,
        };
        self.parts.iter().filter_map(due).min().unwrap_or(Instant::NEVER)
    }

    /// Bring what holds up to date.
    fn act(&mut self, now: Instant) {
        for place in 0..self.parts.len() {
            self.begin_or_end(now, place);
        }
        let parts = &self.parts;
        for (way, known) in &mut self.set {
            let on = parts.iter().filter(|part| part.ways.contains(way));
            let holds = on.filter_map(|part| match (&part.event.fault, part.strength(now)) {
                (Fault::Links { conditions, .. }, Some(strength)) => Some(conditions.scaled(strength)),
                _ => None,
            });
            let holds = holds.fold(Conditions::default(), |all, one| all.joined(&one));
            if holds != *known {
                *known = holds;
                self.actions.push_back(FaultAction::Set { way: *way, conditions: holds });
            }
        }
        self.act_on_memory(now);
    }

    fn act_on_memory(&mut self, now: Instant) {
        let struck = self.parts.iter().filter(|part| part.strikes);
        let holds = struck.filter_map(|part| match (&part.event.fault, part.strength(now)) {
            (Fault::Memory { conditions, .. }, Some(strength)) => Some(conditions.scaled(strength)),
            _ => None,
        });
        let holds = holds.fold(MemoryConditions::default(), |all, one| all.joined(&one));
        if holds != self.memory {
            self.memory = holds;
            self.actions.push_back(FaultAction::Memory(holds));
        }
    }

    fn begin_or_end(&mut self, now: Instant, place: usize) {
        let part = &mut self.parts[place];
        let number = part.number;
        let Some(since) = part.since.filter(|_| part.has_a_part()) else { return };
        let (begun, is_on) = (part.event.timing.begun(now.since(since)), part.strength(now).is_some());
        let begins = begun > part.begun;
        let say = |begins, time| FaultAction::Say { event: number, begins, time };
        if part.is_on && (begins || !is_on) {
            self.actions.push_back(say(false, part.begun));
        }
        if begins {
            self.actions.push_back(say(true, begun));
            self.actions.extend(strike(part, is_on.then(|| now.since(since))));
        }
        // A look that comes late finds an event over that it never saw on; it has begun and ended all the same.
        if begins && !is_on {
            self.actions.push_back(say(false, begun));
        }
        (part.begun, part.is_on) = (begun, is_on);
    }
}

/// What the beginning of an event does once. `on_since_ns` is nothing if it is over already: who looks late because of another pause
/// does not stand still again for one that lies behind.
fn strike(part: &Part, on_since_ns: Option<u64>) -> Vec<FaultAction> {
    match &part.event.fault {
        Fault::Drop { numbers, .. } => {
            part.ways.iter().map(|way| FaultAction::Drop { way: *way, numbers: numbers.clone() }).collect()
        }
        Fault::Pause(_) if part.strikes => {
            let left_ns = on_since_ns.and_then(|since_ns| part.event.timing.left_ns(since_ns));
            left_ns.map(|for_ns| FaultAction::Pause { for_ns }).into_iter().collect()
        }
        Fault::Kill(_) if part.strikes => {
            vec![FaultAction::Kill { event: part.number, restart_after_ns: part.event.timing.for_ns }]
        }
        Fault::Revoke(_) if part.strikes => vec![FaultAction::Revoke],
        Fault::Links { .. } | Fault::Memory { .. } | Fault::Revoke(_) | Fault::Pause(_) | Fault::Kill(_) => {
            Vec::new()
        }
    }
}
