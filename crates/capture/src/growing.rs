//! A capture of this project that is still written, as whole blocks.
//!
//! The blocks are copied and not interpreted, except for the times of frames, by which the files of the two ends are merged.

use crate::block;

/// Longest block that is accepted, in bytes.
const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Bytes of a block around its content.
const FRAMING_BYTES: usize = 12;

/// Whole block of a file, in little endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Section or interface, before the first frame.
    Heading(Vec<u8>),
    /// Frame.
    Frame {
        /// Time of the frame in nanoseconds, on the clock of the rack.
        timestamp_ns: u64,
        /// The block with the frame.
        bytes: Vec<u8>,
    },
}

/// File that grows.
#[derive(Debug, Default)]
pub struct GrowingFile {
    /// Bytes that make no whole block yet.
    waiting: Vec<u8>,
    is_broken: bool,
}

impl GrowingFile {
    /// Appends bytes of the file.
    pub fn append(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Returns the whole blocks that have arrived. A file that is no capture of this project has no more blocks.
    pub fn take_blocks(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut done = 0;
        while !self.is_broken {
            let rest = &self.waiting[done..];
            let Some(length) = number(rest, 4).map(|length| length as usize) else { break };
            self.is_broken =
                !length.is_multiple_of(4) || !(FRAMING_BYTES..=BLOCK_BYTES_MAX).contains(&length);
            let Some(bytes) = rest.get(..length).filter(|_| !self.is_broken) else { break };
            blocks.extend(block_of(bytes));
            done += length;
        }
        self.waiting.drain(..done);
        blocks
    }
}

/// Returns the block with these bytes, if it is of a known kind.
fn block_of(bytes: &[u8]) -> Option<Block> {
    match number(bytes, 0)? {
        block::SECTION_HEADER | block::INTERFACE_DESCRIPTION => Some(Block::Heading(bytes.to_vec())),
        block::ENHANCED_PACKET => {
            let timestamp_ns = u64::from(number(bytes, 12)?) << 32 | u64::from(number(bytes, 16)?);
            Some(Block::Frame { timestamp_ns, bytes: bytes.to_vec() })
        }
        _ => None,
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{FLAG_OUTBOUND, Packet};

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        block::section_header(&mut file, "a test", &[]);
        block::interface_description(&mut file, "n0-p0", "", None);
        for timestamp_ns in [7, 1 << 40] {
            let frame = Packet { interface: 0, timestamp_ns, flags: FLAG_OUTBOUND, frame: &[9; 61] };
            block::packet(&mut file, frame, &["a comment"]);
        }
        file
    }

    #[test]
    fn blocks_are_returned_once_they_are_whole() {
        let file = file();
        let mut growing = GrowingFile::default();
        let mut copied = Vec::new();
        let mut times = Vec::new();
        for byte in &file {
            growing.append(&[*byte]);
            for block in growing.take_blocks() {
                match block {
                    Block::Heading(bytes) => copied.extend(bytes),
                    Block::Frame { timestamp_ns, bytes } => {
                        times.push(timestamp_ns);
                        copied.extend(bytes);
                    }
                }
            }
        }
        assert_eq!(copied, file);
        assert_eq!(times, [7, 1 << 40]);
    }

    #[test]
    fn a_broken_file_ends_at_the_break() {
        let mut growing = GrowingFile::default();
        growing.append(&file());
        growing.append(&[0xff; 64]);
        growing.append(&file());
        assert_eq!(growing.take_blocks().len(), 4);
        growing.append(&file());
        assert_eq!(growing.take_blocks(), []);
    }
}
