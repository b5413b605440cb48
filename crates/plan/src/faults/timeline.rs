//! Activity and strength of an event over time.
//!
//! An event is active for `for`, once or repeatedly (`every`, `times`), and may grow to its full strength over `ramp`. All
//! values are functions of the time since the trigger. There is no state.

/// Number of steps in which an event grows: enough for a smooth ramp, few enough to be cheap.
const RAMP_STEPS: u64 = 16;

/// Duration, repetition and growth of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Duration in nanoseconds. `None` is until the end of the run.
    pub for_ns: Option<u64>,
    /// Time of growth to full strength, in nanoseconds.
    pub ramp_ns: u64,
    /// Time from one beginning to the next, in nanoseconds. `None` if it begins once.
    pub every_ns: Option<u64>,
    /// Number of beginnings, if the event repeats. `None` is unlimited.
    pub times: Option<u64>,
}

impl Timing {
    /// Returns the number of beginnings so far.
    #[must_use]
    pub fn begun(&self, since_ns: u64) -> u64 {
        let Some(every_ns) = self.every_ns else { return 1 };
        let begun = since_ns / every_ns.max(1) + 1;
        self.times.map_or(begun, |times| begun.min(times))
    }

    /// Returns the strength, from 0 to 1, or `None` if the event is inactive.
    #[must_use]
    pub fn strength(&self, since_ns: u64) -> Option<f64> {
        let within_ns = self.within_ns(since_ns);
        if self.for_ns.is_some_and(|for_ns| within_ns >= for_ns) {
            return None;
        }
        if within_ns >= self.ramp_ns {
            return Some(1.0);
        }
        let step = within_ns * RAMP_STEPS / self.ramp_ns;
        Some((step + 1) as f64 / RAMP_STEPS as f64)
    }

    /// Returns the time of the next change since the trigger, in nanoseconds, or `None` if there is none.
    #[must_use]
    pub fn next_change_ns(&self, since_ns: u64) -> Option<u64> {
        let within_ns = self.within_ns(since_ns);
        let began_ns = since_ns - within_ns;
        let step_ns = |step: u64| (self.ramp_ns * step).div_ceil(RAMP_STEPS);
        let grows = (1..=RAMP_STEPS).map(step_ns).find(|step_ns| *step_ns > within_ns);
        let ends = self.for_ns.filter(|for_ns| *for_ns > within_ns);
        let is_last = self.every_ns.is_none() || Some(self.begun(since_ns)) == self.times;
        let begins = self.every_ns.filter(|_| !is_last);
        [grows, ends, begins].into_iter().flatten().min().map(|next_ns| began_ns.saturating_add(next_ns))
    }

    /// Returns the remaining active time in nanoseconds, or `None` if the event is inactive or has no end.
    #[must_use]
    pub fn left_ns(&self, since_ns: u64) -> Option<u64> {
        self.for_ns?.checked_sub(self.within_ns(since_ns)).filter(|left_ns| *left_ns > 0)
    }

    /// Returns the time since the last beginning.
    fn within_ns(&self, since_ns: u64) -> u64 {
        let before = self.begun(since_ns) - 1;
        since_ns - self.every_ns.unwrap_or(0).saturating_mul(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changes and their times, found by stepping from change to change.
    fn changes(timing: Timing, most: usize) -> Vec<(u64, Option<f64>)> {
        let mut seen = vec![(0, timing.strength(0))];
        while let Some(next_ns) = timing.next_change_ns(seen[seen.len() - 1].0) {
            seen.push((next_ns, timing.strength(next_ns)));
            if seen.len() >= most {
                break;
            }
        }
        seen
    }

    #[test]
    fn an_event_without_duration_is_active_for_ever() {
        assert_eq!(changes(Timing::default(), 9), [(0, Some(1.0))]);
    }

    #[test]
    fn a_flap_has_the_stated_number_of_beginnings() {
        let timing = Timing { for_ns: Some(3), every_ns: Some(10), times: Some(2), ..Timing::default() };
        assert_eq!(changes(timing, 9), [(0, Some(1.0)), (3, None), (10, Some(1.0)), (13, None)]);
        assert_eq!((timing.begun(9), timing.begun(10), timing.begun(1_000)), (1, 2, 2));
        let endless = Timing { times: None, ..timing };
        assert_eq!(changes(endless, 9).len(), 9);
    }

    #[test]
    fn a_ramp_grows_to_its_full_strength_and_stays_there() {
        let timing = Timing { ramp_ns: 160, for_ns: Some(200), ..Timing::default() };
        let seen = changes(timing, 99);
        assert_eq!(seen[0], (0, Some(1.0 / 16.0)));
        assert_eq!(seen[15], (150, Some(1.0)));
        assert_eq!(seen[seen.len() - 1], (200, None));
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "{seen:?}");
    }

    #[test]
    fn a_short_ramp_does_not_repeat_a_moment() {
        let seen = changes(Timing { ramp_ns: 5, ..Timing::default() }, 99);
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "{seen:?}");
        assert_eq!(seen[seen.len() - 1], (5, Some(1.0)));
    }
}
