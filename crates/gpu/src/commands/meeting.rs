//! Waiting for words, and the barrier of two levels: what `kernels/rackloom.cuh` does on a device, done by threads of the host.
//!
//! Each thread plays a block. How a word of the device is looked at is the caller's affair, because a host cannot reach it by itself.

use std::sync::atomic::{AtomicU64, Ordering};

use super::command::{ANYBODY, Command, CommandKind, POSTED, Status};
use super::host_kernel::HostKernel;

/// The status of a barrier travels in the lower byte of its round.
const STATUS_BITS: u32 = 8;
const WORD_BYTES: u64 = 8;

/// Who meets in a barrier, as `rackloom_team` has it.
///
/// `Send` and `Sync`: all blocks of a node share one.
#[derive(Debug)]
pub struct HostTeam {
    /// Numbers of the nodes, the same on all.
    pub nodes: Vec<u32>,
    /// Which of them this one is.
    pub place: usize,
    /// Region, first byte and key of the words at each of them; one word of 8 bytes for each node.
    pub words: (u32, u64, u64),
    /// What [`HostKernel::losses`] said before.
    pub losses: u64,
    blocks: u64,
    arrived: AtomicU64,
    round: AtomicU64,
}

impl HostTeam {
    /// For so many blocks of the node at `place`.
    #[must_use]
    pub fn new(nodes: Vec<u32>, place: usize, words: (u32, u64, u64), losses: u64, blocks: u64) -> Self {
        let (arrived, round) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { nodes, place, words, losses, blocks, arrived, round }
    }

    /// The places of the others.
    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |other| *other != self.place)
    }

    /// The word of this node at another one.
    fn arrival(&self, other: usize, round: u64) -> Command {
        let (region, offset, key) = self.words;
        Command {
            kind: CommandKind::Store as u32,
            peer: self.nodes[other],
            region,
            offset: offset + WORD_BYTES * self.place as u64,
            key,
            flags: POSTED | (WORD_BYTES as u32) << 16,
            operand: round,
            ..Command::default()
        }
    }
}

impl HostKernel {
    /// Wait until a word is at least `value`. `losses`: what [`Self::losses`] said before whoever is to change the word was known to be
    /// there.
    pub fn wait_until(&self, mut look: impl FnMut() -> u64, value: u64, losses: u64) -> Status {
        while look() < value {
            if self.is_closed() {
                return Status::Closed;
            }
            if self.losses() != losses {
                // A last look: what has come has come.
                return if look() >= value { Status::Done } else { Status::Lost };
            }
            std::thread::yield_now();
        }
        Status::Done
    }

    /// Ends when every block of every node has come. `look`: the word of the node at a place, as kernels of this node see it.
    pub fn barrier(&self, team: &HostTeam, look: impl Fn(usize) -> u64) -> Status {
        let before = team.round.load(Ordering::Acquire);
        let round = (before >> STATUS_BITS) + 1;
        if team.arrived.fetch_add(1, Ordering::AcqRel) == team.blocks - 1 {
            team.arrived.store(0, Ordering::Release);
            let status = self.meet_others(team, round, look);
            team.round.store(round << STATUS_BITS | status as u64, Ordering::Release);
            return status;
        }
        loop {
            let now = team.round.load(Ordering::Acquire);
            if now != before {
                return Status::of(now as u8).unwrap_or(Status::Invalid);
            }
            std::thread::yield_now();
        }
    }

    fn meet_others(&self, team: &HostTeam, round: u64, look: impl Fn(usize) -> u64) -> Status {
        // What this node has given before is visible at the others before they see it arrive.
        let fence =
            Command { kind: CommandKind::Fence as u32, peer: ANYBODY, flags: POSTED, ..Command::default() };
        let arrivals = team.others().map(|other| team.arrival(other, round));
        let given =
            std::iter::once(fence).chain(arrivals).try_for_each(|command| self.issue(&command).map(drop));
        if let Err(closed) = given {
            return closed;
        }
        let mut waits = team.others().map(|other| self.wait_until(|| look(other), round, team.losses));
        waits.find(|status| *status != Status::Done).unwrap_or(Status::Done)
    }
}
