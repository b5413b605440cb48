//! Link-level retry of a rack file.

use rackloom_protocol::{FlushPolicy, RetryConfig};

use crate::model::bounds::{DELAY_NS_MAX, MINUTE_NS};
use crate::setting::named_value::NamedValue;
use crate::setting::section::{Field, Visit, section, visit_switched};
use crate::setting::table::{Key, Kind};

section! {
    /// Link-level retry of a rack file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RetryPlan: LLR = "link.llr" {
        /// Width of the sequence numbers in bits. At most half of their range may be unacknowledged.
        sequence_bits: u8 {
            form = Kind::Count(2, 32);
            default = 20;
        }
        /// Largest number of unacknowledged frames.
        outstanding_frames: u32 {
            form = Kind::Count(1, 1 << 20);
            default = 1024;
            ours = true;
        }
        /// Largest number of unacknowledged bytes: the replay buffer of each port, at least one largest frame.
        outstanding_bytes: u32 {
            form = Kind::Size(354, 64 << 20);
            default = 256 << 10;
            ours = true;
        }
        /// Received bytes after which an acknowledgement is sent at once.
        ack_spacing_bytes: u32 {
            key = "ack_spacing";
            form = Kind::Size(1, 64 << 20);
            default = 2048;
        }
        /// Longest time that an acknowledgement waits for the spacing, or for a frame that carries it.
        ack_delay_ns: Option<u64> {
            key = "ack_delay";
            form = Kind::Time(0, DELAY_NS_MAX);
            default = None;
            shown = "a quarter of `replay_timer` (ours)";
        }
        /// Time without an acknowledgement after which all unacknowledged frames are sent again.
        replay_timer_ns: Option<u64> {
            key = "replay_timer";
            form = Kind::Time(1, MINUTE_NS);
            default = None;
            shown = "see below";
        }
        /// Largest number of consecutive replays without progress. Then the link is flushed. 255 is unlimited.
        replay_count_max: u8 {
            form = Kind::Count(0, 255);
            default = RetryConfig::REPLAYS_UNLIMITED;
            ours = true;
        }
        /// Treatment of frames while a flushed link agrees on numbers again: they wait, are discarded, or leave without protection.
        flush: FlushPolicy {
            form = Kind::Choice(FlushPolicy::NAMES);
            default = FlushPolicy::Block;
            ours = true;
        }
    }
}

impl Field for Option<RetryPlan> {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        visit_switched(self.as_ref(), key, visit);
    }
}
