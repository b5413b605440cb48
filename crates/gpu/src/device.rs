//! The interface of all devices: memory, streams, events, and a few operations on a stream.
//!
//! A stream is a queue of operations. A device carries them out one after another, some time later. An event marks a position in the
//! queue. Only a query of the event shows that everything before it is done and visible. Operations on different streams are
//! in no order unless one waits for an event of the other.
//!
//! Memory of a device is an address and never a Rust slice. Host and device both read and write pinned memory of the host.
//! Two types implement the trait: a real device ([`crate::cuda`]) and one of plain memory ([`crate::fake`]). One suite tests both.

use std::os::fd::{BorrowedFd, OwnedFd};

pub use crate::address::Address;
use crate::error::GpuError;
use crate::pinned::Pinned;

/// Length of a handle, in bytes.
pub const HANDLE_BYTES: usize = 64;

/// Handle with which another process opens memory of this process's device.
///
/// `Send` and `Sync`: plain data and a descriptor.
#[derive(Debug)]
pub struct Shared {
    /// Identifies the memory to a device of this kind in another process.
    pub handle: [u8; HANDLE_BYTES],
    /// Descriptor that is sent with the handle, if this kind of device needs one.
    pub file: Option<OwnedFd>,
}

/// Memory that a pool holds, and memory that it has handed out, in bytes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes taken from the system now.
    pub reserved_current: u64,
    /// Most bytes taken from the system since the last reset.
    pub reserved_high: u64,
    /// Bytes handed out now.
    pub used_current: u64,
    /// Most bytes handed out since the last reset.
    pub used_high: u64,
}

/// Identifies a stream of a device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Identifies an event of a device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u32);

/// Range to be moved, in the layout that kernels read. Either side may be pinned memory of the host.
///
/// A device writes an aligned range of 4 or 8 bytes whole. `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Move {
    /// Address of the first byte that is written.
    pub target: u64,
    /// Address of the first byte that is read.
    pub source: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Atomic operation, in the layout that kernels read. The old value is written to `result`.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Atomic {
    /// Address of the word, aligned to its width.
    pub target: u64,
    /// Address of the 8 bytes that receive the old value.
    pub result: u64,
    /// Operand: the value that is added, stored or compared.
    pub operand: u64,
    /// Value that a compare-and-swap expects.
    pub compare: u64,
    /// Kind of operation.
    pub kind: AtomicKind,
    /// Width of the word: 4 or 8 bytes.
    pub width: u32,
}

/// Kinds of atomics.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AtomicKind {
    /// Adds the operand, wrapping.
    Add = 0,
    /// Replaces the word by the operand if it equals `compare`.
    CompareSwap = 1,
    /// Replaces the word by the operand.
    Swap = 2,
    /// Keeps the bits that the operand has as well.
    And = 3,
    /// Sets the bits of the operand.
    Or = 4,
    /// Inverts the bits of the operand.
    Xor = 5,
    /// Replaces the word by the operand if that is smaller, without signs.
    Min = 6,
    /// Replaces the word by the operand if that is larger, without signs.
    Max = 7,
    /// Replaces the word by the operand if that is smaller, in two's complement.
    MinSigned = 8,
    /// Replaces the word by the operand if that is larger, in two's complement.
    MaxSigned = 9,
}

/// Operation that combines two elements.
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
    /// All reductions.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Product];

    /// Returns the name, as in the names of kernels.
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

/// Type of an element.
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
    /// All types.
    pub const ALL: [Self; 6] = [Self::F32, Self::F64, Self::F16, Self::Bf16, Self::I32, Self::I64];

    /// Returns the name, as in the names of kernels.
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

    /// Returns the size of one element, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// GPU, or a stand-in for one.
///
/// Operations are enqueued on a stream and return at once. Pinned memory that an operation reads or writes must not change until
/// an event after the operation is done.
pub trait Device: Send + std::fmt::Debug {
    /// Allocates zeroed memory of the device. It is usable at once.
    fn allocate(&mut self, bytes: u64) -> Result<Address, GpuError>;
    /// Allocates memory from the device's pool, zeroed and usable at once. The first call makes the pool. Other processes open such
    /// memory by a descriptor of the pool and a handle of 64 bytes.
    fn allocate_from_pool(&mut self, bytes: u64) -> Result<Address, GpuError> {
        let _ = bytes;
        Err(GpuError::NotSupported { function: "allocate_from_pool" })
    }
    /// Returns the statistics of the pool, or `None` before the pool exists.
    fn pool_statistics(&mut self) -> Result<Option<PoolStatistics>, GpuError> {
        Ok(None)
    }
    /// Frees memory. Everything that uses it, on every stream, must be done.
    fn free(&mut self, address: Address) -> Result<(), GpuError>;
    /// Shares a whole allocation with other processes. `address` is its first byte.
    fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        let _ = address;
        Err(GpuError::NotSupported { function: "share" })
    }
    /// Opens memory of another process's device. The importer closes it before the exporter frees it.
    ///
    /// # Errors
    /// [`GpuError::OwnHandle`] in the process that made the handle.
    fn open(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Address, GpuError> {
        let _ = (handle, file);
        Err(GpuError::NotSupported { function: "open" })
    }
    /// Closes memory that [`Self::open`] returned. Everything that uses it, on every stream, must be done.
    fn close(&mut self, address: Address) -> Result<(), GpuError> {
        let _ = address;
        Err(GpuError::NotSupported { function: "close" })
    }
    /// Allocates zeroed host memory that the device reads and writes at the same address.
    fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError>;
    /// Pins host memory that has another owner, so that the device reads it at the same address. If some page cannot be pinned, the
    /// call fails and changes nothing.
    ///
    /// # Safety
    /// The range stays mapped until the device is dropped or [`Self::unpin_pages`] returns.
    unsafe fn pin_pages(&mut self, start: u64, bytes: usize) -> Result<(), GpuError>;
    /// Unpins such pages. Everything that uses them, on every stream, must be done.
    fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError>;
    /// Makes a stream.
    fn stream(&mut self) -> Result<StreamId, GpuError>;
    /// Makes a stream for long computations: blocks of kernels on other streams go before those on this one.
    fn low_priority_stream(&mut self) -> Result<StreamId, GpuError> {
        self.stream()
    }
    /// Makes an event, which is done until it is recorded.
    fn event(&mut self) -> Result<EventId, GpuError>;

    /// Copies between any two addresses.
    fn copy(
        &mut self,
        stream: StreamId,
        target: Address,
        source: Address,
        bytes: u64,
    ) -> Result<(), GpuError>;
    /// Copies several ranges that do not overlap, in any order. The device's copy engines do it; they run beside kernels of this
    /// and of other processes.
    fn copy_ranges(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError>;
    /// Writes an aligned word of 4 or 8 bytes, whole, after everything before it on the stream is visible.
    fn write_word(
        &mut self,
        stream: StreamId,
        target: Address,
        width: u32,
        value: u64,
    ) -> Result<(), GpuError>;
    /// Makes all later operations of the stream wait until an aligned word of 8 bytes is at least `value`, as signed difference: numbers may wrap.
    /// Any stream, device or processor may write the word, also another process that has opened the memory. Nothing else ends the wait.
    fn wait_word(&mut self, stream: StreamId, address: Address, value: u64) -> Result<(), GpuError> {
        let _ = (stream, address, value);
        Err(GpuError::NotSupported { function: "wait_word" })
    }
    /// Moves `count` ranges, all at the same time: none may overlap with the target of another. The [`Move`]s are at `records`; the
    /// longest has `bytes_max` bytes.
    fn move_ranges(
        &mut self,
        stream: StreamId,
        records: Address,
        count: u32,
        bytes_max: u64,
    ) -> Result<(), GpuError>;
    /// Carries out `count` atomics one after another, atomically with respect to every kernel. The [`Atomic`]s are at `records`.
    fn atomics(&mut self, stream: StreamId, records: Address, count: u32) -> Result<(), GpuError>;
    /// Computes `target[i] = target[i] (reduction) source[i]` for `count` elements.
    fn reduce(
        &mut self,
        stream: StreamId,
        work: (Reduction, Element),
        target: Address,
        source: Address,
        count: u64,
    ) -> Result<(), GpuError>;

    /// Computes `c = a * b` of row-major matrices of f32: `[rows, inner, columns]`. The three do not overlap.
    fn multiply(
        &mut self,
        stream: StreamId,
        operands: [Address; 2],
        target: Address,
        sizes: [u32; 3],
    ) -> Result<(), GpuError>;

    /// Records the event at the present end of a stream.
    fn record(&mut self, event: EventId, stream: StreamId) -> Result<(), GpuError>;
    /// Makes all later operations of the stream wait for the event.
    fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), GpuError>;
    /// Returns true if everything before the event's mark is done and visible to all. An error means that some of it failed.
    fn is_done(&mut self, event: EventId) -> Result<bool, GpuError>;
    /// Waits for everything on a stream.
    fn synchronize(&mut self, stream: StreamId) -> Result<(), GpuError>;
}
