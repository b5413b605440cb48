//! Kinds of faults, and the keys of an event that each of them takes.
//!
//! Reading, checking and the document use this one table. A key that does not apply to a kind is refused, and a missing key that
//! the kind needs is reported.

use crate::setting::word::words;

words! {
    /// Kinds of faults.
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
        /// All frames are lost. The devices do not notice it.
        Down = "down",
        /// All frames are lost, and the sending device loses its carrier.
        Unplug = "unplug",
        /// Frames take longer.
        Delay = "delay",
        /// The rate is reduced to a share, as if lanes have failed.
        Slow = "slow",
        /// All frames between these members and all others are lost.
        Partition = "partition",
        /// Memory answers late.
        SlowMemory = "slow-memory",
        /// Memory fails.
        FailMemory = "fail-memory",
        /// Keys are revoked.
        Revoke = "revoke",
        /// Members stop for a time.
        Pause = "pause",
        /// Members are killed.
        Kill = "kill",
    }
}

/// Keys of a kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindKeys {
    /// Required keys.
    pub(crate) needed: &'static [&'static str],
    /// Optional keys.
    pub(crate) allowed: &'static [&'static str],
    /// True if `where` names members.
    pub(crate) members: bool,
}

/// Keys that every event may have.
pub(crate) const COMMON: &[&str] = &["what", "where", "at", "after", "when", "for", "every", "times"];

impl FaultKind {
    /// Returns the keys of the kind.
    pub(crate) const fn keys(self) -> KindKeys {
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
        KindKeys { needed, allowed, members }
    }

    /// Returns true if it affects memory, which only GPU nodes have.
    pub(crate) const fn is_of_memory(self) -> bool {
        matches!(self, Self::SlowMemory | Self::FailMemory | Self::Revoke)
    }

    /// Returns true if an event of this kind happens at one moment, so that it has no duration.
    pub(crate) const fn is_moment(self) -> bool {
        matches!(self, Self::Drop | Self::Revoke)
    }
}
