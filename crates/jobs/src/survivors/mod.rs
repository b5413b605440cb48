//! A job that goes on with those who are left: when ranks are lost, the others agree who still reaches whom, and each part does the job again
//! among itself.
//!
//! The job inside knows nothing of it. It breaks off as ever, with an error that names whom it lost; then this rank says to all others
//! whom it can reach ([`agreement`]), and once all of a group have said the same, the job is built anew for that group and played in a
//! room of its own ([`place`]). Whoever has come to the job's end already says so and is left out. After [`ROOMS`] groups, or when nobody
//! agrees in time, the job ends as it would without all this. `docs/decisions/shrink.md` says why.
//!
//! What is agreed upon lies in words of a region of its own, one slot per rank: the number of the proposal, its members, its room.

mod agreement;
mod place;

use std::collections::BTreeMap;

use rackloom_plan::faults::Place as Reached;
use rackloom_protocol::{
    Access, Command, Event, Instant, LocalRange, Memory, NodeId, OperationError, OperationId, RegionConfig,
    RegionId, Signal, SignalKind,
};

use self::agreement::{Agreement, Look, Proposal, bit, ranks};
use self::place::{InRoom, OnPlace, Place};
use crate::crew::Crew;
use crate::job::{Job, Output, Portion, Progress, Seat};
use crate::measure::Measurements;
use crate::oracle::Verdicts;
use crate::report::JobResult;

/// Groups that may be formed one after the other; each takes the memory of the job once more.
pub(crate) const ROOMS: u64 = 3;
/// Sets of ranks are bits of one word.
pub(crate) const RANKS_MAX: usize = 64;
/// Where proposals lie; a job's own regions have smaller numbers.
const SLOTS: RegionId = RegionId(15);
/// Number, members, room.
const SLOT_BYTES: u64 = 24;
/// Behind the slots: what is being sent, which must stay as it is until it has come. So many proposals may be under way.
const STAGES: u64 = 16;
const STAGE_BYTES: u64 = 16;
/// Names of what is sent about groups: beyond those of all rooms.
const FIRST_WORD: u64 = 1 << 62;
/// How often it is looked what others say and whom they reach.
const LOOK_INTERVAL_NS: u64 = 1_000_000;

/// Builds the job of one rank of a group: its members, by rank of the group, and which of them this one is.
pub(crate) type Build = Box<dyn Fn(&[u16], NodeId) -> Result<Box<dyn Job>, String> + Send>;

/// Where a rank is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Playing,
    Agreeing { until: Instant },
    Over,
}

/// One rank.
pub(crate) struct Survivors {
    crew: Crew,
    build: Build,
    /// What a group's job needs beside the whole rack's, in its own numbers.
    regions: Vec<RegionConfig>,
    patience_ns: u64,
    job: Box<dyn Job>,
    place: Place,
    stage: Stage,
    agreement: Agreement,
    /// Members that have not been told the proposal.
    untold: u64,
    /// What is under way to whom, and of which proposal.
    words: BTreeMap<u64, (u16, u64)>,
    next_word: u64,
    look_due: Instant,
    /// Of those who are lost, whom the job has heard of.
    missed: u64,
    /// Who cannot be told anything: its memory refuses it, or it has begun a new life, which knows nothing of the job.
    deaf: u64,
    /// What earlier groups have left.
    earlier: Earlier,
}

/// What was done before the last group was formed.
#[derive(Default)]
struct Earlier {
    operations: Measurements,
    oracles: Verdicts,
    verified_bytes: u64,
    notes: Vec<String>,
    steps: u64,
}

impl Survivors {
    /// `job` is the whole rack's. `regions`: what the job of any group takes, by its own numbers. `patience_ns`: how long ranks may take to agree.
    pub(crate) fn new(
        crew: Crew,
        regions: Vec<RegionConfig>,
        patience_ns: u64,
        build: Build,
        job: Box<dyn Job>,
    ) -> Self {
        let members: Vec<_> = (0..crew.ranks.len() as u16).collect();
        let agreement = Agreement::begin(crew.rank, Proposal::default());
        Self {
            crew,
            build,
            regions,
            patience_ns,
            job,
            place: Place { room: 0, members },
            stage: Stage::Playing,
            agreement,
            untold: 0,
            words: BTreeMap::new(),
            next_word: FIRST_WORD,
            look_due: Instant::ZERO,
            missed: 0,
            deaf: 0,
            earlier: Earlier::default(),
        }
    }

    fn all(&self) -> u64 {
        (0..self.crew.ranks.len() as u16).map(bit).fold(0, |all, one| all | one)
    }

    fn reachable(&self, seat: &dyn Seat) -> u64 {
        let reachable = self.crew.others().filter(|rank| seat.is_reachable(NodeId(*rank)));
        reachable.fold(0, |all, rank| all | bit(rank)) & !self.deaf
    }

    /// What each rank has said last.
    fn heard(&self, memory: &mut dyn Memory) -> Vec<Proposal> {
        let slot = |rank: u64| {
            let mut word = |number: u64| {
                let mut bytes = [0; 8];
                // A region that is gone says nothing.
                let _ = memory.read(SLOTS, rank * SLOT_BYTES + 8 * number, &mut bytes);
                u64::from_le_bytes(bytes)
            };
            Proposal { number: word(0), members: word(1), room: word(2) }
        };
        (0..self.crew.ranks.len() as u64).map(slot).collect()
    }

    /// The job's turn; and whether it must break off, because somebody of the group is gone or forms another one.
    fn play(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn Memory) -> Progress {
        if now >= self.look_due {
            self.look_due = now + LOOK_INTERVAL_NS;
            self.watch(now, seat, memory);
        }
        let Self { job, place, crew, .. } = self;
        let mut room = InRoom { place: &*place, memory: &mut *memory };
        match job.advance(now, &mut OnPlace { place, crew, seat }, &mut room) {
            Progress::Running(wake_at) => {
                Progress::Running(Some(wake_at.map_or(self.look_due, |at| at.min(self.look_due))))
            }
            Progress::Finished => self.end_of_job(now),
        }
    }

    fn watch(&mut self, now: Instant, seat: &dyn Seat, memory: &mut dyn Memory) {
        let heard = self.heard(memory);
        let (own, number) = (bit(self.crew.rank), self.agreement.proposal.number);
        let reachable = self.reachable(seat);
        let members = ranks(ranks_of(&self.place.members) & !own);
        for rank in members {
            let said = heard[usize::from(rank)];
            // Who is through with its part says so to whoever asks, and has not left those who are nearly through.
            let forms_another = said.members & own != 0 || self.place.room > 0;
            let has_left = said.number > number && said.members != 0 && forms_another;
            // Before the first group, who cannot be reached yet may still come.
            let is_gone = self.place.room > 0 && reachable & bit(rank) == 0;
            if (has_left || is_gone) && self.missed & bit(rank) == 0 {
                self.miss(now, rank);
            }
        }
    }

    /// The job is told that a member is lost to it.
    fn miss(&mut self, now: Instant, rank: u16) {
        self.missed |= bit(rank);
        if let Some(node) = self.place.rank_of(NodeId(rank)) {
            self.job.handle_event(now, &Event::NodeLost { node });
        }
    }

    /// The job has ended in one way or another.
    fn end_of_job(&mut self, now: Instant) -> Progress {
        let result = self.job.result();
        let is_clean = result.failures.is_empty() && result.refusals.is_empty() && result.mismatch_count == 0;
        if result.complete || !is_clean || self.place.room >= ROOMS {
            self.stage = Stage::Over;
            return Progress::Finished;
        }
        let Proposal { number, .. } = self.agreement.proposal;
        let members = ranks_of(&self.place.members);
        let proposal = Proposal { number: number + 1, members, room: self.place.room + 1 };
        self.agreement = Agreement::begin(self.crew.rank, proposal);
        self.untold = self.others_of_the_proposal();
        self.stage = Stage::Agreeing { until: now + self.patience_ns };
        Progress::Running(Some(now))
    }

    fn others_of_the_proposal(&self) -> u64 {
        self.agreement.proposal.members & !bit(self.crew.rank)
    }

    fn agree(
        &mut self,
        now: Instant,
        until: Instant,
        seat: &mut dyn Seat,
        memory: &mut dyn Memory,
    ) -> Result<Progress, String> {
        let heard = self.heard(memory);
        let reachable = self.reachable(seat);
        match self.agreement.look(reachable, |rank| heard[usize::from(rank)]) {
            Look::Agreed if self.agreement.proposal.room > ROOMS => {
                self.stage = Stage::Over;
                return Ok(Progress::Finished);
            }
            Look::Agreed => {
                self.form()?;
                return Ok(Progress::Running(Some(now)));
            }
            Look::Changed => self.untold = self.others_of_the_proposal(),
            Look::Waiting => {}
        }
        self.tell(now, seat, memory)?;
        if now >= until {
            self.stage = Stage::Over;
            self.earlier.notes.push("those who are left could not agree who goes on".to_owned());
            return Ok(Progress::Finished);
        }
        Ok(Progress::Running(Some(until.min(now + LOOK_INTERVAL_NS))))
    }

    /// Say the proposal to those who have not been told.
    fn tell(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn Memory) -> Result<(), String> {
        let Proposal { number, members, room } = self.agreement.proposal;
        let stage = self.crew.ranks.len() as u64 * SLOT_BYTES + number % STAGES * STAGE_BYTES;
        if self.untold != 0 {
            let bytes: Vec<u8> = [members, room].into_iter().flat_map(u64::to_le_bytes).collect();
            memory
                .write(SLOTS, stage, &bytes)
                .map_err(|fault| format!("own memory cannot be written: {fault:?}"))?;
        }
        for rank in ranks(self.untold) {
            let slot = self.crew.address(rank, SLOTS, u64::from(self.crew.rank) * SLOT_BYTES);
            let target = rackloom_protocol::RemoteAddress { offset: slot.offset + 8, ..slot };
            let source = LocalRange { region: SLOTS, offset: stage, length: STAGE_BYTES };
            let signal = Signal {
                region: SLOTS,
                offset: slot.offset,
                key: slot.key,
                kind: SignalKind::Set,
                value: number,
            };
            let operation = OperationId(self.next_word);
            let put = Command::Put { operation, target, source, signal: Some(signal) };
            // Who cannot be told now is told at the next look, or dropped.
            if seat.command(now, put).is_ok() {
                self.words.insert(self.next_word, (rank, number));
                self.next_word += 1;
                self.untold &= !bit(rank);
            }
        }
        Ok(())
    }

    /// All have said the same: the job begins anew among them.
    fn form(&mut self) -> Result<(), String> {
        let Proposal { members, room, .. } = self.agreement.proposal;
        let members: Vec<_> = ranks(members).collect();
        let own = members.iter().position(|rank| *rank == self.crew.rank).unwrap_or(0);
        let job = (self.build)(&members, NodeId(own as u16))?;
        let result = self.job.result();
        self.earlier.steps += self.job.progress_count();
        self.earlier.operations.merge(&result.operations);
        self.earlier.oracles.merge(&result.oracles);
        self.earlier.verified_bytes += result.verified_bytes;
        self.earlier.notes.extend(result.notes);
        self.place = Place { room, members };
        let note = format!("the job was done again by {}", self.names().join(", "));
        self.earlier.notes.push(note);
        (self.job, self.stage, self.missed) = (job, Stage::Playing, 0);
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.place.members.iter().map(|rank| self.crew.name(*rank).to_owned()).collect()
    }

    /// This rank is at its end: whoever asks it to go on with others is told that it does not.
    fn answer(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn Memory) {
        let heard = self.heard(memory);
        let newest = heard.iter().map(|said| said.number).max().unwrap_or(0);
        if newest > self.agreement.proposal.number {
            self.agreement.proposal = Proposal { number: newest, members: 0, room: 0 };
            self.untold = self.all() & !bit(self.crew.rank);
        }
        self.untold &= self.reachable(seat);
        // Memory that cannot be written any more tells nobody.
        let _ = self.tell(now, seat, memory);
    }

    /// A word to somebody has ended. Who has not got the present one is told again, as long as it is a member.
    fn told(&mut self, word: u64, result: Result<u64, OperationError>) {
        let Some((rank, number)) = self.words.remove(&word) else { return };
        let is_lost = matches!(result, Err(OperationError::Unreachable | OperationError::OutcomeUnknown));
        if result.is_err() && !is_lost {
            self.deaf |= bit(rank);
        }
        let is_member = self.agreement.proposal.members & bit(rank) != 0;
        if is_lost && is_member && number == self.agreement.proposal.number {
            self.untold |= bit(rank);
        }
    }
}

fn ranks_of(members: &[u16]) -> u64 {
    members.iter().fold(0, |all, rank| all | bit(*rank))
}

impl Job for Survivors {
    fn regions(&self) -> Vec<RegionConfig> {
        let mut regions = self.job.regions();
        let slots = self.crew.ranks.len() as u64 * SLOT_BYTES + STAGES * STAGE_BYTES;
        let write = Access { read: false, write: true, atomic: false };
        regions.push(self.crew.region(SLOTS, slots, write));
        for room in 1..=ROOMS {
            let place = Place { room, members: Vec::new() };
            let of_room = self
                .regions
                .iter()
                .map(|region| self.crew.region(place.region(region.region), region.length, region.access));
            regions.extend(of_room);
        }
        regions
    }

    fn handle_event(&mut self, now: Instant, event: &Event) {
        if let Event::NodeRestarted { node } = *event
            && node.index() < self.crew.ranks.len()
        {
            self.deaf |= bit(node.0);
        }
        let inner = match *event {
            Event::Completed { operation, result } if operation.0 >= FIRST_WORD => {
                return self.told(operation.0, result);
            }
            Event::Completed { operation, result } => {
                self.place.operation_of(operation).map(|operation| Event::Completed { operation, result })
            }
            Event::NodeLost { node } => self.place.rank_of(node).map(|node| Event::NodeLost { node }),
            Event::NodeRestarted { node } => {
                self.place.rank_of(node).map(|node| Event::NodeRestarted { node })
            }
            Event::NodeReached { node } => self.place.rank_of(node).map(|node| Event::NodeReached { node }),
            _ if self.place.room == 0 => Some(*event),
            _ => None,
        };
        if let Some(event) = inner {
            self.job.handle_event(now, &event);
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn Memory) -> Progress {
        match self.stage {
            Stage::Playing => self.play(now, seat, memory),
            Stage::Agreeing { until } => match self.agree(now, until, seat, memory) {
                Ok(progress) => progress,
                Err(why) => {
                    self.earlier.notes.push(why);
                    self.stage = Stage::Over;
                    Progress::Finished
                }
            },
            Stage::Over => {
                self.answer(now, seat, memory);
                let Self { job, place, crew, .. } = self;
                if job.has_last_words() {
                    let mut room = InRoom { place: &*place, memory };
                    let _ = job.advance(now, &mut OnPlace { place, crew, seat }, &mut room);
                }
                Progress::Finished
            }
        }
    }

    fn waiting_for(&self) -> String {
        match self.stage {
            Stage::Agreeing { .. } => {
                let members =
                    ranks(self.agreement.proposal.members).map(|rank| self.crew.name(rank).to_owned());
                format!("an agreement who goes on, proposed are {}", members.collect::<Vec<_>>().join(", "))
            }
            _ => self.job.waiting_for(),
        }
    }

    fn result(&mut self) -> JobResult {
        let mut result = self.job.result();
        let Earlier { operations, oracles, verified_bytes, notes, .. } = &self.earlier;
        result.operations.merge(operations);
        result.oracles.merge(oracles);
        result.verified_bytes += verified_bytes;
        result.notes.splice(0..0, notes.iter().cloned());
        if self.place.room > 0 {
            result.group = self.names();
        }
        result
    }

    fn output(&self) -> Option<Output> {
        let output = self.job.output()?;
        Some(Output { region: self.place.region(output.region), ..output })
    }

    fn portion(&self) -> Option<Portion> {
        // What is done again has been done before; a portion never shrinks.
        if self.place.room == 0 { self.job.portion() } else { None }
    }

    fn reached(&self) -> Option<Reached> {
        self.job.reached()
    }

    fn has_last_words(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn progress_count(&self) -> u64 {
        self.earlier.steps + self.agreement.proposal.number + self.job.progress_count()
    }
}
