//! Host memory of one member: one sealed anonymous file per region, mapped, zeroed, first touched when used.
//!
//! A region is a file so that a process of the same server can map it later; sealed so that nobody can shrink it
//! under us. Because others may map it, its bytes are never a Rust slice: they are copied in and out through raw
//! pointers, and words that somebody may wait for are touched by CPU atomics only.
//!
//! Who may touch which range is decided by the core before it asks; the bounds are checked here once more, because a
//! wrong range here would be a wild write. This file knows no keys, tenants or permissions.

mod options;
mod placement;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rackloom_protocol::{FrameRange, Memory, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, RegionId};

use crate::mapping::whole_pages;
use crate::window::Window;

pub use options::{Granted, MemoryOptions, Pages, Placement};
use placement::Backing;

/// Most bytes that one read request may ask for.
const READ_BYTES_MAX: usize = 256;

/// The regions of one member.
#[derive(Debug)]
pub struct HostMemory {
    regions: Regions,
    scratch: Box<[u8; READ_BYTES_MAX]>,
}

/// Sorted by region.
#[derive(Debug, Default)]
struct Regions(Vec<Region>);

#[derive(Debug)]
struct Region {
    region: RegionId,
    backing: Backing,
    length: usize,
    options: MemoryOptions,
    /// Somebody may have mapped it: it must not be freed.
    is_exported: bool,
}

/// Why a region was not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreeRefused {
    /// There is no such region.
    #[error("{0} does not exist")]
    NoSuchRegion(RegionId),
    /// Importers free first, then the exporter withdraws, then the owner frees.
    #[error("{0} is exported; hint: withdraw the export first")]
    Exported(RegionId),
}

impl Default for HostMemory {
    fn default() -> Self {
        Self { regions: Regions::default(), scratch: Box::new([0; READ_BYTES_MAX]) }
    }
}

impl HostMemory {
    /// Add a zeroed region. An error if there is one of this name, or no memory for it.
    pub fn allocate(&mut self, region: RegionId, length: u64) -> io::Result<()> {
        self.allocate_with(region, length, MemoryOptions::default()).map(|_| ())
    }

    /// Add a zeroed region whose pages are as asked for. What was granted, or the demand that failed.
    pub fn allocate_with(
        &mut self,
        region: RegionId,
        length: u64,
        options: MemoryOptions,
    ) -> io::Result<&Granted> {
        let Err(place) = self.position(region) else {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{region} exists already")));
        };
        let too_large =
            || io::Error::new(io::ErrorKind::OutOfMemory, format!("{region}: {length} bytes are too many"));
        whole_pages(length).filter(|length| isize::try_from(*length).is_ok()).ok_or_else(too_large)?;
        let named = |cause: io::Error| io::Error::new(cause.kind(), format!("{region}: {cause}"));
        let backing = Backing::new(length, options).map_err(named)?;
        let added = Region { region, backing, length: length as usize, options, is_exported: false };
        self.regions.0.insert(place, added);
        Ok(&self.regions.0[place].backing.granted)
    }

    /// Unmap a region. Refused as long as it is exported: what a peer has mapped must not be reused under its hands.
    pub fn free(&mut self, region: RegionId) -> Result<(), FreeRefused> {
        let place = self.position(region).map_err(|_| FreeRefused::NoSuchRegion(region))?;
        if self.regions.0[place].is_exported {
            return Err(FreeRefused::Exported(region));
        }
        self.regions.0.remove(place);
        Ok(())
    }

    /// What a region got of what was asked for.
    #[must_use]
    pub fn granted(&self, region: RegionId) -> Option<&Granted> {
        self.find(region).map(|found| &found.backing.granted)
    }

    /// What the kernel says about the pages of a region. Reads /proc; not for a hot path.
    pub fn placement(&self, region: RegionId) -> io::Result<Placement> {
        let found = self.find(region).ok_or(io::ErrorKind::NotFound)?;
        found.backing.placement()
    }

    /// Protect a region from being freed, or no longer.
    pub(crate) fn set_exported(&mut self, region: RegionId, is_exported: bool) {
        if let Ok(place) = self.position(region) {
            self.regions.0[place].is_exported = is_exported;
        }
    }

    /// Part from everybody who has mapped this region: the same bytes at the same address in a new file.
    pub(crate) fn move_to_fresh_file(&mut self, region: RegionId) -> io::Result<()> {
        let place = self.position(region).map_err(|_| io::ErrorKind::NotFound)?;
        let found = &mut self.regions.0[place];
        found.backing.move_to_fresh_file(found.options)
    }

    /// The bytes of a region.
    pub(crate) fn window(&self, region: RegionId) -> Option<Window<'_>> {
        self.find(region).map(Region::window)
    }

    /// Length of a region in bytes.
    #[must_use]
    pub fn length(&self, region: RegionId) -> Option<u64> {
        self.find(region).map(|found| found.length as u64)
    }

    /// The file behind a region, for a process of the same server to map.
    #[must_use]
    pub fn file(&self, region: RegionId) -> Option<BorrowedFd<'_>> {
        self.find(region).map(|found| found.backing.as_fd())
    }

    /// The same bytes for a second user within this thread.
    #[must_use]
    pub fn view(&self) -> HostView<'_> {
        HostView { memory: self, scratch: [0; READ_BYTES_MAX] }
    }

    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.regions.position(region)
    }

    fn find(&self, region: RegionId) -> Option<&Region> {
        self.regions.find(region)
    }
}

impl Memory for HostMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        let Self { regions, scratch } = self;
        Some(regions.answer(request, frame, scratch))
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.regions.found(region)?.window().read(offset, out)
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.regions.found(region)?.window().write(offset, bytes)
    }
}

/// The same memory once more, for a job whose commands need it at the same time. Shared pages have many writers anyway;
/// only the place where a read puts its bytes must be one's own.
#[derive(Debug)]
pub struct HostView<'a> {
    memory: &'a HostMemory,
    scratch: [u8; READ_BYTES_MAX],
}

impl Memory for HostView<'_> {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        Some(self.memory.regions.answer(request, frame, &mut self.scratch))
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.regions.found(region)?.window().read(offset, out)
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.regions.found(region)?.window().write(offset, bytes)
    }
}

impl Regions {
    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&region, |known| known.region)
    }

    fn find(&self, region: RegionId) -> Option<&Region> {
        self.position(region).ok().map(|place| &self.0[place])
    }

    fn found(&self, region: RegionId) -> Result<&Region, MemoryFault> {
        self.find(region).ok_or(MemoryFault::NotMapped)
    }

    fn answer<'m>(
        &self,
        request: &MemoryRequest<'_>,
        frame: &[u8],
        scratch: &'m mut [u8; READ_BYTES_MAX],
    ) -> MemoryDone<'m> {
        let region = request.region;
        let done = match request.access {
            MemoryAccess::Write { ranges, .. } => {
                self.write_ranges(region, ranges, frame).map(|()| MemoryDone::Written)
            }
            MemoryAccess::Read { offset, length } => self.read_into(region, offset, length, scratch),
            MemoryAccess::Atomic { offset, atomic } => self
                .found(region)
                .and_then(|found| found.window().atomic(offset, &atomic))
                .map(MemoryDone::Value),
        };
        done.unwrap_or_else(MemoryDone::Failed)
    }

    fn read_into<'m>(
        &self,
        region: RegionId,
        offset: u64,
        length: u32,
        scratch: &'m mut [u8; READ_BYTES_MAX],
    ) -> Result<MemoryDone<'m>, MemoryFault> {
        let found = self.found(region)?;
        let out = scratch.get_mut(..length as usize).ok_or(MemoryFault::Device)?;
        found.window().read(offset, out)?;
        Ok(MemoryDone::Bytes(out))
    }

    fn write_ranges(&self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> Result<(), MemoryFault> {
        let region = self.found(region)?;
        for range in ranges {
            let from = range.frame_offset as usize;
            let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
            region.window().write(range.region_offset, bytes.ok_or(MemoryFault::Device)?)?;
        }
        Ok(())
    }
}

impl Region {
    fn window(&self) -> Window<'_> {
        Window::new(&self.backing.pages, self.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rackloom_protocol::memory::vector::VectorMemory;
    use rackloom_protocol::{Atomic, AtomicKind, LeaseId, MemoryToken, Width};

    use super::*;

    const REGION: RegionId = RegionId(7);
    const LENGTH: u64 = 5000;

    #[derive(Clone, Debug)]
    enum Step {
        Write(Vec<(u8, u64)>),
        Read { offset: u64, length: u32 },
        Atomic { offset: u64, atomic: Atomic },
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (any::<u8>(), 0..LENGTH + 100);
        let kind = prop_oneof![
            Just(AtomicKind::FetchAdd),
            Just(AtomicKind::CompareSwap),
            Just(AtomicKind::Swap),
            Just(AtomicKind::Set)
        ];
        let width = prop_oneof![Just(Width::Four), Just(Width::Eight)];
        let atomic = (kind, width, any::<u64>(), 0..3_u64, 0..LENGTH / 8 + 10);
        prop_oneof![
            prop::collection::vec(range, 1..4).prop_map(Step::Write),
            (0..LENGTH + 100, 0..257_u32).prop_map(|(offset, length)| Step::Read { offset, length }),
            atomic.prop_map(|(kind, width, operand, compare, word)| {
                let offset = word * width.bytes();
                Step::Atomic { offset, atomic: Atomic { kind, width, operand, compare } }
            }),
        ]
    }

    proptest! {
        /// Mapped memory answers every request as the memory of plain vectors does, faults included.
        #[test]
        fn host_memory_is_a_vector_of_bytes(steps in prop::collection::vec(step(), 1..60)) {
            let frame: Vec<u8> = (0..255).collect();
            let mut host = HostMemory::default();
            let mut model = VectorMemory::default();
            host.allocate(REGION, LENGTH).unwrap();
            model.add(REGION, LENGTH as usize);
            for step in steps {
                let mut ranges = Vec::new();
                let access = match step {
                    Step::Write(parts) => {
                        ranges.extend(parts.into_iter().map(|(length, region_offset)| FrameRange {
                            frame_offset: u32::from(255 - length),
                            length: u32::from(length),
                            region_offset,
                        }));
                        MemoryAccess::Write { lease: LeaseId(0), ranges: &ranges }
                    }
                    Step::Read { offset, length } => MemoryAccess::Read { offset, length: length.min(256) },
                    Step::Atomic { offset, atomic } => MemoryAccess::Atomic { offset, atomic },
                };
                let request = MemoryRequest { token: MemoryToken(1), region: REGION, access };
                prop_assert_eq!(host.execute(&request, &frame), model.execute(&request, &frame));
            }
            let mut bytes = vec![0; LENGTH as usize];
            host.read(REGION, 0, &mut bytes).unwrap();
            prop_assert_eq!(&bytes[..], model.bytes(REGION));
        }
    }

    #[test]
    fn nothing_outside_a_region_can_be_reached() {
        let mut memory = HostMemory::default();
        memory.allocate(REGION, 100).unwrap();
        // The page goes on behind the region; it is out of bounds all the same.
        for (offset, length) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (u64::MAX - 3, 8), (1 << 40, 8)]
        {
            assert_eq!(
                memory.write(REGION, offset, &vec![1; length]),
                Err(MemoryFault::NotMapped),
                "{offset}"
            );
            assert_eq!(
                memory.read(REGION, offset, &mut vec![1; length]),
                Err(MemoryFault::NotMapped),
                "{offset}"
            );
        }
        assert_eq!(memory.write(REGION, 100, &[]), Ok(()));
        assert_eq!(memory.write(RegionId(8), 0, &[1]), Err(MemoryFault::NotMapped));
        let ranges = [FrameRange { frame_offset: 10, length: 20, region_offset: 0 }];
        let access = MemoryAccess::Write { lease: LeaseId(0), ranges: &ranges };
        let request = MemoryRequest { token: MemoryToken(1), region: REGION, access };
        assert_eq!(memory.execute(&request, &[0; 29]), Some(MemoryDone::Failed(MemoryFault::Device)));
    }

    #[test]
    fn regions_come_and_go_by_name() {
        let mut memory = HostMemory::default();
        for region in [3, 1, 2] {
            memory.allocate(RegionId(region), u64::from(region) * 10).unwrap();
        }
        assert!(memory.allocate(RegionId(2), 8).is_err());
        assert_eq!(memory.length(RegionId(3)), Some(30));
        assert_eq!(memory.free(RegionId(2)), Ok(()));
        assert_eq!(memory.free(RegionId(2)), Err(FreeRefused::NoSuchRegion(RegionId(2))));
        assert_eq!(memory.length(RegionId(2)), None);
        assert_eq!(memory.length(RegionId(1)), Some(10));
        memory.allocate(RegionId(9), 0).unwrap();
        assert!(memory.allocate(RegionId(10), u64::MAX).is_err());
    }

    #[test]
    fn a_regions_file_shows_its_bytes_and_cannot_be_cut() {
        let mut memory = HostMemory::default();
        memory.allocate(REGION, 64).unwrap();
        memory.write(REGION, 8, &[1, 2, 3]).unwrap();
        let file = memory.file(REGION).unwrap();
        let mut bytes = [0; 3];
        rustix::io::pread(file, &mut bytes, 8).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
        assert!(rustix::fs::ftruncate(file, 0).is_err());
    }

    #[test]
    fn locks_and_bindings_move_along() {
        let mut memory = HostMemory::default();
        let options = MemoryOptions { lock: true, numa_node: Some(0), ..MemoryOptions::default() };
        if let Err(cause) = memory.allocate_with(REGION, 4096, options) {
            let text = format!("SKIPPED (1): locks_and_bindings_move_along: {cause}\n");
            return std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
        }
        memory.move_to_fresh_file(REGION).unwrap();
        memory.write(REGION, 0, &[1]).unwrap();
        let placement = memory.placement(REGION).unwrap();
        assert_eq!((placement.numa_nodes, placement.locked_bytes), (vec![0], placement.resident_bytes));
        assert!(memory.granted(REGION).unwrap().locked && placement.resident_bytes > 0);
    }

    #[test]
    fn a_fresh_file_has_the_same_bytes_at_the_same_address_and_no_one_else_in_it() {
        for huge_pages in [false, true] {
            let mut memory = HostMemory::default();
            let options = MemoryOptions { huge_pages, ..MemoryOptions::default() };
            memory.allocate_with(REGION, 100_000, options).unwrap();
            memory.write(REGION, 99_990, b"the end").unwrap();
            let old = crate::mapping::duplicate(memory.file(REGION).unwrap()).unwrap();
            let granted = memory.granted(REGION).unwrap().pages;
            let address = memory.window(REGION).unwrap().range(0, 1).unwrap();
            memory.move_to_fresh_file(REGION).unwrap();
            assert_eq!(memory.window(REGION).unwrap().range(0, 1).unwrap(), address);
            assert_eq!(memory.granted(REGION).unwrap().pages, granted);
            assert_eq!(memory.placement(REGION).unwrap().huge_advised, granted == Pages::Advised);
            let mut bytes = [0; 7];
            memory.read(REGION, 99_990, &mut bytes).unwrap();
            assert_eq!(&bytes, b"the end");
            memory.write(REGION, 99_990, b"private").unwrap();
            if granted != Pages::Huge {
                rustix::io::pread(&old, &mut bytes, 99_990).unwrap();
                assert_eq!(&bytes, b"the end", "the old file stays as it was");
                rustix::io::pread(memory.file(REGION).unwrap(), &mut bytes, 99_990).unwrap();
                assert_eq!(&bytes, b"private", "the region's file is the fresh one");
            }
        }
    }
}
