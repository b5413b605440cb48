//! Headers of classic pcap files, as bytes: both byte orders, microseconds and nanoseconds.
//!
//! The draft of the IETF (draft-ietf-opsawg-pcap) defines them. A classic file has one interface without a name, and neither comments
//! nor directions. [`crate::reader`] reads it; nothing here writes one.

/// Length of the header of a file, in bytes.
pub(crate) const FILE_HEADER_BYTES: usize = 24;
/// Length of the header of a packet, in bytes.
pub(crate) const PACKET_HEADER_BYTES: usize = 16;

/// First number of a file whose times have microseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
/// First number of a file whose times have nanoseconds.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// The only version that is in use.
const VERSION_MAJOR: u16 = 2;

/// Format of a classic file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classic {
    is_big_endian: bool,
    /// Units of its timestamps below a second, per second.
    pub(crate) units_per_s: u32,
    /// Kind of its frames.
    pub(crate) link_type: u16,
}

/// Header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    /// Time of the packet, in nanoseconds since 1970.
    pub(crate) timestamp_ns: u64,
    /// Number of bytes in the file.
    pub(crate) captured_bytes: u32,
    /// Length before the packet was cut, in bytes.
    pub(crate) original_bytes: u32,
}

/// Returns true if these are the first bytes of a classic file.
pub(crate) fn is_magic(bytes: [u8; 4]) -> bool {
    byte_order_and_units(bytes).is_some()
}

/// Returns whether the file is big endian, and its units per second.
fn byte_order_and_units(magic: [u8; 4]) -> Option<(bool, u32)> {
    let units = |magic| match magic {
        MICROSECONDS => Some(1_000_000),
        NANOSECONDS => Some(1_000_000_000),
        _ => None,
    };
    let little = units(u32::from_le_bytes(magic)).map(|units| (false, units));
    little.or_else(|| units(u32::from_be_bytes(magic)).map(|units| (true, units)))
}

impl Classic {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// A description, if this is no header of a known version.
    pub(crate) fn parse(header: &[u8; FILE_HEADER_BYTES]) -> Result<Self, String> {
        let magic = [header[0], header[1], header[2], header[3]];
        let (is_big_endian, units_per_s) =
            byte_order_and_units(magic).ok_or_else(|| "this is no classic capture".to_owned())?;
        let mut format = Self { is_big_endian, units_per_s, link_type: 0 };
        let version = (format.number(header, 4) >> if is_big_endian { 16 } else { 0 }) as u16;
        if version != VERSION_MAJOR {
            return Err(format!("a classic capture of version {version}"));
        }
        // The upper half says how long the check sequence of a frame is, if the file has it.
        format.link_type = format.number(header, 20) as u16;
        Ok(format)
    }

    /// Reads the header of a packet. Any bytes are one.
    pub(crate) fn packet(self, header: &[u8; PACKET_HEADER_BYTES]) -> PacketHeader {
        let fraction = u64::from(self.number(header, 4)) * u64::from(1_000_000_000 / self.units_per_s);
        PacketHeader {
            timestamp_ns: u64::from(self.number(header, 0)) * 1_000_000_000 + fraction,
            captured_bytes: self.number(header, 8),
            original_bytes: self.number(header, 12),
        }
    }

    fn number<const BYTES: usize>(self, header: &[u8; BYTES], at: usize) -> u32 {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header that `tcpdump -w` writes for Ethernet, followed by one of a packet, in big endian.
    const FILE: [u8; FILE_HEADER_BYTES] =
        [0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1];
    const PACKET: [u8; PACKET_HEADER_BYTES] = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 60, 0, 0, 5, 0xdc];

    /// Reverses each number of a header; the version is two numbers.
    fn swapped<const BYTES: usize>(header: [u8; BYTES], numbers: &[usize]) -> [u8; BYTES] {
        let mut out = header;
        let mut at = 0;
        for bytes in numbers {
            out[at..at + bytes].reverse();
            at += bytes;
        }
        out
    }

    #[test]
    fn both_byte_orders_have_the_same_meaning() {
        let big = Classic::parse(&FILE).expect("a header");
        let little = Classic::parse(&swapped(FILE, &[4, 2, 2, 4, 4, 4, 4])).expect("a header");
        assert_eq!((big.link_type, big.units_per_s), (1, 1_000_000));
        assert_eq!((little.link_type, little.units_per_s), (1, 1_000_000));
        let expected = PacketHeader { timestamp_ns: 2_000_003_000, captured_bytes: 60, original_bytes: 1500 };
        assert_eq!(big.packet(&PACKET), expected);
        assert_eq!(little.packet(&swapped(PACKET, &[4; 4])), expected);
    }

    #[test]
    fn times_have_microseconds_or_nanoseconds() {
        let mut nanoseconds = FILE;
        nanoseconds[2..4].copy_from_slice(&[0x3c, 0x4d]);
        let format = Classic::parse(&nanoseconds).expect("a header");
        assert_eq!(format.packet(&PACKET).timestamp_ns, 2_000_000_003);
        let latest = format.packet(&[0xff; PACKET_HEADER_BYTES]);
        assert_eq!(latest.timestamp_ns, u64::from(u32::MAX) * 1_000_000_001);
    }

    #[test]
    fn other_versions_and_files_are_refused() {
        let mut other = FILE;
        other[5] = 3;
        assert_eq!(Classic::parse(&other), Err("a classic capture of version 3".to_owned()));
        assert!(is_magic([0x4d, 0x3c, 0xb2, 0xa1]) && !is_magic([0x0a, 0x0d, 0x0d, 0x0a]));
    }
}
