//! Phase of a member's start, in which no member is announced as lost while a path to it may still come up.

use crate::time::Instant;

/// Phase of the start. A rack comes up link by link, and the first path to a member may go down before the second is
/// known. During the time after which a silent neighbour counts as dead, a member that was reached is not announced
/// as lost while a path may lead there over links that have not been up yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Start {
    /// No time has passed yet.
    #[default]
    Ahead,
    /// The phase lasts until then. `is_awaiting` is true if any member is waited for.
    Under { until: Instant, is_awaiting: bool },
    /// Members without a path are lost.
    Over,
}

impl Start {
    /// Returns true if any member that was reached is waited for.
    pub(super) const fn is_awaiting(self) -> bool {
        matches!(self, Self::Under { is_awaiting: true, .. })
    }

    /// Returns the time at which awaited members count as lost.
    pub(super) const fn deadline(self) -> Instant {
        match self {
            Self::Under { until, is_awaiting: true } => until,
            _ => Instant::NEVER,
        }
    }
}
