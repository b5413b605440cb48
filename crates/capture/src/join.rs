//! Joins parts that were written by one end each into one file: in order of time, each frame once.
//!
//! A frame that arrived and was not used is a record of its receiver's part. The join looks for it among the frames that
//! were sent: equal bytes, other end, the last one before it. The receiver's comment then moves to it. A frame without a sender
//! (a foreign frame on a real segment, or one whose sender's part is missing) stays as a frame of the receiving end.
//!
//! The parts are read three times and never held in memory: memory grows with the number of frames that were not used.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read, Seek, Write};

use xxhash_rust::xxh3::xxh3_64;

use crate::block::{self, FLAG_INBOUND, FLAG_OUTBOUND, PACKET_OVERHEAD_BYTES, Packet};
use crate::comment;
use crate::heading::Heading;
use crate::reader::{Direction, ReadError, Reader, Record};

/// Result of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Number of frames in the file.
    pub frames: u64,
    /// True if the file, or one of its parts, has reached its limit.
    pub full: bool,
    /// True if a part ended within a block: its writer was killed.
    pub torn: bool,
}

/// Index of a record in the merged order.
type RecordIndex = u64;

/// Identity of a frame: the end that sent it, and the hash of its bytes.
type Key = (u32, u64);

/// Joins the parts of one link into `out`, at most about `bytes_max` bytes.
pub fn join<P, W>(
    heading: &Heading,
    parts: &mut [P],
    out: &mut W,
    bytes_max: u64,
) -> Result<Joined, ReadError>
where
    P: Read + Seek,
    W: Write,
{
    let mut wanted: HashMap<Key, Option<RecordIndex>> = HashMap::new();
    walk(parts, |_, record| {
        if record.direction == Direction::Inbound {
            wanted.insert(key_of_inbound(record), None);
        }
        Ok(true)
    })?;
    let mut additions: HashMap<RecordIndex, Vec<String>> = HashMap::new();
    let mut moved: HashSet<RecordIndex> = HashSet::new();
    walk(parts, |index, record| {
        if record.direction == Direction::Inbound {
            if let Some(Some(sent)) = wanted.get(&key_of_inbound(record)) {
                additions.entry(*sent).or_default().extend_from_slice(&record.comments);
                moved.insert(index);
            }
        } else if let Some(sent) = wanted.get_mut(&key(record.interface, record.frame)) {
            *sent = Some(index);
        }
        Ok(true)
    })?;
    write(heading, parts, out, bytes_max, |index, comments| {
        comments.extend(additions.remove(&index).unwrap_or_default());
        !moved.contains(&index)
    })
}

/// Reads the parts a third time, and writes the joined file. `complete` adds to a record's comments and returns false to drop it.
fn write<P: Read + Seek>(
    heading: &Heading,
    parts: &mut [P],
    out: &mut impl Write,
    bytes_max: u64,
    mut complete: impl FnMut(RecordIndex, &mut Vec<String>) -> bool,
) -> Result<Joined, ReadError> {
    let mut joined = Joined::default();
    let mut block = Vec::new();
    heading.write(&mut block);
    let mut length = block.len() as u64;
    out.write_all(&block)?;
    let torn = walk(parts, |index, record| {
        let mut comments = std::mem::take(&mut record.comments);
        // One part may be full while the other continues; the frames after that would be incomplete.
        joined.full |= comments.iter().any(|comment| comment.starts_with(comment::FULL));
        if !complete(index, &mut comments) {
            return Ok(true);
        }
        if !joined.full && length + (PACKET_OVERHEAD_BYTES + record.frame.len()) as u64 >= bytes_max {
            comments.push(comment::full(bytes_max));
            joined.full = true;
        }
        let flags = if record.direction == Direction::Inbound { FLAG_INBOUND } else { FLAG_OUTBOUND };
        let (interface, timestamp_ns, frame) = (record.interface, record.timestamp_ns, record.frame);
        block.clear();
        block::packet(&mut block, Packet { interface, timestamp_ns, flags, frame }, &comments);
        out.write_all(&block)?;
        length += block.len() as u64;
        joined.frames += 1;
        Ok(!joined.full)
    })?;
    joined.torn = torn;
    out.flush()?;
    Ok(joined)
}

fn key(interface: u32, frame: &[u8]) -> Key {
    (interface, xxh3_64(frame))
}

/// Returns the identity of a frame that arrived at one end, as sent by the other.
fn key_of_inbound(record: &Record<'_>) -> Key {
    key(record.interface ^ 1, record.frame)
}

/// Visits all records of all parts, earliest first, until `visit` returns false. Returns true if a part is torn.
fn walk<P: Read + Seek>(
    parts: &mut [P],
    mut visit: impl FnMut(RecordIndex, &mut Record<'_>) -> Result<bool, ReadError>,
) -> Result<bool, ReadError> {
    let mut torn = false;
    let mut heads = Vec::new();
    for part in parts {
        part.rewind()?;
        heads.push(Head::new(BufReader::new(part), &mut torn)?);
    }
    for index in 0.. {
        // Usually two parts; of equal times the first part's goes first.
        let next = heads.iter_mut().filter(|head| head.next_ns.is_some()).min_by_key(|head| head.next_ns);
        let Some(head) = next else { break };
        if !head.visit(|record| visit(index, record))? {
            break;
        }
        head.advance(&mut torn)?;
    }
    Ok(torn)
}

/// A part and its next record.
struct Head<R> {
    reader: Reader<R>,
    next_ns: Option<u64>,
    interface: u32,
    direction: Direction,
    original_bytes: u32,
    frame: Vec<u8>,
    comments: Vec<String>,
}

impl<R: Read> Head<R> {
    fn new(input: R, torn: &mut bool) -> Result<Self, ReadError> {
        let mut head = Self {
            reader: Reader::new(input),
            next_ns: None,
            interface: 0,
            direction: Direction::Unknown,
            original_bytes: 0,
            frame: Vec::new(),
            comments: Vec::new(),
        };
        head.advance(torn)?;
        Ok(head)
    }

    fn visit<T>(&mut self, visit: impl FnOnce(&mut Record<'_>) -> T) -> T {
        visit(&mut Record {
            section: self.reader.section(),
            interface: self.interface,
            timestamp_ns: self.next_ns.unwrap_or_default(),
            direction: self.direction,
            original_bytes: self.original_bytes,
            frame: &self.frame,
            comments: std::mem::take(&mut self.comments),
        })
    }

    /// Reads the next record. A part that ends too early ends there.
    fn advance(&mut self, torn: &mut bool) -> Result<(), ReadError> {
        self.next_ns = match self.reader.next_record() {
            Ok(Some(record)) => {
                (self.interface, self.direction) = (record.interface, record.direction);
                (self.original_bytes, self.comments) = (record.original_bytes, record.comments);
                self.frame.clear();
                self.frame.extend_from_slice(record.frame);
                Some(record.timestamp_ns)
            }
            Ok(None) => None,
            Err(ReadError::Truncated { .. } | ReadError::Empty) => {
                *torn = true;
                None
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }
}
