//! Traffic job: every rank sends messages according to a pattern, and every receiver checks the received data.
//!
//! A message is a put whose signal counts it at the receiver, or an acknowledged store if messages are small. Each
//! sender has its own slot at each receiver. All ranks meet, send, meet again when all messages are known to be
//! visible, and compare the slots and the counts. In a pipeline a rank sends a message on only after it has arrived. In
//! a sequence of all-reduces it begins a round only after a message of the previous round has arrived from each other
//! rank.

mod shuffle;
mod targets;

use std::fmt;
use std::sync::Arc;

use rackloom_collectives::Reason;
use rackloom_plan::PatternName;
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{
    Access, Comparison, Completion, Condition, Instant, LocalRange, NodeId, RegionConfig, RegionId, Signal,
    SignalKind,
};

use self::targets::Scheme;
use crate::elided;
use crate::job::{Job, Output, Portion};
use crate::measure::OperationKind;
use crate::ranks::ensemble::{Ensemble, Limits, Play, Poll, Step};
use crate::ranks::pattern::Pattern;
use crate::ranks::request::{Body, Outcome, Request, Tag};
use crate::ranks::{CONTROL_BYTES, JobGroup, Rank};
use crate::report::{JobResult, Mismatch, TrafficPart};

/// Region that a rank's messages are taken from.
const SOURCE: RegionId = RegionId(2);
/// Region that messages arrive in: a slot per possible sender.
const INBOX: RegionId = RegionId(3);
/// Region that counts arrived messages: a word per slot.
const COUNTS: RegionId = RegionId(4);
/// Maximum number of outstanding messages per rank.
const OUTSTANDING_MAX: usize = 64;
/// Checks of a rank whose memory keeps no payload.
const CHECKS: &str =
    "each rank counted as many messages of each sender as it had to send, and as many bytes arrived";
/// Checks of stores, which are not counted one by one.
const CHECKS_OF_STORES: &str = "as many bytes arrived at each rank as its senders had to store";
const PURPOSE: u64 = 0x7472_6166_6669_6331;

/// Settings of a traffic job. They are equal for every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficSettings {
    /// Pattern that determines each rank's targets.
    pub pattern: PatternName,
    /// Bytes of one message.
    pub bytes: u64,
    /// Messages of each flow, or of each rank if targets are random.
    pub messages: u64,
    /// Seed of the data and of random targets.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Largest store that every endpoint accepts, in bytes.
    pub store_bytes_max: u64,
    /// Memory of the smallest endpoint, in bytes.
    pub memory_bytes: u64,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

/// Reason for which a traffic job cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficError {
    /// The job does not fit into memory.
    TooLarge {
        /// Length of one message, in bytes.
        bytes: u64,
        /// Number of slots of the rank that has the most.
        slots: u16,
        /// Memory that the messages need, in bytes.
        needed_bytes: u64,
        /// Memory of the smallest endpoint, in bytes.
        memory_bytes: u64,
    },
    /// The pattern sends stores, and a message of this size cannot be one store.
    NoStore(u64),
    /// The ranks belong to several tenants, which cannot access each other's memory.
    SeveralTenants,
    /// There are fewer than two ranks.
    TooFew(usize),
}

impl TrafficError {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::TooLarge { bytes, slots, needed_bytes, memory_bytes } => Reason::new(
                format!(
                    "messages of {bytes} bytes in {slots} slots need {needed_bytes} bytes of memory at each node, there are \
                     {memory_bytes}"
                ),
                "raise `defaults.memory` in the rack file or make the messages smaller",
            ),
            Self::NoStore(most) => Reason::new(
                format!("a store takes 1 to {most} bytes"),
                "make the messages smaller, or take another pattern",
            ),
            Self::SeveralTenants => {
                Reason::new("the ranks belong to several tenants", "traffic flows within one")
            }
            Self::TooFew(ranks) => Reason::new(
                format!("traffic needs two ranks, there is {ranks}"),
                "add a GPU node to the rack",
            ),
        }
    }
}

impl fmt::Display for TrafficError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for TrafficError {}

/// Returns the memory that a rank needs, in bytes: source, slots with a word each, and the control region.
fn memory_needed(bytes: u64, slots: u16) -> u64 {
    let slots = u64::from(slots);
    bytes.saturating_mul(slots + 1).saturating_add(8 * slots).saturating_add(CONTROL_BYTES)
}

/// Returns one rank of a traffic job.
///
/// # Errors
/// The job does not fit into memory, there are fewer than two ranks, or another condition of [`TrafficError`] holds.
pub fn traffic(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    settings: TrafficSettings,
) -> Result<Box<dyn Job>, TrafficError> {
    check(&ranks, &settings)?;
    let limits = Limits {
        start_timeout_ns: settings.start_timeout_ns,
        drain_timeout_ns: settings.drain_timeout_ns,
        outstanding_max: OUTSTANDING_MAX,
    };
    let play = Traffic::new(rank.0, scheme(&ranks, &settings), settings);
    Ok(Box::new(Ensemble::new(rank, ranks, settings.key_seed, limits, play)))
}

fn scheme(ranks: &[Rank], settings: &TrafficSettings) -> Scheme {
    let TrafficSettings { pattern, messages, seed, .. } = *settings;
    Scheme { pattern, ranks: ranks.len() as u16, messages, seed }
}

fn check(ranks: &[Rank], settings: &TrafficSettings) -> Result<(), TrafficError> {
    let TrafficSettings { pattern, bytes, memory_bytes, store_bytes_max, .. } = *settings;
    if ranks.len() < 2 {
        return Err(TrafficError::TooFew(ranks.len()));
    }
    let slots = scheme(ranks, settings).slots_max();
    let needed_bytes = memory_needed(bytes, slots);
    if ranks.iter().any(|rank| rank.tenant != ranks[0].tenant) {
        return Err(TrafficError::SeveralTenants);
    }
    if pattern == PatternName::SmallStores && !(1..=store_bytes_max).contains(&bytes) {
        return Err(TrafficError::NoStore(store_bytes_max));
    }
    if needed_bytes > memory_bytes {
        return Err(TrafficError::TooLarge { bytes, slots, needed_bytes, memory_bytes });
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fill,
    BeforeSending,
    Sending,
    BeforeCheck,
    Check,
    Over,
}

/// One rank's part of the job.
struct Traffic {
    settings: TrafficSettings,
    scheme: Scheme,
    rank: u16,
    /// Ranks whose messages this rank waits for before it sends more, one of each.
    awaited: Vec<u16>,
    targets: Vec<u16>,
    /// Senders in ascending order, with the number of messages that must arrive from each.
    expected: Vec<(u16, u64)>,
    stage: Stage,
    issued: usize,
    over: usize,
    /// Number of messages that have arrived from every awaited rank, and number of awaited ranks from which one more
    /// has arrived.
    arrived: u64,
    arrived_of_next: usize,
    is_waiting: bool,
    began: Option<Instant>,
    ended: Option<Instant>,
    verified_bytes: u64,
    /// True once the check has passed on memory that keeps no payload.
    is_elided: bool,
    mismatches: Vec<Mismatch>,
}

impl Traffic {
    fn new(rank: u16, scheme: Scheme, settings: TrafficSettings) -> Self {
        Self {
            settings,
            scheme,
            rank,
            awaited: scheme.awaited(rank),
            targets: scheme.targets(rank),
            expected: scheme.sources(rank),
            stage: Stage::Fill,
            issued: 0,
            over: 0,
            arrived: 0,
            arrived_of_next: 0,
            is_waiting: false,
            began: None,
            ended: None,
            verified_bytes: 0,
            is_elided: false,
            mismatches: Vec::new(),
        }
    }

    /// Returns the data that a rank sends in each message.
    fn data(&self, rank: u16) -> Vec<u8> {
        Pattern::new(self.settings.seed, &[PURPOSE, rank.into()]).bytes(0, self.settings.bytes)
    }

    fn send(&mut self, poll: &mut Poll<'_>) -> Step {
        if self.began.is_none() && !self.targets.is_empty() {
            self.began = Some(poll.now);
        }
        while self.issued < self.targets.len().min(self.may_go()) && poll.issuer.has_space() {
            let target = self.targets[self.issued];
            let body = self.message(poll.job_group, target);
            poll.issuer.submit(Request::new(Tag::Phase { peer: target, item: 0 }, body));
            self.issued += 1;
        }
        self.wait(poll);
        let has_all = self.awaited.is_empty() || self.arrived == self.settings.messages;
        if self.over == self.targets.len() && has_all {
            self.stage = Stage::BeforeCheck;
            return Step::Again;
        }
        Step::Waiting
    }

    fn message(&self, job_group: &JobGroup, target: u16) -> Body {
        let slot = self.scheme.slot(self.rank, target);
        let slot_address = job_group.address(target, INBOX, slot * self.settings.bytes);
        if self.settings.pattern == PatternName::SmallStores {
            return Body::Store {
                target: slot_address,
                data: self.data(self.rank),
                completion: Completion::Visible,
            };
        }
        let word = job_group.address(target, COUNTS, 8 * slot);
        let (region, offset, key) = (word.region, word.offset, word.key);
        let signal = Signal { region, offset, key, kind: SignalKind::Add, value: 1 };
        let source = LocalRange { region: SOURCE, offset: 0, length: self.settings.bytes };
        let target = if self.settings.bytes == 0 { word } else { slot_address };
        Body::Put { target, source, signal: Some(signal) }
    }

    /// Returns the number of messages that may have been sent by now. In a pipeline it is the number that has arrived,
    /// in a sequence of all-reduces one round more.
    fn may_go(&self) -> usize {
        match (self.settings.pattern, self.awaited.len()) {
            (_, 0) => usize::MAX,
            (PatternName::TensorParallel, others) => (self.arrived as usize + 1) * others,
            _ => self.arrived as usize,
        }
    }

    /// Waits for the next message of an awaited rank.
    fn wait(&mut self, poll: &mut Poll<'_>) {
        if self.is_waiting || self.arrived == self.settings.messages {
            return;
        }
        let Some(before) = self.awaited.get(self.arrived_of_next).copied() else { return };
        self.is_waiting = true;
        let body = Body::WaitUntil {
            region: COUNTS,
            offset: 8 * self.scheme.slot(before, self.rank),
            condition: Condition::AtLeast,
            value: self.arrived + 1,
            depends_on: Some(NodeId(before)),
        };
        poll.issuer.submit_urgent(Request::new(Tag::Phase { peer: before, item: 1 }, body));
    }

    /// Records that an awaited rank's count has reached `count`.
    fn note_arrival(&mut self, count: u64) {
        self.arrived_of_next += 1;
        if self.arrived_of_next == self.awaited.len() {
            self.arrived_of_next = 0;
            // With one awaited rank, more messages may have arrived than were waited for.
            self.arrived = if self.awaited.len() == 1 { count } else { self.arrived + 1 };
        }
    }

    fn check(&mut self, poll: &mut Poll<'_>) -> Result<(), String> {
        self.check_counts(poll)?;
        if let Some(found) = poll.memory.elided_bytes(INBOX) {
            self.check_number(found)?;
            self.is_elided = true;
            return Ok(());
        }
        let mut found = vec![0; self.settings.bytes as usize];
        for (source, _) in self.expected.iter().copied() {
            let slot = self.scheme.slot(source, self.rank) * self.settings.bytes;
            let wanted = self.data(source);
            let compared = poll.memory.compare(INBOX, slot, &wanted, &mut found);
            match compared.map_err(|fault| format!("own memory failed: {fault:?}"))? {
                Comparison::Same => self.verified_bytes += found.len() as u64,
                Comparison::NotKept => {}
                Comparison::Different => {
                    let at = (0..found.len()).find(|at| found[*at] != wanted[*at]).unwrap_or(0);
                    self.mismatches.push(Mismatch {
                        region: INBOX.0,
                        offset: slot + at as u64,
                        expected: wanted[at],
                        found: found[at],
                        location: format!("message from {}", poll.job_group.name(source)),
                    });
                }
            }
        }
        Ok(())
    }

    /// Compares the number of bytes that have arrived, where memory keeps no payload.
    fn check_number(&self, found: u64) -> Result<(), String> {
        let messages: u64 = self.expected.iter().map(|(_, messages)| *messages).sum();
        let due = messages * self.settings.bytes;
        if found == due {
            Ok(())
        } else {
            Err(format!("{found} bytes of messages arrived, and {due} are due"))
        }
    }

    /// Compares the counts of all slots. A slot without a sender must have counted nothing.
    fn check_counts(&self, poll: &mut Poll<'_>) -> Result<(), String> {
        if self.settings.pattern == PatternName::SmallStores {
            return Ok(());
        }
        let mut wanted = vec![(None, 0); usize::from(self.scheme.slots(self.rank))];
        for (source, messages) in self.expected.iter().copied() {
            wanted[self.scheme.slot(source, self.rank) as usize] = (Some(source), messages);
        }
        let mut words = vec![0; 8 * wanted.len()];
        let read = poll.memory.read(COUNTS, 0, &mut words);
        read.map_err(|fault| format!("own memory failed: {fault:?}"))?;
        for (slot, ((source, sent), word)) in wanted.into_iter().zip(words.as_chunks().0).enumerate() {
            let counted = u64::from_le_bytes(*word);
            if counted != sent {
                let of = source.map_or_else(
                    || format!("slot {slot}, which has no sender,"),
                    |source| poll.job_group.name(source).to_owned(),
                );
                return Err(format!("{counted} messages of {of} were counted, it sent {sent}"));
            }
        }
        Ok(())
    }
}

impl Play for Traffic {
    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        let slots = u64::from(self.scheme.slots(self.rank));
        let write = Access { read: false, write: true, atomic: false };
        vec![
            job_group.region(SOURCE, self.settings.bytes, Access::READ),
            job_group.region(INBOX, self.settings.bytes * slots, write),
            job_group.region(COUNTS, 8 * slots, write),
        ]
    }

    fn advance(&mut self, poll: &mut Poll<'_>) -> Step {
        match self.stage {
            Stage::Fill => {
                // Memory that keeps no payload needs none.
                if poll.memory.elided_bytes(SOURCE).is_none()
                    && let Err(fault) = poll.memory.write(SOURCE, 0, &self.data(self.rank))
                {
                    return Step::Broken(format!("own memory failed: {fault:?}"));
                }
                self.stage = Stage::BeforeSending;
                Step::Meet
            }
            Stage::BeforeSending | Stage::BeforeCheck => Step::Meet,
            Stage::Sending => self.send(poll),
            Stage::Check => {
                self.stage = Stage::Over;
                self.check(poll).map_or_else(Step::Broken, |()| Step::Done)
            }
            Stage::Over => Step::Done,
        }
    }

    fn met(&mut self, _now: Instant) {
        self.stage = match self.stage {
            Stage::BeforeSending => Stage::Sending,
            Stage::BeforeCheck => Stage::Check,
            stage => stage,
        };
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, value: u64) -> Result<(), String> {
        if outcome.kind == OperationKind::WaitUntil {
            self.is_waiting = false;
            self.note_arrival(value);
        } else {
            self.over += 1;
            self.ended = Some(poll.now);
        }
        Ok(())
    }

    fn position(&self, _job_group: &JobGroup) -> String {
        let (pattern, total) = (self.settings.pattern, self.targets.len());
        format!("{pattern}, {} of {total} messages sent, {} over", self.issued, self.over)
    }

    fn contribute(&self, result: &mut JobResult) {
        result.verified_bytes += self.verified_bytes;
        result.mismatch_count += self.mismatches.len() as u64;
        result.mismatches.extend(self.mismatches.iter().cloned());
        if self.is_elided {
            let has_counts = self.settings.pattern != PatternName::SmallStores;
            result.notes.push(elided::note(if has_counts { CHECKS } else { CHECKS_OF_STORES }));
        }
        result.traffic = Some(TrafficPart {
            pattern: self.settings.pattern.name().to_owned(),
            messages: self.over as u64,
            bytes: self.over as u64 * self.settings.bytes,
            began_ns: self.began.map(|began| began.0),
            ended_ns: self.ended.map(|ended| ended.0),
        });
    }

    fn output(&self) -> Option<Output> {
        None
    }

    /// Returns the progress in messages.
    fn portion(&self) -> Portion {
        Portion::new(self.over as u64, self.targets.len() as u64)
    }

    /// Returns run 1, with a rank's own messages as steps.
    fn reached(&self) -> Option<JobPosition> {
        let step = match self.stage {
            Stage::Sending => self.over as u64 + 1,
            Stage::BeforeCheck | Stage::Check => u64::MAX,
            _ => return None,
        };
        Some(JobPosition { run: 1, step })
    }
}
