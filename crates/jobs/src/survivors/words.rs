//! What the ranks say to each other about groups: each rank puts its proposal into the others' memory, and reads theirs where nothing comes.
//!
//! A word travels in two ways. A rank pushes its own by a put with signal into a slot of each peer, which is fast. A rank that waits
//! reads the peer's own slot ([`Words::ask`]), which needs neither the peer's attention nor a memory of its own that lets others write. So a rank
//! whose memory refuses everything, or that stood still while the others went on, finds out what has become of them.
//!
//! What is refused is tried again for a bounded time, because memory may fail for a while. After that, or at once where a key was
//! revoked or the region is not there, the rank counts as deaf: it is no member of any further group of this rank.

use std::collections::BTreeMap;

use rackloom_protocol::{
    Access, Command, CommandRefused, Instant, LocalRange, Memory, OperationError, OperationId, RegionConfig,
    RegionId, RemoteAddress, Signal, SignalKind,
};

use super::agreement::{Proposal, Standing, bit, ranks};
use crate::crew::Crew;
use crate::job::{Carried, Seat};

/// Where words lie; a job's own regions have smaller numbers.
const WORDS: RegionId = RegionId(15);
/// Number, members, room with standing, check. A load never crosses a boundary of 256 bytes, and this divides them.
const SLOT_BYTES: u64 = 32;
/// Behind the slots and what was read of others: what is being put, which must stay as it is until it has come. So many words may be under way.
const STAGES: u64 = 16;
/// Names of operations with words: beyond those of all rooms.
pub(super) const FIRST_WORD: u64 = 1 << 62;
/// A rank that waits reads the others' words so often, at the most and at the least, and this share of the patience.
const ASK_INTERVAL_MAX_NS: u64 = 50_000_000;
const ASK_INTERVAL_MIN_NS: u64 = 2_000_000;
const ASKS_PER_PATIENCE: u64 = 64;
/// A word that was refused is put again so often between two times at which others' words are read.
const TRIES_PER_ASK: u64 = 8;
/// What is refused is tried again for this share of the patience.
const REFUSED_SHARE: u64 = 4;

/// An operation with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWay {
    Put { rank: u16, number: u64 },
    Load { rank: u16 },
}

/// Words of one rank and of the others.
#[derive(Debug)]
pub(super) struct Words {
    own: u16,
    count: u16,
    /// Ranks that are to get the present word and have not.
    untold: u64,
    /// Those of them whose memory has refused it, or to whom the path was lost; they get it again later.
    again: u64,
    again_due: Instant,
    said: Proposal,
    stage: u64,
    under_way: BTreeMap<u64, UnderWay>,
    next: u64,
    /// What each rank has said last.
    heard: Vec<Proposal>,
    /// Ranks whose word is being read.
    asked: u64,
    ask_due: Instant,
    ask_interval_ns: u64,
    refusals_ns: u64,
    /// Since when each rank's memory has refused every word.
    refused_since: Vec<Option<Instant>>,
    /// Ranks whose memory takes no word, for good or for longer than refusals are repeated; and new lives, which know nothing of the job.
    deaf: u64,
}

impl Words {
    pub(super) fn new(crew: &Crew, patience_ns: u64) -> Self {
        let count = crew.ranks.len();
        Self {
            own: crew.rank,
            count: count as u16,
            untold: 0,
            again: 0,
            again_due: Instant::ZERO,
            said: Proposal::default(),
            stage: 0,
            under_way: BTreeMap::new(),
            next: FIRST_WORD,
            heard: vec![Proposal::default(); count],
            asked: 0,
            ask_due: Instant::ZERO,
            ask_interval_ns: (patience_ns / ASKS_PER_PATIENCE)
                .clamp(ASK_INTERVAL_MIN_NS, ASK_INTERVAL_MAX_NS),
            refusals_ns: patience_ns / REFUSED_SHARE,
            refused_since: vec![None; count],
            deaf: 0,
        }
    }

    /// The region that holds them.
    pub(super) fn region(crew: &Crew) -> RegionConfig {
        let bytes = (2 * crew.ranks.len() as u64 + STAGES) * SLOT_BYTES;
        crew.region(WORDS, bytes, Access { read: true, write: true, atomic: false })
    }

    /// How long a rank waits before it reads the others' words.
    pub(super) const fn ask_interval_ns(&self) -> u64 {
        self.ask_interval_ns
    }

    /// Ranks that take no words.
    pub(super) const fn deaf(&self) -> u64 {
        self.deaf
    }

    /// A new life has taken this rank's seat.
    pub(super) fn is_stranger(&mut self, rank: u16) {
        self.deaf |= bit(rank);
    }

    /// What a rank has said last, as far as it was heard.
    pub(super) fn heard(&self, rank: u16) -> Proposal {
        self.heard[usize::from(rank)]
    }

    /// The newest number that another rank has said as a member.
    pub(super) fn newest(&self) -> u64 {
        let members = self.heard.iter().filter(|said| said.standing == Standing::Member);
        members.map(|said| said.number).max().unwrap_or(0)
    }

    /// Takes in what has come.
    pub(super) fn listen(&mut self, memory: &mut dyn Memory) {
        for rank in (0..self.count).filter(|rank| *rank != self.own) {
            for slot in [u64::from(rank), u64::from(self.count) + u64::from(rank)] {
                let said = read(memory, slot);
                let heard = &mut self.heard[usize::from(rank)];
                if said.number > heard.number {
                    *heard = said;
                }
            }
        }
    }

    /// Makes this the present word: others can read it here from now on, and `to` get it.
    pub(super) fn say(&mut self, word: Proposal, to: u64, memory: &mut dyn Memory) -> Result<(), String> {
        let failed = |fault| format!("own memory cannot be written: {fault:?}");
        let bytes: Vec<u8> = word.words().into_iter().flat_map(u64::to_le_bytes).collect();
        self.stage = (self.stage + 1) % STAGES;
        for slot in [self.stage_slot(), u64::from(self.own)] {
            memory.write(WORDS, slot * SLOT_BYTES, &bytes).map_err(failed)?;
        }
        self.said = word;
        (self.untold, self.again) = (to & !bit(self.own), 0);
        Ok(())
    }

    /// Where the present word lies while it is put.
    fn stage_slot(&self) -> u64 {
        2 * u64::from(self.count) + self.stage
    }

    /// These get the present word once more.
    pub(super) fn repeat(&mut self, to: u64) {
        self.untold |= to & !bit(self.own);
    }

    /// Puts the present word into the memory of those who have not got it and can be reached.
    pub(super) fn tell(&mut self, now: Instant, reachable: u64, crew: &Crew, seat: &mut dyn Seat) {
        if self.again != 0 && now >= self.again_due {
            self.untold |= std::mem::take(&mut self.again);
            self.again_due = now + self.ask_interval_ns / TRIES_PER_ASK;
        }
        for rank in ranks(self.untold & reachable) {
            let slot = crew.address(rank, WORDS, u64::from(self.own) * SLOT_BYTES);
            let target = RemoteAddress { offset: slot.offset + 8, ..slot };
            let source = LocalRange {
                region: WORDS,
                offset: self.stage_slot() * SLOT_BYTES + 8,
                length: SLOT_BYTES - 8,
            };
            let number = self.said.number;
            let kind = SignalKind::Set;
            let signal = Signal { region: WORDS, offset: slot.offset, key: slot.key, kind, value: number };
            let operation = OperationId(self.next);
            let put = Command::Put { operation, target, source, signal: Some(signal) };
            if self.is_taken(seat.command(now, put)) {
                self.under_way.insert(operation.0, UnderWay::Put { rank, number });
                self.untold &= !bit(rank);
            }
        }
    }

    /// Reads what these ranks say, in their own memory; no more often than at the interval.
    pub(super) fn ask(&mut self, now: Instant, whom: u64, crew: &Crew, seat: &mut dyn Seat) {
        if now < self.ask_due {
            return;
        }
        self.ask_due = now + self.ask_interval_ns;
        for rank in ranks(whom & !self.asked & !bit(self.own)) {
            let target = crew.address(rank, WORDS, u64::from(rank) * SLOT_BYTES);
            let copy = (u64::from(self.count) + u64::from(rank)) * SLOT_BYTES;
            let into = LocalRange { region: WORDS, offset: copy, length: SLOT_BYTES };
            let operation = OperationId(self.next);
            if self.is_taken(seat.command(now, Command::Load { operation, target, into })) {
                self.under_way.insert(operation.0, UnderWay::Load { rank });
                self.asked |= bit(rank);
            }
        }
    }

    /// Whether the endpoint has taken a word. What it has no room or no path for is offered again at the next look. Anything else is
    /// the fault of own memory, whose key is revoked: then no word leaves or comes any more, and this rank is alone.
    fn is_taken(&mut self, answer: Result<Carried, CommandRefused>) -> bool {
        match answer {
            Ok(_) => self.next += 1,
            Err(CommandRefused::Busy | CommandRefused::Unreachable(_)) => {}
            Err(_) => self.deaf = (0..self.count).map(bit).fold(0, |all, rank| all | rank) & !bit(self.own),
        }
        answer.is_ok()
    }

    /// An operation with a word has ended.
    pub(super) fn ended(&mut self, now: Instant, operation: u64, result: Result<u64, OperationError>) {
        let Some(word) = self.under_way.remove(&operation) else { return };
        let rank = match word {
            UnderWay::Put { rank, .. } | UnderWay::Load { rank } => rank,
        };
        match result {
            Ok(_) => self.refused_since[usize::from(rank)] = None,
            Err(OperationError::Unreachable | OperationError::OutcomeUnknown) => {}
            Err(error) => self.refused(now, rank, error),
        }
        match word {
            UnderWay::Load { .. } => self.asked &= !bit(rank),
            UnderWay::Put { number, .. } if result.is_err() && number == self.said.number => {
                self.again |= bit(rank);
            }
            UnderWay::Put { .. } => {}
        }
    }

    fn refused(&mut self, now: Instant, rank: u16, error: OperationError) {
        let may_pass = matches!(
            error,
            OperationError::MemoryFailed | OperationError::SourceFailed | OperationError::EarlierFailure
        );
        let since = *self.refused_since[usize::from(rank)].get_or_insert(now);
        if !may_pass || now.since(since) >= self.refusals_ns {
            self.deaf |= bit(rank);
        }
    }
}

/// The word in a slot of own memory. A region that is gone says nothing.
fn read(memory: &mut dyn Memory, slot: u64) -> Proposal {
    let words = [0, 1, 2, 3].map(|number: u64| {
        let mut bytes = [0; 8];
        let _ = memory.read(WORDS, slot * SLOT_BYTES + 8 * number, &mut bytes);
        u64::from_le_bytes(bytes)
    });
    Proposal::of(words)
}
