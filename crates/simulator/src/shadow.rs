//! Fingerprints of a node's bytes that were never moved to it: one for every block of them.
//!
//! A transfer's payload is cut into blocks of 256 bytes, each of which becomes a fingerprint of eight. Fingerprints
//! travel instead of the payload, and the receiver notes the range of memory that the payload would have got. A check
//! of memory brings the expected bytes, whose fingerprints must be equal. Bytes that were written as bytes are in the
//! ordinary memory beside it; the last write counts.
//!
//! A block that was partly overwritten has no valid fingerprint, and differs from any expected bytes.

use std::collections::BTreeMap;

use rackloom_protocol::RegionId;
use xxhash_rust::xxh3::xxh3_64;

/// Number of bytes per fingerprint.
pub(crate) const BLOCK_BYTES: usize = 256;
/// Length of a fingerprint, in bytes.
pub(crate) const FINGERPRINT_BYTES: usize = size_of::<u64>();

/// Returns the fingerprints of a payload, in order.
fn fingerprints(payload: &[u8]) -> impl Iterator<Item = u64> {
    payload.chunks(BLOCK_BYTES).map(xxh3_64)
}

/// Returns the length of the stand-in for a payload of this length, in bytes.
pub(crate) const fn stand_in_bytes(payload_bytes: usize) -> usize {
    payload_bytes.div_ceil(BLOCK_BYTES) * FINGERPRINT_BYTES
}

/// Writes the fingerprints of a payload.
pub(crate) fn write_fingerprints(payload: &[u8], out: &mut Vec<u8>) {
    fingerprints(payload).for_each(|one| out.extend_from_slice(&one.to_le_bytes()));
}

/// Bytes of one payload, and their fingerprints.
#[derive(Debug, Default)]
struct Extent {
    length: u64,
    blocks: Vec<u64>,
    /// True if partly overwritten.
    is_torn: bool,
}

/// Fingerprints of one node's memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    extents: BTreeMap<(RegionId, u64), Extent>,
}

impl Shadow {
    /// Notes the fingerprints of `length` bytes at this offset.
    pub(crate) fn note(&mut self, region: RegionId, offset: u64, length: u64, stand_in: &[u8]) {
        // A repeated range, as retransmissions and repetitions bring it, is the common case.
        if self.extents.get(&(region, offset)).is_none_or(|known| known.length != length) {
            self.forget(region, offset, length);
        }
        let extent = self.extents.entry((region, offset)).or_default();
        (extent.length, extent.is_torn) = (length, false);
        extent.blocks.clear();
        let (fingerprints, _) = stand_in.as_chunks::<FINGERPRINT_BYTES>();
        extent.blocks.extend(fingerprints.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    }

    /// Forgets fingerprints of bytes that were written as bytes.
    pub(crate) fn forget(&mut self, region: RegionId, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        while let Some((begin, extent)) = self.last_before(region, end)
            && begin + extent.length > offset
        {
            let whole = begin >= offset && begin + extent.length <= end;
            if !whole {
                if let Some(extent) = self.extents.get_mut(&(region, begin)) {
                    extent.is_torn = true;
                }
                // A payload in front of it ends before it begins.
                if begin <= offset {
                    return;
                }
                return self.forget(region, offset, begin - offset);
            }
            self.extents.remove(&(region, begin));
        }
    }

    fn last_before(&self, region: RegionId, end: u64) -> Option<(u64, &Extent)> {
        let range = (region, 0)..(region, end);
        self.extents.range(range).next_back().map(|((_, begin), extent)| (*begin, extent))
    }

    /// Compares the bytes expected at `offset`. Calls `report` for each part: `Some(true)` if fingerprints agree,
    /// `Some(false)` if they differ, `None` if ordinary memory must be compared.
    pub(crate) fn judge(
        &self,
        region: RegionId,
        offset: u64,
        expected: &[u8],
        mut report: impl FnMut(std::ops::Range<usize>, Option<bool>),
    ) {
        let end = offset + expected.len() as u64;
        let mut at = offset;
        while at < end {
            let here = self.last_before(region, at + 1).filter(|(begin, extent)| begin + extent.length > at);
            let part = |until: u64| (at - offset) as usize..(until - offset) as usize;
            let Some((begin, extent)) = here else {
                let next = self.extents.range((region, at)..(region, end)).next();
                let until = next.map_or(end, |((_, begin), _)| *begin);
                report(part(until), None);
                at = until;
                continue;
            };
            let until = end.min(begin + extent.length);
            let agrees = !extent.is_torn && extent.agrees(at - begin, &expected[part(until)], until - begin);
            report(part(until), Some(agrees));
            at = until;
        }
    }
}

impl Extent {
    /// Returns true if bytes `from..until` of it are these. A part of a block cannot be compared.
    fn agrees(&self, from: u64, expected: &[u8], until: u64) -> bool {
        let is_cut = !from.is_multiple_of(BLOCK_BYTES as u64)
            || (until != self.length && !until.is_multiple_of(BLOCK_BYTES as u64));
        let first = from as usize / BLOCK_BYTES;
        !is_cut
            && fingerprints(expected).enumerate().all(|(at, one)| self.blocks.get(first + at) == Some(&one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    fn bytes(seed: u8, length: usize) -> Vec<u8> {
        (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
    }

    fn note(shadow: &mut Shadow, offset: u64, payload: &[u8]) {
        let mut stand_in = Vec::new();
        write_fingerprints(payload, &mut stand_in);
        assert_eq!(stand_in.len(), stand_in_bytes(payload.len()));
        shadow.note(REGION, offset, payload.len() as u64, &stand_in);
    }

    fn judged(shadow: &Shadow, offset: u64, expected: &[u8]) -> Vec<(usize, Option<bool>)> {
        let mut parts = Vec::new();
        shadow.judge(REGION, offset, expected, |part, agrees| parts.push((part.len(), agrees)));
        parts
    }

    #[test]
    fn equal_bytes_agree_and_one_wrong_byte_does_not() {
        let (mut shadow, mut payload) = (Shadow::default(), bytes(1, 1_000));
        note(&mut shadow, 500, &payload);
        assert_eq!(judged(&shadow, 500, &payload), [(1_000, Some(true))]);
        assert_eq!(judged(&shadow, 500, &payload[..512]), [(512, Some(true))], "whole blocks of it");
        assert_eq!(judged(&shadow, 756, &payload[256..]), [(744, Some(true))]);
        assert_eq!(
            judged(&shadow, 500, &payload[..500]),
            [(500, Some(false))],
            "half a block cannot be compared"
        );
        payload[999] ^= 1;
        assert_eq!(judged(&shadow, 500, &payload), [(1_000, Some(false))]);
    }

    #[test]
    fn between_transfers_ordinary_memory_is_compared() {
        let (mut shadow, all) = (Shadow::default(), bytes(2, 1_200));
        note(&mut shadow, 100, &all[100..356]);
        note(&mut shadow, 600, &all[600..1_112]);
        let expected = [(100, None), (256, Some(true)), (244, None), (512, Some(true)), (88, None)];
        assert_eq!(judged(&shadow, 0, &all), expected);
        shadow.forget(REGION, 100, 256);
        assert_eq!(judged(&shadow, 0, &all[..600]), [(600, None)]);
    }

    #[test]
    fn a_partly_overwritten_block_is_unknown_until_the_next_transfer() {
        let (mut shadow, payload) = (Shadow::default(), bytes(3, 512));
        note(&mut shadow, 0, &payload);
        note(&mut shadow, 512, &payload);
        shadow.forget(REGION, 500, 20);
        assert_eq!(judged(&shadow, 0, &payload), [(512, Some(false))]);
        assert_eq!(judged(&shadow, 512, &payload), [(512, Some(false))]);
        note(&mut shadow, 0, &payload);
        assert_eq!(judged(&shadow, 0, &payload), [(512, Some(true))]);
        note(&mut shadow, 0, &bytes(4, 1_024));
        assert_eq!(judged(&shadow, 0, &bytes(4, 1_024)), [(1_024, Some(true))], "a longer one covers both");
    }
}
