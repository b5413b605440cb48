//! Transfers that every ordered pair of ranks makes: kinds, sizes, alignments.
//!
//! Sizes are at and next to the boundaries at which such code breaks: words, 64-byte lines, 256-byte load requests,
//! pages, frames, and segments of bulk transfers.

use super::settings::LitmusSettings;

/// Sizes in bytes, in ascending order.
pub(crate) const SIZES: [u64; 19] =
    [1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 65, 255, 256, 257, 1000, 4096, 4097, 65_537, 1 << 20];

/// Size in bytes from which one alignment per kind is enough.
const LARGE_BYTES: u64 = 65_537;

/// Sizes of transfers before a fence. A few are enough, because a fence does not depend on them.
const FENCED_STORE_SIZES: [u64; 4] = [1, 8, 65, 256];
const FENCED_PUT_SIZES: [u64; 3] = [257, 4097, 65_537];

/// Operation that writes the bytes of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CaseKind {
    StorePosted,
    StoreAcknowledged,
    Put,
    /// A put whose signal sets the case's flag.
    PutWithSignal,
    /// A store, a fence, then a store of the case's flag.
    FencedStore,
    /// A put, a fence, then a store of the case's flag. The flag travels in another traffic class than the data.
    FencedPut,
}

impl CaseKind {
    /// Returns whether the case has a flag that must not be seen before its data.
    pub(crate) const fn has_flag(self) -> bool {
        matches!(self, Self::PutWithSignal | Self::FencedStore | Self::FencedPut)
    }

    /// Returns whether that flag is a separate operation, after a fence.
    pub(crate) const fn is_fenced(self) -> bool {
        matches!(self, Self::FencedStore | Self::FencedPut)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::StorePosted => "store-posted",
            Self::StoreAcknowledged => "store-acknowledged",
            Self::Put => "put",
            Self::PutWithSignal => "put-with-signal",
            Self::FencedStore => "store before fence",
            Self::FencedPut => "put before fence",
        }
    }
}

/// One transfer into its own slot at the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    pub(crate) kind: CaseKind,
    pub(crate) bytes: u64,
    /// Distance of the slot from a 64-byte boundary, in bytes.
    pub(crate) misalignment: u64,
}

/// One transfer out of the owner's read-only region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadCase {
    pub(crate) is_get: bool,
    pub(crate) bytes: u64,
    /// Distance of both ends from a 64-byte boundary, in bytes.
    pub(crate) misalignment: u64,
}

/// Returns the sizes up to `bytes_max`, and `bytes_max` itself.
fn sizes(bytes_max: u64) -> impl Iterator<Item = u64> {
    let extra = (!SIZES.contains(&bytes_max)).then_some(bytes_max);
    SIZES.into_iter().filter(move |bytes| *bytes <= bytes_max).chain(extra)
}

/// Returns the alignments of a transfer. Small transfers are made aligned and misaligned, large ones in one of both.
fn alignments(bytes: u64, number: usize) -> impl Iterator<Item = u64> {
    let odd = [1, 3, 5, 7][number % 4];
    let both = bytes < LARGE_BYTES;
    let aligned = both || number.is_multiple_of(2);
    [(aligned, 0), (both || !aligned, odd)].into_iter().filter_map(|(wanted, at)| wanted.then_some(at))
}

/// Returns the transfers of a writer to an owner, up to `bytes_max`.
pub(crate) fn cases(settings: &LitmusSettings, bytes_max: u64) -> Vec<Case> {
    let store_max = bytes_max.min(settings.store_bytes_max);
    let mut cases = Vec::new();
    let mut add = |kind, sizes: &mut dyn Iterator<Item = u64>| {
        for (number, bytes) in sizes.enumerate() {
            cases.extend(alignments(bytes, number).map(|misalignment| Case { kind, bytes, misalignment }));
        }
    };
    add(CaseKind::StorePosted, &mut sizes(store_max));
    add(CaseKind::StoreAcknowledged, &mut sizes(store_max));
    add(CaseKind::Put, &mut sizes(bytes_max));
    // A put may consist of its signal alone.
    add(CaseKind::PutWithSignal, &mut std::iter::once(0).chain(sizes(bytes_max)));
    add(CaseKind::FencedStore, &mut FENCED_STORE_SIZES.into_iter().filter(|bytes| *bytes <= store_max));
    add(CaseKind::FencedPut, &mut FENCED_PUT_SIZES.into_iter().filter(|bytes| *bytes <= bytes_max));
    cases
}

/// Returns the reads of a reader from an owner, up to `bytes_max`.
pub(crate) fn read_cases(settings: &LitmusSettings, bytes_max: u64) -> Vec<ReadCase> {
    let load_max = bytes_max.min(settings.store_bytes_max);
    let of = |is_get, bytes_max| {
        sizes(bytes_max).enumerate().flat_map(move |(number, bytes)| {
            // Large reads use the alignment that the put of the same size leaves out.
            alignments(bytes, number + 1).map(move |misalignment| ReadCase { is_get, bytes, misalignment })
        })
    };
    of(false, load_max).chain(of(true, bytes_max)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_occurs_aligned_and_not_from_one_byte_to_the_largest() {
        let settings = LitmusSettings::default();
        let cases = cases(&settings, settings.bytes_max);
        let of = |kind| cases.iter().filter(move |case| case.kind == kind);
        for kind in
            [CaseKind::StorePosted, CaseKind::StoreAcknowledged, CaseKind::Put, CaseKind::PutWithSignal]
        {
            for misaligned in [false, true] {
                let sized: Vec<_> = of(kind)
                    .filter(|case| (case.misalignment % 8 != 0) == misaligned)
                    .map(|case| case.bytes)
                    .collect();
                assert!(sized.contains(&1) && sized.contains(&257), "{kind:?} {sized:?}");
            }
        }
        assert!(of(CaseKind::Put).any(|case| case.bytes == 1 << 20));
        assert!(of(CaseKind::PutWithSignal).any(|case| case.bytes == 0));
        assert!(of(CaseKind::FencedPut).any(|case| case.bytes > 4096));
        assert!(of(CaseKind::StorePosted).all(|case| case.bytes <= settings.store_bytes_max));
    }

    #[test]
    fn a_largest_size_of_ones_own_is_used_itself() {
        let settings = LitmusSettings { bytes_max: 5000, ..LitmusSettings::default() };
        let cases = cases(&settings, 5000);
        assert_eq!(cases.iter().map(|case| case.bytes).max(), Some(5000));
        assert_eq!(read_cases(&settings, 5000).iter().map(|case| case.bytes).max(), Some(5000));
    }
}
