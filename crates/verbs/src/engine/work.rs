//! Work requests, as the engine keeps them, and statuses of completions.

use super::memory::Remote;
use crate::layout::attributes::AhAttr;
use crate::layout::constants::*;
use crate::layout::work::Sge;

/// Status of a completion. Values are those of `enum ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The operation is done.
    Success = 0,
    /// The message is longer than the receive, or than the service allows.
    LocalLength = 1,
    /// Local memory is not registered, or lacks the right.
    LocalProtection = 4,
    /// The queue pair was in the state `Err` or `Sqe`, or entered it.
    Flushed = 5,
    /// The peer does not accept such a request.
    RemoteInvalid = 9,
    /// Remote memory is not registered, or lacks the right.
    RemoteAccess = 10,
    /// The peer failed locally.
    RemoteOperation = 11,
    /// No answer after all retries.
    RetryExceeded = 12,
    /// No receive after all retries.
    NotReadyExceeded = 13,
}

/// Data of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Registered local memory, which is checked when the operation starts.
    Parts(Vec<Sge>),
    /// Bytes that were copied when the request was posted.
    Inline(Box<[u8]>),
}

impl Data {
    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Parts(parts) => parts.iter().map(|part| u64::from(part.length)).sum(),
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }
}

/// Operation of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Message to the connected peer.
    Send {
        /// Immediate data.
        immediate: Option<u32>,
    },
    /// Write to memory of the peer.
    Write {
        /// Memory of the peer.
        remote: Remote,
        /// Immediate data.
        immediate: Option<u32>,
    },
    /// Read from memory of the peer.
    Read {
        /// Memory of the peer.
        remote: Remote,
    },
    /// Addition to a value of the peer.
    FetchAdd {
        /// Memory of the peer.
        remote: Remote,
        /// Value that is added.
        add: u64,
    },
    /// Conditional new value for the peer.
    CompareSwap {
        /// Memory of the peer.
        remote: Remote,
        /// Expected value.
        expected: u64,
        /// New value.
        new: u64,
    },
    /// Datagram.
    Datagram {
        /// Route of its address handle.
        route: AhAttr,
        /// Remote queue pair.
        queue_pair: u32,
        /// Q_Key.
        key: u32,
        /// Immediate data.
        immediate: Option<u32>,
    },
}

impl Kind {
    /// Returns the operation in completions.
    pub(super) const fn opcode(&self) -> u32 {
        match self {
            Self::Send { .. } | Self::Datagram { .. } => WC_SEND,
            Self::Write { .. } => WC_RDMA_WRITE,
            Self::Read { .. } => WC_RDMA_READ,
            Self::FetchAdd { .. } => WC_FETCH_ADD,
            Self::CompareSwap { .. } => WC_COMP_SWAP,
        }
    }

    /// Returns true if the operation brings data of the peer into local memory.
    pub(super) const fn is_fetch(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::FetchAdd { .. } | Self::CompareSwap { .. })
    }

    /// Returns true if the operation completes a receive of the peer, so that it is a numbered message.
    pub(super) const fn is_message(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { immediate: Some(_), .. })
    }

    /// Returns true if the operation is atomic, on eight bytes.
    pub(super) const fn is_atomic(&self) -> bool {
        matches!(self, Self::FetchAdd { .. } | Self::CompareSwap { .. })
    }
}

/// Work request of a send queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// Number that the completion repeats.
    pub id: u64,
    /// A success is reported, too.
    pub is_signalled: bool,
    /// The completion at the peer is solicited.
    pub is_solicited: bool,
    /// Reads and atomic operations before it end first.
    pub is_fenced: bool,
    /// Data, or local memory of a fetch.
    pub data: Data,
    /// Operation.
    pub kind: Kind,
    /// Time before which it does not start. The engine sets it, from a fault of the queue pair.
    pub ready_ns: u64,
}

impl Send {
    /// Returns true if the send may be at the transport together with the one before it.
    ///
    /// A send of another kind waits, so the peer executes it after all others. Nothing follows immediate data: a write behind them could be repeated with
    /// them, after the peer has used what it wrote.
    pub(super) const fn may_follow(&self, before: &Self) -> bool {
        match (before.kind, self.kind) {
            (Kind::Send { .. }, Kind::Send { .. })
            | (Kind::Write { immediate: None, .. }, Kind::Write { .. }) => true,
            (Kind::Read { .. }, Kind::Read { .. }) => !self.is_fenced,
            (before, kind) => before.is_atomic() && kind.is_atomic() && !self.is_fenced,
        }
    }
}

/// Work request of a receive queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Number that the completion repeats.
    pub id: u64,
    /// Local memory.
    pub parts: Vec<Sge>,
}
