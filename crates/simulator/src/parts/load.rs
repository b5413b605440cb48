//! Work of the latest windows, in events.
//!
//! Windows of one time have about as much work as those just before, and their begin does not show how much. So an average over
//! some windows decides. A change from much work to little work costs a few shared windows with little work.

/// Number of windows whose events have about two thirds of the weight.
const WINDOWS: u64 = 4;

/// Moving average of the events of a window.
#[derive(Debug)]
pub(super) struct Load {
    /// Average, times `WINDOWS`.
    sum: u64,
    shared_events_min: u64,
}

impl Load {
    /// Creates the average of a run without windows. `shared_events_min`: average from which on threads share windows.
    pub(super) const fn new(shared_events_min: u64) -> Self {
        Self { sum: 0, shared_events_min }
    }

    /// Adds a window with this number of events.
    pub(super) const fn add(&mut self, events: u64) {
        self.sum = self.sum - self.sum / WINDOWS + events;
    }

    /// Returns true if threads shall share the next window.
    pub(super) const fn is_worth_sharing(&self) -> bool {
        self.sum / WINDOWS >= self.shared_events_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_with_much_work_are_shared_and_few_others() {
        let mut load = Load::new(100);
        let mut shared = |windows: usize, events: u64| {
            let is_shared = |_: &usize| {
                let is_shared = load.is_worth_sharing();
                load.add(events);
                is_shared
            };
            (0..windows).filter(is_shared).count()
        };
        assert_eq!(shared(1_000, 20), 0);
        assert!(shared(1_000, 200) > 990);
        assert!(shared(1_000, 20) < 10);
    }

    #[test]
    fn without_a_minimum_all_windows_are_shared() {
        assert!(Load::new(0).is_worth_sharing());
    }
}
