//! Whether every member has joined: asked once, before a member's first collective.
//!
//! Members join at different times. Each asks all others until their regions are there, and no longer than its patience lasts;
//! so nobody waits for one that never comes. The first collective then begins with a barrier: whoever leaves it knows that all
//! have been through their own roll call, and may go without being missed.
//!
//! It also settles what happened before this member had joined: who gave up then could not tell it, but says so when asked.

use std::task::Waker;

use rackloom_protocol::{Instant, OperationError};

use super::super::core::Core;
use super::super::error::Error;
use super::inquiry::{Headline, Question};
use super::running::Place;

/// The members that have not answered.
#[derive(Debug)]
pub(super) struct RollCall {
    questions: Vec<Question>,
    patience_ns: u64,
}

impl RollCall {
    pub(super) fn new(place: &Place, now: Instant, patience_ns: u64) -> Self {
        let others = (0..place.members.len()).filter(|rank| *rank != place.rank);
        let questions = others.map(|rank| Question::new(rank, now + patience_ns)).collect();
        Self { questions, patience_ns }
    }

    /// Go on; `None` while somebody is missing.
    pub(super) fn advance(&mut self, core: &mut Core, place: &Place) -> Option<Result<(), Error>> {
        loop {
            let (mut issued, mut failed) = (false, None);
            self.questions.retain_mut(|question| match question.advance(core, place, &mut issued) {
                None => true,
                Some(Ok(Headline::Calls(_))) => false,
                Some(Ok(Headline::Over(broken))) => {
                    failed.get_or_insert(broken.error(true));
                    false
                }
                Some(Err(error)) => {
                    failed.get_or_insert(missing(error, self.patience_ns));
                    false
                }
            });
            if failed.is_some() {
                return failed.map(Err);
            }
            if self.questions.is_empty() {
                return Some(Ok(()));
            }
            if !issued {
                return None;
            }
            core.turn();
        }
    }

    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        for operation in self.questions.iter().filter_map(Question::operation) {
            core.table.set_waker(operation, waker);
        }
    }

    pub(super) fn abandon(&mut self, core: &mut Core) {
        self.questions.iter_mut().for_each(|question| question.abandon(core));
    }
}

/// Whoever has no region of the group has not joined, or not any more.
fn missing(error: Error, patience_ns: u64) -> Error {
    match error {
        Error::Refused { peer, reason: OperationError::NoSuchRegion } => {
            Error::NotJoined { peer, waited_ms: patience_ns / 1_000_000 }
        }
        other => other,
    }
}
