//! What can be wrong with a schedule, said so that the step can be found.

use thiserror::Error;

use crate::schedule::{Span, TransferId};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Finding {
    /// Buffers have other sizes than the collective says.
    #[error("rank {rank}: input or output has the wrong size")]
    BufferSize {
        /// Whose.
        rank: usize,
    },
    /// A span leaves its buffer.
    #[error("rank {rank}: {span} leaves its buffer")]
    OutOfBounds {
        /// Whose memory.
        rank: usize,
        /// What.
        span: Span,
    },
    /// The input is written.
    #[error("rank {rank}: {span} is written")]
    InputWritten {
        /// Whose memory.
        rank: usize,
        /// What.
        span: Span,
    },
    /// Source and target differ in length or overlap.
    #[error("rank {rank}: {from} does not fit {to}")]
    Mismatch {
        /// Who sends or works.
        rank: usize,
        /// Read.
        from: Span,
        /// Written.
        to: Span,
    },
    /// A fold of nothing, or of operands that its program does not have.
    #[error("rank {rank}: nothing is folded into {target}")]
    NoOperands {
        /// Who works.
        rank: usize,
        /// Written.
        target: Span,
    },
    /// A rank sends to itself or to nobody.
    #[error("transfer {}: from rank {from} to rank {to}", .transfer.0)]
    BadPeer {
        /// Which.
        transfer: TransferId,
        /// Sender.
        from: usize,
        /// Receiver.
        to: usize,
    },
    /// A step names a transfer that does not exist or is not its rank's.
    #[error("rank {rank}: transfer {} is not its own", .transfer.0)]
    ForeignTransfer {
        /// Whose step.
        rank: usize,
        /// Which.
        transfer: TransferId,
    },
    /// Sent or awaited never, or more than once.
    #[error("transfer {} is sent {sent} and awaited {awaited} times", .transfer.0)]
    NotOnce {
        /// Which.
        transfer: TransferId,
        /// How often a step sends it.
        sent: usize,
        /// How often a step waits for it.
        awaited: usize,
    },
    /// Numbers of a pair or arrivals of a receiver are not 0, 1, 2, ...
    #[error("transfer {} has a number or an arrival out of order", .transfer.0)]
    BadNumber {
        /// Which.
        transfer: TransferId,
    },
    /// A rank waits for ever.
    #[error("rank {rank} waits for ever in step {step}")]
    Deadlock {
        /// Who.
        rank: usize,
        /// Where.
        step: usize,
    },
    /// Two accesses of the same memory, one of them a write, are not ordered.
    #[error("rank {rank}: {first} and {second} race")]
    Race {
        /// Whose memory.
        rank: usize,
        /// One access.
        first: Span,
        /// The other.
        second: Span,
    },
    /// What a put reads is written after the put was issued.
    #[error("rank {rank}: {span} is written again after it was sent")]
    SourceRewritten {
        /// Whose memory.
        rank: usize,
        /// What is written.
        span: Span,
    },
    /// Something is read that was never written.
    #[error("rank {rank}: {span} is read before it is written")]
    Uninitialised {
        /// Whose memory.
        rank: usize,
        /// What is read.
        span: Span,
    },
    /// Different elements of the array are reduced with each other.
    #[error("rank {rank}: elements {left} and {right} are reduced into each other in {span}")]
    MixedElements {
        /// Who.
        rank: usize,
        /// Where.
        span: Span,
        /// Position in the inputs.
        left: usize,
        /// Position in the inputs.
        right: usize,
    },
    /// An output is not what was promised.
    #[error("rank {rank}: output element {element} is {found}, not {expected}")]
    WrongResult {
        /// Whose output.
        rank: usize,
        /// Position.
        element: usize,
        /// What it is.
        found: String,
        /// What was promised.
        expected: String,
    },
    /// A rank leaves the barrier before another has entered.
    #[error("a rank leaves the barrier before another has entered")]
    BarrierLeaks,
}
