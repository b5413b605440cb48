//! States of a link and their transitions: one table, printed and snapshotted by a test.

use alloc::string::String;

/// State of one link as seen from this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkState {
    /// Has never been up, on this cable. This end sends Hellos.
    #[default]
    Init,
    /// Carries data.
    Up,
    /// A heartbeat is late. The link still carries data; other paths of equal cost are preferred.
    Suspect,
    /// Considered dead, and held down for a while.
    Down,
    /// Receives heartbeats again, but must prove itself before it carries data.
    Probing,
    /// Disabled by the user.
    AdminDown,
}

impl LinkState {
    /// All states, in table order.
    pub const ALL: [Self; 6] =
        [Self::Init, Self::Up, Self::Suspect, Self::Down, Self::Probing, Self::AdminDown];

    /// Returns true if the link carries data.
    #[must_use]
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Up | Self::Suspect)
    }

    /// Returns the lower-case name for reports.
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

/// Event that may change the state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// Both ends have received each other's Hello.
    HelloAccepted,
    /// A heartbeat arrived.
    Heartbeat,
    /// A heartbeat is late.
    Late,
    /// Too many heartbeats are missing.
    Dead,
    /// The neighbour reports that the link is down.
    NeighbourDown,
    /// The carrier was lost.
    CarrierLost,
    /// The neighbour has a new incarnation.
    Restart,
    /// A new cable leads to the neighbour.
    NewCable,
    /// The hold-down time has elapsed.
    HoldDownOver,
    /// Enough consecutive heartbeats arrived while probing.
    Confirmed,
    /// The user disables the link.
    Disable,
    /// The user enables the link.
    Enable,
}

impl Stimulus {
    /// All stimuli, in table order.
    pub const ALL: [Self; 12] = [
        Self::HelloAccepted,
        Self::Heartbeat,
        Self::Late,
        Self::Dead,
        Self::NeighbourDown,
        Self::CarrierLost,
        Self::Restart,
        Self::NewCable,
        Self::HoldDownOver,
        Self::Confirmed,
        Self::Disable,
        Self::Enable,
    ];
}

/// Returns the state that follows `state` after `stimulus`.
#[must_use]
pub const fn next(state: LinkState, stimulus: Stimulus) -> LinkState {
    use LinkState::{AdminDown, Down, Init, Probing, Suspect, Up};
    match (state, stimulus) {
        (_, Stimulus::Disable) => AdminDown,
        (AdminDown, Stimulus::Enable) => Probing,
        (AdminDown, _) => AdminDown,
        (Init, Stimulus::HelloAccepted) | (Suspect, Stimulus::Heartbeat) | (Probing, Stimulus::Confirmed) => {
            Up
        }
        (Up, Stimulus::Late) => Suspect,
        (
            Up | Suspect,
            Stimulus::Dead | Stimulus::NeighbourDown | Stimulus::CarrierLost | Stimulus::Restart,
        )
        | (Probing, Stimulus::Dead | Stimulus::CarrierLost | Stimulus::Restart) => Down,
        (Down, Stimulus::HoldDownOver) => Probing,
        (Down | Probing, Stimulus::NewCable) => Init,
        (state, _) => state,
    }
}

/// Returns the whole table as text: one row per state, one column per stimulus, `.` where nothing changes.
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
