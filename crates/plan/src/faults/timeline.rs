//! When an event that has been set off is on, and how much of it.
//!
//! An event is on for `for`, once or again and again (`every`, `times`), and may grow to its full strength over `ramp`. All of
//! it is a function of the time since it was set off; nothing is remembered.

/// Steps in which an event grows: enough to look smooth, few enough to cost nothing.
const RAMP_STEPS: u64 = 16;

/// How long, how often, how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How long it is on; to the end of the run if absent.
    pub for_ns: Option<u64>,
    /// How long it takes to grow to its full strength.
    pub ramp_ns: u64,
    /// Time from one beginning to the next; once if absent.
    pub every_ns: Option<u64>,
    /// How often it begins, where it does so more than once; without end if absent.
    pub times: Option<u64>,
}

impl Timing {
    /// How often it has begun by now.
    #[must_use]
    pub fn begun(&self, since_ns: u64) -> u64 {
        let Some(every_ns) = self.every_ns else { return 1 };
        let begun = since_ns / every_ns.max(1) + 1;
        self.times.map_or(begun, |times| begun.min(times))
    }

    /// How strong it is now, from 0 to 1; `None` if it is off.
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

    /// When the next change is due, as a time since it was set off; `None` if there is none any more.
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

    /// How long it stays on from now; `None` if it is off, or has no end.
    #[must_use]
    pub fn left_ns(&self, since_ns: u64) -> Option<u64> {
        self.for_ns?.checked_sub(self.within_ns(since_ns)).filter(|left_ns| *left_ns > 0)
    }

    /// Time since it began last.
    fn within_ns(&self, since_ns: u64) -> u64 {
        let before = self.begun(since_ns) - 1;
        since_ns - self.every_ns.unwrap_or(0).saturating_mul(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What changes when, by asking for each change in turn.
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
    fn once_and_for_ever() {
        assert_eq!(changes(Timing::default(), 9), [(0, Some(1.0))]);
    }

    #[test]
    fn a_flap_is_on_and_off_as_often_as_it_says() {
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
