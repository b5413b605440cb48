//! Job of a trace: every rank performs the lines with its name, each at its time.
//!
//! Times count from the moment at which all ranks have met. A line whose time comes while too many operations are
//! outstanding waits, and its latency counts from the moment at which it was begun. At the end each rank compares the
//! received data and counts with the trace.

use std::sync::Arc;

use rackloom_plan::trace::{TraceKind, TraceLine};
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Comparison, Completion, Instant, LocalRange, NodeId, RegionConfig, RegionId,
    Signal, SignalKind, Width,
};
use thiserror::Error;

use crate::elided;
use crate::job::{Job, Output, Portion};
use crate::ranks::ensemble::{Ensemble, Limits, Play, Poll, Step};
use crate::ranks::pattern::Pattern;
use crate::ranks::request::{Body, Outcome, Request, Tag};
use crate::ranks::{CONTROL_BYTES, JobGroup, Rank};
use crate::report::{JobResult, Mismatch, TrafficPart};

/// Region with the data that this rank writes to others and that others read.
const SOURCE: RegionId = RegionId(2);
/// Region that others write: a slot for each of them.
const INBOX: RegionId = RegionId(3);
/// Region that this rank reads into: a slot for each owner.
const LANDING: RegionId = RegionId(4);
/// Region with the number of puts and of additions received from each rank.
const COUNTS: RegionId = RegionId(5);
/// Maximum number of outstanding operations per rank.
const OUTSTANDING_MAX: usize = 1_024;
/// Checks of a rank whose memory keeps no payload.
const CHECKS: &str = "each line of the trace ended without an error, and each rank counted as many puts and additions of each other rank as the \
                      trace has";
const PURPOSE: u64 = 0x7472_6163_6531;

/// Settings of a trace's job. They are equal for every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Seed of the data.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Memory of the smallest endpoint, in bytes.
    pub memory_bytes: u64,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

/// Reason for which a trace cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// The trace does not fit into memory.
    #[error(
        "a trace with operations of up to {bytes} bytes needs {needed_bytes} bytes of memory at each of {ranks} nodes, there are \
         {memory_bytes}; hint: raise `defaults.memory` in the rack file or split the longest lines"
    )]
    TooLarge {
        /// Length of the longest operation, in bytes.
        bytes: u64,
        /// Number of ranks. Each has slots for all.
        ranks: usize,
        /// Memory that the trace needs at each rank, in bytes.
        needed_bytes: u64,
        /// Memory of the smallest endpoint, in bytes.
        memory_bytes: u64,
    },
    /// The ranks belong to several tenants, which cannot access each other's memory.
    #[error("the ranks belong to several tenants; hint: traces are played within one")]
    SeveralTenants,
}

/// Returns one rank's part of the job of a trace. Every rank receives all lines, ordered by time.
///
/// # Errors
/// The trace does not fit into memory, or the ranks belong to several tenants.
pub fn trace(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    settings: TraceSettings,
    lines: &[TraceLine],
) -> Result<Box<dyn Job>, TraceError> {
    let bytes = lines.iter().map(|line| line.bytes).max().unwrap_or(0);
    let count = ranks.len() as u64;
    let needed_bytes = bytes * (2 * count + 1) + 16 * count + CONTROL_BYTES;
    if needed_bytes > settings.memory_bytes {
        let memory_bytes = settings.memory_bytes;
        return Err(TraceError::TooLarge { bytes, ranks: ranks.len(), needed_bytes, memory_bytes });
    }
    if ranks.iter().any(|other| other.tenant != ranks[0].tenant) {
        return Err(TraceError::SeveralTenants);
    }
    let limits = Limits {
        start_timeout_ns: settings.start_timeout_ns,
        drain_timeout_ns: settings.drain_timeout_ns,
        outstanding_max: OUTSTANDING_MAX,
    };
    let play = Trace::new(rank, ranks.len(), settings.seed, bytes, lines);
    Ok(Box::new(Ensemble::new(rank, ranks, settings.key_seed, limits, play)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fill,
    BeforePlaying,
    Playing,
    BeforeCheck,
    Check,
    Over,
}

/// Transfers between this rank and one other rank, according to the trace.
#[derive(Clone, Copy, Debug, Default)]
struct Transfers {
    /// Bytes of the longest write from the other rank into this one's memory.
    written_bytes: u64,
    /// Bytes of the longest read by this rank from the other one's memory.
    read_bytes: u64,
    /// Number of puts from the other rank to this one.
    puts: u64,
    additions: u64,
}

/// One rank's part of the trace.
struct Trace {
    rank: u16,
    seed: u64,
    /// Length of a slot in bytes: that of the longest operation.
    slot_bytes: u64,
    lines: Vec<TraceLine>,
    transfers: Vec<Transfers>,
    stage: Stage,
    /// Time at which all ranks had met.
    origin: Instant,
    issued: usize,
    over: usize,
    bytes_over: u64,
    began: Option<Instant>,
    ended: Option<Instant>,
    verified_bytes: u64,
    /// True once the check has ended on memory that keeps no payload.
    is_elided: bool,
    mismatches: Vec<Mismatch>,
}

impl Trace {
    fn new(rank: NodeId, ranks: usize, seed: u64, slot_bytes: u64, lines: &[TraceLine]) -> Self {
        let mut transfers = vec![Transfers::default(); ranks];
        for line in lines {
            let of_other = if line.destination == rank { line.source } else { line.destination };
            let transfers = &mut transfers[of_other.index()];
            match line.kind {
                TraceKind::Put | TraceKind::Store if line.destination == rank => {
                    transfers.written_bytes = transfers.written_bytes.max(line.bytes);
                    transfers.puts += u64::from(line.kind == TraceKind::Put);
                }
                TraceKind::FetchAdd if line.destination == rank => transfers.additions += 1,
                TraceKind::Load | TraceKind::Get if line.source == rank => {
                    transfers.read_bytes = transfers.read_bytes.max(line.bytes);
                }
                _ => {}
            }
        }
        Self {
            rank: rank.0,
            seed,
            slot_bytes,
            lines: lines.iter().filter(|line| line.source == rank).copied().collect(),
            transfers,
            stage: Stage::Fill,
            origin: Instant::ZERO,
            issued: 0,
            over: 0,
            bytes_over: 0,
            began: None,
            ended: None,
            verified_bytes: 0,
            is_elided: false,
            mismatches: Vec::new(),
        }
    }

    /// Returns the first `bytes` bytes of a rank's data.
    fn data(&self, rank: u16, bytes: u64) -> Vec<u8> {
        Pattern::new(self.seed, &[PURPOSE, rank.into()]).bytes(0, bytes)
    }

    fn play(&mut self, poll: &mut Poll<'_>) -> Step {
        while let Some(line) = self.lines.get(self.issued).copied() {
            let due = self.origin + line.at_ns;
            if due > poll.now {
                return Step::Until(due);
            }
            if !poll.issuer.has_space() {
                return Step::Waiting;
            }
            self.began = self.began.or(Some(poll.now));
            let body = self.operation(poll.job_group, line);
            poll.issuer.submit(Request::new(
                Tag::Phase { peer: line.destination.0, item: self.issued as u32 },
                body,
            ));
            self.issued += 1;
        }
        if self.over < self.lines.len() {
            return Step::Waiting;
        }
        self.stage = Stage::BeforeCheck;
        Step::Again
    }

    fn operation(&self, job_group: &JobGroup, line: TraceLine) -> Body {
        let other = line.destination.0;
        let slot = self.slot_bytes * u64::from(self.rank);
        let landing = self.slot_bytes * u64::from(other);
        let into = LocalRange { region: LANDING, offset: landing, length: line.bytes };
        let word =
            |word_offset: u64| job_group.address(other, COUNTS, 16 * u64::from(self.rank) + word_offset);
        match line.kind {
            TraceKind::Put => {
                let at = word(0);
                let (region, offset, key) = (at.region, at.offset, at.key);
                let signal = Some(Signal { region, offset, key, kind: SignalKind::Add, value: 1 });
                let source = LocalRange { region: SOURCE, offset: 0, length: line.bytes };
                Body::Put { target: job_group.address(other, INBOX, slot), source, signal }
            }
            TraceKind::Store => Body::Store {
                target: job_group.address(other, INBOX, slot),
                data: self.data(self.rank, line.bytes),
                completion: Completion::Visible,
            },
            TraceKind::Load => Body::Load { target: job_group.address(other, SOURCE, 0), into },
            TraceKind::Get => Body::Get { target: job_group.address(other, SOURCE, 0), into },
            TraceKind::FetchAdd => Body::Atomic {
                target: word(8),
                atomic: Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 },
            },
        }
    }

    fn check(&mut self, poll: &mut Poll<'_>) -> Result<(), String> {
        for other in 0..self.transfers.len() as u16 {
            let Transfers { written_bytes, read_bytes, puts, additions } = self.transfers[usize::from(other)];
            for (region, bytes) in [(INBOX, written_bytes), (LANDING, read_bytes)] {
                self.compare(poll, region, other, bytes)?;
            }
            for (word_offset, expected, what) in [(0, puts, "puts"), (8, additions, "additions")] {
                let mut word = [0; 8];
                let offset = 16 * u64::from(other) + word_offset;
                let read = poll.memory.read(COUNTS, offset, &mut word);
                read.map_err(|fault| format!("own memory failed: {fault:?}"))?;
                let counted = u64::from_le_bytes(word);
                if counted != expected {
                    let name = poll.job_group.name(other);
                    return Err(format!("{counted} {what} of {name} were counted, the trace has {expected}"));
                }
            }
        }
        self.is_elided = poll.memory.elided_bytes(INBOX).is_some();
        Ok(())
    }

    /// Compares a slot with the data of the other rank.
    fn compare(
        &mut self,
        poll: &mut Poll<'_>,
        region: RegionId,
        other: u16,
        bytes: u64,
    ) -> Result<(), String> {
        if bytes == 0 {
            return Ok(());
        }
        let (wanted, mut found) = (self.data(other, bytes), vec![0; bytes as usize]);
        let slot = self.slot_bytes * u64::from(other);
        let compared = poll.memory.compare(region, slot, &wanted, &mut found);
        match compared.map_err(|fault| format!("own memory failed: {fault:?}"))? {
            Comparison::Same => self.verified_bytes += bytes,
            Comparison::NotKept => {}
            Comparison::Different => {
                let at = (0..found.len()).find(|at| found[*at] != wanted[*at]).unwrap_or(0);
                self.mismatches.push(Mismatch {
                    region: region.0,
                    offset: slot + at as u64,
                    expected: wanted[at],
                    found: found[at],
                    location: format!("bytes of {}", poll.job_group.name(other)),
                });
            }
        }
        Ok(())
    }
}

impl Play for Trace {
    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        let slots = self.slot_bytes * job_group.ranks.len() as u64;
        let write = Access { read: false, write: true, atomic: false };
        let count = Access { read: false, write: true, atomic: true };
        vec![
            job_group.region(SOURCE, self.slot_bytes, Access::READ),
            job_group.region(INBOX, slots, write),
            job_group.region(LANDING, slots, write),
            job_group.region(COUNTS, 16 * job_group.ranks.len() as u64, count),
        ]
    }

    fn advance(&mut self, poll: &mut Poll<'_>) -> Step {
        match self.stage {
            Stage::Fill => {
                if let Err(fault) = poll.memory.write(SOURCE, 0, &self.data(self.rank, self.slot_bytes)) {
                    return Step::Broken(format!("own memory failed: {fault:?}"));
                }
                self.stage = Stage::BeforePlaying;
                Step::Meet
            }
            Stage::BeforePlaying | Stage::BeforeCheck => Step::Meet,
            Stage::Playing => self.play(poll),
            Stage::Check => {
                self.stage = Stage::Over;
                self.check(poll).map_or_else(Step::Broken, |()| Step::Done)
            }
            Stage::Over => Step::Done,
        }
    }

    fn met(&mut self, now: Instant) {
        self.stage = match self.stage {
            Stage::BeforePlaying => {
                self.origin = now;
                Stage::Playing
            }
            Stage::BeforeCheck => Stage::Check,
            stage => stage,
        };
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, _value: u64) -> Result<(), String> {
        self.over += 1;
        self.ended = Some(poll.now);
        if let Tag::Phase { item, .. } = outcome.tag {
            self.bytes_over += self.lines.get(item as usize).map_or(0, |line| line.bytes);
        }
        Ok(())
    }

    fn position(&self, _job_group: &JobGroup) -> String {
        format!("trace, {} of {} lines begun, {} over", self.issued, self.lines.len(), self.over)
    }

    fn contribute(&self, result: &mut JobResult) {
        result.verified_bytes += self.verified_bytes;
        result.notes.extend(self.is_elided.then(|| elided::note(CHECKS)));
        result.mismatch_count += self.mismatches.len() as u64;
        result.mismatches.extend(self.mismatches.iter().cloned());
        result.traffic = Some(TrafficPart {
            pattern: "trace".to_owned(),
            messages: self.over as u64,
            bytes: self.bytes_over,
            began_ns: self.began.map(|began| began.0),
            ended_ns: self.ended.map(|ended| ended.0),
        });
    }

    fn output(&self) -> Option<Output> {
        None
    }

    /// Returns the progress in lines.
    fn portion(&self) -> Portion {
        Portion::new(self.over as u64, self.lines.len() as u64)
    }
}
