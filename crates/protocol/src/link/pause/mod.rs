//! Priority flow control (PFC-like): a receiver whose buffer fills requests its neighbour to pause, per channel.
//!
//! Pauses replace the credits of a link: the sender sends until it receives a pause. `occupancy` is the receiving end of a
//! channel, `gate` the sending end, `state` the table of the sending end's states. Only data is paused. Control
//! frames and transport acknowledgements always leave, so a pause and its end always arrive.
//!
//! Pauses guarantee less than credits: frames in flight when a pause leaves need headroom, a lost pause is repeated
//! only later, and paused links can wait for each other in a cycle. A watchdog ends such a cycle, with losses.

mod gate;
mod occupancy;
pub mod state;

use crate::config::PauseConfig;
use crate::ids::Channel;
use crate::link::counters::PauseCounters;
use crate::per_channel::PerChannel;
use crate::time::Instant;
use gate::{Gate, Shift};
use occupancy::Occupancy;
use state::{PauseState, PauseStimulus};

/// Both ends, sending and receiving, of the channels of one link.
#[derive(Debug)]
pub struct Pauses {
    /// Pause settings of the port.
    pub config: PauseConfig,
    occupancies: PerChannel<Occupancy>,
    gates: PerChannel<Gate>,
}

/// State change of one channel's sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateChange {
    /// Channel that changed.
    pub channel: Channel,
    /// State after the change.
    pub state: PauseState,
}

impl Pauses {
    /// Returns the state of a link on which no pause was sent or received.
    #[must_use]
    pub fn new(config: PauseConfig, channel_count: usize) -> Self {
        Self {
            config,
            occupancies: PerChannel::new(channel_count, |_| Occupancy::EMPTY),
            gates: PerChannel::new(channel_count, |_| Gate::OPEN),
        }
    }

    // ---- the receiving end -----------------------------------------------------------------------------------------

    // W-72
    /// Returns true if a frame of `bytes` has space on a channel whose neighbour is paused above `xoff_bytes`.
    #[must_use]
    pub fn has_space(&self, channel: Channel, bytes: usize, xoff_bytes: u64) -> bool {
        self.occupancies.of(channel).beyond_with(bytes, xoff_bytes) <= self.config.headroom_bytes.into()
    }

    /// Number of bytes of a channel that are held below xoff.
    #[must_use]
    pub fn below_bytes(&self, channel: Channel) -> u64 {
        self.occupancies.of(channel).below_bytes()
    }

    /// Records that a frame is held.
    pub fn hold(&mut self, channel: Channel, bytes: usize, xoff_bytes: u64, counters: &mut PauseCounters) {
        let occupancy = self.occupancies.of_mut(channel);
        occupancy.hold(bytes, xoff_bytes);
        counters.held_bytes_max = counters.held_bytes_max.max(occupancy.held_bytes());
    }

    /// Records that a held frame has left.
    pub fn end_hold(&mut self, channel: Channel, bytes: usize, xon_bytes: u64) {
        let occupancy = self.occupancies.of_mut(channel);
        occupancy.end_hold(bytes);
        occupancy.resume_below(xon_bytes);
    }

    /// Resumes the channels that hold at most `xon_bytes`, after space has grown. Returns true if any pause or resume
    /// is due.
    pub fn resume_below(&mut self, xon_bytes: u64) -> bool {
        self.occupancies.iter_mut().for_each(|occupancy| occupancy.resume_below(xon_bytes));
        self.occupancies.any(|_, occupancy| occupancy.is_due(Instant::ZERO))
    }

    /// Returns true if the neighbour is requested to pause a channel.
    #[must_use]
    pub fn is_pausing(&self, channel: Channel) -> bool {
        self.occupancies.of(channel).is_pausing()
    }

    /// Returns true if a pause or resume must be sent.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.occupancies.any(|_, occupancy| occupancy.is_due(now))
    }

    // W-71
    /// Returns the next pause message to send: the channel and the quanta; 0 is a resume.
    pub fn next_message(&mut self, now: Instant, counters: &mut PauseCounters) -> Option<(Channel, u16)> {
        let channel = self.occupancies.position(|_, occupancy| occupancy.is_due(now))?;
        let pause_ns = self.config.pause_ns(self.config.quanta);
        if self.occupancies.of_mut(channel).next_message(now, pause_ns) {
            counters.tx_pause += 1;
            Some((channel, self.config.quanta))
        } else {
            counters.tx_resume += 1;
            Some((channel, 0))
        }
    }

    // ---- the sending end -------------------------------------------------------------------------------------------

    /// Returns the state of a channel's sending end.
    #[must_use]
    pub fn state(&self, channel: Channel) -> PauseState {
        self.gates.of(channel).state()
    }

    // W-70
    /// Handles a received pause message.
    pub fn receive(
        &mut self,
        now: Instant,
        channel: Channel,
        quanta: u16,
        counters: &mut PauseCounters,
    ) -> Option<GateChange> {
        *(if quanta == 0 { &mut counters.rx_resume } else { &mut counters.rx_pause }) += 1;
        let shift = self.gates.of_mut(channel).receive(now, quanta, &self.config);
        note(channel, shift, counters)
    }

    // W-73
    /// Handles the passage of time. Returns one channel that changes; call again until the result is `None`.
    pub fn handle_time(
        &mut self,
        now: Instant,
        data_waits: impl Fn(Channel) -> bool,
        counters: &mut PauseCounters,
    ) -> Option<GateChange> {
        let Self { config, gates, .. } = self;
        let channel = gates.position(|_, gate| now >= gate.deadline())?;
        let shift = gates.of_mut(channel).handle_time(now, data_waits(channel), config);
        note(channel, shift, counters)
    }

    /// Ends all pauses, because the link no longer carries data.
    pub fn stop(&mut self, now: Instant, counters: &mut PauseCounters) {
        self.occupancies.iter_mut().for_each(Occupancy::forget);
        for gate in self.gates.iter_mut() {
            let shift = gate.begin_session(now, PauseStimulus::LinkLost, &self.config);
            counters.paused_ns += shift.map_or(0, |shift| shift.paused_ns);
        }
    }

    /// Returns the time at which the pauses must be polled next.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.occupancies.least(Occupancy::deadline).min(self.gates.least(Gate::deadline))
    }
}

fn note(channel: Channel, shift: Option<Shift>, counters: &mut PauseCounters) -> Option<GateChange> {
    let Shift { to, paused_ns } = shift?;
    counters.paused_ns += paused_ns;
    if to == PauseState::Overridden {
        counters.watchdog += 1;
    }
    Some(GateChange { channel, state: to })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
