//! How late the kernel may wake a node that sleeps for long.
//!
//! Timers that ring within one another's slack ring together. A rack at rest is dozens of processes on few processors, each of which
//! sleeps for half a second and is then awake for microseconds; what that costs is the processor's way out of its halt, which in a virtual
//! machine is the host's, and caches that have gone cold. Those that wake together share it. A fiftieth of the time slept is half
//! of what lies between the beats of two neighbours at rest (`rackloom_protocol::link`), so no order between them changes.
//!
//! The slack belongs to the thread and is given back when it wakes: it may be a caller's.

use std::num::NonZeroU64;

use rustix::thread::{current_timer_slack, set_current_timer_slack};

/// Shorter sleeps end when they should.
const SLEEP_NS_MIN: u64 = 50_000_000;
/// Of the time slept, how much later the end may be.
const SLEEPS_PER_SLACK: u64 = 50;

/// Until it is dropped this thread's timers may ring later.
pub(crate) struct Slack {
    before: Option<NonZeroU64>,
}

impl Slack {
    /// What a sleep of this length may have; nothing where it is short, or where the thread allows more already.
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
        // A kernel that took the one value takes the other.
        let _ = set_current_timer_slack(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sleep_may_end_a_fiftieth_later_and_a_short_one_may_not() {
        let usual_ns = current_timer_slack().unwrap();
        let slack = Slack::for_sleep(500_000_000);
        assert_eq!(current_timer_slack().unwrap(), 10_000_000);
        drop(slack);
        assert_eq!(current_timer_slack().unwrap(), usual_ns);
        assert!(Slack::for_sleep(SLEEP_NS_MIN - 1).is_none());
        assert_eq!(current_timer_slack().unwrap(), usual_ns);
    }

    #[test]
    fn a_thread_that_allows_more_keeps_it() {
        let usual = NonZeroU64::new(current_timer_slack().unwrap());
        set_current_timer_slack(NonZeroU64::new(12_000_000)).unwrap();
        assert!(Slack::for_sleep(500_000_000).is_none());
        assert_eq!(current_timer_slack().unwrap(), 12_000_000);
        set_current_timer_slack(usual).unwrap();
    }
}
