//! Latency and bandwidth jobs: messages of many sizes between two ranks, by every operation that moves data.
//!
//! All ranks go through one script, case by case. The receiver overwrites its target with wrong bytes, all ranks meet,
//! the two ranks exchange their messages while the others wait, all meet again, and the receiver compares. So only one
//! pair uses the fabric at a time. Times are the caller's (`now`), so they are virtual in the simulator.

mod exchange;
mod settings;

use std::fmt;
use std::sync::Arc;

use rackloom_collectives::Reason;
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{Access, Comparison, Instant, JobMemory, NodeId, RegionConfig};

use self::exchange::{Case, Exchange, SOURCE, TARGET};
use crate::elided;
use crate::job::{Job, Output, Portion};
use crate::ranks::ensemble::{Ensemble, Limits, Play, Poll, Step};
use crate::ranks::pattern::Pattern;
use crate::ranks::request::Outcome;
use crate::ranks::{CONTROL_BYTES, JobGroup, Rank};
use crate::report::{JobResult, Mismatch, SweepRow};

pub use self::settings::{Measure, PairOperation, PairSettings, Pairs};

/// Maximum number of outstanding messages in a bandwidth job.
const OUTSTANDING_MAX: usize = 16;
/// Checks of a rank whose memory keeps no payload.
const CHECKS: &str =
    "each message ended without an error, and as many bytes arrived at each rank as were due";
const BLOCK_BYTES: usize = 64 << 10;
const POLL_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of mismatches that are reported one by one.
const MISMATCHES_MAX: usize = 16;
const PURPOSE: u64 = 0x7061_6972_7300;

/// Reason for which a latency or bandwidth job cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairError {
    /// The job does not fit into memory.
    TooLarge {
        /// Length of the largest message, in bytes.
        bytes: u64,
        /// Memory that the job needs, in bytes.
        needed_bytes: u64,
        /// Memory of the smallest endpoint, in bytes.
        memory_bytes: u64,
    },
    /// The ranks belong to several tenants, which cannot access each other's memory.
    SeveralTenants,
    /// There are fewer than two ranks.
    TooFew(usize),
}

impl PairError {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::TooLarge { bytes, needed_bytes, memory_bytes } => Reason::new(
                format!(
                    "messages of {bytes} bytes need {needed_bytes} bytes of memory at each node, there are {memory_bytes}"
                ),
                "raise `defaults.memory` in the rack file or make the messages smaller",
            ),
            Self::SeveralTenants => {
                Reason::new("the ranks belong to several tenants", "pairs are measured within one")
            }
            Self::TooFew(ranks) => {
                Reason::new(format!("a pair needs two ranks, there is {ranks}"), "add a GPU node to the rack")
            }
        }
    }
}

impl fmt::Display for PairError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for PairError {}

/// Returns the memory that each rank needs, in bytes: source, target, and the control region.
#[must_use]
pub fn memory_needed(settings: &PairSettings) -> u64 {
    largest(settings).saturating_mul(2).saturating_add(CONTROL_BYTES)
}

fn largest(settings: &PairSettings) -> u64 {
    settings.sizes.iter().copied().max().unwrap_or(0)
}

/// Returns one rank of a latency or bandwidth job.
///
/// # Errors
/// The job does not fit into memory, there are fewer than two ranks, or the ranks belong to several tenants.
pub fn pairs(rank: NodeId, ranks: Arc<[Rank]>, settings: PairSettings) -> Result<Box<dyn Job>, PairError> {
    check(&ranks, &settings)?;
    let limits = Limits {
        start_timeout_ns: settings.start_timeout_ns,
        drain_timeout_ns: settings.drain_timeout_ns,
        outstanding_max: OUTSTANDING_MAX,
    };
    let key_seed = settings.key_seed;
    let play = Measurement::new(rank.0, ranks.len() as u16, settings);
    Ok(Box::new(Ensemble::new(rank, ranks, key_seed, limits, play)))
}

fn check(ranks: &[Rank], settings: &PairSettings) -> Result<(), PairError> {
    let needed_bytes = memory_needed(settings);
    if ranks.len() < 2 {
        return Err(PairError::TooFew(ranks.len()));
    }
    if ranks.iter().any(|rank| rank.tenant != ranks[0].tenant) {
        return Err(PairError::SeveralTenants);
    }
    if needed_bytes > settings.memory_bytes {
        let bytes = largest(settings);
        return Err(PairError::TooLarge { bytes, needed_bytes, memory_bytes: settings.memory_bytes });
    }
    Ok(())
}

/// Stage of a rank.
#[derive(Debug)]
enum Stage {
    /// The rank writes its source.
    Fill {
        done: u64,
    },
    NextCase,
    /// The rank overwrites its target with wrong bytes.
    Spoil {
        done: u64,
    },
    BeforeExchange,
    Exchange(Exchange),
    BeforeCheck(Exchange),
    Check {
        exchange: Exchange,
        done: u64,
        wrong: u64,
    },
    Over,
}

/// One rank's progress through the script.
struct Measurement {
    settings: PairSettings,
    rank: u16,
    cases: Vec<Case>,
    /// Index of the next case. The current one is before it.
    next: usize,
    stage: Stage,
    /// Value of the counting words before the current case.
    base: u64,
    verified_bytes: u64,
    /// Bytes of all messages to this rank in the cases that have ended.
    due_bytes: u64,
    /// True once a case has been checked on memory that keeps no payload.
    is_elided: bool,
    wrong: u64,
    mismatches: Vec<Mismatch>,
    rows: Vec<SweepRow>,
    blocks: [Vec<u8>; 2],
}

impl Measurement {
    fn new(rank: u16, ranks: u16, settings: PairSettings) -> Self {
        let cases = cases(ranks, &settings);
        Self {
            settings,
            rank,
            cases,
            next: 0,
            stage: Stage::Fill { done: 0 },
            base: 0,
            verified_bytes: 0,
            due_bytes: 0,
            is_elided: false,
            wrong: 0,
            mismatches: Vec::new(),
            rows: Vec::new(),
            blocks: [vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]],
        }
    }

    fn case(&self) -> Option<Case> {
        self.cases.get(self.next.checked_sub(1)?).copied()
    }

    /// Returns the data of a rank's source.
    fn pattern(&self, rank: u16) -> Pattern {
        Pattern::new(self.settings.seed, &[PURPOSE, rank.into()])
    }

    fn step(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let case = self.case();
        match (&mut self.stage, case) {
            (Stage::Fill { .. }, _) => return self.fill(poll.memory),
            (Stage::NextCase, _) => {
                self.next += 1;
                self.stage = if self.case().is_some() { Stage::Spoil { done: 0 } } else { Stage::Over };
            }
            (Stage::BeforeExchange | Stage::BeforeCheck(_), _) => return Ok(Some(Step::Meet)),
            (Stage::Over, _) | (_, None) => return Ok(Some(Step::Done)),
            (Stage::Spoil { .. }, Some(case)) => return self.spoil(poll.memory, case),
            (Stage::Exchange(exchange), Some(case)) => {
                let pattern = Pattern::new(self.settings.seed, &[PURPOSE, case.source().into()]);
                if !exchange.advance(poll, pattern) {
                    return Ok(Some(Step::Waiting));
                }
                self.stage = Stage::BeforeCheck(exchange.clone());
            }
            (Stage::Check { .. }, Some(case)) => return self.check(poll, case),
        }
        Ok(None)
    }

    fn fill(&mut self, memory: &mut dyn JobMemory) -> Result<Option<Step>, String> {
        let pattern = self.pattern(self.rank);
        let Stage::Fill { done } = &mut self.stage else { return Ok(None) };
        let total = largest(&self.settings);
        let end = total.min(*done + POLL_BYTES_MAX);
        while *done < end {
            let block = &mut self.blocks[0][..BLOCK_BYTES.min((end - *done) as usize)];
            pattern.fill(*done, block);
            memory.write(SOURCE, *done, block).map_err(|fault| format!("own memory failed: {fault:?}"))?;
            *done += block.len() as u64;
        }
        if *done < total {
            return Ok(Some(Step::Again));
        }
        self.stage = Stage::NextCase;
        Ok(None)
    }

    /// Fills the target with the complement of the expected data, so that a byte that never arrives is wrong.
    fn spoil(&mut self, memory: &mut dyn JobMemory, case: Case) -> Result<Option<Step>, String> {
        let pattern = self.pattern(case.source());
        let Stage::Spoil { done } = &mut self.stage else { return Ok(None) };
        let total = if case.target() == self.rank { case.bytes } else { 0 };
        let end = total.min(*done + POLL_BYTES_MAX);
        while *done < end {
            let block = &mut self.blocks[0][..BLOCK_BYTES.min((end - *done) as usize)];
            pattern.fill(*done, block);
            block.iter_mut().for_each(|byte| *byte = !*byte);
            memory.write(TARGET, *done, block).map_err(|fault| format!("own memory failed: {fault:?}"))?;
            *done += block.len() as u64;
        }
        if *done < total {
            return Ok(Some(Step::Again));
        }
        self.stage = Stage::BeforeExchange;
        Ok(None)
    }

    fn check(&mut self, poll: &mut Poll<'_>, case: Case) -> Result<Option<Step>, String> {
        if let (Stage::Check { done: 0, .. }, Some(found)) = (&self.stage, poll.memory.elided_bytes(TARGET)) {
            self.check_number(found)?;
        }
        let pattern = self.pattern(case.source());
        let Stage::Check { done, wrong, .. } = &mut self.stage else { return Ok(None) };
        let total = if case.target() == self.rank { case.bytes } else { 0 };
        let end = total.min(*done + POLL_BYTES_MAX);
        while *done < end {
            let length = BLOCK_BYTES.min((end - *done) as usize);
            let [found, wanted] = &mut self.blocks;
            let (found, wanted) = (&mut found[..length], &mut wanted[..length]);
            pattern.fill(*done, wanted);
            let compared = poll.memory.compare(TARGET, *done, wanted, found);
            let differ = |at: &usize| found[*at] != wanted[*at];
            let different = match compared.map_err(|fault| format!("own memory failed: {fault:?}"))? {
                Comparison::Same => 0,
                Comparison::NotKept => {
                    *done += length as u64;
                    continue;
                }
                // If only blocks are known to differ, at least one byte of them is wrong.
                Comparison::Different => ((0..length).filter(differ).count() as u64).max(1),
            };
            if different > 0 && self.mismatches.len() < MISMATCHES_MAX {
                let at = (0..length).find(differ).unwrap_or(0);
                self.mismatches.push(Mismatch {
                    region: TARGET.0,
                    offset: *done + at as u64,
                    expected: wanted[at],
                    found: found[at],
                    location: format!("{} of {} bytes", case.operation.name(), case.bytes),
                });
            }
            *wrong += different;
            self.wrong += different;
            self.verified_bytes += length as u64 - different;
            *done += length as u64;
        }
        if *done < total {
            return Ok(Some(Step::Again));
        }
        if let Stage::Check { exchange, wrong, .. } = std::mem::replace(&mut self.stage, Stage::NextCase) {
            self.row(poll.job_group, &exchange, wrong);
        }
        Ok(None)
    }

    /// Compares the number of bytes that have arrived, where memory keeps no payload.
    fn check_number(&mut self, found: u64) -> Result<(), String> {
        let due = self.due_bytes;
        if found != due {
            return Err(format!("{found} bytes of messages arrived, and {due} are due"));
        }
        self.is_elided = true;
        Ok(())
    }

    /// Adds the row of a case that has been checked, if this rank took part.
    fn row(&mut self, job_group: &JobGroup, exchange: &Exchange, wrong: u64) {
        let Some(case) = self.case().filter(|case| [case.from, case.to].contains(&self.rank)) else { return };
        let row = SweepRow {
            what: case.operation.name().to_owned(),
            pair: format!("{}->{}", job_group.name(case.from), job_group.name(case.to)),
            size_bytes: case.bytes,
            count: case.bytes,
            element: "u8".to_owned(),
            op: "none".to_owned(),
            repetitions: self.settings.repetitions.max(1),
            wrong,
            ..SweepRow::default()
        };
        // The receiver's time is not used: the sender's time is the larger one.
        let time_ns = if self.rank == case.from { exchange.time_ns() } else { 0.0 };
        self.rows.push(row.timed(time_ns, Some(1.0)));
    }
}

/// Returns the whole script.
fn cases(ranks: u16, settings: &PairSettings) -> Vec<Case> {
    let pairs: Vec<(u16, u16)> = match settings.pairs {
        Pairs::First => vec![(0, 1)],
        Pairs::All => {
            let all = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
            all.filter(|(from, to)| from != to).collect()
        }
    };
    let mut cases = Vec::new();
    for (from, to) in pairs {
        for &operation in &settings.operations {
            let sizes = settings.sizes.iter().filter(|bytes| settings.can(operation, **bytes));
            cases.extend(sizes.map(|&bytes| Case { from, to, operation, bytes }));
        }
    }
    cases
}

impl Play for Measurement {
    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        let bytes = largest(&self.settings);
        let write = Access { read: false, write: true, atomic: false };
        vec![job_group.region(SOURCE, bytes, Access::READ), job_group.region(TARGET, bytes, write)]
    }

    fn advance(&mut self, poll: &mut Poll<'_>) -> Step {
        loop {
            match self.step(poll) {
                Ok(None) => {}
                Ok(Some(step)) => return step,
                Err(reason) => return Step::Broken(reason),
            }
        }
    }

    fn met(&mut self, _now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        self.stage = match (stage, self.case()) {
            (Stage::BeforeExchange, Some(case)) => {
                let settings = &self.settings;
                let (warm_up, repetitions) = (settings.warm_up, settings.repetitions);
                Stage::Exchange(Exchange::new(case, settings.measure, warm_up, repetitions, self.base))
            }
            (Stage::BeforeCheck(exchange), Some(_)) => {
                self.base += exchange.counted();
                self.due_bytes += exchange.bytes_to(self.rank);
                Stage::Check { exchange, done: 0, wrong: 0 }
            }
            (stage, _) => stage,
        };
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, _value: u64) -> Result<(), String> {
        if let Stage::Exchange(exchange) = &mut self.stage {
            exchange.succeeded(poll, outcome);
        }
        Ok(())
    }

    fn position(&self, job_group: &JobGroup) -> String {
        let Some(case) = self.case() else { return "the beginning".to_owned() };
        let (name, bytes) = (case.operation.name(), case.bytes);
        format!("{name} of {bytes} bytes from {} to {}", job_group.name(case.from), job_group.name(case.to))
    }

    fn contribute(&self, result: &mut JobResult) {
        result.verified_bytes += self.verified_bytes;
        result.notes.extend(self.is_elided.then(|| elided::note(CHECKS)));
        result.mismatches.extend(self.mismatches.iter().cloned());
        result.mismatch_count += self.wrong;
        result.sweep.extend(self.rows.iter().cloned());
    }

    fn output(&self) -> Option<Output> {
        None
    }

    /// Returns the progress in measurements (one operation of one size between two nodes), and in messages of the current one.
    fn portion(&self) -> Portion {
        let is_over = matches!(self.stage, Stage::Over);
        let done = if is_over { self.cases.len() } else { self.next.saturating_sub(1) };
        let portion = Portion::new(done as u64, self.cases.len() as u64);
        match &self.stage {
            Stage::Exchange(exchange) => portion.with_parts(exchange.over(), exchange.messages()),
            _ => portion,
        }
    }

    /// Returns the current measurement as run and its current message as step, with those of the warm-up.
    fn reached(&self) -> Option<JobPosition> {
        let step = match &self.stage {
            Stage::Exchange(exchange) => exchange.over() + 1,
            Stage::BeforeCheck(_) | Stage::Check { .. } => u64::MAX,
            _ => return None,
        };
        Some(JobPosition { run: self.next as u64, step })
    }
}
