//! One neighbour: greeting, sequence, credits, heartbeat, state.
//!
//! A [`Link`] decides which control frames are due and whether data may pass; it does not know routes or streams.
//! What is lost on the way is repeated by [`retry`], where that is on.

pub mod accounts;
pub mod counters;
pub mod credits;
pub mod heartbeat;
mod matrix;
pub mod pause;
pub mod retry;
pub mod state;

use alloc::boxed::Box;

use crate::config::{LinkTimers, PortConfig};
use crate::event::LinkCause;
use crate::ids::{Channel, Incarnation, NodeId, PortId};
use crate::time::Instant;
use crate::wire::control::{Heartbeat, Hello};
use crate::wire::familiar::LinkNumbers;
use crate::wire::frame::LinkHeader;
use accounts::Accounts;
use credits::{Credits, is_ahead};
use heartbeat::{Heartbeats, Silence};
use pause::Pauses;
use retry::Retry;
use state::{LinkState, Stimulus, next};

/// After this many unanswered Hellos the pace drops to the heartbeat interval.
const EAGER_HELLOS: u32 = 500;

/// One end of one link.
#[derive(Debug)]
pub struct Link {
    /// What the plan says of the port.
    pub config: PortConfig,
    /// Credits of both directions, by channel.
    pub accounts: Accounts,
    timers: LinkTimers,
    state: LinkState,
    heartbeats: Heartbeats,
    neighbour: Option<Incarnation>,
    /// A later incarnation of the neighbour that has greeted and has not proven yet that it hears this end.
    candidate: Option<Incarnation>,
    heard_by_neighbour: bool,
    hello_due: Instant,
    hellos_sent: u32,
    answer_owed: bool,
    held_down_until: Instant,
    probe_count: u32,
    /// As far as the neighbour has said since this end began to carry data, its end does too.
    neighbour_carries: bool,
    sequence_sent: u32,
    sequence_received: u32,
    /// Changes with every new life of the neighbour: frames held from before do not count for its credits.
    pub generation: u32,
    /// Frames that retry gave up with the link, and nobody has counted yet.
    given_up: u64,
    /// Link-level retry, where it is on.
    pub retry: Option<Box<Retry>>,
    /// Pauses, where they take the place of credits.
    pub pause: Option<Box<Pauses>>,
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

/// A neighbour whose heartbeat is overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Time of its last heartbeat.
    pub since: Instant,
    /// Time from which its silence counts: later than `since` after this member itself was not running.
    pub counted_from: Instant,
    /// Time at which the link goes down without another heartbeat.
    pub dead_at: Instant,
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
    pub fn new(
        config: PortConfig,
        channel_count: usize,
        timers: LinkTimers,
        member: NodeId,
        frame_bytes_max: u16,
    ) -> Self {
        let retry = config
            .retry
            .map(|retry| Box::new(Retry::new(retry, timers.hello_interval_ns, usize::from(frame_bytes_max))));
        Self {
            retry,
            pause: config.pause.map(|pause| Box::new(Pauses::new(pause, channel_count))),
            accounts: Accounts::new(&config, channel_count, timers.hello_interval_ns),
            config,
            timers,
            state: LinkState::Init,
            heartbeats: Heartbeats::new(&timers, member),
            neighbour: None,
            candidate: None,
            heard_by_neighbour: false,
            hello_due: Instant::ZERO,
            hellos_sent: 0,
            answer_owed: false,
            held_down_until: Instant::NEVER,
            probe_count: 0,
            neighbour_carries: false,
            sequence_sent: 0,
            sequence_received: 0,
            generation: 0,
            given_up: 0,
        }
    }

    /// The life of the neighbour that has been met here.
    #[must_use]
    pub const fn neighbour_life(&self) -> Option<Incarnation> {
        self.neighbour
    }

    /// The link's state.
    #[must_use]
    pub const fn state(&self) -> LinkState {
        self.state
    }

    // W-64
    /// Whether both ends carry data, as far as is known here. Of two that have greeted each other that is taken for granted; where a
    /// link returns, one end is ready before the other, which still drops what comes.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.state.carries_data() && self.neighbour_carries
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
            LinkState::Suspect => self.heartbeats.rouse(now),
            LinkState::Probing => {
                self.probe_count = 0;
                self.heartbeats.start(now);
            }
            LinkState::Up if from == LinkState::Init => {
                self.neighbour_carries = true;
                self.heartbeats.start(now);
            }
            // The other end may be ready, and waits for this word.
            LinkState::Up if from == LinkState::Probing => self.heartbeats.hasten(now),
            _ => {}
        }
        self.neighbour_carries &= to.carries_data();
        if from.carries_data() && !to.carries_data() && !self.accounts.resync() {
            // Nothing else brings leaked credits back. Frames held from before count for none of the new ones.
            self.begin_accounts();
            self.generation = self.generation.wrapping_add(1);
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

    // W-6
    /// Whether a frame's session is of the neighbour's present life, and was sent since the neighbour knows of this one. What it sent before
    /// has counters of an earlier session.
    #[must_use]
    pub fn knows(&self, session: u16) -> bool {
        self.heard_by_neighbour && self.neighbour.is_some_and(|life| life.tag() as u16 == session)
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
        // W-89
        let is_echo = hello.heard == mine.incarnation;
        match self.neighbour {
            Some(known) if hello.incarnation == known => {}
            // The one that is known may be forged as long as it has proven nothing.
            Some(known) if hello.incarnation < known && (self.heard_by_neighbour || !is_echo) => {
                return Greeting::Stale;
            }
            Some(_) if self.heard_by_neighbour && !is_echo => {
                if self.candidate.is_none() {
                    self.hellos_sent = 0;
                }
                self.candidate = Some(hello.incarnation);
                self.answer_owed = true;
                return Greeting::Accepted(None);
            }
            Some(_) => {
                moved = self.shift(now, Stimulus::Restart, LinkCause::NeighbourRestart);
                self.meet(hello.incarnation);
            }
            None => self.meet(hello.incarnation),
        }
        if hello.answer_wanted {
            self.answer_owed = true;
        }
        self.heard_by_neighbour |= is_echo;
        if self.heard_by_neighbour && self.state == LinkState::Init {
            moved = self.shift(now, Stimulus::Greeted, LinkCause::Hello);
        }
        Greeting::Accepted(moved)
    }

    fn meet(&mut self, incarnation: Incarnation) {
        self.neighbour = Some(incarnation);
        self.candidate = None;
        self.heard_by_neighbour = false;
        self.begin_accounts();
        self.generation = self.generation.wrapping_add(1);
        self.sequence_sent = 0;
        self.sequence_received = 0;
        self.heartbeats.heard = 0;
        if let Some(retry) = &mut self.retry {
            retry.meet();
        }
    }

    fn begin_accounts(&mut self) {
        self.accounts = Accounts::new(&self.config, self.accounts.count(), self.timers.hello_interval_ns);
    }

    // W-32
    /// Bits of a Hello's options that are the link's own: retry, pauses, and how many channels there are beside the first.
    const fn options(&self) -> u32 {
        let (retry, pause) = (self.retry.is_some() as u32, self.pause.is_some() as u32);
        retry << 1 | pause << 2 | (self.accounts.count() as u32 - 1) << 8
    }

    /// The counters of a channel.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    #[must_use]
    pub fn credits(&self, channel: Channel) -> &Credits {
        self.accounts.credits(channel)
    }

    /// The counters of a channel, to be changed.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    pub fn credits_mut(&mut self, channel: Channel) -> &mut Credits {
        self.accounts.credits_mut(channel)
    }

    /// Frames that retry gave up with the link since this was asked last.
    pub const fn take_given_up(&mut self) -> u64 {
        core::mem::replace(&mut self.given_up, 0)
    }

    // W-17, W-31
    /// A heartbeat came in.
    pub fn hear_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Move> {
        self.heartbeats.hear(now, heartbeat.number, heartbeat.intervals);
        if heartbeat.state != LinkState::Up {
            self.heartbeats.rouse(now);
        }
        let moved = self.weigh_heartbeat(now, heartbeat);
        self.neighbour_carries |= self.state.carries_data() && heartbeat.state.carries_data();
        moved
    }

    fn weigh_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Move> {
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

    // W-50
    /// The neighbour says that it leaves. It is answered at once, so that it need not stay longer than it wants.
    pub fn receive_departure(&mut self, now: Instant) -> Option<Move> {
        self.heartbeats.hasten(now);
        self.shift(now, Stimulus::NeighbourDown, LinkCause::NeighbourReport)
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
        if self.state == LinkState::Up {
            self.heartbeats.notice(now);
        }
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

    /// Since when the neighbour has been silent and when that makes the link go down, if its heartbeat is overdue.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<Overdue> {
        let is_watched = matches!(self.state, LinkState::Up | LinkState::Suspect | LinkState::Probing);
        (is_watched && self.heartbeats.is_late(now)).then(|| self.heartbeats.overdue())
    }

    /// Sets how much of the neighbour's present silence does not count ([`Heartbeats::excuse`]).
    pub fn excuse(&mut self, now: Instant, excused_ns: u64) {
        self.heartbeats.excuse(now, excused_ns);
    }

    /// Note the sequence number of a received data frame. Returns how many before it never came; `None` if it is no new one.
    pub fn note_sequence(&mut self, sequence: u32) -> Option<u32> {
        if !is_ahead(sequence, self.sequence_received) {
            return None;
        }
        let missing = sequence.wrapping_sub(self.sequence_received) - 1;
        self.sequence_received = sequence;
        Some(missing)
    }

    /// Number a data frame of this length: (sequence, consumed).
    #[inline]
    pub fn number_data(&mut self, channel: Channel, bytes: usize) -> (u32, u32) {
        self.sequence_sent = self.sequence_sent.wrapping_add(1);
        (self.sequence_sent, self.accounts.consume_bytes(channel, bytes))
    }

    /// What a header on a link of one channel and without retry says that has no number of its own: those of the frame numbered
    /// last, and what is known of the opposite direction.
    #[inline]
    #[must_use]
    pub fn numbers(&self, channel: Channel) -> LinkNumbers {
        let credits = self.credits(channel);
        LinkNumbers {
            sequence: self.sequence_sent,
            link_ack: self.sequence_received,
            consumed: credits.consumed(),
            freed: credits.freed(),
        }
    }

    /// So many data frames of this cost together have been numbered from there on, and have left.
    #[inline]
    pub fn note_numbered(&mut self, channel: Channel, frames: u32, cost: u32) {
        self.sequence_sent = self.sequence_sent.wrapping_add(frames);
        self.accounts.consume(channel, cost);
        self.accounts.credits_mut(channel).announce();
    }

    /// The last number given and the credits consumed so far, for frames that have no number: (sequence, consumed).
    #[must_use]
    pub fn last_numbers(&self, channel: Channel) -> (u32, u32) {
        (self.sequence_sent, self.credits(channel).consumed())
    }

    /// What every header of a link of one channel and without retry says about the opposite direction: link acknowledgement and
    /// credits freed.
    #[inline]
    pub fn tell(&mut self) -> (u32, u32) {
        (self.sequence_received, self.accounts.credits_mut(Channel(0)).announce())
    }

    // W-32
    /// Fill in what every header says about the opposite direction of its channel, and the counters of frames that have no
    /// number.
    pub fn complete(&mut self, header: &mut LinkHeader, is_numbered: bool) {
        let credits = self.accounts.credits_mut(header.channel);
        header.freed = credits.announce();
        if !is_numbered {
            header.consumed = credits.consumed();
        }
        if let Some(retry) = &mut self.retry {
            header.link_ack = retry.receiver.received();
            if !is_numbered {
                header.sequence = retry.sender.sent();
            }
            return;
        }
        header.link_ack = self.sequence_received;
        if !is_numbered {
            header.sequence = self.sequence_sent;
        }
    }

    // W-19
    /// Whether data of this cost and length may leave on a channel now.
    #[inline]
    #[must_use]
    pub fn admits(&self, channel: Channel, cost: u32, bytes: usize) -> bool {
        self.state.carries_data() && self.credits(channel).available() >= cost && self.window_admits(bytes)
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

    /// A credit frame leaves: of which channel, and whether it asks for an answer.
    pub fn send_credit(&mut self, now: Instant) -> (Channel, bool) {
        self.accounts.send(now, self.beats())
    }

    /// Whether a credit frame is due.
    #[must_use]
    pub fn credit_due(&self, now: Instant) -> bool {
        (self.beats() && self.accounts.update_due())
            || (self.state.carries_data() && self.accounts.probe_due(now))
    }

    /// Whether a Hello is due.
    #[must_use]
    pub fn hello_due(&self, now: Instant) -> bool {
        self.answer_owed || (self.greets() && now >= self.hello_due)
    }

    /// A link greets until it has been heard; a restarted neighbour is greeted again.
    fn greets(&self) -> bool {
        self.state != LinkState::AdminDown && (!self.heard_by_neighbour || self.candidate.is_some())
    }

    /// A Hello leaves: (heard, answer wanted).
    pub fn send_hello(&mut self, now: Instant) -> (Incarnation, bool) {
        self.answer_owed = false;
        self.hellos_sent = self.hellos_sent.saturating_add(1);
        let eager = self.hellos_sent < EAGER_HELLOS;
        self.hello_due =
            now + if eager { self.timers.hello_interval_ns } else { self.timers.heartbeat_interval_ns };
        // A candidate hears its own incarnation only once this end has begun a session with it, and new counters.
        (self.neighbour.unwrap_or_default(), !self.heard_by_neighbour || self.candidate.is_some())
    }

    /// Whether a heartbeat is due.
    #[must_use]
    pub fn heartbeat_due(&self, now: Instant) -> bool {
        self.beats() && self.heartbeats.send_due(now)
    }

    const fn beats(&self) -> bool {
        !matches!(self.state, LinkState::Init | LinkState::AdminDown)
    }

    /// The channel whose counters the next heartbeat brings: all in turn, so that a channel on which nothing moves is brought
    /// up to date too.
    #[must_use]
    pub const fn heartbeat_channel(&self) -> Channel {
        Channel((self.heartbeats.sent as usize % self.accounts.count()) as u8)
    }

    // W-31
    /// A heartbeat leaves. `frames` have been sent and received on this link, of all kinds; `agrees`: its ends hold the same
    /// reports.
    pub fn send_heartbeat(&mut self, now: Instant, frames: u64, agrees: bool, digest: u32) -> Heartbeat {
        let may_rest = self.state == LinkState::Up && agrees && self.heartbeats.is_quiet(frames);
        let (number, intervals) = self.heartbeats.send(now, frames, may_rest);
        Heartbeat { number, heard: self.heartbeats.heard, state: self.state, intervals, digest }
    }

    /// When `hear_time` or a control frame is next due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let mut earliest = if self.greets() { self.hello_due } else { Instant::NEVER };
        if self.beats() {
            earliest = earliest.min(self.heartbeats.next_send());
        }
        if self.state.carries_data() {
            earliest = earliest.min(self.accounts.probe_at());
        }
        if let Some(retry) = &self.retry {
            earliest = earliest.min(retry.deadline());
        }
        if let Some(pause) = &self.pause {
            earliest = earliest.min(pause.deadline());
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
