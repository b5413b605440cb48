//! States of a retrying receiver and their transitions: one table, printed and snapshotted by a test.
//!
//! [`super::receiver`] decides what a sequence number means.

use alloc::string::String;

/// State of the receiving end of one link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverState {
    /// The neighbour has not announced its first sequence number yet. No frame is accepted.
    #[default]
    Unnumbered,
    /// The next frame is accepted.
    InOrder,
    /// A frame is missing, and one negative acknowledgement was sent. Nothing else is accepted or sent.
    Refused,
}

/// Event that may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverStimulus {
    /// The neighbour has announced its last number, under a new initialisation.
    Numbered,
    /// The next frame arrived.
    Next,
    /// A frame arrived while an earlier one is missing.
    Ahead,
    /// A frame arrived that had been accepted before.
    Behind,
}

impl ReceiverState {
    /// All states, in table order.
    pub const ALL: [Self; 3] = [Self::Unnumbered, Self::InOrder, Self::Refused];

    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unnumbered => "unnumbered",
            Self::InOrder => "in-order",
            Self::Refused => "refused",
        }
    }
}

impl ReceiverStimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 4] = [Self::Numbered, Self::Next, Self::Ahead, Self::Behind];
}

/// Returns the state that follows `state` after `stimulus`.
#[must_use]
pub const fn next(state: ReceiverState, stimulus: ReceiverStimulus) -> ReceiverState {
    use ReceiverState::{InOrder, Refused};
    match (state, stimulus) {
        (_, ReceiverStimulus::Numbered) | (InOrder | Refused, ReceiverStimulus::Next) => InOrder,
        (InOrder, ReceiverStimulus::Ahead) => Refused,
        (state, _) => state,
    }
}

/// Returns the whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::super::matrix::matrix(
        (&ReceiverState::ALL, ReceiverState::name),
        &ReceiverStimulus::ALL,
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
