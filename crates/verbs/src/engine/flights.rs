//! Requests of a queue pair that are at the transport: a window over its oldest sends.
//!
//! Outcomes may arrive in any order. They are taken in the order in which the sends were posted, so completions have that order.
//!
//! *Numbers of messages.* Requests that complete a receive are numbered, as packets of devices are. The number belongs to the send and not to the attempt: a
//! repeated send has the number of the first attempt. So the peer knows which message is next, executes none before it, and executes none twice.

use std::collections::VecDeque;

use super::transport::{MESSAGE_NUMBERS, Outcome};

/// Most requests of a queue pair that are at the transport.
pub const WINDOW: usize = 64;

struct Flight {
    outcome: Option<Outcome>,
    is_message: bool,
}

/// Window of a queue pair.
#[derive(Default)]
pub(super) struct Flights {
    flights: VecDeque<Flight>,
    /// Attempt of the oldest request of the window.
    first_attempt: u64,
    /// Number of the next message.
    next_message: u32,
}

impl Flights {
    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Sets the number of the next message.
    pub(super) fn set_next_message(&mut self, number: u32) {
        debug_assert!(self.is_empty(), "no message has a number of the old series");
        self.next_message = number % MESSAGE_NUMBERS;
    }

    /// Adds a request. Returns the number of its attempt, and that of the message.
    pub(super) fn add(&mut self, is_message: bool) -> (u64, u32) {
        debug_assert!(self.len() < WINDOW, "the window has space");
        let attempt = self.first_attempt + self.flights.len() as u64;
        let message = self.next_message;
        if is_message {
            self.next_message = (message + 1) % MESSAGE_NUMBERS;
        }
        self.flights.push_back(Flight { outcome: None, is_message });
        (attempt, message)
    }

    /// Records the outcome of an attempt. Returns false if the attempt is unknown, or has an outcome.
    pub(super) fn end(&mut self, attempt: u64, outcome: Outcome) -> bool {
        let index = attempt.checked_sub(self.first_attempt).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.flights.get_mut(index)) {
            Some(flight) if flight.outcome.is_none() => {
                flight.outcome = Some(outcome);
                true
            }
            _ => false,
        }
    }

    /// Takes the outcome of the oldest request, if it has one. One that was not executed ends the window: younger requests are forgotten, too.
    pub(super) fn take_ended(&mut self) -> Option<Outcome> {
        let outcome = self.flights.front()?.outcome?;
        if outcome == Outcome::Done {
            self.flights.pop_front();
            self.first_attempt += 1;
        } else {
            self.forget();
        }
        Some(outcome)
    }

    /// Forgets all requests. Their outcomes are ignored, and their messages will have the same numbers again.
    pub(super) fn forget(&mut self) {
        let messages = self.flights.iter().filter(|flight| flight.is_message).count();
        let messages = u32::try_from(messages).expect("a window is small");
        self.next_message = (self.next_message + MESSAGE_NUMBERS - messages) % MESSAGE_NUMBERS;
        self.first_attempt += self.flights.len() as u64;
        self.flights.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_taken_in_order_and_once() {
        let mut flights = Flights::default();
        let attempts = [false, true, true].map(|is_message| flights.add(is_message));
        assert_eq!(attempts, [(0, 0), (1, 0), (2, 1)]);
        assert!(flights.end(1, Outcome::Done));
        assert!(!flights.end(1, Outcome::Lost));
        assert_eq!(flights.take_ended(), None);
        assert!(flights.end(0, Outcome::Done));
        assert_eq!([flights.take_ended(), flights.take_ended()], [Some(Outcome::Done); 2]);
        assert_eq!((flights.take_ended(), flights.len()), (None, 1));
        assert!(!flights.end(0, Outcome::Done) && !flights.end(3, Outcome::Done));
    }

    #[test]
    fn a_refused_request_ends_the_window_and_numbers_of_messages_are_used_again() {
        let mut flights = Flights::default();
        flights.set_next_message(MESSAGE_NUMBERS - 1);
        let messages = [(); 4].map(|()| flights.add(true).1);
        assert_eq!(messages, [MESSAGE_NUMBERS - 1, 0, 1, 2]);
        assert!(flights.end(0, Outcome::Done) && flights.end(1, Outcome::NotReady { wait_ns: 1 }));
        assert!(flights.end(2, Outcome::Done));
        assert_eq!(flights.take_ended(), Some(Outcome::Done));
        assert_eq!(flights.take_ended(), Some(Outcome::NotReady { wait_ns: 1 }));
        assert!(flights.is_empty() && !flights.end(3, Outcome::Done));
        assert_eq!(flights.add(true), (4, 0));
    }
}
