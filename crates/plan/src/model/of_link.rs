//! Credits and channels of one link that replace those of the rack.
//!
//! The mapping of frames to channels is a property of the rack. The division into channels, and the return of credits, are
//! properties of the link. [`crate::deadlock`] decides if a rack with such links can deadlock.

/// Credits of each direction of a link. `None` takes the value of the rack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCredits {
    /// Number of credits.
    pub limit: Option<u32>,
    /// Freed bytes between updates.
    pub update_spacing_bytes: Option<u64>,
    /// True if the credits of lost frames return.
    pub resync: Option<bool>,
}

/// Use of the rack's channels by one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnChannels {
    /// True if each channel has a queue and credits of its own. Otherwise all channels share one queue and one set of credits.
    pub are_divided: bool,
    /// Credits of each channel. If empty, the limits of the rack hold.
    pub limits: Vec<u32>,
}

impl Default for OwnChannels {
    fn default() -> Self {
        Self { are_divided: true, limits: Vec::new() }
    }
}
