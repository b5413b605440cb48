//! What one link has of credits and channels in place of what the rack says for all.
//!
//! How frames find their channel is the rack's and the same everywhere; whether a link divides itself by it, how, and how its credits
//! come back, is the link's. Whether a rack with such links can stand still is for [`crate::deadlock`].

/// Credits of each direction of a link; `None` is as all links have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCredits {
    /// How many.
    pub limit: Option<u32>,
    /// Freed bytes between updates.
    pub update_spacing_bytes: Option<u64>,
    /// Whether the credits of lost frames come back.
    pub resync: Option<bool>,
}

/// What a link makes of the channels of its rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnChannels {
    /// Each has a queue and credits of its own; otherwise all share one of each.
    pub are_divided: bool,
    /// Credits of each, in place of what the rack says.
    pub limits: Vec<u32>,
}

impl Default for OwnChannels {
    fn default() -> Self {
        Self { are_divided: true, limits: Vec::new() }
    }
}
