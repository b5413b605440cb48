//! Replay protection: accepts each counter of a sender once, and none that is too old.

/// Distance from the highest counter at which counters are refused. Smaller distances are accepted, because networks reorder.
const BEHIND_MAX: u64 = 64;

/// The counters that have been accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplayWindow {
    highest: u64,
    /// Bit `i` is set if `highest - i` has been accepted.
    taken: u64,
}

impl ReplayWindow {
    /// Accepts a counter, which starts at 1. Returns whether it is new.
    // W-93
    pub(super) fn take(&mut self, counter: u64) -> bool {
        if counter > self.highest {
            let ahead = counter - self.highest;
            self.taken = if ahead < BEHIND_MAX { self.taken << ahead | 1 } else { 1 };
            self.highest = counter;
            return true;
        }
        let behind = self.highest - counter;
        if counter == 0 || behind >= BEHIND_MAX || self.taken >> behind & 1 == 1 {
            return false;
        }
        self.taken |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // W-93
    #[test]
    fn each_counter_is_taken_once_however_frames_are_reordered() {
        let mut window = ReplayWindow::default();
        assert!(!window.take(0));
        for counter in [1, 3, 2, 70, 40, 7, 1000] {
            assert!(window.take(counter), "{counter}");
            assert!(!window.take(counter), "{counter} again");
        }
        for (counter, is_taken) in [(937, true), (936, false), (999, true), (7, false), (1, false)] {
            assert_eq!(window.take(counter), is_taken, "{counter}");
        }
        assert!(window.take(u64::MAX) && !window.take(1000));
    }
}
