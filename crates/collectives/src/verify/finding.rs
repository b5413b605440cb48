//! Errors of a schedule, each with the step or memory in which it is.

use thiserror::Error;

use crate::schedule::{Span, TransferId};

/// An error of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Finding {
    /// Buffers do not have the sizes of the collective.
    #[error("rank {rank}: input or output has the wrong size")]
    BufferSize {
        /// Rank of the buffers.
        rank: usize,
    },
    /// A span leaves its buffer.
    #[error("rank {rank}: {span} leaves its buffer")]
    OutOfBounds {
        /// Rank of the memory.
        rank: usize,
        /// The span.
        span: Span,
    },
    /// The input is written.
    #[error("rank {rank}: {span} is written")]
    InputWritten {
        /// Rank of the memory.
        rank: usize,
        /// The written span.
        span: Span,
    },
    /// Source and target differ in length or overlap.
    #[error("rank {rank}: {from} does not fit {to}")]
    Mismatch {
        /// Rank that sends or works.
        rank: usize,
        /// Span that is read.
        from: Span,
        /// Span that is written.
        to: Span,
    },
    /// A fold has no operands, or operands that its program does not have.
    #[error("rank {rank}: nothing is folded into {target}")]
    NoOperands {
        /// Rank that works.
        rank: usize,
        /// Span that is written.
        target: Span,
    },
    /// A rank sends to itself or to a rank that does not exist.
    #[error("transfer {}: from rank {from} to rank {to}", .transfer.0)]
    BadPeer {
        /// The transfer.
        transfer: TransferId,
        /// Sender.
        from: usize,
        /// Receiver.
        to: usize,
    },
    /// A step names a transfer that does not exist or belongs to another rank.
    #[error("rank {rank}: transfer {} is not its own", .transfer.0)]
    ForeignTransfer {
        /// Rank of the step.
        rank: usize,
        /// The transfer.
        transfer: TransferId,
    },
    /// A transfer is not sent and awaited exactly once.
    #[error("transfer {} is sent {sent} and awaited {awaited} times", .transfer.0)]
    NotOnce {
        /// The transfer.
        transfer: TransferId,
        /// Number of steps that send it.
        sent: usize,
        /// Number of steps that wait for it.
        awaited: usize,
    },
    /// Numbers of a pair or arrivals of a receiver are not 0, 1, 2, ...
    #[error("transfer {} has a number or an arrival out of order", .transfer.0)]
    BadNumber {
        /// The transfer.
        transfer: TransferId,
    },
    /// A rank waits without end.
    #[error("rank {rank} waits for ever in step {step}")]
    Deadlock {
        /// The waiting rank.
        rank: usize,
        /// Index of the step.
        step: usize,
    },
    /// Two accesses of the same memory, one of them a write, are not ordered.
    #[error("rank {rank}: {first} and {second} race")]
    Race {
        /// Rank of the memory.
        rank: usize,
        /// One access.
        first: Span,
        /// The other.
        second: Span,
    },
    /// The source of a put is written after the put was issued.
    #[error("rank {rank}: {span} is written again after it was sent")]
    SourceRewritten {
        /// Rank of the memory.
        rank: usize,
        /// The written span.
        span: Span,
    },
    /// An element is read that was never written.
    #[error("rank {rank}: {span} is read before it is written")]
    Uninitialised {
        /// Rank of the memory.
        rank: usize,
        /// The read span.
        span: Span,
    },
    /// Different elements of the array are reduced with each other.
    #[error("rank {rank}: elements {left} and {right} are reduced into each other in {span}")]
    MixedElements {
        /// Rank that reduces.
        rank: usize,
        /// Span of the elements.
        span: Span,
        /// Position in the inputs.
        left: usize,
        /// Position in the inputs.
        right: usize,
    },
    /// An output differs from the collective's definition.
    #[error("rank {rank}: output element {element} is {found}, not {expected}")]
    WrongResult {
        /// Rank of the output.
        rank: usize,
        /// Index of the element.
        element: usize,
        /// Contents of the element.
        found: String,
        /// Contents by the collective's definition.
        expected: String,
    },
    /// A rank leaves the barrier before another has entered.
    #[error("a rank leaves the barrier before another has entered")]
    BarrierLeaks,
}
