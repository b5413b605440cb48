//! Bounds of settings that several sections share.

pub(crate) const MICROSECOND_NS: u64 = 1_000;
pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const MINUTE_NS: u64 = 60_000_000_000;
pub(crate) const HOUR_NS: u64 = 60 * MINUTE_NS;
/// Longest delay of a link.
pub(crate) const DELAY_NS_MAX: u64 = 10_000_000_000;
/// Largest rate, in bits per second.
pub(crate) const RATE_MAX: u64 = 100_000_000_000_000;
/// Largest buffer of a member or a port, in bytes.
pub(crate) const BUFFER_BYTES_MAX: u64 = 1 << 30;
/// Largest number of members of a rack.
pub(crate) const MEMBERS_MAX: u64 = 16_384;
/// Largest number of links of a rack: the core numbers them with 16 bits.
pub(crate) const LINKS_MAX: u64 = u16::MAX as u64;
/// Largest number of process seats of a GPU node.
pub(crate) const PROCESSES_MAX: u16 = 16;
