//! Timers that detect dead links.

use rackloom_protocol::LinkTimers;

use crate::model::bounds::{HOUR_NS, MICROSECOND_NS, MILLISECOND_NS, MINUTE_NS};
use crate::setting::section::section;
use crate::setting::table::Kind;

const INTERVAL_NS: u64 = 100 * MILLISECOND_NS;
const MISSES: u32 = 5;
/// Intervals between the heartbeats of an idle link.
const REST: u32 = 5;

section! {
    /// Timers between real processes for a file that states none.
    pub(crate) const TIMERS_DEFAULT: LinkTimers, TIMERS = "timers" {
        /// Time between heartbeats. The default suits many processes on few cores. In virtual time it is 50 us, at least eight times the
        /// longest hop and 400 ns for each link.
        heartbeat_interval_ns: u64 {
            key = "heartbeat_interval";
            form = Kind::Time(MICROSECOND_NS, MINUTE_NS);
            default = INTERVAL_NS;
            ours = true;
        }
        /// Consecutive missed heartbeats after which the link is down. On a busy machine, a member whose own heartbeats leave late waits
        /// longer by the same time, at most twice as long.
        heartbeat_miss_max: u32 {
            form = Kind::Count(1, 100);
            default = MISSES;
            ours = true;
        }
        /// Intervals between heartbeats of an idle link. The death of the neighbour of an idle link is detected later by this factor. Has no
        /// effect with fewer than 3 misses.
        heartbeat_rest: u32 {
            form = Kind::Count(1, 100);
            default = REST;
            shown = "5 if the interval is 100 ms, else 1 (ours); 1 in virtual time if the interval is not stated";
            follows = |timers| heartbeat_rest(timers.heartbeat_interval_ns);
        }
        /// Time that a link stays down before it is probed.
        hold_down_ns: u64 {
            key = "hold_down";
            form = Kind::Time(0, 24 * HOUR_NS);
            default = hold_down_ns(INTERVAL_NS, MISSES);
            shown = "twice the interval times the misses (ours)";
            follows = |timers| hold_down_ns(timers.heartbeat_interval_ns, timers.heartbeat_miss_max);
        }
        /// Consecutive heartbeats after which a probed link carries data again.
        up_count: u32 {
            form = Kind::Count(1, 100);
            default = 3;
            ours = true;
        }
        /// Time between Hellos while no neighbour has answered. In virtual time 20 us, at least four times the longest hop.
        hello_interval_ns: u64 {
            key = "hello_interval";
            form = Kind::Time(MICROSECOND_NS, MINUTE_NS);
            default = 2 * MILLISECOND_NS;
            ours = true;
        }
    }
}

/// Returns the number of intervals between heartbeats of an idle link, such that a stated interval also bounds detection at rest.
const fn heartbeat_rest(heartbeat_interval_ns: u64) -> u32 {
    if heartbeat_interval_ns == INTERVAL_NS { REST } else { 1 }
}

/// Returns twice the detection time: a link stays down for that long.
pub(crate) const fn hold_down_ns(heartbeat_interval_ns: u64, heartbeat_miss_max: u32) -> u64 {
    heartbeat_interval_ns.saturating_mul(heartbeat_miss_max as u64).saturating_mul(2)
}
