//! States of a sender that its neighbour may pause, and their transitions: one table, printed and snapshotted by a
//! test. Each channel of a link has a state of its own.

use alloc::string::String;

/// State of the sending end of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseState {
    /// Data leaves.
    #[default]
    Open,
    /// A pause was received and has not taken effect yet. Data still leaves.
    Yielding,
    /// No data leaves.
    Paused,
    /// Paused for longer than the watchdog allows. Data leaves, and pauses are ignored.
    Overridden,
}

/// Event that may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseStimulus {
    /// The neighbour has no free space.
    Pause,
    /// The neighbour has space again.
    Resume,
    /// The response delay has elapsed.
    Responded,
    /// The requested pause time has elapsed.
    Expired,
    /// Data has waited for longer than the watchdog allows.
    Stuck,
    /// The watchdog's time has elapsed once more.
    Restored,
    /// The link no longer carries data.
    LinkLost,
}

impl PauseState {
    /// All states, in table order.
    pub const ALL: [Self; 4] = [Self::Open, Self::Yielding, Self::Paused, Self::Overridden];

    /// Returns true if data may leave.
    #[must_use]
    pub const fn sends(self) -> bool {
        !matches!(self, Self::Paused)
    }

    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Yielding => "yielding",
            Self::Paused => "paused",
            Self::Overridden => "overridden",
        }
    }
}

impl PauseStimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 7] = [
        Self::Pause,
        Self::Resume,
        Self::Responded,
        Self::Expired,
        Self::Stuck,
        Self::Restored,
        Self::LinkLost,
    ];
}

/// Returns the state that follows `state` after `stimulus`.
#[must_use]
pub const fn next(state: PauseState, stimulus: PauseStimulus) -> PauseState {
    use PauseState::{Open, Overridden, Paused, Yielding};
    match (state, stimulus) {
        (_, PauseStimulus::LinkLost | PauseStimulus::Resume)
        | (Yielding | Paused, PauseStimulus::Expired)
        | (Overridden, PauseStimulus::Restored) => Open,
        (Open, PauseStimulus::Pause) => Yielding,
        (Yielding, PauseStimulus::Responded) => Paused,
        (Paused, PauseStimulus::Stuck) => Overridden,
        (state, _) => state,
    }
}

/// Returns the whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::super::matrix::matrix((&PauseState::ALL, PauseState::name), &PauseStimulus::ALL, next, (11, 11))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_whole_table() {
        insta::assert_snapshot!(super::matrix());
    }
}
