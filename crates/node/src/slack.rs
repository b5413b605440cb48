//! Timer slack: how late the kernel may wake a node that sleeps for a long time.
//!
//! Timers whose slack intervals overlap expire together. An idle rack consists of dozens of processes on few processors. Each sleeps for half a
//! second and then runs for microseconds. The main costs are the processor's exit from its idle state (in a virtual machine, an exit of the host) and
//! cold caches. Processes that wake together share these costs. The slack is a fiftieth of the sleep, which is half of the interval between the
//! heartbeats of two idle neighbours (`rackloom_protocol::link`), so their order does not change.
//!
//! The slack is a property of the thread, which may belong to the caller. It is restored when the thread wakes.

use std::num::NonZeroU64;

use rustix::thread::{current_timer_slack, set_current_timer_slack};

/// Minimum duration of a sleep that gets slack, in nanoseconds.
const SLEEP_NS_MIN: u64 = 50_000_000;
/// Ratio of the sleep to its slack.
const SLEEPS_PER_SLACK: u64 = 50;

/// A guard: the timers of this thread may expire later until it is dropped.
pub(crate) struct Slack {
    before: Option<NonZeroU64>,
}

impl Slack {
    /// Sets the slack for a sleep of this duration. Returns `None` if the sleep is short, or if the thread has more slack already.
    pub(crate) fn for_sleep(sleep_ns: u64) -> Option<Self> {
        if sleep_ns < SLEEP_NS_MIN {
            return None;
        }
        let before = current_timer_slack().ok()?;
        let slack_ns = sleep_ns / SLEEPS_PER_SLACK;
        if before >= slack_ns {
            return None;
        }
        set_current_timer_slack(NonZeroU64::new(slack_ns)).ok()?;
        Some(Self { before: NonZeroU64::new(before) })
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        // The kernel accepted one value, so it accepts the other.
        let _ = set_current_timer_slack(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sleep_gets_a_fiftieth_of_slack_and_a_short_sleep_gets_none() {
        let usual_ns = current_timer_slack().unwrap();
        let slack = Slack::for_sleep(500_000_000);
        assert_eq!(current_timer_slack().unwrap(), 10_000_000);
        drop(slack);
        assert_eq!(current_timer_slack().unwrap(), usual_ns);
        assert!(Slack::for_sleep(SLEEP_NS_MIN - 1).is_none());
        assert_eq!(current_timer_slack().unwrap(), usual_ns);
    }

    #[test]
    fn a_thread_with_more_timer_slack_keeps_it() {
        let usual = NonZeroU64::new(current_timer_slack().unwrap());
        set_current_timer_slack(NonZeroU64::new(12_000_000)).unwrap();
        assert!(Slack::for_sleep(500_000_000).is_none());
        assert_eq!(current_timer_slack().unwrap(), 12_000_000);
        set_current_timer_slack(usual).unwrap();
    }
}
