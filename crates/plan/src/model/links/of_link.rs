//! Credits and channels of one link that replace those of the rack.
//!
//! The mapping of frames to channels is a property of the rack. The division into channels, and the return of credits, are
//! properties of the link. [`crate::deadlock`] decides if a rack with such links can deadlock.

use crate::setting::section::{Field, Text, Visit, section, visit_below};
use crate::setting::table::{Key, Kind};

section! {
    /// Credits of each direction of a link. `None` takes the value of the rack.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OwnCredits: LINK_CREDITS = "link.credits" {
        /// Credits of each direction.
        limit: Option<u32> {
            form = Kind::Count(1, u32::MAX as u64);
            default = None;
            shown = "as `credits.limit`";
        }
        /// Freed bytes after which an update leaves as a frame of its own.
        update_spacing_bytes: Option<u64> {
            key = "update_spacing";
            form = Kind::Size(1, 1 << 40);
            default = None;
            shown = "as `credits.update_spacing`; a quarter of the credits of a channel if that is not stated";
        }
        /// True if the credits of a frame that the link has lost return.
        resync: Option<bool> {
            form = Kind::Flag;
            default = None;
            shown = "as `credits.resync`";
        }
    }
}

impl Field for OwnCredits {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        visit_below(self, key, visit);
    }
}

section! {
    /// Use of the rack's channels by one link.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OwnChannels: LINK_CHANNELS = "link.channels" {
        /// Credits of each channel of the link; together at most the credits that the link has.
        limits: Vec<u32> {
            form = Kind::Counts;
            default = Vec::new();
            shown = "as `channels.limits`";
        }
    }
    with {
        /// True if each channel has a queue and credits of its own. Otherwise all channels share one queue and one set of credits.
        are_divided: bool = true;
    }
}

impl Field for OwnChannels {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        visit.value(key, &Text(if self.are_divided { "on" } else { "off" }), self.are_divided);
        visit_below(self, key, visit);
    }
}
