//! Meetings of threads: each brings a value, and leaves with the values of all.
//!
//! Threads share windows with much work, and then meet again after about the same time. So a thread first looks for the others in
//! a loop, for some microseconds, and then sleeps. With fewer processors than threads it sleeps at once. A meeting that a thread has left by a panic ends for all.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Largest number of looks before a thread sleeps.
const LOOKS_MAX: u32 = 4_000;

/// Place where threads exchange values again and again.
#[derive(Debug)]
pub(super) struct Meeting<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    /// Number of completed meetings.
    completed: AtomicU64,
    /// Number of looks before a thread sleeps.
    looks: u32,
}

#[derive(Debug)]
struct State<T> {
    brought: Vec<Option<T>>,
    arrived: usize,
    /// Values of the last completed meeting.
    all: Vec<T>,
    completed: u64,
    is_abandoned: bool,
}

impl<T: Copy> Meeting<T> {
    /// Creates a meeting of this number of threads.
    pub(super) fn new(threads: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let looks = if threads <= processors { LOOKS_MAX } else { 0 };
        let state = State {
            brought: vec![None; threads],
            arrived: 0,
            all: Vec::new(),
            completed: 0,
            is_abandoned: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), completed: AtomicU64::new(0), looks }
    }

    /// Brings a value, waits for all threads, and returns the values by thread. Returns `None` if a thread has abandoned the
    /// meeting.
    pub(super) fn meet(&self, thread: usize, value: T) -> Option<Vec<T>> {
        let number = self.bring(thread, value);
        self.look_for(number);
        let mut state = self.lock();
        while state.completed == number && !state.is_abandoned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.is_abandoned).then(|| state.all.clone())
    }

    /// Brings a value without waiting for the others, and returns the number of the meeting. Before its next value, the thread
    /// must have met all others at another place.
    pub(super) fn bring(&self, thread: usize, value: T) -> u64 {
        let mut state = self.lock();
        let number = state.completed;
        state.brought[thread] = Some(value);
        state.arrived += 1;
        if state.arrived == state.brought.len() {
            state.all = state.brought.iter_mut().filter_map(Option::take).collect();
            state.arrived = 0;
            state.completed += 1;
            self.completed.store(state.completed, Ordering::Release);
            self.changed.notify_all();
        }
        number
    }

    /// Waits a little for the completion of a meeting, without sleep.
    fn look_for(&self, number: u64) {
        for _ in 0..self.looks {
            if self.completed.load(Ordering::Acquire) > number {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Ends this meeting and all later ones, without result.
    pub(super) fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_gets_all_values_of_every_meeting() {
        let meeting = Meeting::new(3);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let meeting = &meeting;
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let all = meeting.meet(thread, 10 * round + thread);
                        assert_eq!(all, Some(vec![10 * round, 10 * round + 1, 10 * round + 2]));
                    }
                });
            }
        });
    }

    #[test]
    fn a_thread_that_brings_a_value_does_not_wait_for_the_others() {
        let (values, done) = (Meeting::new(2), Meeting::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..2_000 {
                    values.bring(1, round);
                    done.meet(1, 0);
                }
            });
            for round in 0..2_000 {
                assert_eq!(values.meet(0, 10 * round), Some(vec![10 * round, round]));
                done.meet(0, 0);
            }
        });
        let alone = Meeting::new(2);
        assert_eq!(alone.bring(0, ()), 0);
    }

    #[test]
    fn an_abandoned_meeting_ends_for_all() {
        let meeting = Meeting::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| meeting.meet(0, ()));
            meeting.abandon();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
