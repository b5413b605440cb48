//! Posted operations that have failed and of which nobody has been told: a flush says it.
//!
//! The core keeps this for posted stores, which it forgets as soon as it has taken them. Any other operation of which the caller wants no
//! completion ends in the core as ever, and its failure waits here. One failure per peer is kept, the first: it is the reason of most that follow.

use rackloom_protocol::{Command, NodeId};

use super::error::Error;

/// Whose posted operations a flush speaks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flushes {
    /// It is no flush.
    #[default]
    Nothing,
    /// Those towards one peer.
    Peer(NodeId),
    /// All.
    Everything,
}

impl Flushes {
    pub(super) const fn of(command: &Command<'_>) -> Self {
        match command {
            Command::Flush { target: Some(peer), .. } => Self::Peer(*peer),
            Command::Flush { target: None, .. } => Self::Everything,
            _ => Self::Nothing,
        }
    }

    fn covers(self, peer: NodeId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Peer(named) => named == peer,
            Self::Everything => true,
        }
    }
}

/// Failures that no flush has told of.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    failures: Vec<(NodeId, Error)>,
}

impl Unsaid {
    /// A posted operation towards `peer` has failed.
    pub(super) fn note(&mut self, peer: NodeId, error: Error) {
        if self.failures.iter().all(|(known, _)| *known != peer) {
            self.failures.push((peer, error));
        }
    }

    /// What a flush has to say before anything else; it is said once.
    pub(super) fn take(&mut self, flushes: Flushes) -> Option<Error> {
        let place = self.failures.iter().position(|(peer, _)| flushes.covers(*peer))?;
        Some(self.failures.remove(place).1)
    }

    /// What a flush says that has ended in this way in the core. Its own word of a lost peer is the same word as that of what was posted.
    pub(super) fn settle<T>(&mut self, flushes: Flushes, result: Result<T, Error>) -> Result<T, Error> {
        if flushes == Flushes::Nothing || self.failures.is_empty() {
            return result;
        }
        match &result {
            Ok(_) => self.take(flushes).map_or(result, Err),
            Err(said) => {
                let lost = |error: &Error| match error {
                    Error::PeerLost { peer, .. } | Error::PeerLeft { peer, .. } => Some(*peer),
                    _ => None,
                };
                self.failures.retain(|(_, error)| lost(error).is_none() || lost(error) != lost(said));
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::OperationError;

    use super::*;

    const FIRST: NodeId = NodeId(1);
    const SECOND: NodeId = NodeId(2);

    fn refused(peer: NodeId) -> Error {
        Error::Refused { peer, reason: OperationError::BadKey }
    }

    fn lost(peer: NodeId) -> Error {
        Error::PeerLost { peer, maybe_done: true }
    }

    fn peer_of(result: Result<(), Error>) -> Option<NodeId> {
        result.err().and_then(|error| error.peer())
    }

    #[test]
    fn each_flush_says_one_failure_of_those_it_speaks_for() {
        let mut unsaid = Unsaid::default();
        unsaid.note(FIRST, refused(FIRST));
        unsaid.note(SECOND, lost(SECOND));
        unsaid.note(FIRST, lost(FIRST));
        assert!(unsaid.settle(Flushes::Nothing, Ok(())).is_ok(), "no flush");
        assert_eq!(peer_of(unsaid.settle(Flushes::Peer(SECOND), Ok(()))), Some(SECOND));
        assert!(unsaid.settle(Flushes::Peer(SECOND), Ok(())).is_ok(), "it has been said");
        let said = unsaid.settle(Flushes::Everything, Ok(())).unwrap_err();
        assert!(matches!(said, Error::Refused { peer: FIRST, .. }), "the first of them: {said}");
        assert!(unsaid.settle(Flushes::Everything, Ok(())).is_ok());
    }

    #[test]
    fn a_loss_is_not_said_twice_and_a_refusal_is_not_lost_behind_it() {
        let mut unsaid = Unsaid::default();
        unsaid.note(FIRST, lost(FIRST));
        unsaid.note(SECOND, refused(SECOND));
        assert_eq!(peer_of(unsaid.settle(Flushes::Everything, Err(lost(FIRST)))), Some(FIRST));
        assert_eq!(peer_of(unsaid.settle(Flushes::Everything, Ok(()))), Some(SECOND));
        assert!(unsaid.take(Flushes::Everything).is_none());
    }
}
