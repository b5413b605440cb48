//! The states of a link and what moves it between them: one table, printed and snapshotted by a test.

use alloc::string::String;

/// State of one link as this end sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkState {
    /// Never been up: Hello is being said.
    #[default]
    Init,
    /// Carries data.
    Up,
    /// A heartbeat is late; still carries data, equal paths are preferred.
    Suspect,
    /// Dead; held down for a while.
    Down,
    /// Hears heartbeats again; must prove itself before it carries data.
    Probing,
    /// Switched off by the user.
    AdminDown,
}

impl LinkState {
    /// All states, in table order.
    pub const ALL: [Self; 6] =
        [Self::Init, Self::Up, Self::Suspect, Self::Down, Self::Probing, Self::AdminDown];

    /// Whether the link carries data.
    #[must_use]
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Up | Self::Suspect)
    }

    /// Lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Down => "down",
            Self::Probing => "probing",
            Self::AdminDown => "admin-down",
        }
    }
}

/// What can move a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// Both ends have heard each other's Hello.
    Greeted,
    /// A heartbeat came.
    Heartbeat,
    /// A heartbeat is late.
    Late,
    /// Too many heartbeats are missing.
    Dead,
    /// The neighbour says that the link is down.
    NeighbourDown,
    /// The carrier is gone.
    CarrierLost,
    /// The neighbour has begun a new life.
    Restart,
    /// The hold-down time is over.
    HoldDownOver,
    /// Enough heartbeats in a row while probing.
    Proven,
    /// The user switches the link off.
    Disable,
    /// The user switches the link on.
    Enable,
}

impl Stimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 11] = [
        Self::Greeted,
        Self::Heartbeat,
        Self::Late,
        Self::Dead,
        Self::NeighbourDown,
        Self::CarrierLost,
        Self::Restart,
        Self::HoldDownOver,
        Self::Proven,
        Self::Disable,
        Self::Enable,
    ];
}

/// The state after `stimulus` met `state`.
#[must_use]
pub const fn next(state: LinkState, stimulus: Stimulus) -> LinkState {
    use LinkState::{AdminDown, Down, Init, Probing, Suspect, Up};
    match (state, stimulus) {
        (_, Stimulus::Disable) => AdminDown,
        (AdminDown, Stimulus::Enable) => Probing,
        (AdminDown, _) => AdminDown,
        (Init, Stimulus::Greeted) | (Suspect, Stimulus::Heartbeat) | (Probing, Stimulus::Proven) => Up,
        (Up, Stimulus::Late) => Suspect,
        (
            Up | Suspect,
            Stimulus::Dead | Stimulus::NeighbourDown | Stimulus::CarrierLost | Stimulus::Restart,
        )
        | (Probing, Stimulus::Dead | Stimulus::CarrierLost | Stimulus::Restart) => Down,
        (Down, Stimulus::HoldDownOver) => Probing,
        (state, _) => state,
    }
}

/// The whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
#[must_use]
pub fn matrix() -> String {
    super::matrix::matrix((&LinkState::ALL, LinkState::name), &Stimulus::ALL, next, (11, 15))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_whole_table() {
        insta::assert_snapshot!(super::matrix());
    }
}
