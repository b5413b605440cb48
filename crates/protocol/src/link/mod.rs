//! One neighbour: greeting, sequence, credits, heartbeat, state.
//!
//! A [`Link`] decides which control frames are due and whether data may pass; it does not know routes or streams.
//! What is lost on the way is repeated by [`retry`], where that is on.

pub mod counters;
pub mod credits;
pub mod heartbeat;
pub mod retry;
pub mod state;

use alloc::boxed::Box;

use crate::config::{LinkTimers, PortConfig};
use crate::event::LinkCause;
use crate::ids::{Incarnation, NodeId, PortId};
use crate::time::Instant;
use crate::wire::control::{Heartbeat, Hello};
use crate::wire::frame::LinkHeader;
use credits::{Credits, is_ahead};
use heartbeat::{Heartbeats, Silence};
use retry::Retry;
use state::{LinkState, Stimulus, next};

/// After this many unanswered Hellos the pace drops to the heartbeat interval.
const EAGER_HELLOS: u32 = 500;

/// One end of one link.
#[derive(Debug)]
pub struct Link {
    /// What the plan says of the port.
    pub config: PortConfig,
    /// Credits of both directions.
    pub credits: Credits,
    timers: LinkTimers,
    state: LinkState,
    heartbeats: Heartbeats,
    neighbour: Option<Incarnation>,
    heard_by_neighbour: bool,
    hello_due: Instant,
    hellos_sent: u32,
    answer_owed: bool,
    held_down_until: Instant,
    probe_count: u32,
    sequence_sent: u32,
    sequence_received: u32,
    /// Changes with every new life of the neighbour: frames held from before do not count for its credits.
    pub generation: u32,
    /// The neighbour asked for our counters.
    pub credit_wanted: bool,
    credit_probe_at: Option<Instant>,
    /// Frames that retry gave up with the link, and nobody has counted yet.
    given_up: u64,
    /// Link-level retry, where it is on.
    pub retry: Option<Box<Retry>>,
}

/// A move of the link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Before.
    pub from: LinkState,
    /// After.
    pub to: LinkState,
    /// Why.
    pub cause: LinkCause,
}

/// What a Hello of the neighbour led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// It came from a stranger or contradicts the plan.
    Stranger,
    /// It is of an earlier life than one heard before.
    Stale,
    /// Accepted; the link may have moved.
    Accepted(Option<Move>),
}

impl Link {
    /// A link of `member` that has never been up.
    #[must_use]
    pub fn new(config: PortConfig, timers: LinkTimers, member: NodeId, frame_bytes_max: u16) -> Self {
        let retry = config
            .retry
            .map(|retry| Box::new(Retry::new(retry, timers.hello_interval_ns, usize::from(frame_bytes_max))));
        Self {
            retry,
            credits: Credits::new(config.credits),
            config,
            timers,
            state: LinkState::Init,
            heartbeats: Heartbeats::new(&timers, member),
            neighbour: None,
            heard_by_neighbour: false,
            hello_due: Instant::ZERO,
            hellos_sent: 0,
            answer_owed: false,
            held_down_until: Instant::NEVER,
            probe_count: 0,
            sequence_sent: 0,
            sequence_received: 0,
            generation: 0,
            credit_wanted: false,
            credit_probe_at: None,
            given_up: 0,
        }
    }

    /// The link's state.
    #[must_use]
    pub const fn state(&self) -> LinkState {
        self.state
    }

    fn shift(&mut self, now: Instant, stimulus: Stimulus, cause: LinkCause) -> Option<Move> {
        let from = self.state;
        let to = next(from, stimulus);
        if from == to {
            return None;
        }
        self.state = to;
        match to {
            LinkState::Down => self.held_down_until = now + self.timers.hold_down_ns,
            LinkState::Probing => {
                self.probe_count = 0;
                self.heartbeats.start(now);
            }
            LinkState::Up if from == LinkState::Init => self.heartbeats.start(now),
            _ => {}
        }
        if let Some(retry) = &mut self.retry
            && from.carries_data() != to.carries_data()
        {
            if to.carries_data() {
                retry.sender.start(now);
            } else {
                self.given_up += retry.stop() as u64;
            }
        }
        Some(Move { from, to, cause })
    }

    /// Whether a frame's session is of the neighbour's present life.
    #[must_use]
    pub fn knows(&self, session: u16) -> bool {
        self.neighbour.is_some_and(|life| life.tag() as u16 == session)
    }

    // W-16
    /// A Hello came in.
    pub fn hear_hello(&mut self, now: Instant, hello: &Hello, mine: &Hello) -> Greeting {
        let expected = hello.node == self.config.neighbour
            && hello.plane == self.config.plane
            && hello.options == mine.options | self.options()
            && hello.frame_bytes_max == mine.frame_bytes_max;
        if !expected {
            return Greeting::Stranger;
        }
        let mut moved = None;
        match self.neighbour {
            Some(known) if hello.incarnation < known => return Greeting::Stale,
            Some(known) if hello.incarnation == known => {}
            Some(_) => {
                moved = self.shift(now, Stimulus::Restart, LinkCause::NeighbourRestart);
                self.meet(hello.incarnation);
            }
            None => self.meet(hello.incarnation),
        }
        if hello.answer_wanted {
            self.answer_owed = true;
        }
        self.heard_by_neighbour |= hello.heard == mine.incarnation;
        if self.heard_by_neighbour && self.state == LinkState::Init {
            moved = self.shift(now, Stimulus::Greeted, LinkCause::Hello);
        }
        Greeting::Accepted(moved)
    }

    fn meet(&mut self, incarnation: Incarnation) {
        self.neighbour = Some(incarnation);
        self.heard_by_neighbour = false;
        self.credits = Credits::new(self.config.credits);
        self.generation = self.generation.wrapping_add(1);
        self.sequence_sent = 0;
        self.sequence_received = 0;
        self.heartbeats.heard = 0;
        if let Some(retry) = &mut self.retry {
            retry.meet();
        }
    }

    /// Bits of a Hello's options that are the link's own.
    const fn options(&self) -> u32 {
        (self.retry.is_some() as u32) << 1
    }

    /// Frames that retry gave up with the link since this was asked last.
    pub const fn take_given_up(&mut self) -> u64 {
        core::mem::replace(&mut self.given_up, 0)
    }

    // W-17
    /// A heartbeat came in.
    pub fn hear_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Move> {
        self.heartbeats.hear(now, heartbeat.number);
        match self.state {
            LinkState::Suspect => self.shift(now, Stimulus::Heartbeat, LinkCause::Heartbeat),
            LinkState::Up if matches!(heartbeat.state, LinkState::Down | LinkState::AdminDown) => {
                self.shift(now, Stimulus::NeighbourDown, LinkCause::NeighbourReport)
            }
            LinkState::Probing if self.counts_as_proof(heartbeat) => {
                self.probe_count += 1;
                if self.probe_count < self.timers.up_count {
                    return None;
                }
                self.shift(now, Stimulus::Proven, LinkCause::Heartbeat)
            }
            _ => None,
        }
    }

    /// A probed link is proven by heartbeats that say "I am not down, and I have heard your last ones".
    fn counts_as_proof(&self, heartbeat: &Heartbeat) -> bool {
        let willing = matches!(heartbeat.state, LinkState::Probing | LinkState::Up | LinkState::Suspect);
        willing && self.heartbeats.sent.wrapping_sub(heartbeat.heard) <= 2
    }

    /// The carrier changed.
    pub fn hear_carrier(&mut self, now: Instant, up: bool) -> Option<Move> {
        if up { None } else { self.shift(now, Stimulus::CarrierLost, LinkCause::Carrier) }
    }

    /// The user switches the link off or on.
    pub fn administer(&mut self, now: Instant, enabled: bool) -> Option<Move> {
        let stimulus = if enabled { Stimulus::Enable } else { Stimulus::Disable };
        self.shift(now, stimulus, LinkCause::Administrator)
    }

    /// Time has passed.
    pub fn hear_time(&mut self, now: Instant) -> Option<Move> {
        match self.state {
            LinkState::Up | LinkState::Suspect | LinkState::Probing => match self.heartbeats.judge(now) {
                Silence::OnTime => None,
                Silence::Late => self.shift(now, Stimulus::Late, LinkCause::HeartbeatLate),
                Silence::Dead => self.shift(now, Stimulus::Dead, LinkCause::HeartbeatDead),
            },
            LinkState::Down if now >= self.held_down_until => {
                self.shift(now, Stimulus::HoldDownOver, LinkCause::HoldDownOver)
            }
            _ => None,
        }
    }

    /// Note the sequence number of a received data frame. Returns how many before it never came.
    pub fn note_sequence(&mut self, sequence: u32) -> u32 {
        if !is_ahead(sequence, self.sequence_received) {
            return 0;
        }
        let missing = sequence.wrapping_sub(self.sequence_received) - 1;
        self.sequence_received = sequence;
        missing
    }

    /// Number a data frame of this cost: (sequence, consumed).
    pub fn number_data(&mut self, cost: u32) -> (u32, u32) {
        self.sequence_sent = self.sequence_sent.wrapping_add(1);
        (self.sequence_sent, self.consume(cost))
    }

    /// A frame of this cost leaves: the credits consumed so far. Whoever waited for some has got them.
    pub const fn consume(&mut self, cost: u32) -> u32 {
        if cost > 0 {
            self.credit_probe_at = None;
        }
        self.credits.consume(cost)
    }

    /// Fill in what every header says about the opposite direction, and the counters of frames that have no number.
    pub fn complete(&mut self, header: &mut LinkHeader, is_numbered: bool) {
        header.freed = self.credits.announce();
        if let Some(retry) = &mut self.retry {
            header.link_ack = retry.receiver.received();
            if !is_numbered {
                header.sequence = retry.sender.sent();
                header.consumed = self.credits.consumed();
            }
            return;
        }
        header.link_ack = self.sequence_received;
        if !is_numbered {
            header.sequence = self.sequence_sent;
            header.consumed = self.credits.consumed();
        }
    }

    // W-19
    /// Whether data of this cost and length may leave now.
    #[must_use]
    pub fn admits(&self, cost: u32, bytes: usize) -> bool {
        self.state.carries_data() && self.credits.available() >= cost && self.window_admits(bytes)
    }

    /// Whether retry has room for a frame of this length.
    #[must_use]
    pub fn window_admits(&self, bytes: usize) -> bool {
        self.retry.as_ref().is_none_or(|retry| retry.sender.admits(bytes))
    }

    /// Whether a routed frame that needs no credits may leave now.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.state.carries_data() && self.retry.as_ref().is_none_or(|retry| retry.sender.has_room())
    }

    /// Data waits for credits. Returns true when this begins a stall.
    pub fn note_stall(&mut self, now: Instant) -> bool {
        let begins = self.credit_probe_at.is_none();
        if begins {
            self.credit_probe_at = Some(now + self.timers.hello_interval_ns);
        }
        begins
    }

    /// Whether data waits for credits.
    #[must_use]
    pub const fn is_stalled(&self) -> bool {
        self.credit_probe_at.is_some()
    }

    /// Whether a stall has lasted so long that the neighbour must be asked: its last update may be lost, or the frames
    /// that it should have freed.
    #[must_use]
    pub fn credit_probe_due(&self, now: Instant) -> bool {
        self.state.carries_data() && self.credit_probe_at.is_some_and(|at| now >= at)
    }

    /// A credit frame leaves. Returns whether it asks for an answer.
    pub fn send_credit(&mut self, now: Instant) -> bool {
        self.credit_wanted = false;
        let asks = self.credit_probe_due(now);
        if asks {
            // Whoever waited has gone elsewhere if everything is free; then this probe is the last.
            let waits = self.credits.available() < self.config.credits.limit;
            self.credit_probe_at = waits.then_some(now + self.timers.hello_interval_ns);
        }
        asks
    }

    /// Whether a credit frame is due.
    #[must_use]
    pub fn credit_due(&self, now: Instant) -> bool {
        (self.beats() && (self.credit_wanted || self.credits.update_due())) || self.credit_probe_due(now)
    }

    /// Whether a Hello is due.
    #[must_use]
    pub fn hello_due(&self, now: Instant) -> bool {
        self.answer_owed || (self.greets() && now >= self.hello_due)
    }

    /// A link greets until it has been heard; a restarted neighbour is greeted again.
    fn greets(&self) -> bool {
        self.state != LinkState::AdminDown && !self.heard_by_neighbour
    }

    /// A Hello leaves: (heard, answer wanted).
    pub fn send_hello(&mut self, now: Instant) -> (Incarnation, bool) {
        self.answer_owed = false;
        self.hellos_sent = self.hellos_sent.saturating_add(1);
        let eager = self.hellos_sent < EAGER_HELLOS;
        self.hello_due =
            now + if eager { self.timers.hello_interval_ns } else { self.timers.heartbeat_interval_ns };
        (self.neighbour.unwrap_or_default(), !self.heard_by_neighbour)
    }

    /// Whether a heartbeat is due.
    #[must_use]
    pub fn heartbeat_due(&self, now: Instant) -> bool {
        self.beats() && self.heartbeats.send_due(now)
    }

    const fn beats(&self) -> bool {
        !matches!(self.state, LinkState::Init | LinkState::AdminDown)
    }

    /// A heartbeat leaves.
    pub fn send_heartbeat(&mut self, now: Instant, digest: u32) -> Heartbeat {
        let number = self.heartbeats.send(now);
        Heartbeat { number, heard: self.heartbeats.heard, state: self.state, digest }
    }

    /// When `hear_time` or a control frame is next due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let mut earliest = if self.greets() { self.hello_due } else { Instant::NEVER };
        if self.beats() {
            earliest = earliest.min(self.heartbeats.next_send());
        }
        if let Some(at) = self.credit_probe_at
            && self.state.carries_data()
        {
            earliest = earliest.min(at);
        }
        if let Some(retry) = &self.retry {
            earliest = earliest.min(retry.deadline());
        }
        match self.state {
            LinkState::Up => earliest.min(self.heartbeats.deadline(false)),
            LinkState::Suspect | LinkState::Probing => earliest.min(self.heartbeats.deadline(true)),
            LinkState::Down => earliest.min(self.held_down_until),
            LinkState::Init | LinkState::AdminDown => earliest,
        }
    }

    /// The Hello that this end says, apart from what [`Link::send_hello`] fills in.
    #[must_use]
    pub fn hello(&self, mut template: Hello, port: PortId) -> Hello {
        template.port = port;
        template.plane = self.config.plane;
        template.options |= self.options();
        template
    }
}
