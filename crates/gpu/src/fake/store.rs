//! Memory of a fake device by address: its own memory, and pinned memory of the host at the host's addresses.
//!
//! Its own memory has addresses that no host memory has, so that a direct access by the host is detected.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::block::{Block, GRANULE};
use super::pool::FilePool;
use crate::device::{HANDLE_BYTES, PoolStatistics, Shared};
use crate::error::GpuError;
use crate::pinned::Pinned;

/// First address of its own memory: beyond the addresses that a process can map.
const FIRST: u64 = 1 << 60;
/// Number of stores that this process has had. Each counts as a process of its own.
static STORES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(super) struct Store {
    /// Process and number of the store. A handle carries it as its maker.
    name: [u64; 2],
    own: BTreeMap<u64, Block>,
    next: u64,
    pool: Option<FilePool>,
    /// Offset of each allocation of the pool in its file, by address.
    pooled: BTreeMap<u64, u64>,
    /// Length of pinned ranges by their start. The owners of pinned memory share it to remove theirs.
    pinned: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Store {
    pub(super) fn new() -> Self {
        let name = [u64::from(std::process::id()), STORES.fetch_add(1, Ordering::Relaxed)];
        Self {
            name,
            own: BTreeMap::new(),
            next: 0,
            pool: None,
            pooled: BTreeMap::new(),
            pinned: Arc::default(),
        }
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64, GpuError> {
        let none = || GpuError::OutOfMemory { function: "allocate" };
        let length = usize::try_from(bytes).ok().filter(|length| *length <= isize::MAX as usize / 2);
        let block = Block::allocate(length.ok_or_else(none)?).ok_or_else(none)?;
        Ok(self.add(block))
    }

    pub(super) fn allocate_from_pool(&mut self, bytes: u64) -> Result<u64, GpuError> {
        let none = |_: std::io::Error| GpuError::OutOfMemory { function: "allocate_from_pool" };
        let pool = match &mut self.pool {
            Some(pool) => pool,
            none_yet => none_yet.insert(FilePool::new().map_err(none)?),
        };
        let start = pool.take(bytes).map_err(none)?;
        let block = Block::map(pool.file(), start, bytes as usize).map_err(none)?;
        let address = self.add(block);
        self.pooled.insert(address, start);
        Ok(address)
    }

    pub(super) fn pool_statistics(&self) -> Option<PoolStatistics> {
        self.pool.as_ref().map(FilePool::statistics)
    }

    /// Adds a block. Blocks touch where their lengths allow it, as on a real device, so that an access across an end is detected.
    fn add(&mut self, block: Block) -> u64 {
        let address = FIRST + self.next;
        self.next += (block.length() as u64).max(1).next_multiple_of(GRANULE);
        self.own.insert(address, block);
        address
    }

    /// Makes a handle from the store's name, the length, and the offset in the file.
    pub(super) fn share(&mut self, address: u64) -> Result<Shared, GpuError> {
        let unknown = GpuError::OutOfRange { offset: address, bytes: 0, length: 0 };
        let block = self.own.get_mut(&address).ok_or(unknown)?;
        let refused = |cause| GpuError::system("sharing memory of a fake device", &cause);
        let (start, file) = match (self.pooled.get(&address), &self.pool) {
            (Some(start), Some(pool)) => (*start, pool.file().try_clone_to_owned().map_err(refused)?),
            _ => (0, block.share().map_err(refused)?),
        };
        let mut handle = [0; HANDLE_BYTES];
        let words = [self.name[0], self.name[1], block.length() as u64, start];
        for (target, word) in handle.chunks_exact_mut(8).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        Ok(Shared { handle, file: Some(file) })
    }

    pub(super) fn open(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<u64, GpuError> {
        let mut words = handle
            .chunks_exact(8)
            .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        let maker = [words.next(), words.next()];
        let [length, start] = [words.next(), words.next()].map(Option::unwrap_or_default);
        if maker == self.name.map(Some) {
            return Err(GpuError::OwnHandle);
        }
        let refused = |cause| GpuError::system("opening memory of another fake device", &cause);
        let file = file.ok_or_else(|| refused(std::io::ErrorKind::NotFound.into()))?;
        let found = rustix::fs::fstat(file).map_err(|cause| refused(cause.into()))?.st_size;
        let found = u64::try_from(found).unwrap_or(0);
        if start.checked_add(length).is_none_or(|end| end > found) {
            return Err(GpuError::OutOfRange { offset: start, bytes: length, length: found });
        }
        let block = Block::map(file, start, length as usize).map_err(refused)?;
        Ok(self.add(block))
    }

    pub(super) fn close(&mut self, address: u64) -> Result<(), GpuError> {
        self.free(address)
    }

    pub(super) fn free(&mut self, address: u64) -> Result<(), GpuError> {
        let unknown = GpuError::OutOfRange { offset: address, bytes: 0, length: 0 };
        drop(self.own.remove(&address).ok_or(unknown)?);
        if let (Some(start), Some(pool)) = (self.pooled.remove(&address), &mut self.pool) {
            pool.give(start);
        }
        Ok(())
    }

    pub(super) fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError> {
        let none = || GpuError::OutOfMemory { function: "pin" };
        let layout = Layout::from_size_align(bytes.max(1), 4096).map_err(|_| none())?;
        // SAFETY: needed because several sides touch pinned memory, so it is no Rust value. The layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(none)?;
        let known = Arc::clone(&self.pinned);
        let start = base.as_ptr().addr() as u64;
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(start, bytes);
        let give_back = move |base: NonNull<u8>| {
            known.lock().unwrap_or_else(PoisonError::into_inner).remove(&start);
            // SAFETY: needed to give it back. It came from `alloc_zeroed` with this layout, and is given back once.
            unsafe { dealloc(base.as_ptr(), layout) };
        };
        // The address must come back as a pointer when a stream uses it.
        base.as_ptr().expose_provenance();
        // SAFETY: the memory is valid until `give_back`.
        Ok(unsafe { Pinned::new(base, bytes, give_back) })
    }

    /// Pins host memory that has another owner.
    pub(super) fn pin_pages(&mut self, start: u64, bytes: usize) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(start, bytes);
    }

    /// Unpins such memory.
    pub(super) fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError> {
        let unknown = GpuError::OutOfRange { offset: start, bytes: 0, length: 0 };
        let known = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).remove(&start);
        known.map(|_| ()).ok_or(unknown)
    }

    /// Refuses a range that is not within one allocation.
    pub(super) fn check(&self, address: u64, bytes: u64) -> Result<(), GpuError> {
        let fits =
            |start: u64, length: u64| (address - start).checked_add(bytes).is_some_and(|end| end <= length);
        let own = self.own.range(..=address).next_back();
        if own.is_some_and(|(start, memory)| fits(*start, memory.length() as u64)) {
            return Ok(());
        }
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        match pinned.range(..=address).next_back() {
            Some((start, length)) if fits(*start, *length as u64) => Ok(()),
            _ => Err(GpuError::OutOfRange { offset: address, bytes, length: 0 }),
        }
    }

    pub(super) fn read(&self, address: u64, out: &mut [u8]) -> Result<(), GpuError> {
        self.check(address, out.len() as u64)?;
        if let Some((start, memory)) = self.own.range(..=address).next_back() {
            let from = (address - start) as usize;
            memory.read(from, out);
            return Ok(());
        }
        let source = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: needed because pinned memory is no slice. `check` has found the range in pinned memory that has not been
        // given back.
        unsafe { ptr::copy_nonoverlapping(source, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.check(address, bytes.len() as u64)?;
        if let Some((start, memory)) = self.own.range(..=address).next_back() {
            let from = (address - start) as usize;
            memory.write(from, bytes);
            return Ok(());
        }
        let target = ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: as for `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    pub(super) fn copy(&mut self, target: u64, source: u64, bytes: u64) -> Result<(), GpuError> {
        self.check(source, bytes)?;
        self.check(target, bytes)?;
        let mut held = vec![0; bytes as usize];
        self.read(source, &mut held)?;
        self.write(target, &held)
    }

    pub(super) fn word(&self, address: u64) -> Result<u64, GpuError> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Changes a little-endian word of 4 or 8 bytes of the device's own memory atomically, and returns the old value.
    pub(super) fn change(
        &mut self,
        address: u64,
        width: u32,
        new: impl Fn(u64) -> u64,
    ) -> Result<u64, GpuError> {
        self.check(address, width.into())?;
        let block = self.own.range(..=address).next_back();
        let changed = block.and_then(|(start, block)| block.change((address - start) as usize, width, new));
        changed.ok_or(GpuError::NotSupported { function: "atomics" })
    }
}
