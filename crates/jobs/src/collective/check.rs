//! Check of a result, bit by bit.
//!
//! The first run of a size is compared with the expected result of the schedule, piece by piece. A piece is a part of a block whose values have one
//! origin. Its digest is kept, for later runs and for other ranks that have the same values. Only a piece that differs is computed again, to find the
//! wrong element.

use rackloom_collectives::{Buffer, Span};
use rackloom_protocol::JobMemory;
use xxhash_rust::xxh3::xxh3_64;

use super::expected::Expected;
use super::inputs::Given;
use super::memory_plan::OUTPUT;
use super::prepared::Prepared;
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

/// Expected result of one rank after each run of one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// End and digest of each piece, in ascending order.
    pieces: Vec<(usize, u64)>,
}

/// One rank's check of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    rank: usize,
    /// Number of elements that were checked.
    done: usize,
    /// Number of pieces that were checked.
    pieces: usize,
    /// Number of these elements that were wrong.
    pub(crate) wrong: u64,
}

impl Check {
    /// Returns a check that has not begun.
    pub(crate) const fn new(rank: usize) -> Self {
        Self { rank, done: 0, pieces: 0, wrong: 0 }
    }

    /// Checks as much as one poll may. Returns whether all elements have been checked.
    pub(crate) fn advance(
        &mut self,
        memory: &mut dyn JobMemory,
        prepared: &Prepared,
        given: &Given,
        reference: &mut Reference,
        findings: &mut Findings,
        blocks: &mut Blocks,
    ) -> Result<bool, String> {
        let element_bytes = given.element.bytes();
        let elements = prepared.schedule.program(self.rank).output;
        let block_elements = BLOCK_BYTES / element_bytes;
        let mut turn_bytes = 0;
        while self.done < elements && turn_bytes < POLL_BYTES_MAX {
            let end = elements.min((self.done / block_elements + 1) * block_elements);
            let length = (end - self.done) * element_bytes;
            read(memory, OUTPUT, self.done * element_bytes, &mut blocks.left[..length])?;
            let mut found = &blocks.left[..length];
            while self.done < end {
                let piece = self.piece(end, prepared, given, reference, &mut blocks.right)?;
                let (of_piece, rest) = found.split_at((piece.end - self.done) * element_bytes);
                if piece.digest == xxh3_64(of_piece) {
                    findings.verified_bytes += of_piece.len() as u64;
                } else {
                    let wanted = &mut blocks.right[..of_piece.len()];
                    let expected = Expected::new(&prepared.schedule, given, prepared.index());
                    expected.read(&expected.origin(self.rank, piece.span(self.done))?, wanted)?;
                    self.compare(
                        of_piece,
                        wanted,
                        element_bytes,
                        &prepared.schedule.collective.to_string(),
                        findings,
                    );
                }
                (self.done, found) = (piece.end, rest);
                self.pieces += 1;
            }
            turn_bytes += length;
        }
        Ok(self.done >= elements)
    }

    /// Returns the next piece, which ends at `end` at the latest. Computes its digest if no rank has done so.
    fn piece(
        &self,
        end: usize,
        prepared: &Prepared,
        given: &Given,
        reference: &mut Reference,
        buffer: &mut [u8],
    ) -> Result<Piece, String> {
        if let Some((end, digest)) = reference.pieces.get(self.pieces).copied() {
            return Ok(Piece { end, digest });
        }
        let expected = Expected::new(&prepared.schedule, given, prepared.index());
        let origin = expected.origin(self.rank, Span::new(Buffer::Output, self.done..end))?;
        let digest = match prepared.digest(&origin) {
            Some(digest) => digest,
            None => {
                let wanted = &mut buffer[..origin.length() * given.element.bytes()];
                expected.read(&origin, wanted)?;
                let digest = xxh3_64(wanted);
                prepared.record_digest(origin, digest);
                digest
            }
        };
        let piece = Piece { end: self.done + origin.length(), digest };
        reference.pieces.push((piece.end, digest));
        Ok(piece)
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

/// End of a piece of the output, and digest of its expected elements.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: usize,
    digest: u64,
}

impl Piece {
    fn span(self, start: usize) -> Span {
        Span::new(Buffer::Output, start..self.end)
    }
}
