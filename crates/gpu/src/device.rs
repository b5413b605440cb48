//! What every device offers: memory, streams, events, and a handful of operations on a stream.
//!
//! A stream is a row of operations that a device carries out one after another, some time later. An event marks a place in the
//! row; asking it is the only way to learn that everything before it is done and visible. Operations on different streams are
//! in no order unless one waits for an event of the other.
//!
//! Memory of a device is an address and never a Rust slice; pinned memory of the host is what both sides can read and write.
//! The trait has a real device ([`crate::cuda`]) and one of plain memory ([`crate::fake`]), and the same tests for both.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::error::GpuError;
use crate::pinned::Pinned;

/// Bytes of a handle.
pub const HANDLE_BYTES: usize = 64;

/// What another process needs to use memory of this one's device.
///
/// `Send` and `Sync`: plain data and a descriptor.
#[derive(Debug)]
pub struct Shared {
    /// Means something to a device of the same kind in another process.
    pub handle: [u8; HANDLE_BYTES],
    /// Travels beside it, if the kind of device has one.
    pub file: Option<OwnedFd>,
}

/// What a pool holds, and what its callers hold of that, in bytes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Taken from the system, now.
    pub reserved_current: u64,
    /// Taken from the system, at most since the last reset.
    pub reserved_high: u64,
    /// Handed out, now.
    pub used_current: u64,
    /// Handed out, at most since the last reset.
    pub used_high: u64,
}

/// An address that the device understands: its own memory, a peer's that it may use, or pinned memory of the host.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// So many bytes further.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// Names a stream of a device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Names an event of a device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u32);

/// One range to be moved, as kernels read it. Either side may be pinned memory of the host.
///
/// Moved so that an aligned word of 4 or 8 bytes that is a range by itself is written whole. `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Move {
    /// Where to.
    pub target: u64,
    /// Where from.
    pub source: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// One atomic, as kernels read it. The old value goes to `result`.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Atomic {
    /// The word, aligned to its width.
    pub target: u64,
    /// Where the old value goes, 8 bytes.
    pub result: u64,
    /// Added, or put in place.
    pub operand: u64,
    /// What a compare-and-swap expects.
    pub compare: u64,
    /// What to do.
    pub kind: AtomicKind,
    /// 4 or 8 bytes.
    pub width: u32,
}

/// Kinds of atomics.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AtomicKind {
    /// Add the operand, wrapping.
    Add = 0,
    /// Replace the word by the operand if it equals `compare`.
    CompareSwap = 1,
    /// Replace the word by the operand.
    Swap = 2,
}

/// What two elements become.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Reduction {
    Sum,
    Min,
    Max,
    Product,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Product];

    /// As kernels are named.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Product => "prod",
        }
    }
}

/// What an element is.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Element {
    F32,
    F64,
    F16,
    Bf16,
    I32,
    I64,
}

impl Element {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::F32, Self::F64, Self::F16, Self::Bf16, Self::I32, Self::I64];

    /// As kernels are named.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I32 => "i32",
            Self::I64 => "i64",
        }
    }

    /// Bytes of one.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// A device.
///
/// Operations are put on a stream and return at once. Pinned memory that an operation reads or writes must stay as it is until
/// an event after the operation is done.
pub trait Device: Send + std::fmt::Debug {
    /// Memory of the device, zeroed; usable at once.
    fn allocate(&mut self, bytes: u64) -> Result<Address, GpuError>;
    /// The same out of the device's pool, which is made when it is first needed. Other processes open such memory by a descriptor of the
    /// pool and a handle of 64 bytes.
    fn allocate_from_pool(&mut self, bytes: u64) -> Result<Address, GpuError> {
        let _ = bytes;
        Err(GpuError::NotSupported { function: "allocate_from_pool" })
    }
    /// What the pool holds, if there is one by now.
    fn pool_statistics(&mut self) -> Result<Option<PoolStatistics>, GpuError> {
        Ok(None)
    }
    /// Give it back, once everything on every stream that uses it is done.
    fn free(&mut self, address: Address) -> Result<(), GpuError>;
    /// Let other processes open memory that was allocated here: all of it, by the address at which it begins.
    fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        let _ = address;
        Err(GpuError::NotSupported { function: "share" })
    }
    /// Use memory of another process's device as one's own. Whoever has it closes it before the other frees it.
    ///
    /// # Errors
    /// [`GpuError::OwnHandle`] where the handle was made.
    fn open(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Address, GpuError> {
        let _ = (handle, file);
        Err(GpuError::NotSupported { function: "open" })
    }
    /// Let go of it, once everything on every stream that uses it is done.
    fn close(&mut self, address: Address) -> Result<(), GpuError> {
        let _ = address;
        Err(GpuError::NotSupported { function: "close" })
    }
    /// Host memory that the device reads and writes at the same address, zeroed.
    fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError>;
    /// Let the device read host memory that somebody else owns, at the same address, as if it were pinned. Pages that it cannot
    /// have are an error, and nothing is changed then.
    ///
    /// # Safety
    /// The range is mapped until the device is dropped, or has let go of it.
    unsafe fn pin_pages(&mut self, start: u64, bytes: usize) -> Result<(), GpuError>;
    /// Let go of such pages, once everything on every stream that uses them is done.
    fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError>;
    /// A new stream.
    fn stream(&mut self) -> Result<StreamId, GpuError>;
    /// The same for long computations: blocks of kernels on other streams go before those that wait on this one.
    fn patient_stream(&mut self) -> Result<StreamId, GpuError> {
        self.stream()
    }
    /// A new event, done.
    fn event(&mut self) -> Result<EventId, GpuError>;

    /// Copy between any two addresses.
    fn copy(
        &mut self,
        stream: StreamId,
        target: Address,
        source: Address,
        bytes: u64,
    ) -> Result<(), GpuError>;
    /// The same for several ranges that do not overlap, in any order. The device's copy engines do it, which run beside kernels, and
    /// beside those of other processes.
    fn copy_ranges(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError>;
    /// Write an aligned word of 4 or 8 bytes, whole, once everything that was put on the stream before is visible.
    fn write_word(
        &mut self,
        stream: StreamId,
        target: Address,
        width: u32,
        value: u64,
    ) -> Result<(), GpuError>;
    /// Move `count` ranges, all at the same time: none may overlap with what another writes. The [`Move`]s lie at `records`; the
    /// longest has `bytes_max` bytes.
    fn move_ranges(
        &mut self,
        stream: StreamId,
        records: Address,
        count: u32,
        bytes_max: u64,
    ) -> Result<(), GpuError>;
    /// Carry out `count` atomics one after another, atomically with respect to every kernel. The [`Atomic`]s lie at `records`.
    fn atomics(&mut self, stream: StreamId, records: Address, count: u32) -> Result<(), GpuError>;
    /// `target[i] = target[i] (reduction) source[i]` for `count` elements.
    fn reduce(
        &mut self,
        stream: StreamId,
        work: (Reduction, Element),
        target: Address,
        source: Address,
        count: u64,
    ) -> Result<(), GpuError>;

    /// `c = a * b` of row-major matrices of f32: `[rows, inner, columns]`. None of the three overlaps with another.
    fn multiply(
        &mut self,
        stream: StreamId,
        operands: [Address; 2],
        target: Address,
        sizes: [u32; 3],
    ) -> Result<(), GpuError>;

    /// Mark the present end of a stream.
    fn record(&mut self, event: EventId, stream: StreamId) -> Result<(), GpuError>;
    /// What is put on the stream from now on waits for the event.
    fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), GpuError>;
    /// Whether everything before the event's mark is done and visible to everybody. An error: some of it failed.
    fn is_done(&mut self, event: EventId) -> Result<bool, GpuError>;
    /// Wait for everything on a stream.
    fn synchronize(&mut self, stream: StreamId) -> Result<(), GpuError>;
}
