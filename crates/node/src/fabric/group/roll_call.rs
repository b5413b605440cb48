//! Check that every member has joined, before a member's first collective.
//!
//! Members join at different times. Each queries all others until their regions exist, for at most its patience, so no member waits for
//! one that never joins. The first collective then begins with a barrier. A member that leaves the barrier has proof that all have finished
//! their roll calls, so it may leave the group.
//!
//! The roll call also detects failures before this member joined: a member that gave up could not notify it, but answers the query.

use std::task::Waker;

use rackloom_protocol::{Instant, OperationError};

use super::super::core::Core;
use super::super::error::Error;
use super::inquiry::{Headline, Question};
use super::running::Place;

/// Members that have not answered.
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

    /// Advances the queries. `None` while an answer is missing.
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

/// Converts the error of a member without the group's region, which has not joined or has left the group.
fn missing(error: Error, patience_ns: u64) -> Error {
    match error {
        Error::Refused { peer, reason: OperationError::NoSuchRegion } => {
            Error::NotJoined { peer, waited_ms: patience_ns / 1_000_000 }
        }
        other => other,
    }
}
