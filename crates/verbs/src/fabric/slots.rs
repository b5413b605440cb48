//! Equal parts of a region, for messages and inline data.

use rackloom::fabric::{Error, Node, Region, RegionOptions, Slice};

pub(super) struct Slots {
    region: Region,
    slot_bytes: usize,
    free: Vec<usize>,
}

impl Slots {
    /// Allocates a region with `count` slots, which peers do not access.
    pub(super) fn new(node: &Node, number: u32, slot_bytes: usize, count: usize) -> Result<Self, Error> {
        let access = rackloom::fabric::Access { read: false, write: false, atomic: false };
        let options = RegionOptions::new(number, 0).access(access);
        let region = node.allocate(options, (slot_bytes * count) as u64)?;
        Ok(Self { region, slot_bytes, free: (0..count).rev().collect() })
    }

    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    pub(super) fn give_back(&mut self, slot: usize) {
        debug_assert!(!self.free.contains(&slot), "a slot is given back once");
        self.free.push(slot);
    }

    fn offset(&self, slot: usize) -> u64 {
        (slot * self.slot_bytes) as u64
    }

    /// Returns the first bytes of a slot.
    pub(super) fn slice(&self, slot: usize, length: usize) -> Slice {
        let offset = self.offset(slot);
        self.region.slice(offset..offset + length.min(self.slot_bytes) as u64)
    }

    pub(super) fn write(&self, slot: usize, bytes: &[u8]) -> Result<(), Error> {
        self.region.write(self.offset(slot), bytes)
    }

    pub(super) fn read(&self, slot: usize, length: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length.min(self.slot_bytes)];
        self.region.read(self.offset(slot), &mut bytes)?;
        Ok(bytes)
    }
}
