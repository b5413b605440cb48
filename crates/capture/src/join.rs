//! Several parts, each written by one end, made one file: in order of time, each frame once.
//!
//! A frame that came in somewhere and was not used stands in its receiver's part. It is looked for among the frames that
//! were sent: same bytes, other end, the last one before it. The finder's comment then moves to it. What nobody sent
//! (a stranger's frame on a real segment, or one whose sender's part is missing) stays as a frame of the receiving end.
//!
//! The parts are read three times and never held: memory grows with the number of frames that were not used.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read, Seek, Write};

use xxhash_rust::xxh3::xxh3_64;

use crate::block::{self, FLAG_INBOUND, FLAG_OUTBOUND, PACKET_OVERHEAD_BYTES, Packet};
use crate::comment;
use crate::heading::Heading;
use crate::reader::{Direction, ReadError, Reader, Record};

/// What a join came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Frames in the file.
    pub frames: u64,
    /// The file, or one of its parts, was not allowed to grow further.
    pub full: bool,
    /// A part ended within a block: its writer was killed.
    pub torn: bool,
}

/// Place of a record in the merged order.
type Place = u64;

/// Which frame: the end that sent it, and its bytes by hash.
type Key = (u32, u64);

/// Join the parts of one link into `out`, at most about `bytes_max` bytes.
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
    let mut wanted: HashMap<Key, Option<Place>> = HashMap::new();
    walk(parts, |_, record| {
        if record.direction == Direction::Inbound {
            wanted.insert(key_of_inbound(record), None);
        }
        Ok(true)
    })?;
    let mut additions: HashMap<Place, Vec<String>> = HashMap::new();
    let mut moved: HashSet<Place> = HashSet::new();
    walk(parts, |place, record| {
        if record.direction == Direction::Inbound {
            if let Some(Some(sent)) = wanted.get(&key_of_inbound(record)) {
                additions.entry(*sent).or_default().extend_from_slice(&record.comments);
                moved.insert(place);
            }
        } else if let Some(sent) = wanted.get_mut(&key(record.interface, record.frame)) {
            *sent = Some(place);
        }
        Ok(true)
    })?;
    write(heading, parts, out, bytes_max, |place, comments| {
        comments.extend(additions.remove(&place).unwrap_or_default());
        !moved.contains(&place)
    })
}

/// The third reading. `complete` adds to a record's comments and says whether it stays.
fn write<P: Read + Seek>(
    heading: &Heading,
    parts: &mut [P],
    out: &mut impl Write,
    bytes_max: u64,
    mut complete: impl FnMut(Place, &mut Vec<String>) -> bool,
) -> Result<Joined, ReadError> {
    let mut joined = Joined::default();
    let mut block = Vec::new();
    heading.write(&mut block);
    let mut length = block.len() as u64;
    out.write_all(&block)?;
    let torn = walk(parts, |place, record| {
        let mut comments = std::mem::take(&mut record.comments);
        // One part may be full while the other goes on; what then follows is half of the story.
        joined.full |= comments.iter().any(|comment| comment.starts_with(comment::FULL));
        if !complete(place, &mut comments) {
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

/// A frame that came in at one end was sent by the other.
fn key_of_inbound(record: &Record<'_>) -> Key {
    key(record.interface ^ 1, record.frame)
}

/// All records of all parts, earliest first, until `visit` says that it is enough. Whether a part is torn.
fn walk<P: Read + Seek>(
    parts: &mut [P],
    mut visit: impl FnMut(Place, &mut Record<'_>) -> Result<bool, ReadError>,
) -> Result<bool, ReadError> {
    let mut torn = false;
    let mut heads = Vec::new();
    for part in parts {
        part.rewind()?;
        heads.push(Head::new(BufReader::new(part), &mut torn)?);
    }
    for place in 0.. {
        // Two parts as a rule; of equal times the first part's goes first.
        let next = heads.iter_mut().filter(|head| head.next_ns.is_some()).min_by_key(|head| head.next_ns);
        let Some(head) = next else { break };
        if !head.visit(|record| visit(place, record))? {
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

    /// A part that ends too early ends there.
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
