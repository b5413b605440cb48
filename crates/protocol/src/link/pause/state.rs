//! The states of a sender that its neighbour may pause, and what moves it between them: one table, printed and snapshotted by
//! a test. Every channel of a link has a state of its own.

use alloc::string::String;

/// Whether a channel of one link direction may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseState {
    /// Data leaves.
    #[default]
    Open,
    /// A pause has been heard and is being acted upon: data still leaves.
    Yielding,
    /// No data leaves.
    Paused,
    /// Paused for longer than the watchdog allows: data leaves whatever the neighbour says.
    Defiant,
}

/// What can move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseStimulus {
    /// The neighbour has no room.
    Pause,
    /// The neighbour has room again.
    Resume,
    /// What it takes to act upon a pause has passed.
    Responded,
    /// The time for which the neighbour asked is over.
    Expired,
    /// Data has waited for longer than the watchdog allows.
    Stuck,
    /// As long again has passed.
    Restored,
    /// The link no longer carries data.
    LinkLost,
}

impl PauseState {
    /// All states, in table order.
    pub const ALL: [Self; 4] = [Self::Open, Self::Yielding, Self::Paused, Self::Defiant];

    /// Whether data may leave.
    #[must_use]
    pub const fn sends(self) -> bool {
        !matches!(self, Self::Paused)
    }

    /// Lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Yielding => "yielding",
            Self::Paused => "paused",
            Self::Defiant => "defiant",
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

/// The state after `stimulus` met `state`.
#[must_use]
pub const fn next(state: PauseState, stimulus: PauseStimulus) -> PauseState {
    use PauseState::{Defiant, Open, Paused, Yielding};
    match (state, stimulus) {
        (_, PauseStimulus::LinkLost | PauseStimulus::Resume)
        | (Yielding | Paused, PauseStimulus::Expired)
        | (Defiant, PauseStimulus::Restored) => Open,
        (Open, PauseStimulus::Pause) => Yielding,
        (Yielding, PauseStimulus::Responded) => Paused,
        (Paused, PauseStimulus::Stuck) => Defiant,
        (state, _) => state,
    }
}

/// The whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::super::matrix::matrix((&PauseState::ALL, PauseState::name), &PauseStimulus::ALL, next, (10, 11))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_whole_table() {
        insta::assert_snapshot!(super::matrix());
    }
}
