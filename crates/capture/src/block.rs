//! pcapng blocks, appended to a buffer: section header, interface description, enhanced packet.
//!
//! Little endian, nanoseconds, whole blocks only. The pcapng draft of the IETF (draft-ietf-opsawg-pcapng) defines the blocks;
//! only options that a reader uses are written.

/// Type of a section header block.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Type of an interface description block.
pub const INTERFACE_DESCRIPTION: u32 = 1;
/// Type of an enhanced packet block.
pub const ENHANCED_PACKET: u32 = 6;
/// Number in a section header that shows its byte order.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Link type of Ethernet.
pub const ETHERNET: u16 = 1;

/// Option: a comment, in any block.
pub const OPTION_COMMENT: u16 = 1;
/// Option of a section: the application that wrote it.
pub const OPTION_APPLICATION: u16 = 4;
/// Option of an interface: its name.
pub const OPTION_INTERFACE_NAME: u16 = 2;
/// Option of an interface: its description.
pub const OPTION_INTERFACE_DESCRIPTION: u16 = 3;
/// Option of an interface: bits per second.
pub const OPTION_INTERFACE_SPEED: u16 = 8;
/// Option of an interface: the unit of its timestamps.
pub const OPTION_TIMESTAMP_RESOLUTION: u16 = 9;
/// Option of a packet: its direction and more.
pub const OPTION_PACKET_FLAGS: u16 = 2;
/// Timestamp resolution of nanoseconds: ten to the minus ninth seconds.
pub const NANOSECONDS: u8 = 9;
/// Packet flag: the interface received it.
pub const FLAG_INBOUND: u32 = 1;
/// Packet flag: the interface sent it.
pub const FLAG_OUTBOUND: u32 = 2;

/// Bytes of an enhanced packet block around frame and comments, its flags included.
pub const PACKET_OVERHEAD_BYTES: usize = 44;

/// Appends a section header.
pub fn section_header(out: &mut Vec<u8>, application: &str, comments: &[String]) {
    enclose(out, SECTION_HEADER, |out| {
        out.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        // The length of a section that is still being written is unknown.
        out.extend_from_slice(&u64::MAX.to_le_bytes());
        option(out, OPTION_APPLICATION, application.as_bytes());
        comments.iter().for_each(|comment| option(out, OPTION_COMMENT, comment.as_bytes()));
        end_of_options(out);
    });
}

/// Appends the description of an Ethernet interface whose timestamps are nanoseconds.
pub fn interface_description(out: &mut Vec<u8>, name: &str, description: &str, rate_bits_per_s: Option<u64>) {
    enclose(out, INTERFACE_DESCRIPTION, |out| {
        out.extend_from_slice(&ETHERNET.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        // No limit to the length of a packet.
        out.extend_from_slice(&[0; 4]);
        option(out, OPTION_INTERFACE_NAME, name.as_bytes());
        option(out, OPTION_INTERFACE_DESCRIPTION, description.as_bytes());
        if let Some(rate_bits_per_s) = rate_bits_per_s {
            option(out, OPTION_INTERFACE_SPEED, &rate_bits_per_s.to_le_bytes());
        }
        option(out, OPTION_TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        end_of_options(out);
    });
}

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Index of the interface, in order of their descriptions.
    pub interface: u32,
    /// Time of the packet, in nanoseconds.
    pub timestamp_ns: u64,
    /// [`FLAG_INBOUND`] or [`FLAG_OUTBOUND`].
    pub flags: u32,
    /// Bytes of the frame.
    pub frame: &'a [u8],
}

/// Appends a packet with its comments.
pub fn packet(out: &mut Vec<u8>, packet: Packet<'_>, comments: &[impl AsRef<str>]) {
    enclose(out, ENHANCED_PACKET, |out| {
        let length = (packet.frame.len() as u32).to_le_bytes();
        out.extend_from_slice(&packet.interface.to_le_bytes());
        out.extend_from_slice(&((packet.timestamp_ns >> 32) as u32).to_le_bytes());
        out.extend_from_slice(&(packet.timestamp_ns as u32).to_le_bytes());
        out.extend_from_slice(&length);
        out.extend_from_slice(&length);
        out.extend_from_slice(packet.frame);
        pad(out, packet.frame.len());
        option(out, OPTION_PACKET_FLAGS, &packet.flags.to_le_bytes());
        comments.iter().for_each(|comment| option(out, OPTION_COMMENT, comment.as_ref().as_bytes()));
        end_of_options(out);
    });
}

/// Appends type, length, body, and length again.
fn enclose(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let total = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&total);
    out.extend_from_slice(&total);
}

/// Appends an option. A value longer than its length field allows is cut.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn end_of_options(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 4]);
}

fn pad(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&[0; 3][..length.wrapping_neg() % 4]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_layout_of_the_draft() {
        let mut out = Vec::new();
        let frame = [0xaa, 0xbb, 0xcc, 0xdd, 0xee];
        let flags = FLAG_OUTBOUND;
        packet(&mut out, Packet { interface: 1, timestamp_ns: 0x1_0000_0002, flags, frame: &frame }, &["hi"]);
        let expected: [&[u8]; 11] = [
            &[6, 0, 0, 0, 60, 0, 0, 0],
            &[1, 0, 0, 0],
            &[1, 0, 0, 0, 2, 0, 0, 0],
            &[5, 0, 0, 0, 5, 0, 0, 0],
            &frame,
            &[0, 0, 0],
            &[2, 0, 4, 0, 2, 0, 0, 0],
            &[1, 0, 2, 0],
            &[b'h', b'i', 0, 0],
            &[0, 0, 0, 0],
            &[60, 0, 0, 0],
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn the_overhead_of_a_packet_is_the_documented_one() {
        for length in [0, 1, 4, 1500] {
            let mut out = Vec::new();
            let frame = vec![0; length];
            let no_comments: [&str; 0] = [];
            packet(&mut out, Packet { interface: 0, timestamp_ns: 0, flags: 0, frame: &frame }, &no_comments);
            assert_eq!(out.len(), PACKET_OVERHEAD_BYTES + length.next_multiple_of(4));
        }
    }
}
