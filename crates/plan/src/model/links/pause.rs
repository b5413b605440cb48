//! Pauses (PFC-like) of a rack file.

use crate::model::bounds::{BUFFER_BYTES_MAX, DELAY_NS_MAX, MINUTE_NS};
use crate::setting::named_value::named_values;
use crate::setting::section::{Field, Visit, section, visit_switched};
use crate::setting::table::{Key, Kind};

named_values! {
    /// Treatment of a headroom that is smaller than the bytes that can be in flight.
    pub enum ShortHeadroom {
        /// The rack is refused.
        #[default]
        Refuse = "refuse",
        /// The rack is accepted, to demonstrate the loss.
        Allow = "allow",
    }
}

section! {
    /// Pauses of a rack file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PausePlan: PFC = "link.pfc" {
        /// Bytes of a channel, held for forwarding, above which the receiver pauses the sender.
        xoff_bytes: u32 {
            key = "xoff";
            form = Kind::Size(1, BUFFER_BYTES_MAX);
            default = 64 << 10;
            ours = true;
        }
        /// Bytes at which the sender may resume; below `xoff`.
        xon_bytes: Option<u32> {
            key = "xon";
            form = Kind::Size(0, BUFFER_BYTES_MAX);
            default = None;
            shown = "half of `xoff` (ours)";
        }
        /// Buffer above `xoff` for frames in flight. A frame that does not fit is lost.
        headroom_bytes: Option<u32> {
            key = "headroom";
            form = Kind::Size(0, BUFFER_BYTES_MAX);
            default = None;
            shown = "the bytes in flight; at an unlimited rate the rest of three quarters of `ring_bytes` (ours)";
        }
        /// Treatment of a `headroom` that is smaller than the bytes in flight. `allow` accepts it, to demonstrate the loss.
        short_headroom: ShortHeadroom {
            form = Kind::Choice(ShortHeadroom::NAMES);
            default = ShortHeadroom::Refuse;
        }
        /// Duration of a pause, in units of 512 bit times of the link, at an unlimited rate of 100 Gbit/s. The receiver repeats the
        /// pause after half of it. Between real processes a pause lasts 20 ms at least (ours).
        quanta: u16 {
            form = Kind::Count(1, 65_535);
            default = u16::MAX;
            ours = true;
        }
        /// Time from the arrival of a pause until its sender stops.
        response_delay_ns: u64 {
            key = "response_delay";
            form = Kind::Time(0, DELAY_NS_MAX);
            default = 0;
            ours = true;
        }
        /// Longest pause of data. After it the sender ignores pauses for the same time. `0ns` is unlimited.
        watchdog_ns: u64 {
            key = "watchdog";
            form = Kind::Time(0, MINUTE_NS);
            default = 200_000_000;
            ours = true;
        }
    }
}

impl PausePlan {
    /// Returns the number of bytes at which a paused sender may resume.
    #[must_use]
    pub fn xon_bytes(&self) -> u32 {
        self.xon_bytes.unwrap_or(self.xoff_bytes / 2)
    }
}

impl Field for Option<PausePlan> {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        visit_switched(self.as_ref(), key, visit);
    }
}
