//! Results of operations, as callers receive them.

use rackloom_protocol::{NodeId, OperationId};

use super::error::Error;

/// Result of an operation that completed successfully.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Old value of an atomic, word that ended a wait, or length of a message in bytes. Otherwise 0.
    pub value: u64,
    /// Sender and tag of a received message.
    pub matched: Option<(NodeId, u64)>,
}

/// Completion of a submitted request.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// Context that the caller passed with the request.
    pub context: u64,
    /// Identifier of the operation at its node.
    pub operation: OperationId,
    /// Result of the operation.
    pub result: Result<Ended, Error>,
}
