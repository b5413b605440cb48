//! Play of one rank of a collective job: the sizes and algorithms in their order, warm-up and measured runs, checks and results.
//!
//! What a single run does is in `run`; how ranks meet and break off is in `crate::ranks`.

mod adapting;
mod trying;

use std::sync::Arc;

use rackloom_collectives::Algorithm;
use rackloom_collectives::adapt::Adaptation;
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{Instant, NodeId, RegionConfig, RegionId};

use super::check::{Check, Findings, Reference};
use super::exchange::Exchange;
use super::inputs::{Given, Inputs};
use super::memory_plan::{self, CollectiveError, INPUT, MemoryPlan, OUTPUT, SIGNALS};
use super::prepared::Prepared;
use super::probe::{self, Measured, Probe, Probed};
use super::run::{self, Run, RunState};
use super::settings::CollectiveSettings;
use super::snapshot::{Checkpoints, Cursor, Head, Progress};
use super::symbols::{self, Symbols};
use super::trials::{Trials, Tried};
use crate::elided;
use crate::job::{Job, Output, Portion};
use crate::measure::OperationKind;
use crate::quantile::nearest_rank;
use crate::ranks::ensemble::{Ensemble, Limits, Play, Poll, Step};
use crate::ranks::request::Outcome;
use crate::ranks::{JobGroup, Rank};
use crate::report::{JobResult, PhaseSpan, Rechoice, SweepRow};

use super::work::{BLOCK_BYTES, Blocks, POLL_BYTES_MAX, write};

/// Maximum number of outstanding puts per rank. A unit in a switch has as many for each rank.
const OUTSTANDING_MAX: usize = 64;
/// Maximum number of times of single runs that are kept per leg, for their quantiles.
const TIMES_MAX: usize = 4096;
/// Byte that overwrites an output before a run, so that a result of the run before is not accepted.
const SPOILED: u8 = 0xa5;

/// Returns one rank of a job that does not go on after a loss.
pub(super) fn alone(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    settings: CollectiveSettings,
    checkpoints: Checkpoints,
) -> Result<Box<dyn Job>, CollectiveError> {
    let play = Performance::new(rank.index(), &ranks, settings, checkpoints)?;
    let limits = Limits {
        start_timeout_ns: play.settings.start_timeout_ns,
        drain_timeout_ns: play.settings.drain_timeout_ns,
        outstanding_max: if play.is_unit() { OUTSTANDING_MAX * play.ranks } else { OUTSTANDING_MAX },
    };
    let key_seed = play.settings.key_seed;
    Ok(Box::new(Ensemble::new(rank, ranks, key_seed, limits, play)))
}

/// Stage of a rank.
#[derive(Debug)]
enum Stage {
    /// The rank restores a snapshot.
    Restore(Cursor),
    /// The rank writes its input.
    Fill {
        done: usize,
    },
    /// The rank waits for the others before the fabric is measured.
    BeforeProbe,
    Probe(Probe),
    /// The rank waits for the others before a trial run.
    BeforeTrial,
    Trial(Run),
    /// The rank checks the result of a trial run.
    CheckTrial {
        check: Check,
        time_ns: u64,
    },
    /// The rank sends its times to rank 0.
    Publish,
    BeforeSpread,
    /// Rank 0 sends the times to all ranks.
    Spread,
    BeforeAgreed,
    Agreed,
    /// The rank is between two legs.
    NextLeg,
    /// The rank overwrites its output with wrong bytes.
    Spoil {
        done: usize,
    },
    /// The rank waits for the others before a run.
    BeforeRun,
    Run(Run),
    Check(Check),
    /// The rank waits until no rank's memory changes any more.
    BeforeSave,
    Save(Cursor),
    /// The job cannot go on, for this reason.
    Failed(String),
    Over,
}

/// State of the current leg: one size with one algorithm.
#[derive(Debug)]
struct Current {
    prepared: Arc<Prepared>,
    reference: Reference,
    /// Expected time of a run in nanoseconds, if the algorithm was chosen.
    estimate_ns: Option<f64>,
    /// Number of completed runs of this leg.
    runs: u32,
    measured_ns: u64,
    /// Begin of the first run and end of the last one.
    span: Option<(Instant, Instant)>,
    /// Times of the first measured runs in nanoseconds.
    times_ns: Vec<u64>,
    wrong: u64,
    /// State of the re-choice, if the job re-chooses.
    adaptation: Option<Adaptation>,
    /// This rank's median of an epoch that has ended, until the ranks have agreed.
    figure_ns: Option<u64>,
    /// Results of trials.
    rechoices: Vec<Rechoice>,
}

/// One rank's progress through all sizes.
struct Performance {
    settings: CollectiveSettings,
    given: Given,
    /// Number of the rank, or of a unit in a switch behind the ranks.
    rank: usize,
    /// Number of ranks. Units do not count.
    ranks: usize,
    memory_plan: Arc<MemoryPlan>,
    stage: Stage,
    blocks: Blocks,
    /// Number of legs that have begun. A leg is one size with one algorithm. The algorithms of one size follow each
    /// other.
    begun_legs: usize,
    current: Option<Current>,
    runs: u64,
    fabric: Option<Measured>,
    trials: Option<Trials>,
    exchange: Option<Exchange>,
    tried: Option<Tried>,
    findings: Findings,
    rows: Vec<SweepRow>,
    phases: Vec<PhaseSpan>,
    notes: Vec<String>,
    checkpoints: Checkpoints,
    /// The memory keeps no payload.
    is_elided: bool,
    /// Fingerprints of the current run, if the memory keeps no payload.
    symbols: Option<Symbols>,
}

impl Performance {
    fn new(
        rank: usize,
        ranks: &[Rank],
        settings: CollectiveSettings,
        checkpoints: Checkpoints,
    ) -> Result<Self, CollectiveError> {
        if ranks.iter().any(|other| other.tenant != ranks[0].tenant) {
            return Err(CollectiveError::SeveralTenants);
        }
        if settings.adapts && !settings.algorithms.is_empty() {
            return Err(CollectiveError::AdaptsNamed);
        }
        let rank_count = settings.ranks_of(ranks.len());
        let memory_plan = settings.common().memory_plan(&settings, rank_count)?;
        check_arrays(&settings, rank_count)?;
        let given = Given {
            inputs: settings.inputs.clone(),
            members: settings.members.clone(),
            seed: settings.seed,
            element: settings.element,
            operation: settings.operation,
        };
        let stage = match &checkpoints.resume {
            Some(_) => Stage::Restore(Cursor::new(&memory_plan.needs[rank])),
            None => Stage::Fill { done: 0 },
        };
        Ok(Self {
            given,
            rank,
            ranks: rank_count,
            memory_plan,
            stage,
            blocks: Blocks::new(settings.operation, settings.element),
            begun_legs: 0,
            current: None,
            runs: 0,
            fabric: None,
            trials: None,
            exchange: None,
            tried: None,
            findings: Findings::default(),
            rows: Vec::new(),
            phases: Vec::new(),
            notes: Vec::new(),
            checkpoints,
            is_elided: false,
            symbols: None,
            settings,
        })
    }

    /// Returns true for a unit in a switch.
    const fn is_unit(&self) -> bool {
        self.rank >= self.ranks
    }

    /// Returns the number of legs per size: one for each named algorithm, or one if the algorithm is chosen.
    fn legs_per_size(&self) -> usize {
        self.settings.algorithms.len().max(1)
    }

    fn runs_per_leg(&self) -> u32 {
        self.settings.repetitions.max(1) + self.settings.warm_up
    }

    fn is_chosen(&self) -> bool {
        memory_plan::is_chosen(&self.settings, self.ranks)
    }

    /// Continues the current stage. Returns `None` if the stage has changed.
    fn step(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        match &mut self.stage {
            Stage::Restore(_) => return self.restore(poll),
            Stage::Fill { .. } => return self.fill(poll),
            Stage::BeforeProbe
            | Stage::BeforeTrial
            | Stage::BeforeSpread
            | Stage::BeforeAgreed
            | Stage::BeforeRun
            | Stage::BeforeSave => return Ok(Some(Step::Meet)),
            Stage::CheckTrial { .. } => return self.check_trial(poll),
            Stage::Trial(_) => return self.try_on(poll),
            Stage::Publish | Stage::Spread | Stage::Agreed => return self.agree(poll),
            Stage::Probe(probe) => {
                let measured = match probe.advance(poll, &mut self.blocks)? {
                    Probed::Waiting => return Ok(Some(Step::Waiting)),
                    Probed::Again => return Ok(Some(Step::Again)),
                    Probed::Agreed(measured) => measured,
                };
                self.fabric = Some(measured);
                self.note_fabric(poll.job_group, measured);
                self.begin_trials(measured)?;
            }
            Stage::NextLeg => self.begin_leg()?,
            Stage::Spoil { .. } => return self.spoil(poll),
            Stage::Run(_) => return self.run(poll),
            Stage::Check(_) => return self.check(poll),
            Stage::Save(_) => return self.save(poll),
            Stage::Failed(reason) => return Err(std::mem::take(reason)),
            Stage::Over => return Ok(Some(Step::Done)),
        }
        Ok(None)
    }

    fn fill(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let Stage::Fill { done } = &mut self.stage else { return Ok(None) };
        if symbols::are_needed(poll.memory) {
            return self.fill_none();
        }
        let total = self.memory_plan.needs[self.rank].input_bytes as usize;
        let end = total.min(*done + POLL_BYTES_MAX);
        while *done < end {
            let block = &mut self.blocks.left[..BLOCK_BYTES.min(end - *done)];
            self.given.read(self.rank, *done as u64, block)?;
            write(poll.memory, INPUT, *done, block)?;
            *done += block.len();
        }
        if *done < total {
            return Ok(Some(Step::Again));
        }
        self.stage = if self.is_chosen() { Stage::BeforeProbe } else { Stage::NextLeg };
        Ok(None)
    }

    /// Begins a job on memory that keeps no payload: there is no input to write.
    fn fill_none(&mut self) -> Result<Option<Step>, String> {
        if !matches!(self.settings.inputs, Inputs::Pattern) || self.checkpoints.save.is_some() {
            return Err("`payload` is elided, so there are no arrays and no snapshots".to_owned());
        }
        self.is_elided = true;
        self.notes.push(elided::note(symbols::CHECKS));
        self.stage = if self.is_chosen() { Stage::BeforeProbe } else { Stage::NextLeg };
        Ok(None)
    }

    fn note_fabric(&mut self, job_group: &JobGroup, measured: Measured) {
        let Measured { alpha_ns, ns_per_byte, reduce_ns_per_byte } = measured;
        self.notes.push(format!(
            "between {} and {}: alpha {:.2} us, beta {ns_per_byte:.4} ns per byte, and gamma {reduce_ns_per_byte:.4} ns \
             per byte to reduce (measured, and used to choose)",
            job_group.name(0),
            job_group.name(probe::partner(&self.settings.servers)),
            alpha_ns / 1000.0
        ));
    }

    fn begin_leg(&mut self) -> Result<(), String> {
        let (size, slot) = (self.begun_legs / self.legs_per_size(), self.begun_legs % self.legs_per_size());
        let Some(&elements) = self.settings.sizes.get(size) else {
            self.stage = Stage::Over;
            return Ok(());
        };
        self.begun_legs += 1;
        let (algorithm, estimate_ns) = self.algorithm_for(elements, slot)?;
        let adaptation = self.adaptation(elements)?;
        if self.settings.adapts && adaptation.is_none() {
            self.notes.push(format!("only {algorithm} is suitable, so it is not chosen again"));
        }
        let prepared = self.settings.common().schedule(&self.settings, self.ranks, algorithm, elements)?;
        self.current = Some(Current {
            prepared,
            reference: Reference::default(),
            estimate_ns,
            runs: 0,
            measured_ns: 0,
            span: None,
            times_ns: Vec::new(),
            wrong: 0,
            adaptation,
            figure_ns: None,
            rechoices: Vec::new(),
        });
        self.stage = Stage::Spoil { done: 0 };
        Ok(())
    }

    /// Returns the algorithm with this index, or the one with the lowest estimated time among those that fit, with the
    /// estimate in nanoseconds.
    fn algorithm_for(&mut self, elements: usize, slot: usize) -> Result<(Algorithm, Option<f64>), String> {
        let Some(measured) = self.fabric else { return Ok((self.memory_plan.algorithms[slot], None)) };
        let choice = self.choice(measured, elements)?;
        let request = memory_plan::request(&self.settings, self.ranks, elements);
        let element_bytes = self.settings.element.bytes();
        let fitting = choice.estimates.iter().find(|estimate| self.fits(estimate.algorithm));
        let taken = fitting.map_or(choice.algorithm, |estimate| estimate.algorithm);
        let what = format!("{} of {} bytes", request.collective, elements * element_bytes);
        self.notes.push(if taken == choice.algorithm {
            format!("{what}: {choice}")
        } else {
            format!("{what}: {taken}, because the memory is too small for the fastest: {choice}")
        });
        Ok((taken, fitting.map(|estimate| estimate.time_ns)))
    }

    fn spoil(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let Stage::Spoil { done } = &mut self.stage else { return Ok(None) };
        if self.is_elided {
            return self.begin_symbols(poll);
        }
        let trial = self.trials.as_ref().and_then(Trials::schedule);
        let Some(schedule) =
            trial.or_else(|| self.current.as_ref().map(|current| &current.prepared.schedule))
        else {
            return Ok(None);
        };
        let total = schedule.program(self.rank).output * self.settings.element.bytes();
        let end = total.min(*done + POLL_BYTES_MAX);
        self.blocks.left.fill(SPOILED ^ self.runs as u8);
        while *done < end {
            let block = &self.blocks.left[..BLOCK_BYTES.min(end - *done)];
            write(poll.memory, OUTPUT, *done, block)?;
            *done += block.len();
        }
        if *done < total {
            return Ok(Some(Step::Again));
        }
        self.stage = if trial.is_some() { Stage::BeforeTrial } else { Stage::BeforeRun };
        Ok(None)
    }

    /// Sets the fingerprints of the input for the next run.
    fn begin_symbols(&mut self, poll: &Poll<'_>) -> Result<Option<Step>, String> {
        let (number, next) = match &self.trials {
            Some(trials) => (trials.number(), Stage::BeforeTrial),
            None => (self.run_number(self.runs + 1), Stage::BeforeRun),
        };
        let prepared = self.prepared().ok_or("a run without a schedule begins")?;
        let program = prepared.schedule.program(self.rank);
        self.symbols = Some(Symbols::new(poll.memory, program, &self.given, self.rank, number));
        self.stage = next;
        Ok(None)
    }

    /// Returns the schedule of the current trial or run.
    fn prepared(&self) -> Option<&Arc<Prepared>> {
        match &self.trials {
            Some(trials) => trials.prepared(),
            None => self.current.as_ref().map(|current| &current.prepared),
        }
    }

    /// Returns the number of a run of the sizes, as its signals have it.
    fn run_number(&self, run: u64) -> u64 {
        self.tried.as_ref().map_or(0, |tried| tried.runs) + run
    }

    fn run(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let (Stage::Run(run), Some(current)) = (&mut self.stage, &mut self.current) else { return Ok(None) };
        let (prepared, element, blocks) = (&current.prepared, self.settings.element, &mut self.blocks);
        let state = match &mut self.symbols {
            Some(symbols) => run.advance_with(symbols, poll, prepared, element, blocks),
            None => run.advance(poll, &prepared.schedule, element, blocks),
        };
        match state {
            RunState::Waiting => return Ok(Some(Step::Waiting)),
            RunState::Again => return Ok(Some(Step::Again)),
            RunState::Failed(fault) => return Err(fault.0),
            RunState::Through => {}
        }
        let time_ns = poll.now.since(run.begun);
        current.span = Some((current.span.map_or(run.begun, |(begun, _)| begun), poll.now));
        current.record(time_ns);
        if current.runs >= self.settings.warm_up {
            current.measured_ns += time_ns;
            if current.times_ns.len() < TIMES_MAX {
                current.times_ns.push(time_ns);
            }
        }
        current.runs += 1;
        self.stage = Stage::Check(Check::new(self.rank));
        Ok(None)
    }

    fn check(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let (Stage::Check(check), Some(current)) = (&mut self.stage, &mut self.current) else {
            return Ok(None);
        };
        let is_over = match self.symbols.take() {
            Some(symbols) => {
                symbols.check(poll.memory, &current.prepared, &self.given, self.rank).map(|()| true)?
            }
            None => check.advance(
                poll.memory,
                &current.prepared,
                &self.given,
                &mut current.reference,
                &mut self.findings,
                &mut self.blocks,
            )?,
        };
        if !is_over {
            return Ok(Some(Step::Again));
        }
        current.wrong += check.wrong;
        if self.is_leg_over() {
            self.end_leg();
        }
        let is_due = self
            .checkpoints
            .save
            .as_ref()
            .is_some_and(|(every, _)| self.runs.is_multiple_of(u64::from(*every)));
        if is_due {
            self.stage = Stage::BeforeSave;
        } else {
            self.go_on();
        }
        Ok(None)
    }

    fn is_leg_over(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.runs >= self.runs_per_leg())
    }

    /// Goes on to the next run, to an agreement on times, or to the next leg.
    fn go_on(&mut self) {
        if self.is_leg_over() {
            self.stage = Stage::NextLeg;
        } else if !self.begin_agreement() {
            self.stage = Stage::Spoil { done: 0 };
        }
    }

    fn save(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let Stage::Save(cursor) = &mut self.stage else { return Ok(None) };
        let Some((_, sink)) = &mut self.checkpoints.save else { return Ok(None) };
        if !cursor.save(poll.memory, &mut **sink, &mut self.blocks.left)? {
            return Ok(Some(Step::Again));
        }
        sink.seal()?;
        self.go_on();
        Ok(None)
    }

    /// Begins to save. No rank's memory changes any more.
    fn begin_save(&mut self) {
        let cursor = Cursor::new(&self.memory_plan.needs[self.rank]);
        let head = Head { progress: self.progress(), regions: cursor.regions() };
        let begun = self.checkpoints.save.as_mut().map(|(_, sink)| sink.begin(&head));
        self.stage = match begun {
            Some(Err(reason)) => Stage::Failed(reason),
            _ => Stage::Save(cursor),
        };
    }

    fn progress(&self) -> Progress {
        let current = self.current.as_ref();
        Progress {
            runs: self.runs,
            leg: self.begun_legs,
            runs_of_leg: current.map_or(0, |current| current.runs),
            measured_ns: current.map_or(0, |current| current.measured_ns),
            times_ns: current.map_or_else(Vec::new, |current| current.times_ns.clone()),
            wrong: current.map_or(0, |current| current.wrong),
            verified_bytes: self.findings.verified_bytes,
            fabric: self.fabric,
            tried: self.tried.clone(),
            rows: self.rows.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Restores a snapshot, then continues at the rank's saved position.
    fn restore(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let Stage::Restore(cursor) = &mut self.stage else { return Ok(None) };
        let Some(saved) = &mut self.checkpoints.resume else { return Ok(None) };
        if saved.head().regions != Cursor::new(&self.memory_plan.needs[self.rank]).regions() {
            return Err("the snapshot is of buffers of other sizes".to_owned());
        }
        if !cursor.restore(poll.memory, &mut **saved, &mut self.blocks.left)? {
            return Ok(Some(Step::Again));
        }
        let progress = saved.head().progress.clone();
        self.checkpoints.resume = None;
        (self.runs, self.fabric, self.rows) = (progress.runs, progress.fabric, progress.rows);
        self.tried = progress.tried;
        self.begun_legs = progress.leg.saturating_sub(1);
        self.begin_leg()?;
        let current = self
            .current
            .as_mut()
            .ok_or("the snapshot is of a size or an algorithm that the job does not have")?;
        (current.runs, current.measured_ns, current.wrong) =
            (progress.runs_of_leg, progress.measured_ns, progress.wrong);
        current.times_ns = progress.times_ns;
        self.findings.verified_bytes = progress.verified_bytes;
        self.notes = progress.notes;
        self.notes.push(format!("taken up after {} runs", progress.runs));
        self.go_on();
        Ok(None)
    }

    fn end_leg(&mut self) {
        let Some(current) = &self.current else { return };
        let schedule = &current.prepared.schedule;
        let repetitions = self.settings.repetitions.max(1);
        let collective = schedule.collective;
        let op = if collective.reduces() { self.settings.operation.name() } else { "none" };
        let moves_data = collective.bus_factor(self.ranks).is_some();
        let element = if moves_data { self.settings.element.name() } else { "none" };
        if let Some((began, ended)) = current.span {
            let bytes = schedule.elements * self.settings.element.bytes();
            let name = format!("{collective} {} {bytes} B", schedule.algorithm);
            self.phases.push(PhaseSpan { name, began_ns: began.0, ended_ns: ended.0 });
        }
        let row = SweepRow {
            what: collective.to_string(),
            algorithm: schedule.algorithm.to_string(),
            size_bytes: (schedule.elements * self.settings.element.bytes()) as u64,
            count: schedule.elements as u64,
            element: element.to_owned(),
            op: op.to_owned(),
            repetitions,
            wrong: current.wrong,
            time_min_us: quantile_us(&current.times_ns, 0.0),
            time_p50_us: median_us(&current.times_ns),
            time_p99_us: quantile_us(&current.times_ns, 0.99),
            estimate_us: current.estimate_ns.map(|estimate_ns| estimate_ns / 1000.0),
            rechoices: current.rechoices.clone(),
            ..SweepRow::default()
        };
        let time_ns = current.measured_ns as f64 / f64::from(repetitions);
        let row = row.timed(time_ns, collective.bus_factor(self.ranks));
        self.rows.push(row.compared_with(self.settings.link_bits_per_s));
    }
}

/// Returns the median in microseconds; `None` if there are no times.
fn median_us(times_ns: &[u64]) -> Option<f64> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map(|time_ns| *time_ns as f64 / 1000.0)
}

/// Returns the quantile by nearest rank in microseconds. `None` if there are no times.
fn quantile_us(times_ns: &[u64], share: f64) -> Option<f64> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    nearest_rank(&sorted, share).map(|time_ns| time_ns as f64 / 1000.0)
}

/// Checks that arrays of the user have the length that the collective needs. The array of a rank that gives nothing is
/// not checked.
fn check_arrays(settings: &CollectiveSettings, ranks: usize) -> Result<(), CollectiveError> {
    let Inputs::Arrays(arrays) = &settings.inputs else { return Ok(()) };
    let whose = |rank: usize| settings.members.get(rank).map_or(rank, |member| usize::from(*member));
    for &elements in &settings.sizes {
        for rank in 0..ranks {
            let expected =
                settings.collective.input_elements(rank, ranks, elements) * settings.element.bytes();
            let (expected, found) = (expected as u64, arrays.bytes(whose(rank)));
            if expected > 0 && found != expected {
                let collective = settings.collective.name();
                return Err(CollectiveError::InputLength { rank, found, expected, collective });
            }
        }
    }
    Ok(())
}

impl Play for Performance {
    fn reached(&self) -> Option<JobPosition> {
        let step = match &self.stage {
            Stage::Run(run) => run.step() as u64 + 1,
            // A rank that checks a run has completed its steps.
            Stage::Check(_) => u64::MAX,
            _ => return None,
        };
        Some(JobPosition { run: self.runs, step })
    }

    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        self.memory_plan.needs[self.rank].regions(job_group, self.is_chosen())
    }

    fn word_regions(&self) -> Vec<RegionId> {
        vec![SIGNALS]
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

    fn met(&mut self, now: Instant) {
        match self.stage {
            Stage::BeforeProbe => {
                let how = run::known(self.settings.operation, self.settings.element);
                let partner = probe::partner(&self.settings.servers);
                self.stage = Stage::Probe(Probe::new(partner, how));
            }
            Stage::BeforeTrial => self.begin_trial(now),
            Stage::BeforeSpread => self.stage = Stage::Spread,
            Stage::BeforeAgreed => self.stage = Stage::Agreed,
            Stage::BeforeSave => self.begin_save(),
            Stage::BeforeRun => {
                self.runs += 1;
                self.stage = Stage::Run(Run::new(self.rank, self.run_number(self.runs), now));
            }
            _ => {}
        }
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, value: u64) -> Result<(), String> {
        match &mut self.stage {
            Stage::Probe(probe) => probe.succeeded(poll.now, outcome),
            Stage::Run(run) | Stage::Trial(run) if outcome.kind == OperationKind::WaitUntil => {
                let prepared = match &self.trials {
                    Some(trials) => trials.prepared(),
                    None => self.current.as_ref().map(|current| &current.prepared),
                };
                if let (Some(symbols), Some(prepared)) = (&mut self.symbols, prepared)
                    && let Some(id) = run.awaited(&prepared.schedule)
                {
                    symbols.receive(poll.memory, prepared, id, self.settings.element.bytes());
                }
                return run.arrived(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn position(&self, job_group: &JobGroup) -> String {
        let position = match (&self.stage, &self.current) {
            (Stage::Restore(_), _) => return "taking up what was saved".to_owned(),
            (Stage::Fill { .. }, _) => return "writing the input".to_owned(),
            (Stage::BeforeProbe, _) => return "measuring the fabric".to_owned(),
            (Stage::Probe(probe), _) => return probe.position(),
            (
                Stage::BeforeTrial
                | Stage::Trial(_)
                | Stage::CheckTrial { .. }
                | Stage::Publish
                | Stage::BeforeSpread
                | Stage::Spread
                | Stage::BeforeAgreed
                | Stage::Agreed,
                _,
            ) => {
                return self.trials.as_ref().map_or_else(|| "trying algorithms".to_owned(), Trials::position);
            }
            (Stage::NextLeg | Stage::Over | Stage::Failed(_), _) | (_, None) => {
                return "the last size".to_owned();
            }
            (Stage::Run(run), Some(current)) => {
                let steps = current.prepared.schedule.program(self.rank).steps.len();
                let waits = run.waits_for(&current.prepared.schedule);
                let waits = waits.map_or_else(String::new, |rank| {
                    format!(", waiting for the data of {}", job_group.name(rank as u16))
                });
                format!("step {} of {steps}{waits}", steps.min(run.step() + 1))
            }
            (Stage::Check(_), _) => "checking the result".to_owned(),
            (Stage::BeforeSave | Stage::Save(_), _) => "saving".to_owned(),
            (Stage::Spoil { .. } | Stage::BeforeRun, _) => "starting".to_owned(),
        };
        let Some(current) = &self.current else { return position };
        let schedule = &current.prepared.schedule;
        let bytes = schedule.elements * self.settings.element.bytes();
        let (run, runs) = (self.runs_per_leg().min(current.runs + 1), self.runs_per_leg());
        format!(
            "{} of {bytes} bytes by {}, run {run} of {runs}, {position}",
            schedule.collective, schedule.algorithm
        )
    }

    fn contribute(&self, result: &mut JobResult) {
        result.verified_bytes += self.findings.verified_bytes;
        result.mismatches.extend(self.findings.mismatches.iter().cloned());
        result.mismatch_count += self.findings.mismatch_count;
        // A unit serves the runs of the ranks, and has no times of its own.
        if !self.is_unit() {
            result.sweep.extend(self.rows.iter().cloned());
            result.phases.extend(self.phases.iter().cloned());
            result.notes.extend(self.notes.iter().cloned());
        }
    }

    fn output(&self) -> Option<Output> {
        let current = self
            .current
            .as_ref()
            .filter(|current| current.wrong == 0 && !self.is_elided && !self.is_unit())?;
        let elements = current.prepared.schedule.program(self.rank).output as u64;
        Some(Output { region: OUTPUT, element: self.settings.element, elements })
    }

    /// Returns the progress in runs, with those of the warm-up, and in steps of the current run.
    fn portion(&self) -> Portion {
        let runs = u64::from(self.runs_per_leg());
        let before = self.begun_legs.saturating_sub(1) as u64 * runs;
        let done = before + self.current.as_ref().map_or(0, |current| u64::from(current.runs));
        let portion = Portion::new(done, (self.settings.sizes.len() * self.legs_per_size()) as u64 * runs);
        match (&self.stage, &self.current) {
            (Stage::Run(run), Some(current)) => {
                let steps = current.prepared.schedule.program(self.rank).steps.len();
                portion.with_parts(run.step() as u64, steps as u64)
            }
            _ => portion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times_ns: Vec<u64> = (1..=200).rev().map(|time| time * 1000).collect();
        assert_eq!(quantile_us(&times_ns, 0.0), Some(1.0));
        assert_eq!(quantile_us(&times_ns, 0.99), Some(198.0), "two of 200 are longer");
        assert_eq!(quantile_us(&times_ns[..20], 0.99), Some(200.0), "of few, the longest");
        assert_eq!(quantile_us(&[], 0.99), None);
    }
}
