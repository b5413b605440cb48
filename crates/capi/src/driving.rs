//! A driver with the completions that did not fit into the array of a poll.

use std::collections::VecDeque;
use std::time::Duration;

use rackloom::fabric::{Completion, Driver};

use crate::codes::CompletionRecord;

/// Driver, and completions that wait for the next poll.
pub(crate) struct Driving {
    pub(crate) driver: Driver,
    polled: Vec<Completion>,
    waiting: VecDeque<Completion>,
}

impl Driving {
    pub(crate) const fn new(driver: Driver) -> Self {
        Self { driver, polled: Vec::new(), waiting: VecDeque::new() }
    }

    /// Polls, and fills the array from its start. Returns the number of completions.
    pub(crate) fn poll(&mut self, timeout: Duration, completions: &mut [CompletionRecord]) -> usize {
        let Self { driver, polled, waiting } = self;
        if waiting.is_empty() && !timeout.is_zero() {
            driver.poll_wait(polled, timeout);
        } else {
            driver.poll(polled);
        }
        waiting.extend(polled.drain(..));
        let filled = waiting.len().min(completions.len());
        completions.iter_mut().zip(waiting.drain(..filled)).for_each(|(place, one)| *place = one.into());
        filled
    }
}
