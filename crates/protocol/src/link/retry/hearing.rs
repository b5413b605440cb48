//! The states of a retrying receiver and what moves it between them: one table, printed and snapshotted by a test.
//!
//! What a number means is judged by the [`super::receiver`].

use alloc::string::String;

/// State of the receiving end of one link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HearingState {
    /// The neighbour has yet to say where its numbers begin; nothing is taken.
    #[default]
    Unnumbered,
    /// What comes next is taken.
    InOrder,
    /// Something is missing and was asked for, once; nothing else is taken, and nothing more said.
    Refused,
}

/// What can move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HearingStimulus {
    /// The neighbour has named its last number, and calls these numbers as none before.
    Numbered,
    /// The next frame came.
    Next,
    /// A frame came whose forerunner is missing.
    Ahead,
    /// A frame came that was taken before.
    Behind,
}

impl HearingState {
    /// All states, in table order.
    pub const ALL: [Self; 3] = [Self::Unnumbered, Self::InOrder, Self::Refused];

    /// Lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unnumbered => "unnumbered",
            Self::InOrder => "in-order",
            Self::Refused => "refused",
        }
    }
}

impl HearingStimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 4] = [Self::Numbered, Self::Next, Self::Ahead, Self::Behind];
}

/// The state after `stimulus` met `state`.
#[must_use]
pub const fn next(state: HearingState, stimulus: HearingStimulus) -> HearingState {
    use HearingState::{InOrder, Refused};
    match (state, stimulus) {
        (_, HearingStimulus::Numbered) | (InOrder | Refused, HearingStimulus::Next) => InOrder,
        (InOrder, HearingStimulus::Ahead) => Refused,
        (state, _) => state,
    }
}

/// The whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::super::matrix::matrix(
        (&HearingState::ALL, HearingState::name),
        &HearingStimulus::ALL,
        next,
        (12, 10),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_whole_table() {
        insta::assert_snapshot!(super::matrix());
    }
}
