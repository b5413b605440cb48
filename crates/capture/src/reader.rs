//! Reads pcapng files and classic pcap files of any writer as a stream: one packet at a time.
//!
//! Both byte orders, any unit of time, any number of sections and interfaces. Blocks of other types are
//! skipped, as the format requires. A classic file is one section with one interface. Invalid bytes are an error with the reason, the offset and a hint. The usual error is a
//! file that ends within a block, because its writer was killed.
//!
//! The reader holds one block at a time, and allocates only for bytes that it has read.

use std::io::{self, Read};

use crate::block;
use crate::classic::{self, Classic};

/// Longest accepted block; frames are a hundred times shorter.
const BLOCK_BYTES_MAX: u32 = 16 << 20;

/// Direction of a packet at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The file has no direction.
    Unknown,
    /// The interface received it.
    Inbound,
    /// The interface sent it.
    Outbound,
}

/// Interface of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface; empty if it has none.
    pub name: String,
    /// Units of its timestamps per second: a power of ten or of two.
    units_per_s: u128,
    is_ethernet: bool,
    link_type: u16,
}

/// Section of a file: comments and interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Number of the section, from one.
    pub number: u32,
    /// Comments of the section.
    pub comments: Vec<String>,
    /// Interfaces that have been described so far.
    pub interfaces: Vec<Interface>,
}

/// One packet of a file.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Section of the packet.
    pub section: &'a Section,
    /// Index of the interface in its section.
    pub interface: u32,
    /// Time of the packet, in nanoseconds since the file's origin.
    pub timestamp_ns: u64,
    /// Direction at the interface.
    pub direction: Direction,
    /// Length before the packet was cut, in bytes.
    pub original_bytes: u32,
    /// Captured bytes.
    pub frame: &'a [u8],
    /// Comments of the packet.
    pub comments: Vec<String>,
}

/// Error of a file that cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file ends within a block. The records before it were returned.
    #[error("the file ends within a block")]
    Truncated {
        /// Offset of the block in the file.
        offset: u64,
    },
    /// The file is of another kind.
    #[error("{what}")]
    Foreign {
        /// Description of the kind.
        what: String,
        /// Hint for the user.
        hint: &'static str,
    },
    /// A block contradicts itself.
    #[error("{what}")]
    Malformed {
        /// Offset of the block in the file.
        offset: u64,
        /// Description of the contradiction.
        what: String,
    },
}

impl ReadError {
    /// Returns the offset of the error in the file, if it has one.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        match self {
            Self::Truncated { offset } | Self::Malformed { offset, .. } => Some(*offset),
            Self::Io(_) | Self::Empty | Self::Foreign { .. } => None,
        }
    }

    /// Returns a hint for the user.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Io(_) => "name a file that exists and that you may read",
            Self::Empty => "its writer was killed before it wrote anything, or has yet to begin",
            Self::Truncated { .. } => {
                "its writer was killed or is still writing; every frame before that was read"
            }
            Self::Foreign { hint, .. } => hint,
            Self::Malformed { .. } => {
                "the file was changed or cut after it was written; frames before that were read"
            }
        }
    }
}

/// Result of filling a buffer.
enum Filled {
    All,
    Nothing,
    Partly,
}

/// A file that is being read.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Format of a classic file; `None` for pcapng, and before the beginning of the file is read.
    classic: Option<Classic>,
    /// Offset of the block after this one.
    offset: u64,
    big_endian: bool,
    section: Section,
    body: Vec<u8>,
}

impl Record<'_> {
    /// Returns the name of its interface; empty if it has none.
    #[must_use]
    pub fn interface_name(&self) -> &str {
        self.section.interfaces.get(self.interface as usize).map_or("", |interface| interface.name.as_str())
    }
}

impl<R: Read> Reader<R> {
    /// Reads from the beginning of a file. Buffering is the caller's.
    pub const fn new(input: R) -> Self {
        Self {
            input,
            classic: None,
            offset: 0,
            big_endian: false,
            section: Section { number: 0, comments: Vec::new(), interfaces: Vec::new() },
            body: Vec::new(),
        }
    }

    /// Returns the section that is being read.
    #[must_use]
    pub const fn section(&self) -> &Section {
        &self.section
    }

    /// Returns the next packet; `None` at the end of the file.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if let Some(format) = self.classic {
                return self.classic_packet(format);
            }
            let start = self.offset;
            let Some(kind) = self.next_block()? else {
                return if self.section.number > 0 { Ok(None) } else { Err(ReadError::Empty) };
            };
            match kind {
                block::SECTION_HEADER => self.begin_section(),
                block::INTERFACE_DESCRIPTION => self.describe_interface(start)?,
                block::ENHANCED_PACKET => break self.packet(start).map(Some),
                _ => {}
            }
        }
    }

    /// Reads the next block into `body` and returns its type.
    fn next_block(&mut self) -> Result<Option<u32>, ReadError> {
        let start = self.offset;
        let mut head = [0; 8];
        match fill(&mut self.input, &mut head)? {
            Filled::All => {}
            Filled::Nothing => return Ok(None),
            Filled::Partly if start == 0 => return Err(not_pcapng()),
            Filled::Partly => return Err(ReadError::Truncated { offset: start }),
        }
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let mut done = 8;
        self.body.clear();
        if kind == block::SECTION_HEADER {
            // The byte order field comes after the length, whose byte order depends on it.
            self.append(start, 4)?;
            done += 4;
            self.big_endian = false;
            self.big_endian = match self.u32(0) {
                block::BYTE_ORDER_MAGIC => false,
                magic if magic.swap_bytes() == block::BYTE_ORDER_MAGIC => true,
                _ if start == 0 => return Err(not_pcapng()),
                _ => return Err(malformed(start, "a section without a byte order")),
            };
        } else if self.section.number == 0 {
            if !classic::is_magic([head[0], head[1], head[2], head[3]]) {
                return Err(not_pcapng());
            }
            self.begin_classic(head)?;
            return Ok(Some(kind));
        }
        let length = [head[4], head[5], head[6], head[7]];
        let (kind, length) = if self.big_endian {
            (kind.swap_bytes(), u32::from_be_bytes(length))
        } else {
            (kind, u32::from_le_bytes(length))
        };
        if !length.is_multiple_of(4) || !(done + 4..=BLOCK_BYTES_MAX).contains(&length) {
            return Err(malformed(start, &format!("a block of {length} bytes")));
        }
        self.append(start, length - done)?;
        let trailer = self.u32(self.body.len() - 4);
        if trailer != length {
            return Err(malformed(
                start,
                &format!("a block of {length} bytes that ends as one of {trailer}"),
            ));
        }
        self.body.truncate(self.body.len() - 4);
        self.offset = start + u64::from(length);
        Ok(Some(kind))
    }

    /// Reads more of the block. Memory grows with the bytes that exist, not with the length field.
    fn append(&mut self, start: u64, bytes: u32) -> Result<(), ReadError> {
        let got = self.input.by_ref().take(u64::from(bytes)).read_to_end(&mut self.body)?;
        if got == bytes as usize { Ok(()) } else { Err(ReadError::Truncated { offset: start }) }
    }

    /// Reads the rest of the header of a classic file, which begins with `head`.
    fn begin_classic(&mut self, head: [u8; 8]) -> Result<(), ReadError> {
        let mut header = [0; classic::FILE_HEADER_BYTES];
        self.append(0, (header.len() - head.len()) as u32)?;
        header[..head.len()].copy_from_slice(&head);
        header[head.len()..].copy_from_slice(&self.body);
        let format = Classic::parse(&header).map_err(|what| malformed(0, &what))?;
        let Classic { units_per_s, link_type, .. } = format;
        let interface = Interface {
            name: String::new(),
            units_per_s: units_per_s.into(),
            is_ethernet: link_type == block::ETHERNET,
            link_type,
        };
        self.section = Section { number: 1, comments: Vec::new(), interfaces: vec![interface] };
        self.offset = header.len() as u64;
        self.classic = Some(format);
        Ok(())
    }

    /// Returns the next packet of a classic file; `None` at its end.
    fn classic_packet(&mut self, format: Classic) -> Result<Option<Record<'_>>, ReadError> {
        let start = self.offset;
        let mut header = [0; classic::PACKET_HEADER_BYTES];
        match fill(&mut self.input, &mut header)? {
            Filled::All => {}
            Filled::Nothing => return Ok(None),
            Filled::Partly => return Err(ReadError::Truncated { offset: start }),
        }
        let packet = format.packet(&header);
        if packet.captured_bytes > BLOCK_BYTES_MAX {
            return Err(malformed(start, &format!("a packet of {} bytes", packet.captured_bytes)));
        }
        self.body.clear();
        self.append(start, packet.captured_bytes)?;
        self.offset = start + header.len() as u64 + u64::from(packet.captured_bytes);
        if let Some(interface) = self.section.interfaces.iter().find(|interface| !interface.is_ethernet) {
            return Err(not_ethernet(interface.link_type));
        }
        Ok(Some(Record {
            section: &self.section,
            interface: 0,
            timestamp_ns: packet.timestamp_ns,
            direction: Direction::Unknown,
            original_bytes: packet.original_bytes,
            frame: &self.body,
            comments: Vec::new(),
        }))
    }

    fn begin_section(&mut self) {
        let options = self.options(16);
        let comments = options.filter(|(code, _)| *code == block::OPTION_COMMENT).map(text).collect();
        let number = self.section.number.saturating_add(1);
        self.section = Section { number, comments, interfaces: Vec::new() };
    }

    fn describe_interface(&mut self, start: u64) -> Result<(), ReadError> {
        if self.body.len() < 8 {
            return Err(malformed(start, "an interface that is cut short"));
        }
        let link_type = self.u16(0);
        let is_ethernet = link_type == block::ETHERNET;
        let mut interface = Interface { name: String::new(), units_per_s: 1_000_000, is_ethernet, link_type };
        for option in self.options(8) {
            match option {
                (block::OPTION_INTERFACE_NAME, _) => interface.name = text(option),
                (block::OPTION_TIMESTAMP_RESOLUTION, &[resolution]) => {
                    let units = units_per_s(resolution);
                    interface.units_per_s = units
                        .ok_or_else(|| malformed(start, "a unit of time that does not fit into 64 bits"))?;
                }
                _ => {}
            }
        }
        self.section.interfaces.push(interface);
        Ok(())
    }

    fn packet(&self, start: u64) -> Result<Record<'_>, ReadError> {
        if self.body.len() < 20 {
            return Err(malformed(start, "a packet that is cut short"));
        }
        let number = self.u32(0);
        let interface = self.section.interfaces.get(number as usize).ok_or_else(|| {
            malformed(start, &format!("a packet of interface {number}, which has no description"))
        })?;
        if !interface.is_ethernet {
            return Err(not_ethernet(interface.link_type));
        }
        let (length, original_bytes) = (self.u32(12) as usize, self.u32(16));
        let frame = self.body.get(20..).and_then(|rest| rest.get(..length));
        let frame = frame.ok_or_else(|| malformed(start, &format!("a packet of {length} bytes in less")))?;
        let units = u128::from(self.u32(4)) << 32 | u128::from(self.u32(8));
        let timestamp_ns = units * 1_000_000_000 / interface.units_per_s;
        let (mut direction, mut comments) = (Direction::Unknown, Vec::new());
        for option in self.options(20 + length.next_multiple_of(4)) {
            match option {
                (block::OPTION_COMMENT, _) => comments.push(text(option)),
                (block::OPTION_PACKET_FLAGS, flags) => direction = self.direction(flags),
                _ => {}
            }
        }
        let timestamp_ns = u64::try_from(timestamp_ns).unwrap_or(u64::MAX);
        Ok(Record {
            section: &self.section,
            interface: number,
            timestamp_ns,
            direction,
            original_bytes,
            frame,
            comments,
        })
    }

    fn direction(&self, flags: &[u8]) -> Direction {
        let lowest = if self.big_endian { flags.last() } else { flags.first() };
        match lowest.map(|byte| u32::from(byte & 3)) {
            Some(block::FLAG_INBOUND) => Direction::Inbound,
            Some(block::FLAG_OUTBOUND) => Direction::Outbound,
            _ => Direction::Unknown,
        }
    }

    /// Returns the options that begin at this byte of the body. Invalid options end the iteration without an error.
    fn options(&self, at: usize) -> impl Iterator<Item = (u16, &[u8])> {
        let mut rest = self.body.get(at..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (head, after) = rest.split_at_checked(4)?;
            let code = self.u16_of([head[0], head[1]]);
            let length = usize::from(self.u16_of([head[2], head[3]]));
            let value = after.get(..length).filter(|_| code != 0)?;
            rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }

    const fn u16_of(&self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// Returns two bytes of the body as a number. The caller has checked its length.
    fn u16(&self, at: usize) -> u16 {
        self.u16_of([self.body[at], self.body[at + 1]])
    }

    /// Returns four bytes of the body as a number. The caller has checked its length.
    fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.body[at..at + 4]);
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

/// Fills `buffer` as far as the input has bytes.
fn fill(input: &mut impl Read, mut buffer: &mut [u8]) -> io::Result<Filled> {
    let wanted = buffer.len();
    while !buffer.is_empty() {
        match input.read(buffer) {
            Ok(0) => return Ok(if buffer.len() == wanted { Filled::Nothing } else { Filled::Partly }),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Filled::All)
}

fn text((_, value): (u16, &[u8])) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Returns the units of time per second, if they fit into 64 bits. The top bit selects powers of two instead of ten.
fn units_per_s(resolution: u8) -> Option<u128> {
    let power = u32::from(resolution & 0x7f);
    let units = if resolution & 0x80 == 0 { 10u128.checked_pow(power) } else { 2u128.checked_pow(power) };
    units.filter(|units| *units <= u128::from(u64::MAX))
}

fn malformed(offset: u64, what: &str) -> ReadError {
    ReadError::Malformed { offset, what: what.to_owned() }
}

fn not_ethernet(link_type: u16) -> ReadError {
    let what = format!("a capture of link type {link_type}, which is not Ethernet");
    ReadError::Foreign { what, hint: "rackloom frames are Ethernet frames" }
}

fn not_pcapng() -> ReadError {
    let what = "this is neither a pcapng nor a pcap file".to_owned();
    ReadError::Foreign { what, hint: "name a file that `--capture`, tcpdump or Wireshark wrote" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8]) -> Result<Vec<(u32, u64, Vec<u8>)>, ReadError> {
        let mut reader = Reader::new(bytes);
        let mut found = Vec::new();
        while let Some(record) = reader.next_record()? {
            found.push((record.interface, record.timestamp_ns, record.frame.to_vec()));
        }
        Ok(found)
    }

    /// Returns a section, an interface with the given options, and a packet of four bytes at one unit of time, in big endian.
    fn big_endian(options: &[u8]) -> Vec<u8> {
        let enclosed = |kind: u32, body: &[u8]| {
            let length = (body.len() as u32 + 12).to_be_bytes();
            [&kind.to_be_bytes()[..], &length, body, &length].concat()
        };
        let section = [&block::BYTE_ORDER_MAGIC.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
        let interface = [&[0, 1, 0, 0, 0, 0, 0, 0], options].concat();
        let packet = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4, 1, 2, 3, 4];
        [enclosed(block::SECTION_HEADER, &section), enclosed(1, &interface), enclosed(6, &packet)].concat()
    }

    #[test]
    fn other_byte_orders_and_units_of_time_are_understood() {
        let frame = vec![1, 2, 3, 4];
        assert_eq!(
            read_all(&big_endian(&[])).unwrap(),
            [(0, 1_000, frame.clone())],
            "microseconds by default"
        );
        let milliseconds = [0, 9, 0, 1, 3, 0, 0, 0];
        assert_eq!(read_all(&big_endian(&milliseconds)).unwrap(), [(0, 1_000_000, frame.clone())]);
        let eighths = [0, 9, 0, 1, 0x83, 0, 0, 0];
        assert_eq!(read_all(&big_endian(&eighths)).unwrap(), [(0, 125_000_000, frame)]);
        let absurd = [0, 9, 0, 1, 99, 0, 0, 0];
        assert!(matches!(read_all(&big_endian(&absurd)), Err(ReadError::Malformed { offset: 28, .. })));
    }

    /// Returns a classic file in little endian, with two packets of four bytes.
    fn classic_file(link_type: u8) -> Vec<u8> {
        let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
        let packet = |second: u8| [second, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 1, 2, 3, second];
        [&header[..], &[link_type, 0, 0, 0], &packet(1), &packet(2)].concat()
    }

    #[test]
    fn a_classic_file_has_one_interface_without_a_name() {
        let expected = [(0, 1_000_005_000, vec![1, 2, 3, 1]), (0, 2_000_005_000, vec![1, 2, 3, 2])];
        let file = classic_file(1);
        assert_eq!(read_all(&file).unwrap(), expected);
        let mut reader = Reader::new(&file[..]);
        let record = reader.next_record().unwrap().expect("a packet");
        assert_eq!((record.interface_name(), record.direction), ("", Direction::Unknown));
        assert_eq!((record.original_bytes, record.section.number), (9, 1));
        let error = read_all(&classic_file(113)).unwrap_err().to_string();
        assert_eq!(error, "a capture of link type 113, which is not Ethernet");
    }

    #[test]
    fn a_cut_classic_file_gives_its_whole_packets_and_the_offset_of_its_end() {
        let file = classic_file(1);
        for cut in 24..=file.len() {
            let mut reader = Reader::new(&file[..cut]);
            let mut frames = 0;
            let end = loop {
                match reader.next_record() {
                    Ok(Some(_)) => frames += 1,
                    Ok(None) => break None,
                    Err(error) => break Some(error.offset().expect("it has an offset")),
                }
            };
            assert_eq!(frames, (cut - 24) / 20, "cut at {cut}");
            let begun = 24 + (cut - 24) / 20 * 20;
            assert_eq!(end, (begun < cut).then_some(begun as u64), "cut at {cut}");
        }
        let mut endless = file;
        endless[24 + 8..24 + 12].fill(0xff);
        assert_eq!(read_all(&endless).unwrap_err().to_string(), "a packet of 4294967295 bytes");
    }

    #[test]
    fn foreign_files_are_named() {
        let error_of = |bytes: &[u8]| read_all(bytes).unwrap_err().to_string();
        assert_eq!(error_of(b""), "the file is empty");
        assert_eq!(error_of(b"hello"), "this is neither a pcapng nor a pcap file");
        assert_eq!(error_of(b"a longer text than a head"), "this is neither a pcapng nor a pcap file");
        assert_eq!(error_of(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]), "the file ends within a block");
        let mut other = big_endian(&[]);
        other[28 + 9] = 113;
        assert_eq!(error_of(&other), "a capture of link type 113, which is not Ethernet");
    }

    #[test]
    fn a_cut_file_gives_its_whole_records_and_the_offset_of_its_end() {
        let bytes = [big_endian(&[]), big_endian(&[])].concat();
        for cut in 1..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            let mut frames = 0;
            let end = loop {
                match reader.next_record() {
                    Ok(Some(_)) => frames += 1,
                    end => break end.map(|_| ()),
                }
            };
            assert_eq!(frames, cut / (bytes.len() / 2), "cut at {cut}");
            match end {
                Err(ReadError::Truncated { offset }) => assert!(offset < cut as u64, "cut at {cut}"),
                Err(error) => assert!(cut < 8, "cut at {cut}: {error}"),
                Ok(()) => {}
            }
        }
    }
}
