//! Failures of posted operations that no flush has reported.
//!
//! The core keeps these for posted stores, which it forgets after it has accepted them. Other operations without a completion end in the core
//! as usual, and their failures wait here. One failure per peer is kept, the first: it is the cause of most later ones.

use rackloom_protocol::{Command, NodeId};

use crate::fabric::error::Error;

/// Set of posted operations that a flush covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fabric) enum Flushes {
    /// None: the command is no flush.
    #[default]
    Nothing,
    /// Those to one peer.
    Peer(NodeId),
    /// Those to all peers.
    Everything,
}

impl Flushes {
    pub(in crate::fabric) const fn of(command: &Command<'_>) -> Self {
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

/// Failures that no flush has reported.
#[derive(Debug, Default)]
pub(in crate::fabric) struct UnreportedFailures {
    failures: Vec<(NodeId, Error)>,
}

impl UnreportedFailures {
    /// Records the failure of a posted operation to `peer`.
    pub(in crate::fabric) fn note(&mut self, peer: NodeId, error: Error) {
        if self.failures.iter().all(|(known, _)| *known != peer) {
            self.failures.push((peer, error));
        }
    }

    /// Takes a failure that the flush reports before its own result. Each failure is reported once.
    pub(in crate::fabric) fn take(&mut self, flushes: Flushes) -> Option<Error> {
        let index = self.failures.iter().position(|(peer, _)| flushes.covers(*peer))?;
        Some(self.failures.remove(index).1)
    }

    /// Returns the result of a flush that has ended with `result` in the core. Its own loss of a peer equals the loss of operations posted to that peer.
    pub(in crate::fabric) fn settle<T>(
        &mut self,
        flushes: Flushes,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        if flushes == Flushes::Nothing || self.failures.is_empty() {
            return result;
        }
        match &result {
            Ok(_) => self.take(flushes).map_or(result, Err),
            Err(reported) => {
                let lost = |error: &Error| match error {
                    Error::PeerLost { peer, .. } | Error::PeerLeft { peer, .. } => Some(*peer),
                    _ => None,
                };
                self.failures.retain(|(_, error)| lost(error).is_none() || lost(error) != lost(reported));
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
    fn each_flush_reports_one_failure_of_its_peers() {
        let mut unreported = UnreportedFailures::default();
        unreported.note(FIRST, refused(FIRST));
        unreported.note(SECOND, lost(SECOND));
        unreported.note(FIRST, lost(FIRST));
        assert!(unreported.settle(Flushes::Nothing, Ok(())).is_ok(), "no flush");
        assert_eq!(peer_of(unreported.settle(Flushes::Peer(SECOND), Ok(()))), Some(SECOND));
        assert!(unreported.settle(Flushes::Peer(SECOND), Ok(())).is_ok(), "it has been reported");
        let error = unreported.settle(Flushes::Everything, Ok(())).unwrap_err();
        assert!(matches!(error, Error::Refused { peer: FIRST, .. }), "the first of them: {error}");
        assert!(unreported.settle(Flushes::Everything, Ok(())).is_ok());
    }

    #[test]
    fn a_loss_is_reported_once_and_does_not_hide_a_refusal() {
        let mut unreported = UnreportedFailures::default();
        unreported.note(FIRST, lost(FIRST));
        unreported.note(SECOND, refused(SECOND));
        assert_eq!(peer_of(unreported.settle(Flushes::Everything, Err(lost(FIRST)))), Some(FIRST));
        assert_eq!(peer_of(unreported.settle(Flushes::Everything, Ok(()))), Some(SECOND));
        assert!(unreported.take(Flushes::Everything).is_none());
    }
}
