//! Waits for words, and the barrier of two levels, by threads of the host: the functions of `crates/gpu/kernels/rackloom.cuh`, in Rust.
//!
//! Each thread stands for a block. The caller reads words of the device, because a host cannot read them directly.

use std::sync::atomic::{AtomicU64, Ordering};

use super::command::{ANY_PEER, Command, CommandKind, POSTED, Status};
use super::host_kernel::HostKernel;

/// Bits of the status, below the number of the round.
const STATUS_BITS: u32 = 8;
const WORD_BYTES: u64 = 8;

/// Members of a barrier, as in `rackloom_team`.
///
/// `Send` and `Sync`: all blocks of a node share one.
#[derive(Debug)]
pub struct HostTeam {
    /// Numbers of the nodes, in the same order on all nodes.
    pub nodes: Vec<u32>,
    /// Index of this node in `nodes`.
    pub rank: usize,
    /// Words at each node.
    pub words: HostWords,
    /// Result of [`HostKernel::losses`] before the barrier.
    pub losses: u64,
    blocks: u64,
    arrived: AtomicU64,
    round: AtomicU64,
}

/// Words of a team in the memory of each node: one of 8 bytes for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWords {
    /// Number of the region.
    pub region: u32,
    /// Offset of the first word in the region.
    pub offset: u64,
    /// Key of the region.
    pub key: u64,
}

impl HostTeam {
    /// Makes the team of `blocks` blocks of the node with index `rank`.
    #[must_use]
    pub fn new(nodes: Vec<u32>, rank: usize, words: HostWords, losses: u64, blocks: u64) -> Self {
        let (arrived, round) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { nodes, rank, words, losses, blocks, arrived, round }
    }

    /// Returns the indexes of the other nodes.
    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |other| *other != self.rank)
    }

    /// Returns the store of this node's word at another node.
    fn arrival(&self, other: usize, round: u64) -> Command {
        let HostWords { region, offset, key } = self.words;
        Command {
            kind: CommandKind::Store as u32,
            peer: self.nodes[other],
            region,
            offset: offset + WORD_BYTES * self.rank as u64,
            key,
            flags: POSTED | (WORD_BYTES as u32) << 16,
            operand: round,
            ..Command::default()
        }
    }
}

impl HostKernel {
    /// Waits until a word is at least `value`. `losses` is the result of [`Self::losses`] at a time when the node that changes the word
    /// was known to be present.
    pub fn wait_until(&self, mut look: impl FnMut() -> u64, value: u64, losses: u64) -> Status {
        while look() < value {
            if self.is_closed() {
                return Status::Closed;
            }
            if self.losses() != losses {
                // The word may have changed before the loss was counted.
                return if look() >= value { Status::Done } else { Status::Lost };
            }
            std::thread::yield_now();
        }
        Status::Done
    }

    /// Waits until every block of every node has arrived. `look` returns the word of the node with the given index, as kernels of this node
    /// see it.
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
        // The other nodes see this node's earlier writes before its arrival.
        let fence =
            Command { kind: CommandKind::Fence as u32, peer: ANY_PEER, flags: POSTED, ..Command::default() };
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
