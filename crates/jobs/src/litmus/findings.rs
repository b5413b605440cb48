//! Findings of a rank: mismatches and failures, bounded in number, and the amount of verified data.

use std::collections::BTreeMap;

use rackloom_protocol::{JobMemory, LocalRange, NodeId, OperationError, RegionId};

use crate::ranks::pattern::Pattern;
use crate::report::Mismatch;

/// Maximum number of mismatches and failures that are kept in detail.
const KEPT_MAX: usize = 16;
/// Bytes compared per read of memory.
const CHUNK_BYTES: usize = 16 << 10;

/// Expected content of a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The pattern from this index on.
    Exactly(Pattern, u64),
    /// Each byte is that of the pattern, or still 0: the writer may not have written it yet.
    AtMost(Pattern, u64),
    /// The pattern, whose flag was set after a fence. A fence keeps the order of operations that are performed, but the
    /// flag is set even if its data was refused. So bytes that are still 0 are a refusal, which a fault script must
    /// explain.
    Fenced(Pattern, u64),
    /// Zero: no rank wrote here.
    Zero,
}

/// Findings of a rank.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) mismatches: Vec<Mismatch>,
    pub(crate) mismatch_count: u64,
    pub(crate) verified_bytes: u64,
    pub(crate) failures: Vec<String>,
    pub(crate) failures_omitted: u64,
    /// Descriptions of break-offs that a loss explains.
    pub(crate) clean_errors: Vec<String>,
    /// Descriptions of break-offs because memory refused a correct access.
    pub(crate) refusals: Vec<String>,
    /// Number of accesses that this owner refused, by source and reason.
    pub(crate) refused: BTreeMap<(u16, OperationError), u64>,
    chunk: Vec<u8>,
}

impl Findings {
    pub(crate) fn fail(&mut self, failure: String) {
        if self.failures.len() < KEPT_MAX {
            self.failures.push(failure);
        } else {
            self.failures_omitted += 1;
        }
    }

    /// Records that this owner's endpoint refused an access.
    pub(crate) fn refused(&mut self, source: NodeId, error: OperationError) {
        *self.refused.entry((source.0, error)).or_default() += 1;
    }

    fn mismatch(&mut self, mismatch: impl FnOnce() -> Mismatch) {
        self.mismatch_count += 1;
        if self.mismatches.len() < KEPT_MAX {
            self.mismatches.push(mismatch());
        }
    }

    /// Compares memory with the expected content. The first wrong byte of a range is reported, with the description of
    /// the range.
    pub(crate) fn check(
        &mut self,
        memory: &mut dyn JobMemory,
        range: LocalRange,
        expected: Expected,
        described: impl FnOnce() -> String,
    ) -> bool {
        let LocalRange { region, offset, length: bytes } = range;
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(2 * CHUNK_BYTES, 0);
        let (found, wanted) = chunk.split_at_mut(CHUNK_BYTES);
        let mut wrong = None;
        let mut done = 0;
        while done < bytes && wrong.is_none() {
            let length = CHUNK_BYTES.min((bytes - done) as usize);
            let (found, wanted) = (&mut found[..length], &mut wanted[..length]);
            if let Err(fault) = memory.read(region, offset + done, found) {
                self.fail(format!("own memory of {region} at {} cannot be read: {fault:?}", offset + done));
                break;
            }
            wrong = first_wrong(expected, done, found, wanted)
                .map(|(at, wanted)| (done + at as u64, wanted, found[at]));
            done += length as u64;
        }
        self.chunk = chunk;
        if let (Some((_, _, 0)), Expected::Fenced(pattern, index)) = (wrong, expected) {
            let described = described();
            let is_unsent = self.check_unsent(memory, range, pattern, index, described.clone());
            if is_unsent && self.refusals.len() < KEPT_MAX {
                self.refusals.push(format!("without its data: {described}"));
            }
            return false;
        }
        if let Some((at, expected, found)) = wrong {
            let offset = offset + at;
            self.mismatch(|| Mismatch { region: region.0, offset, expected, found, location: described() });
        }
        let right = wrong.is_none() && done >= bytes;
        self.verified_bytes += if right { bytes } else { 0 };
        right
    }

    /// Returns whether nothing is wrong except bytes that were never written.
    fn check_unsent(
        &mut self,
        memory: &mut dyn JobMemory,
        range: LocalRange,
        pattern: Pattern,
        index: u64,
        location: String,
    ) -> bool {
        self.check(memory, range, Expected::AtMost(pattern, index), || location)
    }

    /// Compares a word of memory with its expected value.
    pub(crate) fn check_word(
        &mut self,
        region: RegionId,
        offset: u64,
        found: u64,
        expected: u64,
        described: impl FnOnce() -> String,
    ) {
        if found == expected {
            self.verified_bytes += 8;
            return;
        }
        let (expected_bytes, found_bytes) = (expected.to_le_bytes(), found.to_le_bytes());
        let at = (0..8).find(|at| expected_bytes[*at] != found_bytes[*at]).unwrap_or(0);
        self.mismatch(|| Mismatch {
            region: region.0,
            offset: offset + at as u64,
            expected: expected_bytes[at],
            found: found_bytes[at],
            location: format!("{}: word is {found:#x}, must be {expected:#x}", described()),
        });
    }
}

/// Returns the index of the first wrong byte and its expected value.
fn first_wrong(expected: Expected, done: u64, found: &[u8], wanted: &mut [u8]) -> Option<(usize, u8)> {
    match expected {
        Expected::Exactly(pattern, index)
        | Expected::AtMost(pattern, index)
        | Expected::Fenced(pattern, index) => pattern.fill(index + done, wanted),
        Expected::Zero => wanted.fill(0),
    }
    let may_be_zero = matches!(expected, Expected::AtMost(..));
    if found == wanted {
        return None;
    }
    let mut pairs = found.iter().zip(wanted.iter());
    let at = pairs.position(|(found, wanted)| found != wanted && !(may_be_zero && *found == 0))?;
    Some((at, wanted[at]))
}

/// Reads an 8-byte little-endian word of the rank's own memory; 0 if it cannot be read.
pub(crate) fn read_word(memory: &mut dyn JobMemory, region: RegionId, offset: u64, bytes: u64) -> u64 {
    let mut word = [0; 8];
    match memory.read(region, offset, &mut word[..bytes as usize]) {
        Ok(()) => u64::from_le_bytes(word),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::memory::vector::VectorMemory;

    const REGION: RegionId = RegionId(9);

    fn memory(pattern: Pattern, bytes: usize) -> VectorMemory {
        let mut memory = VectorMemory::default();
        memory.add(REGION, bytes);
        pattern.fill(0, memory.bytes_mut(REGION));
        memory
    }

    fn check(memory: &mut VectorMemory, expected: Expected, length: u64) -> Findings {
        let range = LocalRange { region: REGION, offset: 0, length };
        let mut findings = Findings::default();
        findings.check(memory, range, expected, || "here".into());
        findings
    }

    #[test]
    fn every_single_flipped_bit_is_found_where_it_is() {
        let pattern = Pattern::new(3, &[1]);
        let length = CHUNK_BYTES + 100;
        for at in [0, 1, 7, CHUNK_BYTES - 1, CHUNK_BYTES, length - 1] {
            let mut memory = memory(pattern, length);
            memory.bytes_mut(REGION)[at] ^= 0x10;
            let findings = check(&mut memory, Expected::Exactly(pattern, 0), length as u64);
            assert_eq!(findings.mismatch_count, 1);
            let mismatch = &findings.mismatches[0];
            assert_eq!((mismatch.offset, mismatch.expected), (at as u64, pattern.byte(at as u64)));
            assert_eq!(mismatch.found, mismatch.expected ^ 0x10);
            assert_eq!(findings.verified_bytes, 0);
        }
    }

    #[test]
    fn a_flag_behind_a_fence_without_its_data_is_a_refusal_and_with_other_data_is_wrong() {
        let pattern = Pattern::new(3, &[1]);
        let mut memory = memory(pattern, 100);
        memory.bytes_mut(REGION)[50..].fill(0);
        let findings = check(&mut memory, Expected::Fenced(pattern, 0), 100);
        assert_eq!((findings.mismatch_count, findings.refusals.len()), (0, 1));
        memory.bytes_mut(REGION)[70] = !pattern.byte(70);
        let findings = check(&mut memory, Expected::Fenced(pattern, 0), 100);
        assert_eq!((findings.mismatch_count, findings.refusals.len()), (1, 0));
    }

    #[test]
    fn a_part_that_never_came_is_allowed_only_where_it_may_be_missing() {
        let pattern = Pattern::new(3, &[1]);
        let mut memory = memory(pattern, 100);
        memory.bytes_mut(REGION)[50..].fill(0);
        assert_eq!(check(&mut memory, Expected::Exactly(pattern, 0), 100).mismatch_count, 1);
        assert_eq!(check(&mut memory, Expected::AtMost(pattern, 0), 100).mismatch_count, 0);
        memory.bytes_mut(REGION)[70] = if pattern.byte(70) == 7 { 8 } else { 7 };
        assert_eq!(check(&mut memory, Expected::AtMost(pattern, 0), 100).mismatch_count, 1);
    }

    #[test]
    fn memory_that_cannot_be_read_is_a_failure_not_a_pass() {
        let pattern = Pattern::new(3, &[1]);
        let findings = check(&mut memory(pattern, 10), Expected::Exactly(pattern, 0), 11);
        assert_eq!((findings.failures.len(), findings.verified_bytes), (1, 0));
    }

    #[test]
    fn a_flood_of_findings_stays_bounded_and_counted() {
        let mut findings = Findings::default();
        for number in 0..100 {
            findings.fail(number.to_string());
            findings.check_word(REGION, 0, 1, 2, String::new);
        }
        assert_eq!((findings.failures.len(), findings.failures_omitted), (KEPT_MAX, 100 - KEPT_MAX as u64));
        assert_eq!((findings.mismatches.len(), findings.mismatch_count), (KEPT_MAX, 100));
    }
}
