//! Registered memory: regions and their keys, checks of an access, and copies between checked pieces.
//!
//! A [`Piece`] is memory that a check has accepted. Copies put bytes in place in the order of their addresses as far as a program can see
//! it: the last bytes of a message become visible after all others, because programs poll them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::io::Errno;

use super::limits;
use crate::layout::constants::*;

/// Checked memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    address: usize,
    length: usize,
    /// Key of the region; 0 for bytes of the library.
    key: u32,
}

impl Piece {
    /// Returns bytes of the library as a piece. The piece is valid as long as the bytes stay where they are.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self { address: bytes.as_ptr() as usize, length: bytes.len(), key: 0 }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        self.length
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub const fn address(self) -> usize {
        self.address
    }

    /// Returns the key of the region, or 0 for bytes of the library.
    #[must_use]
    pub const fn key(self) -> u32 {
        self.key
    }

    /// Copies bytes into pieces, as many as fit.
    pub fn fill(pieces: &[Self], bytes: &[u8]) {
        copy(&[Self::of_bytes(bytes)], pieces);
    }

    /// Returns a part of the piece.
    ///
    /// # Panics
    /// If it is not within the piece.
    #[must_use]
    pub fn part(self, bytes: Range<usize>) -> Self {
        assert!(bytes.start <= bytes.end && bytes.end <= self.length, "a part of the piece");
        Self { address: self.address + bytes.start, length: bytes.len(), key: self.key }
    }
}

/// Returns the number of bytes of pieces.
pub(super) fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.length).sum()
}

/// Remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address in the addresses of the region.
    pub address: u64,
    /// Key of the region.
    pub key: u32,
}

/// Memory that a program has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Number of its domain.
    pub domain: u32,
    /// Address of the first byte in this process.
    pub base: usize,
    /// Address of the first byte in requests.
    pub virtual_base: u64,
    /// Bytes.
    pub length: usize,
    /// Allowed accesses, as a mask of `enum ibv_access_flags`.
    pub access: u32,
}

/// Regions by their keys. A key has the index of a slot and a generation, so keys of deregistered regions are not found.
#[derive(Default)]
pub(super) struct Regions {
    slots: Vec<(u8, Option<Region>)>,
    free: Vec<usize>,
}

/// Flags of a registration that the device knows.
const KNOWN_ACCESS: u32 = ACCESS_LOCAL_WRITE
    | ACCESS_REMOTE_WRITE
    | ACCESS_REMOTE_READ
    | ACCESS_REMOTE_ATOMIC
    | ACCESS_ZERO_BASED
    | ACCESS_HUGETLB
    | ACCESS_OPTIONAL_RANGE;

/// Checks the flags of a registration.
pub(super) fn check_access(access: u32) -> Result<(), Errno> {
    if access & !KNOWN_ACCESS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let is_written_by_peers = access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) != 0;
    if is_written_by_peers && access & ACCESS_LOCAL_WRITE == 0 { Err(Errno::INVAL) } else { Ok(()) }
}

impl Regions {
    /// Adds a region and returns its key.
    pub(super) fn insert(&mut self, region: Region) -> Result<u32, Errno> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() - 1
        });
        let number =
            u32::try_from(index + 1).ok().filter(|number| *number <= limits::REGIONS).ok_or(Errno::NOMEM)?;
        let slot = &mut self.slots[index];
        debug_assert!(slot.1.is_none(), "a free slot has no region");
        slot.1 = Some(region);
        Ok(number << 8 | u32::from(slot.0))
    }

    fn slot(&self, key: u32) -> Option<usize> {
        let index = usize::try_from(key >> 8).ok()?.checked_sub(1)?;
        let (generation, _) = self.slots.get(index)?;
        (u32::from(*generation) == key & 0xff).then_some(index)
    }

    /// Removes a region. Its key is not given out again before 255 other registrations of its slot.
    pub(super) fn remove(&mut self, key: u32) -> Option<Region> {
        let index = self.slot(key)?;
        let slot = &mut self.slots[index];
        let region = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(index);
        Some(region)
    }

    /// Returns a region.
    pub(super) fn get(&self, key: u32) -> Option<Region> {
        self.slots[self.slot(key)?].1
    }

    /// Checks an access and returns the memory. `None` if the key, the domain, the bounds or the rights do not fit.
    pub(super) fn piece(
        &self,
        key: u32,
        domain: u32,
        address: u64,
        length: u64,
        needed: u32,
    ) -> Option<Piece> {
        let region = self.slots[self.slot(key)?].1.as_ref()?;
        let offset = address.checked_sub(region.virtual_base)?;
        let end = offset.checked_add(length)?;
        let fits = region.domain == domain
            && region.access & needed == needed
            && usize::try_from(end).is_ok_and(|end| end <= region.length);
        fits.then(|| Piece {
            key,
            address: region.base + usize::try_from(offset).expect("an offset within a region"),
            length: usize::try_from(length).expect("a length within a region"),
        })
    }
}

/// Copies bytes between pieces until one of the two sides ends. Returns the number of bytes.
///
/// The last eight bytes, or the last one of a shorter message, become visible after all others.
pub(super) fn copy(from: &[Piece], to: &[Piece]) -> usize {
    let length = total(from).min(total(to));
    let tail = if length >= 8 { 8 } else { length.min(1) };
    run(from, to, 0, length - tail);
    fence(Ordering::SeqCst);
    run(from, to, length - tail, length);
    length
}

/// Copies the bytes between two positions of a message.
fn run(from: &[Piece], to: &[Piece], begin: usize, end: usize) {
    let mut at = begin;
    while at < end {
        let (source, target) = (rest(from, at), rest(to, at));
        let length = source.length.min(target.length).min(end - at);
        debug_assert!(length > 0, "both sides have the bytes");
        // SAFETY: needed because the memory belongs to the program. Pieces come from a check against a registered region, or from bytes of the
        // library that outlive the request. The program promises that memory of a region stays mapped, and regions are not removed
        // meanwhile, because the engine is locked. The two sides may overlap, which this copy allows.
        unsafe { core::ptr::copy(source.address as *const u8, target.address as *mut u8, length) };
        at += length;
    }
}

/// Returns the part of the piece that contains a position of the message, from there on.
fn rest(pieces: &[Piece], position: usize) -> Piece {
    let mut before = 0;
    for piece in pieces {
        if position < before + piece.length {
            let skipped = position - before;
            return piece.part(skipped..piece.length);
        }
        before += piece.length;
    }
    Piece { address: 0, length: 0, key: 0 }
}

/// Applies a function to eight aligned bytes atomically and returns the old value. `None` if the address is not aligned.
pub(super) fn update(piece: Piece, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    if piece.length != 8 || !piece.address.is_multiple_of(8) {
        return None;
    }
    // SAFETY: needed because the memory belongs to the program. The piece comes from a check against a registered region, its address is
    // aligned, and all other accesses of the library to it are under the engine's lock; the program uses atomic accesses or none.
    let value = unsafe { AtomicU64::from_ptr(piece.address as *mut u64) };
    Some(value.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).unwrap_or_else(|old| old))
}

/// Returns true if each page of a range is mapped.
pub(super) fn is_mapped(base: usize, length: usize) -> bool {
    const PAGES: usize = 4096;
    let page = rustix::param::page_size();
    let Some(end) = base.checked_add(length) else { return false };
    let mut states = [0_u8; PAGES];
    let mut begin = base - base % page;
    while begin < end {
        let bytes = (end - begin).min(PAGES * page);
        // SAFETY: needed because the call gets an address of the program. It only reports states of pages and fails if one is not mapped;
        // the array has a byte for each page.
        if unsafe { libc::mincore(begin as *mut _, bytes, states.as_mut_ptr()) } != 0 {
            return false;
        }
        begin += bytes;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(bytes: &[u8], access: u32) -> Region {
        Region { domain: 1, base: bytes.as_ptr() as usize, virtual_base: 0x1000, length: bytes.len(), access }
    }

    #[test]
    fn keys_bounds_rights_and_domains_are_checked() {
        let bytes = [0; 64];
        let mut regions = Regions::default();
        let key = regions.insert(region(&bytes, ACCESS_REMOTE_READ)).expect("a key");
        let piece = |key, domain, address, length, needed| {
            regions.piece(key, domain, address, length, needed).map(Piece::length)
        };
        assert_eq!(piece(key, 1, 0x1000, 64, ACCESS_REMOTE_READ), Some(64));
        assert_eq!(piece(key, 1, 0x103f, 1, 0), Some(1));
        assert_eq!(piece(key, 1, 0x1001, 64, 0), None, "beyond the end");
        assert_eq!(piece(key, 1, 0xfff, 1, 0), None, "before the begin");
        assert_eq!(piece(key, 1, u64::MAX, 2, 0), None, "around the end of the addresses");
        assert_eq!(piece(key, 2, 0x1000, 1, 0), None, "in another domain");
        assert_eq!(piece(key, 1, 0x1000, 1, ACCESS_REMOTE_WRITE), None, "without the right");
        assert_eq!(piece(key + 1, 1, 0x1000, 1, 0), None, "of another generation");
        assert_eq!(piece(key + 256, 1, 0x1000, 1, 0), None, "of a slot that is not there");
        assert_eq!(piece(0, 1, 0x1000, 1, 0), None, "of no slot");
    }

    #[test]
    fn the_key_of_a_removed_region_is_not_found_in_its_slot() {
        let bytes = [0; 8];
        let mut regions = Regions::default();
        let old = regions.insert(region(&bytes, 0)).expect("a key");
        assert!(regions.remove(old).is_some());
        assert!(regions.remove(old).is_none());
        let new = regions.insert(region(&bytes, 0)).expect("a key");
        assert_eq!(old >> 8, new >> 8, "the slot is used again");
        assert!(regions.piece(old, 1, 0x1000, 1, 0).is_none());
        assert!(regions.piece(new, 1, 0x1000, 1, 0).is_some());
    }

    #[test]
    fn pieces_are_copied_across_all_seams() {
        let source: Vec<u8> = (1..=40).collect();
        for cuts in [[0, 1, 2], [7, 8, 9], [13, 20, 39], [5, 5, 33]] {
            let mut target = vec![0; 40];
            let parts = |bytes: &[u8], cuts: &[usize]| -> Vec<Piece> {
                let ends = [&[0], cuts, &[bytes.len()]].concat();
                ends.windows(2).map(|ends| Piece::of_bytes(&bytes[ends[0]..ends[1]])).collect()
            };
            let pieces = parts(&target, &[3, 17, 31]);
            assert_eq!(copy(&parts(&source, &cuts), &pieces), 40);
            std::hint::black_box(&mut target);
            assert_eq!(source, target, "{cuts:?}");
        }
        assert_eq!(copy(&[Piece::of_bytes(&source)], &[Piece::of_bytes(&[])]), 0);
    }

    #[test]
    fn peers_that_write_need_the_local_right() {
        assert_eq!(check_access(ACCESS_REMOTE_WRITE), Err(Errno::INVAL));
        assert_eq!(check_access(ACCESS_REMOTE_ATOMIC), Err(Errno::INVAL));
        assert_eq!(check_access(ACCESS_REMOTE_READ), Ok(()));
        assert_eq!(check_access(ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE | 1 << 20), Ok(()));
        assert_eq!(check_access(1 << 6), Err(Errno::OPNOTSUPP), "on demand");
    }

    #[test]
    fn memory_that_is_not_mapped_is_found() {
        let bytes = vec![0_u8; 20 << 20];
        assert!(is_mapped(bytes.as_ptr() as usize, bytes.len()));
        assert!(!is_mapped(bytes.as_ptr() as usize, usize::MAX / 4));
        assert!(!is_mapped(0, 4096));
        assert!(!is_mapped(usize::MAX - 10, 100));
    }
}
