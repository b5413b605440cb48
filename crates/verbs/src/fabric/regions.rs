//! Registered memory as regions of the fabric.
//!
//! A region of verbs is one of the fabric with the same number and a random key, which peers get with a grant. Memory from which a peer fetches a long
//! message is registered a second time, under another number and key and only for reading: the program need not have given that right.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use rackloom::fabric::{Access, Error, Node, RegionOptions, Slice};
use rustix::io::Errno;

use super::message::Source;
use crate::engine::{Piece, Region};
use crate::layout::constants::*;

/// Bit of the number of the second region. Keys of verbs do not have it.
const READABLE: u32 = 1 << 31;

struct Registered {
    base: usize,
    length: usize,
    region: rackloom::fabric::Region,
    key: u64,
    readable: Option<(rackloom::fabric::Region, u64)>,
}

#[derive(Default)]
pub(super) struct Regions {
    by_key: BTreeMap<u32, Registered>,
}

fn random_key() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Registers memory of the program.
///
/// # Safety
/// The memory stays mapped until [`end`] has returned.
unsafe fn announce(
    node: &Node,
    number: u32,
    access: Access,
    base: usize,
    length: usize,
) -> Result<(rackloom::fabric::Region, u64), Error> {
    let key = random_key();
    let options = RegionOptions::new(number, key).access(access);
    // SAFETY: needed because the memory belongs to the program. It promises to keep it mapped until the region is deregistered, and the
    // library holds no reference to it.
    let region = unsafe { node.register_raw(options, base as *mut u8, length) }?;
    Ok((region, key))
}

/// Ends a registration, and waits for operations in flight.
fn end(region: rackloom::fabric::Region) {
    // An error says that a slice of an operation in flight still has the region. It ends with the operation.
    let _ = region.deregister::<u8>();
}

impl Regions {
    pub(super) fn insert(&mut self, node: &Node, key: u32, region: &Region) -> Result<(), Errno> {
        let has = |right| region.access & right != 0;
        let access = Access {
            read: has(ACCESS_REMOTE_READ),
            write: has(ACCESS_REMOTE_WRITE),
            atomic: has(ACCESS_REMOTE_ATOMIC),
        };
        let (base, length) = (region.base, region.length);
        // SAFETY: needed because the memory belongs to the program, which promises that it stays mapped until it deregisters the region.
        let (announced, fabric_key) =
            unsafe { announce(node, key, access, base, length) }.map_err(|_| Errno::NOMEM)?;
        let entry = Registered { base, length, region: announced, key: fabric_key, readable: None };
        self.by_key.insert(key, entry);
        Ok(())
    }

    pub(super) fn remove(&mut self, key: u32) {
        let Some(Registered { region, readable, .. }) = self.by_key.remove(&key) else { return };
        end(region);
        if let Some((readable, _)) = readable {
            end(readable);
        }
    }

    /// Returns the key of the fabric of a region.
    pub(super) fn fabric_key(&self, key: u32) -> Option<u64> {
        self.by_key.get(&key).map(|entry| entry.key)
    }

    /// Returns checked memory as a slice of its region.
    pub(super) fn slice(&self, piece: Piece) -> Option<Slice> {
        let entry = self.by_key.get(&piece.key())?;
        let offset = piece.address().checked_sub(entry.base)?;
        let end = offset.checked_add(piece.length()).filter(|end| *end <= entry.length)?;
        Some(entry.region.slice(offset as u64..end as u64))
    }

    /// Returns checked memory as a source that a peer may read.
    pub(super) fn source(&mut self, node: &Node, piece: Piece) -> Option<Source> {
        let entry = self.by_key.get_mut(&piece.key())?;
        let number = piece.key() | READABLE;
        if entry.readable.is_none() {
            let access = Access { read: true, write: false, atomic: false };
            // SAFETY: as for the region itself.
            entry.readable = unsafe { announce(node, number, access, entry.base, entry.length) }.ok();
        }
        let (_, key) = entry.readable.as_ref()?;
        let offset = piece.address().checked_sub(entry.base)? as u64;
        Some(Source { region: number, key: *key, offset, length: piece.length() as u64 })
    }
}
