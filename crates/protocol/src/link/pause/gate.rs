//! The sending end of a channel that may be paused: what it has been told, and until when that holds.
//!
//! A pause takes effect once it has been acted upon, lasts as long as the neighbour asked, and is over at a word. Should the
//! words never end while data waits, a watchdog stops heeding them: what leaves then may find no room at the neighbour,
//! which the transport repairs, and a circle of paused links does not last for ever.
//!
//! It does not know what waits, except that something does.

use super::state::{PauseState, PauseStimulus, next};
use crate::config::PauseConfig;
use crate::time::Instant;

/// The sending end of one channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    state: PauseState,
    /// When a pause that was heard has been acted upon.
    responds_at: Instant,
    /// When the pause is over by itself.
    expires_at: Instant,
    /// When the watchdog looks: at a paused channel, or at one that it has opened.
    watched_at: Instant,
    /// When no data left any more.
    paused_at: Instant,
}

/// What a stimulus did to a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    /// State from now on.
    pub(super) to: PauseState,
    /// How long no data could leave, if that is over now.
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

    /// The neighbour asks for a pause of so many quanta; none is a resume.
    pub(super) fn hear(&mut self, now: Instant, quanta: u16, config: &PauseConfig) -> Option<Shift> {
        if quanta == 0 {
            return self.meet(now, PauseStimulus::Resume, config);
        }
        self.expires_at = now + config.pause_ns(quanta);
        let heard = self.meet(now, PauseStimulus::Pause, config);
        // Where nothing has to be waited for, it takes effect at once.
        let is_at_once = heard.is_some() && config.response_delay_ns == 0;
        if is_at_once { self.meet(now, PauseStimulus::Responded, config) } else { heard }
    }

    /// Time has passed; `data_waits` for this channel.
    pub(super) fn hear_time(
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
            PauseState::Defiant if now >= self.watched_at => PauseStimulus::Restored,
            _ => return None,
        };
        self.meet(now, stimulus, config)
    }

    pub(super) fn meet(
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
            PauseState::Defiant => self.watch(now, config),
        }
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
            PauseState::Defiant => self.watched_at,
        }
    }
}
