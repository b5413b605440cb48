//! Deliberate bugs, to test the search for faults. They exist only with the cargo feature `planted-bugs`, which no
//! default build has.
//!
//! A search for faults that has never found a bug proves little. Each bug here could exist in a real fabric. A test
//! enables one after the other and requires that the campaign finds it and shrinks the case. Without the feature
//! every check is `false` at compile time.
//!
//! The choice is global to the process, unlike all other state of this crate: it must reach every member of a
//! simulation without being part of their configuration.

#[cfg(feature = "planted-bugs")]
use core::sync::atomic::{AtomicU8, Ordering};

/// Deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// No deduplication: a duplicate packet is executed again.
    TakenTwice = 1,
    /// Packets after a gap are executed at once, signals included: a signal overtakes its data.
    SignalOvertakesData = 2,
    /// Operations after a gap count as visible on arrival.
    AckBeforeVisible = 3,
    /// The last report of an old incarnation takes precedence over the first of the new one, and frames to the old
    /// one are accepted.
    StaleEpochTaken = 4,
    /// A duplicate packet keeps the link's credits.
    CreditLeak = 5,
}

impl PlantedBug {
    /// All bugs.
    pub const ALL: [Self; 5] = [
        Self::TakenTwice,
        Self::SignalOvertakesData,
        Self::AckBeforeVisible,
        Self::StaleEpochTaken,
        Self::CreditLeak,
    ];

    /// Returns the name by which a bug is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TakenTwice => "taken-twice",
            Self::SignalOvertakesData => "signal-overtakes-data",
            Self::AckBeforeVisible => "ack-before-visible",
            Self::StaleEpochTaken => "stale-epoch-taken",
            Self::CreditLeak => "credit-leak",
        }
    }
}

#[cfg(feature = "planted-bugs")]
static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Sets the bug of all members of this process, or none.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<PlantedBug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
}

/// Returns true if members have this bug.
#[cfg(feature = "planted-bugs")]
#[inline]
pub(crate) fn is_planted(bug: PlantedBug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as u8
}

/// Returns `false`: members have no bugs.
#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub(crate) const fn is_planted(_: PlantedBug) -> bool {
    false
}
