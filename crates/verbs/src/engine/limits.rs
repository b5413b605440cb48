//! Limits of the device.

/// Work requests of a queue.
pub const QUEUE_WORK: u32 = 1 << 15;
/// Parts of memory of a work request.
pub const PARTS: u32 = 32;
/// Bytes of inline data of a work request.
pub const INLINE_BYTES: u32 = 1024;
/// Completions of a queue.
pub const COMPLETIONS: u32 = 1 << 22;
/// Outstanding reads and atomic operations of a queue pair.
pub const READS: u8 = 16;
/// Queue pairs.
pub const QUEUE_PAIRS: u32 = 1 << 16;
/// Shared receive queues.
pub const SHARED: u32 = 1 << 16;
/// Protection domains.
pub const DOMAINS: u32 = 1 << 16;
/// Regions.
pub const REGIONS: u32 = (1 << 23) - 1;
/// Bytes of a message of a connection.
pub const MESSAGE_BYTES: u64 = 1 << 31;
/// Bytes of a datagram.
pub const DATAGRAM_BYTES: u64 = 4096;
