//! The kinds of faults, and which keys of an event each of them takes.
//!
//! Reading, checking and the document follow this one table: a key that means nothing to a kind is refused, and one that it
//! needs is asked for.

use crate::words::words;

words! {
    /// What a fault does.
    pub enum FaultKind {
        /// Frames are lost.
        #[default]
        Loss = "loss",
        /// One bit of a frame is flipped.
        Corrupt = "corrupt",
        /// Frames arrive twice.
        Duplicate = "duplicate",
        /// Frames are overtaken by later ones.
        Reorder = "reorder",
        /// Single data frames are lost.
        Drop = "drop",
        /// Nothing comes through; the devices do not notice.
        Down = "down",
        /// Nothing comes through, and the sending device sees its carrier go.
        Unplug = "unplug",
        /// Frames take longer.
        Delay = "delay",
        /// Only a share of the link's rate is left, as when lanes fail.
        Slow = "slow",
        /// Nothing comes through between these members and all others.
        Partition = "partition",
        /// Memory answers late.
        SlowMemory = "slow-memory",
        /// Memory fails.
        FailMemory = "fail-memory",
        /// Keys are revoked.
        Revoke = "revoke",
        /// Members stand still.
        Pause = "pause",
        /// Members die.
        Kill = "kill",
    }
}

/// What a kind of fault wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    /// Keys that must be there.
    pub(crate) needed: &'static [&'static str],
    /// Keys that may be there.
    pub(crate) allowed: &'static [&'static str],
    /// Whether `where` names members.
    pub(crate) members: bool,
}

/// Keys that every event may have.
pub(crate) const COMMON: &[&str] = &["what", "where", "at", "after", "when", "for", "every", "times"];

impl FaultKind {
    /// The keys that go with it.
    pub(crate) const fn wants(self) -> Wants {
        let (needed, allowed, members): (&[&str], &[&str], bool) = match self {
            Self::Loss => (&["rate"], &["kinds", "operations", "sequence", "ramp"], false),
            Self::Corrupt => (&["rate"], &["part", "ramp"], false),
            Self::Duplicate | Self::Reorder => (&["rate"], &["ramp"], false),
            Self::Drop => (&["frames"], &[], false),
            Self::Down | Self::Unplug => (&[], &[], false),
            Self::Delay => (&["by"], &["ramp"], false),
            Self::Slow => (&["share"], &["ramp"], false),
            Self::Partition => (&[], &[], true),
            Self::SlowMemory => (&["by"], &["ramp"], true),
            Self::FailMemory => (&["rate"], &["ramp"], true),
            Self::Revoke => (&[], &[], true),
            Self::Pause => (&["for"], &[], true),
            Self::Kill => (&[], &[], true),
        };
        Wants { needed, allowed, members }
    }

    /// Whether it strikes what only GPU nodes have.
    pub(crate) const fn is_of_memory(self) -> bool {
        matches!(self, Self::SlowMemory | Self::FailMemory | Self::Revoke)
    }

    /// Whether an event of this kind is a moment, so that it cannot last.
    pub(crate) const fn is_moment(self) -> bool {
        matches!(self, Self::Drop | Self::Revoke)
    }
}
