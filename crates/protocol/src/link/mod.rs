//! One end of a link: greeting, sequence numbers, credits, heartbeats, state.
//!
//! A [`Link`] decides which control frames are due and whether data may pass. It contains no routes and no streams.
//! Lost frames are replayed by [`retry`] if that is on.

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
use crate::wire::frame::LinkHeader;
use crate::wire::header_prediction::LinkNumbers;
use accounts::Accounts;
use credits::{Credits, is_ahead};
use heartbeat::{Heartbeats, Overdue, Silence};
use pause::Pauses;
use retry::Retry;
use state::{LinkState, Stimulus, next};

/// Number of unanswered Hellos after which their interval grows to the heartbeat interval.
const EAGER_HELLOS: u32 = 500;

/// One end of one link.
#[derive(Debug)]
pub struct Link {
    /// Configuration of the port.
    pub config: PortConfig,
    /// Credits of both directions, by channel.
    pub accounts: Accounts,
    timers: LinkTimers,
    state: LinkState,
    heartbeats: Heartbeats,
    neighbour: Option<Incarnation>,
    /// A later incarnation of the neighbour that has sent a Hello and has not yet proven that it receives from this
    /// end.
    candidate: Option<Incarnation>,
    is_confirmed: bool,
    hello_due: Instant,
    hellos_sent: u32,
    answer_pending: bool,
    held_down_until: Instant,
    probe_count: u32,
    /// True if the neighbour has reported that its end carries data since this end began to do so.
    neighbour_carries: bool,
    sequence_sent: u32,
    sequence_received: u32,
    /// Changes with every new incarnation of the neighbour. Frames held from an earlier generation do not count for
    /// its credits.
    pub generation: u32,
    /// Frames that retry gave up when the link went down, not yet counted.
    given_up: u64,
    /// Link-level retry, if it is on.
    pub retry: Option<Box<Retry>>,
    /// Pauses, if they replace credits.
    pub pause: Option<Box<Pauses>>,
}

/// State change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// State before the change.
    pub from: LinkState,
    /// State after the change.
    pub to: LinkState,
    /// Cause of the change.
    pub cause: LinkCause,
}

/// Result of a received Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// The Hello is from an unexpected member or contradicts the plan.
    Unexpected,
    /// The Hello is of an earlier incarnation than the current one.
    Stale,
    /// The Hello is accepted. The link's state may have changed.
    Accepted(Option<Move>),
}

impl Link {
    /// Returns a link of `member` that has never been up.
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
            is_confirmed: false,
            hello_due: Instant::ZERO,
            hellos_sent: 0,
            answer_pending: false,
            held_down_until: Instant::NEVER,
            probe_count: 0,
            neighbour_carries: false,
            sequence_sent: 0,
            sequence_received: 0,
            generation: 0,
            given_up: 0,
        }
    }

    /// Returns the incarnation of the neighbour that this end has accepted.
    #[must_use]
    pub const fn neighbour_incarnation(&self) -> Option<Incarnation> {
        self.neighbour
    }

    /// Returns the state of the link.
    #[must_use]
    pub const fn state(&self) -> LinkState {
        self.state
    }

    // W-64
    /// Returns true if both ends carry data, as far as this end can tell. Two ends that have greeted each other are
    /// assumed to. When a link returns, one end is ready before the other, which still drops what it receives.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.state.carries_data() && self.neighbour_carries
    }

    fn shift(&mut self, now: Instant, stimulus: Stimulus, cause: LinkCause) -> Option<Move> {
        self.check();
        let from = self.state;
        let to = next(from, stimulus);
        if from == to {
            return None;
        }
        self.state = to;
        match to {
            LinkState::Down => self.held_down_until = now + self.timers.hold_down_ns,
            LinkState::Suspect => self.heartbeats.end_rest(now),
            LinkState::Probing => {
                self.probe_count = 0;
                self.heartbeats.start(now);
            }
            LinkState::Up if from == LinkState::Init => {
                self.neighbour_carries = true;
                self.heartbeats.start(now);
            }
            // The other end may be ready and waits for this heartbeat.
            LinkState::Up if from == LinkState::Probing => self.heartbeats.send_soon(now),
            _ => {}
        }
        self.neighbour_carries &= to.carries_data();
        if from.carries_data() && !to.carries_data() && !self.accounts.resync() {
            // Only this recovers leaked credits. Frames held from before do not count for the new accounts.
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
        self.check();
        Some(Move { from, to, cause })
    }

    /// Asserts what holds before and after every state change.
    ///
    /// A frame cannot break it. Before it may stimulate the link, its session is compared with the incarnation that
    /// both ends have confirmed, and the table of states decides the rest.
    fn check(&self) {
        let carries_data = self.state.carries_data();
        assert!(self.is_confirmed || !carries_data, "a link carries data without a confirmed session");
        assert!(carries_data || !self.neighbour_carries, "a link that carries no data counts as whole");
        assert!(self.neighbour.is_some() || !self.is_confirmed, "a session without a neighbour is confirmed");
        assert!(
            self.neighbour.is_some() || self.candidate.is_none(),
            "a candidate precedes the first session"
        );
    }

    // W-6
    /// Returns true if a frame's session belongs to the neighbour's present incarnation and the neighbour has
    /// accepted this end's incarnation. Earlier frames carry counters of an earlier session.
    #[must_use]
    pub fn accepts_session(&self, session: u16) -> bool {
        self.is_confirmed && self.neighbour.is_some_and(|incarnation| incarnation.tag() as u16 == session)
    }

    // W-16
    /// Handles a received Hello.
    pub fn receive_hello(&mut self, now: Instant, hello: &Hello, mine: &Hello) -> HelloOutcome {
        let expected = hello.node == self.config.neighbour
            && hello.plane == self.config.plane
            && hello.options == mine.options | self.options()
            && hello.frame_bytes_max == mine.frame_bytes_max;
        if !expected {
            return HelloOutcome::Unexpected;
        }
        let mut moved = None;
        // W-89: an incarnation that has not proven anything may be forged.
        let is_echo = hello.received_incarnation == mine.incarnation;
        match self.neighbour {
            Some(known) if hello.incarnation == known => {}
            Some(known) if hello.incarnation < known && (self.is_confirmed || !is_echo) => {
                return HelloOutcome::Stale;
            }
            Some(_) if self.is_confirmed && !is_echo => {
                if self.candidate.is_none() {
                    self.hellos_sent = 0;
                }
                self.candidate = Some(hello.incarnation);
                self.answer_pending = true;
                return HelloOutcome::Accepted(None);
            }
            Some(_) => {
                moved = self.shift(now, Stimulus::Restart, LinkCause::NeighbourRestart);
                self.begin_session(hello.incarnation);
            }
            None => self.begin_session(hello.incarnation),
        }
        if hello.requests_answer {
            self.answer_pending = true;
        }
        self.is_confirmed |= is_echo;
        if self.is_confirmed && self.state == LinkState::Init {
            moved = self.shift(now, Stimulus::HelloAccepted, LinkCause::Hello);
        }
        HelloOutcome::Accepted(moved)
    }

    fn begin_session(&mut self, incarnation: Incarnation) {
        self.neighbour = Some(incarnation);
        self.candidate = None;
        self.is_confirmed = false;
        self.begin_accounts();
        self.generation = self.generation.wrapping_add(1);
        self.sequence_sent = 0;
        self.sequence_received = 0;
        self.heartbeats.received_number = 0;
        if let Some(retry) = &mut self.retry {
            retry.begin_session();
        }
        self.check();
    }

    fn begin_accounts(&mut self) {
        self.accounts = Accounts::new(&self.config, self.accounts.count(), self.timers.hello_interval_ns);
    }

    // W-32
    /// Returns the option bits of a Hello that belong to the link: retry, pauses, and the number of additional
    /// channels.
    const fn options(&self) -> u32 {
        let (retry, pause) = (self.retry.is_some() as u32, self.pause.is_some() as u32);
        retry << 1 | pause << 2 | (self.accounts.count() as u32 - 1) << 8
    }

    /// Returns the counters of a channel.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    #[must_use]
    pub fn credits(&self, channel: Channel) -> &Credits {
        self.accounts.credits(channel)
    }

    /// Returns the counters of a channel for changes.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    pub fn credits_mut(&mut self, channel: Channel) -> &mut Credits {
        self.accounts.credits_mut(channel)
    }

    /// Returns the frames that retry gave up when the link went down, since the last call.
    pub const fn take_given_up(&mut self) -> u64 {
        core::mem::replace(&mut self.given_up, 0)
    }

    // W-17, W-31
    /// Handles a received heartbeat.
    pub fn receive_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Move> {
        self.heartbeats.receive(now, heartbeat.number, heartbeat.intervals);
        if heartbeat.state != LinkState::Up {
            self.heartbeats.end_rest(now);
        }
        let moved = self.judge_heartbeat(now, heartbeat);
        self.neighbour_carries |= self.state.carries_data() && heartbeat.state.carries_data();
        moved
    }

    fn judge_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Move> {
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
                self.shift(now, Stimulus::Confirmed, LinkCause::Heartbeat)
            }
            _ => None,
        }
    }

    /// Returns true if this heartbeat proves a probed link: its sender is not down and has received this end's last
    /// heartbeats.
    fn counts_as_proof(&self, heartbeat: &Heartbeat) -> bool {
        let willing = matches!(heartbeat.state, LinkState::Probing | LinkState::Up | LinkState::Suspect);
        willing && self.heartbeats.sent.wrapping_sub(heartbeat.received_number) <= 2
    }

    // W-50
    /// Handles a departure message of the neighbour. A heartbeat answers it at once, so that the neighbour can leave
    /// without a timeout.
    pub fn receive_departure(&mut self, now: Instant) -> Option<Move> {
        self.heartbeats.send_soon(now);
        self.shift(now, Stimulus::NeighbourDown, LinkCause::NeighbourReport)
    }

    /// Handles a carrier change.
    pub fn handle_carrier(&mut self, now: Instant, up: bool) -> Option<Move> {
        if up { None } else { self.shift(now, Stimulus::CarrierLost, LinkCause::Carrier) }
    }

    // W-17
    /// Handles the exchange of the cable for a new one, which begins as a link that has never been up: no hold-down is due, because it was not this
    /// cable that failed. Returns the state changes in their order.
    pub fn handle_new_cable(&mut self, now: Instant) -> [Option<Move>; 2] {
        let lost = self.shift(now, Stimulus::CarrierLost, LinkCause::Carrier);
        let begun = self.shift(now, Stimulus::NewCable, LinkCause::NewCable);
        (self.hellos_sent, self.hello_due) = (0, now);
        [lost, begun]
    }

    /// Disables or enables the link by user command.
    pub fn administer(&mut self, now: Instant, enabled: bool) -> Option<Move> {
        let stimulus = if enabled { Stimulus::Enable } else { Stimulus::Disable };
        self.shift(now, stimulus, LinkCause::Administrator)
    }

    /// Handles the passage of time. Call it when [`Link::deadline`] is reached.
    pub fn handle_time(&mut self, now: Instant) -> Option<Move> {
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

    /// Returns the times of the neighbour's present silence, or `None` if no heartbeat is overdue.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<Overdue> {
        let is_watched = matches!(self.state, LinkState::Up | LinkState::Suspect | LinkState::Probing);
        (is_watched && self.heartbeats.is_late(now)).then(|| self.heartbeats.overdue())
    }

    /// Sets how much of the neighbour's present silence does not count ([`Heartbeats::extend_timeout`]).
    pub fn extend_timeout(&mut self, now: Instant, extension_ns: u64) {
        self.heartbeats.extend_timeout(now, extension_ns);
    }

    /// Records the sequence number of a received data frame. Returns the number of frames missing before it, or
    /// `None` if the frame is not new.
    pub fn note_sequence(&mut self, sequence: u32) -> Option<u32> {
        if !is_ahead(sequence, self.sequence_received) {
            return None;
        }
        let missing = sequence.wrapping_sub(self.sequence_received) - 1;
        self.sequence_received = sequence;
        Some(missing)
    }

    /// Numbers a data frame of this length. Returns (sequence, credits consumed).
    #[inline]
    pub fn number_data(&mut self, channel: Channel, bytes: usize) -> (u32, u32) {
        self.sequence_sent = self.sequence_sent.wrapping_add(1);
        (self.sequence_sent, self.accounts.consume_bytes(channel, bytes))
    }

    /// Returns the link fields of a frame without a number of its own, on a link of one channel without retry: the
    /// numbers of the last numbered frame, and the state of the opposite direction.
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

    /// Records that `frames` data frames, of this cost together, were numbered consecutively and have left.
    #[inline]
    pub fn note_numbered(&mut self, channel: Channel, frames: u32, cost: u32) {
        self.sequence_sent = self.sequence_sent.wrapping_add(frames);
        self.accounts.consume(channel, cost);
        self.accounts.credits_mut(channel).announce();
    }

    /// Returns the last number given and the credits consumed so far, for frames without a number: (sequence,
    /// consumed).
    #[must_use]
    pub fn last_numbers(&self, channel: Channel) -> (u32, u32) {
        (self.sequence_sent, self.credits(channel).consumed())
    }

    /// Returns the state of the opposite direction for a header on a link of one channel without retry: link
    /// acknowledgement and credits freed.
    #[inline]
    pub fn reverse_state(&mut self) -> (u32, u32) {
        (self.sequence_received, self.accounts.credits_mut(Channel(0)).announce())
    }

    // W-32
    /// Fills in the header fields about the opposite direction of the channel, and the counters of frames without a
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
    /// Returns true if data of this cost and length may leave on a channel now.
    #[inline]
    #[must_use]
    pub fn admits(&self, channel: Channel, cost: u32, bytes: usize) -> bool {
        self.state.carries_data() && self.credits(channel).available() >= cost && self.window_admits(bytes)
    }

    /// Returns true if the retry window admits a frame of this length.
    #[must_use]
    pub fn window_admits(&self, bytes: usize) -> bool {
        self.retry.as_ref().is_none_or(|retry| retry.sender.admits(bytes))
    }

    /// Returns true if a routed frame that needs no credits may leave now.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.state.carries_data() && self.retry.as_ref().is_none_or(|retry| retry.sender.has_space())
    }

    /// Chooses the channel of a credit frame that leaves now. Returns it, and true if the frame must request an
    /// answer.
    pub fn send_credit(&mut self, now: Instant) -> (Channel, bool) {
        self.accounts.send(now, self.sends_heartbeats())
    }

    /// Returns true if a credit frame is due.
    #[must_use]
    pub fn credit_due(&self, now: Instant) -> bool {
        (self.sends_heartbeats() && self.accounts.update_due())
            || (self.state.carries_data() && self.accounts.probe_due(now))
    }

    /// Returns true if a Hello is due.
    #[must_use]
    pub fn hello_due(&self, now: Instant) -> bool {
        self.answer_pending || (self.sends_hello() && now >= self.hello_due)
    }

    /// Returns true while this end sends Hellos: until the neighbour has confirmed one, and again after the neighbour
    /// restarts.
    fn sends_hello(&self) -> bool {
        self.state != LinkState::AdminDown && (!self.is_confirmed || self.candidate.is_some())
    }

    /// Records that a Hello leaves. Returns (incarnation received, answer requested).
    pub fn send_hello(&mut self, now: Instant) -> (Incarnation, bool) {
        self.answer_pending = false;
        self.hellos_sent = self.hellos_sent.saturating_add(1);
        let eager = self.hellos_sent < EAGER_HELLOS;
        self.hello_due =
            now + if eager { self.timers.hello_interval_ns } else { self.timers.heartbeat_interval_ns };
        // A candidate gets its own incarnation back only after this end has begun a session with it, with new
        // counters.
        (self.neighbour.unwrap_or_default(), !self.is_confirmed || self.candidate.is_some())
    }

    /// Returns true if a heartbeat is due.
    #[must_use]
    pub fn heartbeat_due(&self, now: Instant) -> bool {
        self.sends_heartbeats() && self.heartbeats.send_due(now)
    }

    const fn sends_heartbeats(&self) -> bool {
        !matches!(self.state, LinkState::Init | LinkState::AdminDown)
    }

    /// Returns the channel whose counters the next heartbeat carries. All channels follow one another, so that idle
    /// channels are updated too.
    #[must_use]
    pub const fn heartbeat_channel(&self) -> Channel {
        Channel((self.heartbeats.sent as usize % self.accounts.count()) as u8)
    }

    // W-31
    /// Records that a heartbeat leaves, and returns it. `frames` counts all frames sent and received on this link.
    /// `agrees` is true if both ends hold equal reports.
    pub fn send_heartbeat(&mut self, now: Instant, frames: u64, agrees: bool, digest: u32) -> Heartbeat {
        let may_rest = self.state == LinkState::Up && agrees && self.heartbeats.is_quiet(frames);
        let (number, intervals) = self.heartbeats.send(now, frames, may_rest);
        Heartbeat {
            number,
            received_number: self.heartbeats.received_number,
            state: self.state,
            intervals,
            digest,
        }
    }

    /// Returns the time at which `handle_timeout` must be called or a control frame is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let mut earliest = if self.sends_hello() { self.hello_due } else { Instant::NEVER };
        if self.sends_heartbeats() {
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

    /// Returns the Hello of this end, without what [`Link::send_hello`] returns.
    #[must_use]
    pub fn hello(&self, mut template: Hello, port: PortId) -> Hello {
        template.port = port;
        template.plane = self.config.plane;
        template.options |= self.options();
        template
    }
}
