//! Bugs on purpose, to see whether they are found: only with the cargo feature `planted-bugs`, which no build has by default.
//!
//! A search for faults that has never found a bug proves little. Each bug here is one that a fabric could really have; a
//! test plants one after the other and wants the campaign to find it and to make it small. Without the feature every question
//! is answered at compile time with no.
//!
//! The choice is the process's, against the habit of this crate to keep nothing outside its values: it must reach
//! every member of a simulation without a path through their configuration, which has no place for bugs.

#[cfg(feature = "planted-bugs")]
use core::sync::atomic::{AtomicU8, Ordering};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A packet that comes again is carried out again: no deduplication.
    TakenTwice = 1,
    /// What comes behind a hole is carried out at once, signals too: a signal overtakes its data.
    SignalOvertakesData = 2,
    /// Operations behind a hole count as visible as soon as they have come.
    AckBeforeVisible = 3,
    /// The last word of a life that is over counts more than the first of the next one, and frames to it are taken.
    StaleEpochTaken = 4,
    /// A packet that comes again keeps the link's credits.
    CreditLeak = 5,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::TakenTwice,
        Self::SignalOvertakesData,
        Self::AckBeforeVisible,
        Self::StaleEpochTaken,
        Self::CreditLeak,
    ];

    /// Name for choosing one.
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

/// Every member of this process has this bug from now on, or none.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<PlantedBug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
}

/// Whether members have this bug.
#[cfg(feature = "planted-bugs")]
#[inline]
pub(crate) fn is_planted(bug: PlantedBug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as u8
}

/// Whether members have this bug: never.
#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub(crate) const fn is_planted(_: PlantedBug) -> bool {
    false
}
