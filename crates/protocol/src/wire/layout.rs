//! Offsets of all fields of a frame (wire-format section 2). All numbers are little endian except the EtherType,
//! which is big endian as in all Ethernet frames.

/// Destination MAC.
pub const DESTINATION_MAC: usize = 0;
/// Source MAC.
pub const SOURCE_MAC: usize = 6;
/// EtherType, big endian.
pub const ETHER_TYPE: usize = 12;
/// First byte of the link header.
pub const LINK: usize = 14;
/// Magic, `0x4C52` ("RL").
pub const MAGIC: usize = 14;
/// Version in the high nibble, kind in the low one.
pub const VERSION_KIND: usize = 16;
/// Presence, check and mark flags, see the `FLAG_` constants.
pub const FLAGS: usize = 17;
/// Rack epoch.
pub const EPOCH: usize = 18;
/// Number of bytes after the link header; bytes beyond them are padding.
pub const LENGTH: usize = 20;
/// Hop limit.
pub const HOP_LIMIT: usize = 22;
/// Virtual channel of the link on which the frame travels; the frame's counters belong to it.
pub const CHANNEL: usize = 23;
/// Low 16 bits of the sending neighbour's incarnation tag.
pub const SESSION: usize = 24;
/// Cumulative number of data frames sent on this link direction, this one included.
pub const SEQUENCE: usize = 26;
/// Link acknowledgement: the last link sequence received in order.
pub const LINK_ACK: usize = 30;
/// Cumulative credits consumed on this link direction, this frame included.
pub const CONSUMED: usize = 34;
/// Cumulative credits freed for the opposite direction.
pub const FREED: usize = 38;
/// CRC-32C of the link header (and of the body, for frames that are not routed).
pub const HOP_CHECK: usize = 42;
/// First byte after the link header: fabric header, or body of a control frame.
pub const FABRIC: usize = 46;
/// Destination member.
pub const DESTINATION: usize = 46;
/// Source member.
pub const SOURCE: usize = 48;
/// Message class.
pub const CLASS: usize = 50;
/// Number of operations in the frame.
pub const OPERATION_COUNT: usize = 51;
/// Tenant of the source.
pub const TENANT: usize = 52;
/// Number that chooses among equal paths; constant within a stream.
pub const ENTROPY: usize = 54;
/// Bit 0: the sender requests an acknowledgement at once; bit 1: the packet is a retransmission; bits 2..8: the demand.
pub const TRAFFIC: usize = 56;
/// Class of the piggybacked acknowledgement; 0xff if there is none.
pub const ACK_CLASS: usize = 57;
/// Tag of the source's incarnation.
pub const SOURCE_INCARNATION: usize = 58;
/// Tag of the destination's incarnation, as the source knows it.
pub const DESTINATION_INCARNATION: usize = 62;
/// Packet sequence number within (source, destination, class).
pub const PSN: usize = 66;
/// Number of the first operation in the frame, within the same stream.
pub const FIRST_OPERATION: usize = 70;
/// Transport acknowledgement: the next packet expected in `ACK_CLASS`.
pub const ACK_PSN: usize = 74;
/// Operation acknowledgement: the next operation of `ACK_CLASS` that is not yet visible.
pub const ACK_OPERATION: usize = 78;
/// CRC-32C over the fabric header before this field and everything after it.
pub const END_TO_END_CHECK: usize = 82;
/// First byte of the packed operations.
pub const OPERATIONS: usize = 86;

/// The magic number.
pub const MAGIC_VALUE: u16 = 0x4c52;
/// The version of this format.
pub const VERSION: u8 = 1;
/// Flag: the end-to-end check is present.
pub const FLAG_END_TO_END: u8 = 1;
/// Flag: the frame carries no hop check.
pub const FLAG_NO_HOP_CHECK: u8 = 2;
/// Flag: the hop check covers the body of a routed frame as well.
pub const FLAG_HOP_CHECK_OF_ALL: u8 = 4;
/// Flag: the link sequence of this routed frame is that of another frame, and the link does not replay it.
pub const FLAG_UNPROTECTED: u8 = 8;
/// Flag: the frame joined a queue that was longer than its mark limit.
pub const FLAG_MARKED: u8 = 16;
/// Traffic flag: acknowledge at once.
pub const TRAFFIC_ACK_NOW: u8 = 1;
/// Traffic flag: the packet is a retransmission.
pub const TRAFFIC_AGAIN: u8 = 2;
/// Position of the demand in the traffic field.
pub const TRAFFIC_DEMAND_SHIFT: u32 = 2;
/// "No class" in [`ACK_CLASS`].
pub const NO_CLASS: u8 = 0xff;
/// Bytes of an operation's header.
pub const OPERATION_HEADER: usize = 12;
/// Hop limit of a fresh frame.
pub const HOP_LIMIT_START: u8 = 255;

/// Returns the two bytes at `at`. The caller has checked the length.
#[must_use]
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the four bytes at `at`. The caller has checked the length.
#[must_use]
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

/// Returns the eight bytes at `at`. The caller has checked the length.
#[must_use]
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

/// Stores two bytes at `at`.
#[inline]
pub fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Stores four bytes at `at`.
#[inline]
pub fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Stores eight bytes at `at`.
#[inline]
pub fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
