//! Sending end of a channel that may be paused: its state, and the times at which that changes.
//!
//! A pause takes effect after the response delay, lasts as long as the neighbour requested, and ends early with a
//! resume. If pauses never end while data waits, a watchdog ignores them. Frames that leave then may be dropped by
//! the neighbour, which the transport repairs, and a cycle of paused links ends.
//!
//! A gate holds no frames. The caller states if any wait.

use super::state::{PauseState, PauseStimulus, next};
use crate::config::PauseConfig;
use crate::time::Instant;

/// Sending end of one channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    state: PauseState,
    /// Time at which a received pause takes effect.
    responds_at: Instant,
    /// Time at which the pause expires.
    expires_at: Instant,
    /// Time of the watchdog's next check of a paused or overridden channel.
    watched_at: Instant,
    /// Time at which the channel stopped sending data.
    paused_at: Instant,
}

/// State change of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    /// State after the change.
    pub(super) to: PauseState,
    /// Time in which no data could leave, in nanoseconds, if that ends now.
    pub(super) paused_ns: u64,
}

impl Gate {
    pub(super) const OPEN: Self = Self {
        state: PauseState::Open,
        responds_at: Instant::NEVER,
        expires_at: Instant::NEVER,
        watched_at: Instant::NEVER,
        paused_at: Instant::ZERO,
    };

    pub(super) const fn state(&self) -> PauseState {
        self.state
    }

    /// Handles a pause of so many quanta; 0 is a resume.
    pub(super) fn receive(&mut self, now: Instant, quanta: u16, config: &PauseConfig) -> Option<Shift> {
        if quanta == 0 {
            return self.begin_session(now, PauseStimulus::Resume, config);
        }
        self.expires_at = now + config.pause_ns(quanta);
        let shift = self.begin_session(now, PauseStimulus::Pause, config);
        // Without a response delay a pause takes effect at once.
        let is_at_once = shift.is_some() && config.response_delay_ns == 0;
        if is_at_once { self.begin_session(now, PauseStimulus::Responded, config) } else { shift }
    }

    /// Handles the passage of time. `data_waits` states if data waits on this channel.
    pub(super) fn handle_time(
        &mut self,
        now: Instant,
        data_waits: bool,
        config: &PauseConfig,
    ) -> Option<Shift> {
        let stimulus = match self.state {
            PauseState::Yielding if now >= self.responds_at => PauseStimulus::Responded,
            PauseState::Yielding | PauseState::Paused if now >= self.expires_at => PauseStimulus::Expired,
            PauseState::Paused if now >= self.watched_at && data_waits => PauseStimulus::Stuck,
            PauseState::Paused if now >= self.watched_at => {
                self.watch(now, config);
                return None;
            }
            PauseState::Overridden if now >= self.watched_at => PauseStimulus::Restored,
            _ => return None,
        };
        self.begin_session(now, stimulus, config)
    }

    pub(super) fn begin_session(
        &mut self,
        now: Instant,
        stimulus: PauseStimulus,
        config: &PauseConfig,
    ) -> Option<Shift> {
        let from = self.state;
        let to = next(from, stimulus);
        if from == to {
            return None;
        }
        self.state = to;
        match to {
            PauseState::Open => {}
            PauseState::Yielding => self.responds_at = now + config.response_delay_ns,
            PauseState::Paused => {
                self.paused_at = now;
                self.watch(now, config);
            }
            PauseState::Overridden => self.watch(now, config),
        }
        assert!(from != PauseState::Paused || self.paused_at <= now, "a pause ends before it began");
        let paused_ns = if from == PauseState::Paused { now.since(self.paused_at) } else { 0 };
        Some(Shift { to, paused_ns })
    }

    fn watch(&mut self, now: Instant, config: &PauseConfig) {
        self.watched_at = if config.watchdog_ns == 0 { Instant::NEVER } else { now + config.watchdog_ns };
    }

    pub(super) fn deadline(&self) -> Instant {
        match self.state {
            PauseState::Open => Instant::NEVER,
            PauseState::Yielding => self.responds_at.min(self.expires_at),
            PauseState::Paused => self.expires_at.min(self.watched_at),
            PauseState::Overridden => self.watched_at,
        }
    }
}
