//! Agreement of the ranks on times: each rank has a list of times of equal length, and afterwards all ranks have the largest time
//! of each position.
//!
//! Rank 0 collects the lists in its own memory and puts the maxima into the memory of all other ranks. The ranks meet before rank 0
//! reads the lists, and before all others read the maxima.

use rackloom_protocol::LocalRange;

use super::memory_plan::{PROBE, PROBE_BYTES};
use super::work::{read, write};
use crate::ranks::ensemble::Poll;
use crate::ranks::request::{Body, Request, Tag};

const WORD_BYTES: usize = 8;

/// Returns whether the memory has space for the lists of all ranks.
pub(super) const fn fits(times: usize, ranks: usize) -> bool {
    times * WORD_BYTES * ranks <= PROBE_BYTES as usize
}

/// Exchange of one rank.
#[derive(Debug)]
pub(super) struct Exchange {
    times_ns: Vec<u64>,
    is_sent: bool,
}

impl Exchange {
    /// Returns the exchange of this rank's times.
    pub(super) const fn new(times_ns: Vec<u64>) -> Self {
        Self { times_ns, is_sent: false }
    }

    /// Puts this rank's times into rank 0's memory. Returns whether they are visible there.
    pub(super) fn publish(&mut self, poll: &mut Poll<'_>) -> Result<bool, String> {
        let rank = poll.job_group.rank;
        if rank != 0 && !std::mem::replace(&mut self.is_sent, true) {
            self.write(poll)?;
            self.put(poll, 0, usize::from(rank) * self.bytes());
        }
        Ok(poll.issuer.is_idle())
    }

    /// Rank 0 puts the maxima into the memory of all others. Returns whether they are visible there.
    pub(super) fn spread(&mut self, poll: &mut Poll<'_>) -> Result<bool, String> {
        if poll.job_group.rank == 0 && !std::mem::replace(&mut self.is_sent, true) {
            for rank in 1..poll.job_group.ranks.len() {
                let theirs = self.read(poll, rank * self.bytes())?;
                for (slowest, time_ns) in self.times_ns.iter_mut().zip(theirs) {
                    *slowest = time_ns.max(*slowest);
                }
            }
            self.write(poll)?;
            for peer in poll.job_group.others() {
                self.put(poll, peer, 0);
            }
        }
        Ok(poll.issuer.is_idle())
    }

    /// Returns the maxima, once rank 0 has sent them.
    pub(super) fn agreed(&self, poll: &mut Poll<'_>) -> Result<Vec<u64>, String> {
        self.read(poll, 0)
    }

    const fn bytes(&self) -> usize {
        self.times_ns.len() * WORD_BYTES
    }

    fn write(&self, poll: &mut Poll<'_>) -> Result<(), String> {
        let bytes: Vec<u8> = self.times_ns.iter().flat_map(|time_ns| time_ns.to_le_bytes()).collect();
        write(poll.memory, PROBE, 0, &bytes)
    }

    fn read(&self, poll: &mut Poll<'_>, offset: usize) -> Result<Vec<u64>, String> {
        let mut bytes = vec![0; self.bytes()];
        read(poll.memory, PROBE, offset, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn put(&self, poll: &mut Poll<'_>, peer: u16, offset: usize) {
        let source = LocalRange { region: PROBE, offset: 0, length: self.bytes() as u64 };
        let target = poll.job_group.address(peer, PROBE, offset as u64);
        let body = Body::Put { target, source, signal: None };
        poll.issuer.submit(Request::new(Tag::Phase { peer, item: 0 }, body));
    }
}
