//! Exchange of proposals between ranks: each rank puts its proposal into the others' memory, and reads theirs if none
//! arrives.
//!
//! A proposal travels by two paths. A rank pushes its own by a put with signal into a slot of each peer, which is fast.
//! A rank that waits reads the peer's own slot ([`Proposals::read_from`]). That needs neither a poll of the peer nor local memory
//! that peers can write. So a rank whose memory refuses every access, or that was stopped while the others went on,
//! still learns the state of the others.
//!
//! Refused operations are retried for a bounded time, because memory may fail for a while. After that, or at once if a
//! key was revoked or the region does not exist, the refusing rank is excluded: it is not a member of any further
//! group of this rank.

use std::collections::BTreeMap;

use rackloom_protocol::{
    Access, Command, CommandRefused, Instant, JobMemory, LocalRange, OperationError, OperationId,
    RegionConfig, RegionId, RemoteAddress, Signal, SignalKind,
};

use super::agreement::{Proposal, Standing, bit, ranks};
use crate::job::{Carried, Seat};
use crate::ranks::JobGroup;

/// Region of the proposals. A job's own regions have smaller numbers.
const PROPOSALS: RegionId = RegionId(15);
/// Bytes of a slot: number, members, area with standing, check. A load never crosses a boundary of 256 bytes, and 32
/// divides 256.
const SLOT_BYTES: u64 = 32;
/// Number of staging slots, after the slots of own and read proposals. A staging slot holds a proposal that is being
/// put and must not change until the put completes.
const STAGES: u64 = 16;
/// First operation identifier of this exchange, above those of all areas.
pub(super) const FIRST_PROPOSAL: u64 = 1 << 62;
/// Bounds of the interval at which a waiting rank reads the others' proposals, in nanoseconds. The interval is the
/// timeout divided by `READS_PER_TIMEOUT`.
const READ_INTERVAL_MAX_NS: u64 = 50_000_000;
const READ_INTERVAL_MIN_NS: u64 = 2_000_000;
const READS_PER_TIMEOUT: u64 = 64;
/// Number of times that a refused proposal is put again between two reads of the others' proposals.
const PUTS_PER_READ: u64 = 8;
/// Divisor of the timeout: refused operations are retried for this fraction of it.
const REFUSED_SHARE: u64 = 4;

/// Outstanding operation that carries a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    Put { rank: u16, number: u64 },
    Load { rank: u16 },
}

/// Proposals of this rank and of the others.
#[derive(Debug)]
pub(super) struct Proposals {
    own: u16,
    count: u16,
    /// Ranks that the present proposal has not been put to yet.
    unsent: u64,
    /// Ranks whose memory has refused the present proposal, or to which the path was lost. The put is repeated later.
    again: u64,
    again_due: Instant,
    own_proposal: Proposal,
    stage: u64,
    in_flight: BTreeMap<u64, InFlight>,
    next: u64,
    /// Latest proposal of each rank.
    latest: Vec<Proposal>,
    /// Ranks whose proposal is being read.
    being_read: u64,
    read_due: Instant,
    read_interval_ns: u64,
    refusals_ns: u64,
    /// Time since which each rank's memory has refused every operation.
    refused_since: Vec<Option<Instant>>,
    /// Ranks whose memory refuses proposals permanently or for longer than refusals are retried, and ranks with a new
    /// incarnation, which does not run the job.
    excluded: u64,
}

impl Proposals {
    pub(super) fn new(job_group: &JobGroup, timeout_ns: u64) -> Self {
        let count = job_group.ranks.len();
        Self {
            own: job_group.rank,
            count: count as u16,
            unsent: 0,
            again: 0,
            again_due: Instant::ZERO,
            own_proposal: Proposal::default(),
            stage: 0,
            in_flight: BTreeMap::new(),
            next: FIRST_PROPOSAL,
            latest: vec![Proposal::default(); count],
            being_read: 0,
            read_due: Instant::ZERO,
            read_interval_ns: (timeout_ns / READS_PER_TIMEOUT)
                .clamp(READ_INTERVAL_MIN_NS, READ_INTERVAL_MAX_NS),
            refusals_ns: timeout_ns / REFUSED_SHARE,
            refused_since: vec![None; count],
            excluded: 0,
        }
    }

    /// Returns the region that holds the proposals.
    pub(super) fn region(job_group: &JobGroup) -> RegionConfig {
        let bytes = (2 * job_group.ranks.len() as u64 + STAGES) * SLOT_BYTES;
        job_group.region(PROPOSALS, bytes, Access { read: true, write: true, atomic: false })
    }

    /// Returns the time that a rank waits before it reads the others' proposals, in nanoseconds.
    pub(super) const fn read_interval_ns(&self) -> u64 {
        self.read_interval_ns
    }

    /// Returns the ranks that accept no proposals.
    pub(super) const fn excluded(&self) -> u64 {
        self.excluded
    }

    /// Records that a new incarnation has taken this rank's seat.
    pub(super) fn exclude_successor(&mut self, rank: u16) {
        self.excluded |= bit(rank);
    }

    /// Returns the latest known proposal of a rank.
    pub(super) fn latest(&self, rank: u16) -> Proposal {
        self.latest[usize::from(rank)]
    }

    /// Returns the newest number that another rank has published as a member.
    pub(super) fn newest(&self) -> u64 {
        let members = self.latest.iter().filter(|proposal| proposal.standing == Standing::Member);
        members.map(|proposal| proposal.number).max().unwrap_or(0)
    }

    /// Reads the proposals that have arrived in own memory.
    pub(super) fn receive(&mut self, memory: &mut dyn JobMemory) {
        for rank in (0..self.count).filter(|rank| *rank != self.own) {
            for slot in [u64::from(rank), u64::from(self.count) + u64::from(rank)] {
                let proposal = read(memory, slot);
                let latest = &mut self.latest[usize::from(rank)];
                if proposal.number > latest.number {
                    *latest = proposal;
                }
            }
        }
    }

    /// Publishes `proposal` as the present proposal: others can read it from now on, and it is put to the ranks of `to`.
    pub(super) fn publish(
        &mut self,
        proposal: Proposal,
        to: u64,
        memory: &mut dyn JobMemory,
    ) -> Result<(), String> {
        let failed = |fault| format!("own memory cannot be written: {fault:?}");
        let bytes: Vec<u8> = proposal.words().into_iter().flat_map(u64::to_le_bytes).collect();
        self.stage = (self.stage + 1) % STAGES;
        for slot in [self.stage_slot(), u64::from(self.own)] {
            memory.write(PROPOSALS, slot * SLOT_BYTES, &bytes).map_err(failed)?;
        }
        self.own_proposal = proposal;
        (self.unsent, self.again) = (to & !bit(self.own), 0);
        Ok(())
    }

    /// Returns the slot that holds the present proposal while it is put.
    fn stage_slot(&self) -> u64 {
        2 * u64::from(self.count) + self.stage
    }

    /// Schedules another put of the present proposal to the ranks of `to`.
    pub(super) fn repeat(&mut self, to: u64) {
        self.unsent |= to & !bit(self.own);
    }

    /// Puts the present proposal into the memory of the reachable ranks that still need it.
    pub(super) fn send(&mut self, now: Instant, reachable: u64, job_group: &JobGroup, seat: &mut dyn Seat) {
        if self.again != 0 && now >= self.again_due {
            self.unsent |= std::mem::take(&mut self.again);
            self.again_due = now + self.read_interval_ns / PUTS_PER_READ;
        }
        for rank in ranks(self.unsent & reachable) {
            let slot = job_group.address(rank, PROPOSALS, u64::from(self.own) * SLOT_BYTES);
            let target = RemoteAddress { offset: slot.offset + 8, ..slot };
            let source = LocalRange {
                region: PROPOSALS,
                offset: self.stage_slot() * SLOT_BYTES + 8,
                length: SLOT_BYTES - 8,
            };
            let number = self.own_proposal.number;
            let kind = SignalKind::Set;
            let signal =
                Signal { region: PROPOSALS, offset: slot.offset, key: slot.key, kind, value: number };
            let operation = OperationId(self.next);
            let put = Command::Put { operation, target, source, signal: Some(signal) };
            if self.is_taken(seat.command(now, put)) {
                self.in_flight.insert(operation.0, InFlight::Put { rank, number });
                self.unsent &= !bit(rank);
            }
        }
    }

    /// Reads the proposals of the ranks of `peers` from their own memory, at most once per interval.
    pub(super) fn read_from(&mut self, now: Instant, peers: u64, job_group: &JobGroup, seat: &mut dyn Seat) {
        if now < self.read_due {
            return;
        }
        self.read_due = now + self.read_interval_ns;
        for rank in ranks(peers & !self.being_read & !bit(self.own)) {
            let target = job_group.address(rank, PROPOSALS, u64::from(rank) * SLOT_BYTES);
            let copy = (u64::from(self.count) + u64::from(rank)) * SLOT_BYTES;
            let into = LocalRange { region: PROPOSALS, offset: copy, length: SLOT_BYTES };
            let operation = OperationId(self.next);
            if self.is_taken(seat.command(now, Command::Load { operation, target, into })) {
                self.in_flight.insert(operation.0, InFlight::Load { rank });
                self.being_read |= bit(rank);
            }
        }
    }

    /// Returns whether the endpoint has accepted the command. A command that was refused as busy or without a path is
    /// offered again at the next check. Any other refusal concerns own memory, whose key is revoked: then no proposal
    /// can be sent or read any more, and all other ranks are excluded.
    fn is_taken(&mut self, answer: Result<Carried, CommandRefused>) -> bool {
        match answer {
            Ok(_) => self.next += 1,
            Err(CommandRefused::Busy | CommandRefused::Unreachable(_)) => {}
            Err(_) => {
                self.excluded = (0..self.count).map(bit).fold(0, |all, rank| all | rank) & !bit(self.own)
            }
        }
        answer.is_ok()
    }

    /// Records the completion of an operation that carries a proposal.
    pub(super) fn ended(&mut self, now: Instant, operation: u64, result: Result<u64, OperationError>) {
        let Some(carried) = self.in_flight.remove(&operation) else { return };
        let rank = match carried {
            InFlight::Put { rank, .. } | InFlight::Load { rank } => rank,
        };
        match result {
            Ok(_) => self.refused_since[usize::from(rank)] = None,
            Err(OperationError::Unreachable | OperationError::OutcomeUnknown) => {}
            Err(error) => self.refused(now, rank, error),
        }
        match carried {
            InFlight::Load { .. } => self.being_read &= !bit(rank),
            InFlight::Put { number, .. } if result.is_err() && number == self.own_proposal.number => {
                self.again |= bit(rank);
            }
            InFlight::Put { .. } => {}
        }
    }

    fn refused(&mut self, now: Instant, rank: u16, error: OperationError) {
        let may_pass = matches!(
            error,
            OperationError::MemoryFailed | OperationError::SourceFailed | OperationError::EarlierFailure
        );
        let since = *self.refused_since[usize::from(rank)].get_or_insert(now);
        if !may_pass || now.since(since) >= self.refusals_ns {
            self.excluded |= bit(rank);
        }
    }
}

/// Reads the proposal in a slot of own memory. A region that is gone yields the default, empty proposal.
fn read(memory: &mut dyn JobMemory, slot: u64) -> Proposal {
    let words = [0, 1, 2, 3].map(|number: u64| {
        let mut bytes = [0; 8];
        let _ = memory.read(PROPOSALS, slot * SLOT_BYTES + 8 * number, &mut bytes);
        u64::from_le_bytes(bytes)
    });
    Proposal::of(words)
}
