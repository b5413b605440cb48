//! Job that goes on after losses: the remaining ranks agree on groups, and each group repeats the job on its own.
//!
//! The inner job does not take part in this. It breaks off as usual, with an error that names the lost ranks. Then this
//! rank sends the ranks that it can reach to all others ([`agreement`]). Once all members of a group have published the
//! same proposal, the job is built again for that group and played in a memory area of its own ([`group_area`]). A rank that
//! has completed the job publishes that and is left out. After [`AREAS`] groups, or when there is no agreement in time,
//! the job ends as it would without this module. `docs/decisions/shrink.md` gives the reasons.
//!
//! Every wait has an end. A rank waits for others in two stages: while it plays and while it agrees. In both, it reads
//! the proposals of the others when it makes no progress ([`proposals`]). Each of them then either has published the same
//! proposal, or has published that it goes on, is through or has given up, or is lost to the endpoint, or refuses reads
//! for longer than refusals are retried. A rank that gives up publishes that, where others can read it, before it
//! stops.

mod agreement;
mod group_area;
mod proposals;

use rackloom_control::recorder::{OperationRecording, RecentOperations};
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{Event, Instant, JobMemory, NodeId, RegionConfig};

use self::agreement::{Agreement, Look, Proposal, Standing, bit, ranks};
use self::group_area::{GroupArea, GroupMemory, GroupSeat};
use self::proposals::{FIRST_PROPOSAL, Proposals};
use crate::job::{Job, Output, Portion, Progress, Seat};
use crate::measure::Measurements;
use crate::oracle::Verdicts;
use crate::ranks::JobGroup;
use crate::report::{JobResult, OperationSpan, PhaseSpan};

/// Maximum number of groups formed one after the other. Each needs the memory of the job once more.
pub(crate) const AREAS: u64 = 3;
/// Maximum number of ranks: a set of ranks is the bits of one word.
pub(crate) const RANKS_MAX: usize = 64;
/// Time between two checks of the others' proposals and of the reachable ranks, in nanoseconds.
const LOOK_INTERVAL_NS: u64 = 1_000_000;

/// Builds the job of one rank of a group, from the members and this rank's number within the group.
pub(crate) type Build = Box<dyn Fn(&[u16], NodeId) -> Result<Box<dyn Job>, String> + Send>;

/// Stage of a rank.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Playing,
    Agreeing { until: Instant },
    Over,
}

/// One rank of a job that goes on after losses.
pub(crate) struct Survivors {
    job_group: JobGroup,
    build: Build,
    /// Regions that a group's job needs in addition to those of the whole rack, with the group's own region numbers.
    regions: Vec<RegionConfig>,
    timeout_ns: u64,
    job: Box<dyn Job>,
    group: GroupArea,
    stage: Stage,
    agreement: Agreement,
    proposals: Proposals,
    look_due: Instant,
    /// Progress of the job, and the time since which it has been unchanged.
    stands_at: (u64, Instant),
    /// Members that this rank has reported to the job as lost.
    missed: u64,
    /// Newest number that this rank has answered since it ended.
    answered: u64,
    /// Recording of the operations of each group.
    recording: OperationRecording,
    /// Results of earlier groups.
    earlier: Earlier,
}

/// Results of the groups before the last one.
#[derive(Default)]
struct Earlier {
    operations: Measurements,
    oracles: Verdicts,
    verified_bytes: u64,
    notes: Vec<String>,
    spans: Vec<OperationSpan>,
    phases: Vec<PhaseSpan>,
    steps: u64,
}

impl Survivors {
    /// Returns the wrapper around `job`, the job of the whole rack. `regions` are the regions of any group's job, by
    /// its own numbers. `timeout_ns` is the time limit of an agreement, in nanoseconds.
    pub(crate) fn new(
        job_group: JobGroup,
        regions: Vec<RegionConfig>,
        timeout_ns: u64,
        build: Build,
        job: Box<dyn Job>,
    ) -> Self {
        let members: Vec<_> = (0..job_group.ranks.len() as u16).collect();
        let agreement = Agreement::begin(job_group.rank, Proposal::default());
        let proposals = Proposals::new(&job_group, timeout_ns);
        Self {
            job_group,
            build,
            regions,
            timeout_ns,
            job,
            group: GroupArea { area: 0, members },
            stage: Stage::Playing,
            agreement,
            proposals,
            look_due: Instant::ZERO,
            stands_at: (0, Instant::ZERO),
            missed: 0,
            answered: 0,
            recording: OperationRecording::default(),
            earlier: Earlier::default(),
        }
    }

    fn others(&self) -> u64 {
        self.job_group.others().fold(0, |all, rank| all | bit(rank))
    }

    fn reachable(&self, seat: &dyn Seat) -> u64 {
        let reachable = self.job_group.others().filter(|rank| seat.is_reachable(NodeId(*rank)));
        reachable.fold(0, |all, rank| all | bit(rank)) & !self.proposals.excluded()
    }

    /// Polls the job. The job must break off when a member of the group is lost or has begun to form another group.
    fn play(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        if now >= self.look_due {
            self.look_due = now + LOOK_INTERVAL_NS;
            self.watch(now, seat, memory);
        }
        let Self { job, group, job_group, .. } = self;
        let mut group_memory = GroupMemory { group: &*group, memory: &mut *memory };
        match job.advance(now, &mut GroupSeat { group, job_group, seat }, &mut group_memory) {
            Progress::Running(wake_at) => {
                Progress::Running(Some(wake_at.map_or(self.look_due, |at| at.min(self.look_due))))
            }
            Progress::Finished => self.end_of_job(now, seat, memory),
        }
    }

    fn watch(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) {
        self.proposals.receive(memory);
        let reachable = self.reachable(seat);
        self.proposals.send(now, reachable, &self.job_group, seat);
        let is_stuck = self.is_stuck(now);
        let members = ranks_of(&self.group.members) & !bit(self.job_group.rank);
        if is_stuck {
            self.proposals.read_from(now, members & reachable, &self.job_group, seat);
        }
        for rank in ranks(members & !self.missed) {
            // Before the first group, a rank that is not reachable yet may still come.
            let is_gone = reachable & bit(rank) == 0
                && (self.group.area > 0 || is_stuck && self.proposals.excluded() & bit(rank) != 0);
            if is_gone || self.has_left(rank, is_stuck) {
                self.miss(now, rank);
            }
        }
    }

    /// Returns whether the job has made no progress for so long that the others' proposals must be read. At the start
    /// it waits for processes to come.
    fn is_stuck(&mut self, now: Instant) -> bool {
        let steps = self.job.progress_count();
        if steps != self.stands_at.0 {
            self.stands_at = (steps, now);
        }
        steps > 0 && now.since(self.stands_at.1) >= self.proposals.read_interval_ns()
    }

    /// Returns whether a member has published that it no longer plays in the group.
    fn has_left(&self, rank: u16, is_stuck: bool) -> bool {
        let (latest, own) = (self.proposals.latest(rank), bit(self.job_group.rank));
        match latest.standing {
            Standing::Left => true,
            // If a rank is through with this group's job, the job can still complete at the others.
            Standing::Through => {
                (latest.members, latest.area) != (ranks_of(&self.group.members), self.group.area)
            }
            // A rank that goes on without this one may have left the group when this one was nearly through.
            Standing::Member => {
                let names_this = latest.members & own != 0 || self.group.area > 0 || is_stuck;
                latest.number > self.agreement.proposal.number && names_this
            }
        }
    }

    /// Reports a member to the job as lost.
    fn miss(&mut self, now: Instant, rank: u16) {
        self.missed |= bit(rank);
        if let Some(node) = self.group.rank_of(NodeId(rank)) {
            self.job.handle_event(now, &Event::NodeLost { node });
        }
    }

    /// Handles the end of the job, successful or not.
    fn end_of_job(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        let result = self.job.result();
        let is_clean = result.failures.is_empty() && result.refusals.is_empty() && result.mismatch_count == 0;
        if result.complete {
            return self.end(now, Standing::Through, seat, memory);
        }
        if !is_clean || self.group.area >= AREAS {
            return self.end(now, Standing::Left, seat, memory);
        }
        let Proposal { number, .. } = self.agreement.proposal;
        let members = ranks_of(&self.group.members);
        let proposal =
            Proposal { number: number + 1, members, area: self.group.area + 1, ..Proposal::default() };
        self.agreement = Agreement::begin(self.job_group.rank, proposal);
        self.stage = Stage::Agreeing { until: now + self.timeout_ns };
        Progress::Running(Some(now))
    }

    /// Ends this rank's part in groups and publishes that. A rank that is through answers on request. A rank that gives
    /// up notifies all.
    fn end(
        &mut self,
        now: Instant,
        standing: Standing,
        seat: &mut dyn Seat,
        memory: &mut dyn JobMemory,
    ) -> Progress {
        self.stage = Stage::Over;
        self.answered = self.agreement.proposal.number;
        self.agreement.end(standing, ranks_of(&self.group.members), self.group.area);
        let to = if standing == Standing::Left { self.others() } else { 0 };
        // If own memory cannot be written any more, this rank cannot notify any other.
        let _ = self.proposals.publish(self.agreement.proposal, to, memory);
        self.answer(now, seat, memory);
        Progress::Finished
    }

    fn agree(
        &mut self,
        now: Instant,
        until: Instant,
        seat: &mut dyn Seat,
        memory: &mut dyn JobMemory,
    ) -> Result<Progress, String> {
        self.proposals.receive(memory);
        let reachable = self.reachable(seat);
        let proposals = &self.proposals;
        let look = self.agreement.look(reachable, |rank| proposals.latest(rank));
        let Proposal { members, area, .. } = self.agreement.proposal;
        if area > AREAS {
            return Err(format!("those who are left had more than {AREAS} groups to form"));
        }
        match look {
            Look::Agreed => {
                self.form(now)?;
                return Ok(Progress::Running(Some(now)));
            }
            Look::Waiting if self.agreement.is_published() => {}
            Look::Changed | Look::Waiting => {
                self.proposals.publish(self.agreement.proposal, members, memory)?;
                self.agreement.set_published();
            }
        }
        self.proposals.send(now, reachable, &self.job_group, seat);
        if now >= until {
            return Err("those who are left could not agree who goes on".to_owned());
        }
        let proposals = &self.proposals;
        let silent =
            ranks(members & reachable).filter(|rank| proposals.latest(*rank) != self.agreement.proposal);
        let silent = silent.fold(0, |all, rank| all | bit(rank));
        self.proposals.read_from(now, silent, &self.job_group, seat);
        Ok(Progress::Running(Some(until.min(now + LOOK_INTERVAL_NS))))
    }

    /// Builds the job anew among the members, after all have published the same proposal.
    fn form(&mut self, now: Instant) -> Result<(), String> {
        let Proposal { members, area, .. } = self.agreement.proposal;
        let members: Vec<_> = ranks(members).collect();
        let own = members.iter().position(|rank| *rank == self.job_group.rank).unwrap_or(0);
        let mut job = (self.build)(&members, NodeId(own as u16))?;
        job.observe(self.recording);
        let result = self.job.result();
        self.earlier.steps += self.job.progress_count();
        self.earlier.operations.merge(&result.operations);
        self.earlier.oracles.merge(&result.oracles);
        self.earlier.verified_bytes += result.verified_bytes;
        self.earlier.notes.extend(result.notes);
        self.earlier.spans.extend(result.spans);
        self.earlier.phases.extend(result.phases);
        self.group = GroupArea { area, members };
        let note = format!("the job was done again by {}", self.names().join(", "));
        self.earlier.notes.push(note);
        (self.job, self.stage, self.missed, self.stands_at) = (job, Stage::Playing, 0, (0, now));
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.group.members.iter().map(|rank| self.job_group.name(*rank).to_owned()).collect()
    }

    /// Answers ranks that propose to go on with this one after its end.
    fn answer(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) {
        self.proposals.receive(memory);
        let newest = self.proposals.newest();
        if newest > self.answered {
            self.answered = newest;
            self.proposals.repeat(self.others());
        }
        let reachable = self.reachable(seat);
        self.proposals.send(now, reachable, &self.job_group, seat);
    }
}

fn ranks_of(members: &[u16]) -> u64 {
    members.iter().fold(0, |all, rank| all | bit(*rank))
}

impl Job for Survivors {
    fn regions(&self) -> Vec<RegionConfig> {
        let mut regions = self.job.regions();
        regions.push(Proposals::region(&self.job_group));
        for area in 1..=AREAS {
            let group = GroupArea { area, members: Vec::new() };
            let of_area = self.regions.iter().map(|region| {
                self.job_group.region(group.region(region.region), region.length, region.access)
            });
            regions.extend(of_area);
        }
        regions
    }

    fn observe(&mut self, recording: OperationRecording) {
        self.recording = recording;
        self.job.observe(recording);
    }

    fn take_recent(&mut self) -> Option<RecentOperations> {
        self.job.take_recent()
    }

    fn handle_event(&mut self, now: Instant, event: &Event) {
        if let Event::NodeRestarted { node } = *event
            && node.index() < self.job_group.ranks.len()
        {
            self.proposals.exclude_successor(node.0);
        }
        let inner = match *event {
            Event::Completed { operation, result } if operation.0 >= FIRST_PROPOSAL => {
                return self.proposals.ended(now, operation.0, result);
            }
            Event::Completed { operation, result } => {
                self.group.operation_of(operation).map(|operation| Event::Completed { operation, result })
            }
            Event::NodeLost { node } => self.group.rank_of(node).map(|node| Event::NodeLost { node }),
            Event::NodeRestarted { node } => {
                self.group.rank_of(node).map(|node| Event::NodeRestarted { node })
            }
            Event::NodeReached { node } => self.group.rank_of(node).map(|node| Event::NodeReached { node }),
            _ if self.group.area == 0 => Some(*event),
            _ => None,
        };
        if let Some(event) = inner {
            self.job.handle_event(now, &event);
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        match self.stage {
            Stage::Playing => self.play(now, seat, memory),
            Stage::Agreeing { until } => match self.agree(now, until, seat, memory) {
                Ok(progress) => progress,
                Err(reason) => {
                    self.earlier.notes.push(reason);
                    self.end(now, Standing::Left, seat, memory)
                }
            },
            Stage::Over => {
                self.answer(now, seat, memory);
                let Self { job, group, job_group, .. } = self;
                if job.has_last_words() {
                    let mut group_memory = GroupMemory { group: &*group, memory };
                    let _ = job.advance(now, &mut GroupSeat { group, job_group, seat }, &mut group_memory);
                }
                Progress::Finished
            }
        }
    }

    fn waiting_for(&self) -> String {
        match self.stage {
            Stage::Agreeing { .. } => {
                let members =
                    ranks(self.agreement.proposal.members).map(|rank| self.job_group.name(rank).to_owned());
                format!("an agreement who goes on, proposed are {}", members.collect::<Vec<_>>().join(", "))
            }
            _ => self.job.waiting_for(),
        }
    }

    fn result(&mut self) -> JobResult {
        let mut result = self.job.result();
        let Earlier { operations, oracles, verified_bytes, notes, spans, phases, .. } = &self.earlier;
        result.spans.splice(0..0, spans.iter().cloned());
        result.phases.splice(0..0, phases.iter().cloned());
        result.operations.merge(operations);
        result.oracles.merge(oracles);
        result.verified_bytes += verified_bytes;
        result.notes.splice(0..0, notes.iter().cloned());
        if self.group.area > 0 {
            result.group = self.names();
        }
        result
    }

    fn output(&self) -> Option<Output> {
        let output = self.job.output()?;
        Some(Output { region: self.group.region(output.region), ..output })
    }

    fn portion(&self) -> Option<Portion> {
        // The group repeats work that was counted before. A portion never decreases.
        if self.group.area == 0 { self.job.portion() } else { None }
    }

    fn reached(&self) -> Option<JobPosition> {
        self.job.reached()
    }

    fn has_last_words(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn progress_count(&self) -> u64 {
        self.earlier.steps + self.agreement.proposal.number + self.job.progress_count()
    }
}
