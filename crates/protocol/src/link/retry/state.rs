//! States of a retrying sender and their transitions: one table, printed and snapshotted by a test.

use alloc::string::String;

/// State of the sending end of one link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetryState {
    /// Both ends have yet to agree on numbers. Nothing is sent.
    #[default]
    Init,
    /// New frames leave, and a copy of each is kept until it is acknowledged.
    Advance,
    /// All unacknowledged frames leave again, oldest first. New frames wait.
    Replay,
    /// The replay limit is reached. The kept frames are given up, and numbers must be agreed on anew.
    Flush,
}

/// Event that may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryStimulus {
    /// The link began to carry data.
    Started,
    /// The neighbour confirmed the numbering.
    Echoed,
    /// The neighbour misses a frame.
    Nacked,
    /// Nothing was acknowledged before the timeout.
    TimerExpired,
    /// The replay limit is reached.
    Exhausted,
    /// The last frame of a replay has left, or was acknowledged meanwhile.
    Replayed,
    /// The link no longer carries data.
    LinkLost,
}

impl RetryState {
    /// All states, in table order.
    pub const ALL: [Self; 4] = [Self::Init, Self::Advance, Self::Replay, Self::Flush];

    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Advance => "advance",
            Self::Replay => "replay",
            Self::Flush => "flush",
        }
    }
}

impl RetryStimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 7] = [
        Self::Started,
        Self::Echoed,
        Self::Nacked,
        Self::TimerExpired,
        Self::Exhausted,
        Self::Replayed,
        Self::LinkLost,
    ];
}

/// Returns the state that follows `state` after `stimulus`.
#[must_use]
pub const fn next(state: RetryState, stimulus: RetryStimulus) -> RetryState {
    use RetryState::{Advance, Flush, Init, Replay};
    match (state, stimulus) {
        (_, RetryStimulus::Started | RetryStimulus::LinkLost) => Init,
        (Init | Flush, RetryStimulus::Echoed) | (Replay, RetryStimulus::Replayed) => Advance,
        (Advance, RetryStimulus::Nacked | RetryStimulus::TimerExpired) => Replay,
        (Advance | Replay, RetryStimulus::Exhausted) => Flush,
        (state, _) => state,
    }
}

/// Returns the whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::super::matrix::matrix((&RetryState::ALL, RetryState::name), &RetryStimulus::ALL, next, (9, 14))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_whole_table() {
        insta::assert_snapshot!(super::matrix());
    }
}
