//! Check of a result, bit by bit.
//!
//! The first run of a size is compared with the expected result of the schedule. A digest of each right block is kept,
//! and later runs are compared with the digests. Only a block that differs is computed again, to find the wrong
//! element.

use rackloom_collectives::{Buffer, Schedule, Span};
use rackloom_protocol::JobMemory;
use xxhash_rust::xxh3::xxh3_64;

use super::expected::{Expected, Index};
use super::inputs::Given;
use super::memory_plan::OUTPUT;
use super::work::{BLOCK_BYTES, Blocks, POLL_BYTES_MAX, read};
use crate::report::Mismatch;

/// Maximum number of wrong elements that are reported one by one.
const MISMATCHES_MAX: usize = 16;

/// Findings of the checks of all runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) verified_bytes: u64,
    pub(crate) mismatches: Vec<Mismatch>,
    pub(crate) mismatch_count: u64,
}

/// Expected result after each run of one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    index: Index,
    /// Digest of each block.
    digests: Vec<u64>,
}

impl Reference {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        Self { index: Index::new(schedule), digests: Vec::new() }
    }
}

/// One rank's check of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    rank: usize,
    /// Number of elements that were checked.
    done: usize,
    /// Number of these elements that were wrong.
    pub(crate) wrong: u64,
}

impl Check {
    /// Returns a check that has not begun.
    pub(crate) const fn new(rank: usize) -> Self {
        Self { rank, done: 0, wrong: 0 }
    }

    /// Checks as much as one poll may. Returns whether all elements have been checked.
    pub(crate) fn advance(
        &mut self,
        memory: &mut dyn JobMemory,
        schedule: &Schedule,
        given: &Given,
        reference: &mut Reference,
        findings: &mut Findings,
        blocks: &mut Blocks,
    ) -> Result<bool, String> {
        let element_bytes = given.element.bytes();
        let elements = schedule.programs[self.rank].output;
        let block_elements = BLOCK_BYTES / element_bytes;
        let mut turn_bytes = 0;
        while self.done < elements && turn_bytes < POLL_BYTES_MAX {
            let end = elements.min(self.done + block_elements);
            let length = (end - self.done) * element_bytes;
            let (found, wanted) = (&mut blocks.left[..length], &mut blocks.right[..length]);
            read(memory, OUTPUT, self.done * element_bytes, found)?;
            let block = self.done / block_elements;
            let is_known_right = reference.digests.get(block).is_some_and(|digest| *digest == xxh3_64(found));
            if is_known_right {
                findings.verified_bytes += length as u64;
            } else {
                let span = Span::new(Buffer::Output, self.done..end);
                Expected::new(schedule, given, &reference.index).read(self.rank, span, wanted)?;
                if reference.digests.len() == block {
                    reference.digests.push(xxh3_64(wanted));
                }
                self.compare(found, wanted, element_bytes, &schedule.collective.to_string(), findings);
            }
            self.done = end;
            turn_bytes += length;
        }
        Ok(self.done >= elements)
    }

    fn compare(
        &mut self,
        found: &[u8],
        wanted: &[u8],
        element_bytes: usize,
        what: &str,
        findings: &mut Findings,
    ) {
        let pairs = found.chunks(element_bytes).zip(wanted.chunks(element_bytes)).enumerate();
        for (number, (found, wanted)) in pairs {
            let Some(byte) = (0..element_bytes).find(|&byte| found[byte] != wanted[byte]) else {
                findings.verified_bytes += element_bytes as u64;
                continue;
            };
            self.wrong += 1;
            findings.mismatch_count += 1;
            if findings.mismatches.len() < MISMATCHES_MAX {
                let element = self.done + number;
                findings.mismatches.push(Mismatch {
                    region: OUTPUT.0,
                    offset: (element * element_bytes + byte) as u64,
                    expected: wanted[byte],
                    found: found[byte],
                    location: format!("element {element} of the result of {what}"),
                });
            }
        }
    }
}
