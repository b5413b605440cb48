//! One end of an authenticated link: detects which opening of the neighbour's end it is connected to, and tags and checks frames.
//!
//! Each end draws a nonce when it is opened. Greetings carry the sender's own nonce and the one received, under a key of the link's direction. An end
//! accepts a nonce only from a greeting that holds its own nonce, which no earlier run contains. The keys of the frames are derived from both nonces,
//! so a frame of another run has no valid tag. Within a run, counters detect repeated frames.
//!
//! This file uses no socket. It reads no clock except for the nonce of an end that is opened.

use std::collections::VecDeque;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use rackloom_protocol::wire::address::mac;
use rackloom_protocol::wire::layout::{MAGIC, MAGIC_VALUE, VERSION_KIND};
use rackloom_protocol::{Instant, NodeId, Plane};

use super::key::{RackKey, TAG_BYTES, Tagger};
use super::window::ReplayWindow;

/// Number of bytes that a sealed frame is longer: a counter and a tag.
pub const TRAILER_BYTES: usize = 8 + TAG_BYTES;
/// Length of a greeting in bytes, tag included. It exceeds the shortest Ethernet frame.
const GREETING_BYTES: usize = 64;

/// Version 2, kind 12.
const GREETING: u8 = 0x2c;
const FLAGS: usize = 17;
const EPOCH: usize = 18;
const SENDER_NONCE: usize = 24;
const RECEIVER_NONCE: usize = 40;
const TAG: usize = 56;
/// Flag: the sender has not received its own nonce back from the receiver.
const ANSWER_WANTED: u8 = 1;

/// Interval between greetings, in nanoseconds.
const GREETING_INTERVAL_NS: u64 = 2_000_000;
/// Time after which an unconfirmed later nonce of the neighbour is discarded, in nanoseconds, if an earlier nonce was confirmed.
const CANDIDATE_NS: u64 = 1_000_000_000;
/// Maximum number of pending answers. The next periodic greeting covers each of them too.
const ANSWERS_MAX: usize = 4;

/// Identity of one opening of a link's end: wall time in nanoseconds, then eight random bytes, both big endian. A later opening has a larger nonce.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndNonce([u8; 16]);

impl EndNonce {
    /// Creates the nonce of an end that is opened at this wall time.
    #[must_use]
    pub fn new(wall_ns: u64, random: [u8; 8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&wall_ns.to_be_bytes());
        bytes[8..].copy_from_slice(&random);
        Self(bytes)
    }

    /// Creates the nonce of an end that is opened now.
    ///
    /// # Errors
    /// The error of the system, if it has no random numbers.
    pub fn draw() -> io::Result<Self> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self::new(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), random))
    }
}

/// Identity of one end of a link.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct LinkEnds {
    /// Index of the link in the plan.
    pub edge: u16,
    /// Local member.
    pub mine: NodeId,
    /// Remote member.
    pub theirs: NodeId,
    /// Plane of the link.
    pub plane: Plane,
    /// EtherType of the rack.
    pub ether_type: u16,
    /// Epoch of the rack.
    pub epoch: u16,
}

/// State derived from both nonces.
#[derive(Debug)]
struct Session {
    theirs: EndNonce,
    sender: Tagger,
    receiver: Tagger,
    sent: u64,
    window: ReplayWindow,
}

/// One end of an authenticated link.
#[derive(Debug)]
pub(crate) struct LinkSeal {
    key: RackKey,
    ends: LinkEnds,
    mine: EndNonce,
    /// Taggers of greetings, by direction.
    greeting_tags: [Tagger; 2],
    session: Option<Session>,
    /// A nonce of the neighbour that no greeting with the own nonce has confirmed yet, and the time at which it is discarded.
    candidate: Option<(EndNonce, Option<Instant>)>,
    /// Nonces of greetings that are to be answered.
    pending_answers: VecDeque<EndNonce>,
    greeting_at: Instant,
    bad_tags: u64,
    replays: u64,
}

/// Direction by sender: this end or the remote end.
const MINE: usize = 0;
const THEIRS: usize = 1;

impl LinkSeal {
    /// Creates an end that has just been opened.
    pub(crate) fn new(key: RackKey, ends: LinkEnds, mine: EndNonce) -> Self {
        let greeting_tags =
            [MINE, THEIRS].map(|from| key.derive(&[b"rackloom 2 greeting", &direction(&ends, from)]));
        Self {
            key,
            ends,
            mine,
            greeting_tags,
            session: None,
            candidate: None,
            pending_answers: VecDeque::new(),
            greeting_at: Instant::ZERO,
            bad_tags: 0,
            replays: 0,
        }
    }

    /// Returns the number of frames without a valid tag, and the number of frames that had been received before.
    pub(crate) const fn refused(&self) -> (u64, u64) {
        (self.bad_tags, self.replays)
    }

    /// Returns whether frames can be sent.
    pub(crate) const fn is_agreed(&self) -> bool {
        self.session.is_some()
    }

    /// Appends the trailer to the first `length` bytes. Returns the total length, or `None` if there is no space or no session.
    // W-92
    pub(crate) fn close(&mut self, out: &mut [u8], length: usize) -> Option<usize> {
        let session = self.session.as_mut()?;
        let (frame, rest) = out.split_at_mut_checked(length)?;
        let trailer = rest.first_chunk_mut::<TRAILER_BYTES>()?;
        session.sent += 1;
        let counter = session.sent.to_le_bytes();
        trailer[..8].copy_from_slice(&counter);
        trailer[8..].copy_from_slice(&session.sender.tag(&[frame, &counter]));
        Some(length + TRAILER_BYTES)
    }

    /// Returns the length of the frame within the received bytes, or `None` if the bytes are a greeting or refused.
    // W-92
    pub(crate) fn open(&mut self, bytes: &[u8]) -> Option<usize> {
        if is_greeting(bytes) {
            self.receive_greeting(bytes);
            return None;
        }
        let opened = self.session.as_mut().and_then(|session| {
            let (counted, tag) = bytes.split_last_chunk::<TAG_BYTES>()?;
            let (frame, counter) = counted.split_last_chunk::<8>()?;
            session.receiver.fits(&[counted], *tag).then_some((session, frame.len(), *counter))
        });
        let Some((session, length, counter)) = opened else {
            self.bad_tags += 1;
            return None;
        };
        if !session.window.take(u64::from_le_bytes(counter)) {
            self.replays += 1;
            return None;
        }
        Some(length)
    }

    /// Returns the time at which [`LinkSeal::greeting`] has a greeting, if nothing is received before.
    pub(crate) fn next_due(&self) -> Instant {
        if !self.pending_answers.is_empty() {
            return Instant::ZERO;
        }
        if self.is_complete() { Instant::NEVER } else { self.greeting_at }
    }

    fn is_complete(&self) -> bool {
        self.session.is_some() && self.candidate.is_none()
    }

    /// Writes a pending answer into the first [`GREETING_BYTES`] of `out`.
    pub(crate) fn answer(&mut self, out: &mut [u8]) -> Option<usize> {
        let out = out.first_chunk_mut::<GREETING_BYTES>()?;
        let to = self.pending_answers.pop_front()?;
        *out = self.write(to);
        Some(GREETING_BYTES)
    }

    /// Writes a greeting into `out`, if one is due.
    pub(crate) fn greeting(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        self.forget_candidate(now);
        if self.is_complete() || now < self.greeting_at {
            return None;
        }
        let out = out.first_chunk_mut::<GREETING_BYTES>()?;
        self.greeting_at = now + GREETING_INTERVAL_NS;
        *out = self.write(self.candidate.map_or_else(EndNonce::default, |(nonce, _)| nonce));
        Some(GREETING_BYTES)
    }

    fn forget_candidate(&mut self, now: Instant) {
        let Some((_, until)) = &mut self.candidate else { return };
        let until = *until.get_or_insert(now + CANDIDATE_NS);
        if self.session.is_some() && now >= until {
            self.candidate = None;
        }
    }

    // W-91
    fn write(&self, to: EndNonce) -> [u8; GREETING_BYTES] {
        let mut out = [0; GREETING_BYTES];
        let LinkEnds { mine, theirs, plane, ether_type, epoch, .. } = self.ends;
        out[..6].copy_from_slice(&mac(theirs, plane));
        out[6..12].copy_from_slice(&mac(mine, plane));
        out[12..14].copy_from_slice(&ether_type.to_be_bytes());
        out[MAGIC..VERSION_KIND].copy_from_slice(&MAGIC_VALUE.to_le_bytes());
        out[VERSION_KIND] = GREETING;
        let is_known = self.session.as_ref().is_some_and(|session| session.theirs == to);
        out[FLAGS] = if is_known { 0 } else { ANSWER_WANTED };
        out[EPOCH..EPOCH + 2].copy_from_slice(&epoch.to_le_bytes());
        out[SENDER_NONCE..RECEIVER_NONCE].copy_from_slice(&self.mine.0);
        out[RECEIVER_NONCE..TAG].copy_from_slice(&to.0);
        let tag = self.greeting_tags[MINE].tag(&[&out[..TAG]]);
        out[TAG..].copy_from_slice(&tag);
        out
    }

    // W-91
    fn receive_greeting(&mut self, bytes: &[u8]) {
        let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>() else {
            self.bad_tags += 1;
            return;
        };
        let (signed, tag) = greeting.split_last_chunk::<TAG_BYTES>().unwrap_or((&[], &[0; TAG_BYTES]));
        if !self.greeting_tags[THEIRS].fits(&[signed], *tag) {
            self.bad_tags += 1;
            return;
        }
        let nonce_at = |at: usize| EndNonce(std::array::from_fn(|byte| greeting[at + byte]));
        let (theirs, echoed) = (nonce_at(SENDER_NONCE), nonce_at(RECEIVER_NONCE));
        let wants_answer = greeting[FLAGS] & ANSWER_WANTED != 0;
        match &self.session {
            Some(session) if theirs < session.theirs => self.replays += 1,
            Some(session) if theirs == session.theirs => self.queue_answer(theirs, wants_answer),
            _ if echoed == self.mine => {
                self.agree(theirs);
                self.queue_answer(theirs, wants_answer);
            }
            _ => {
                // Of several nonces the latest is kept. The others are replays of earlier runs.
                if self.candidate.is_none_or(|(known, _)| known < theirs) {
                    self.candidate = Some((theirs, None));
                }
                self.queue_answer(theirs, true);
            }
        }
    }

    fn queue_answer(&mut self, to: EndNonce, is_wanted: bool) {
        if !is_wanted || self.pending_answers.contains(&to) {
            return;
        }
        self.pending_answers.push_back(to);
        if self.pending_answers.len() > ANSWERS_MAX {
            // The earliest opening is the least likely to belong to this run.
            let earliest = (0..self.pending_answers.len()).min_by_key(|index| self.pending_answers[*index]);
            earliest.map(|index| self.pending_answers.remove(index));
        }
    }

    fn agree(&mut self, theirs: EndNonce) {
        let tagger = |from: usize, sender: EndNonce, receiver: EndNonce| {
            self.key.derive(&[b"rackloom 2 frame", &direction(&self.ends, from), &sender.0, &receiver.0])
        };
        let (sender, receiver) = (tagger(MINE, self.mine, theirs), tagger(THEIRS, theirs, self.mine));
        self.session = Some(Session { theirs, sender, receiver, sent: 0, window: ReplayWindow::default() });
        self.candidate = None;
    }
}

/// Returns bytes that distinguish one direction of one link from all others.
fn direction(ends: &LinkEnds, from: usize) -> [u8; 6] {
    let (sender, receiver) = if from == MINE { (ends.mine, ends.theirs) } else { (ends.theirs, ends.mine) };
    let ([a, b], [c, d], [e, f]) =
        (ends.edge.to_le_bytes(), sender.0.to_le_bytes(), receiver.0.to_le_bytes());
    [a, b, c, d, e, f]
}

fn is_greeting(bytes: &[u8]) -> bool {
    bytes.get(VERSION_KIND) == Some(&GREETING)
        && bytes.get(MAGIC..VERSION_KIND) == Some(&MAGIC_VALUE.to_le_bytes())
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
