//! The bytes of a fake device, by address: its own memory, and pinned memory of the host at the host's addresses.
//!
//! Its own memory lies at addresses that no host memory has, so that a host that reaches for it directly is found out.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::GpuError;
use crate::pinned::Pinned;

/// Where its memory begins: beyond what a process of ours can map.
const FIRST: u64 = 1 << 60;
/// Allocations begin at multiples of this, as on a real device.
const GRANULE: u64 = 256;

#[derive(Debug, Default)]
pub(super) struct Store {
    own: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// Start and length; shared with those who give pinned memory back.
    pinned: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Store {
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64, GpuError> {
        let length = usize::try_from(bytes).ok().filter(|length| *length <= isize::MAX as usize / 2);
        let length = length.ok_or(GpuError::OutOfMemory { function: "allocate" })?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(length).map_err(|_| GpuError::OutOfMemory { function: "allocate" })?;
        memory.resize(length, 0);
        let address = FIRST + self.next;
        self.next += (bytes.max(1)).next_multiple_of(GRANULE) + GRANULE;
        self.own.insert(address, memory);
        Ok(address)
    }

    pub(super) fn free(&mut self, address: u64) -> Result<(), GpuError> {
        self.own.remove(&address).map(|_| ()).ok_or(GpuError::OutOfRange {
            offset: address,
            bytes: 0,
            length: 0,
        })
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

    /// Memory of the host that is somebody else's and stays where it is.
    pub(super) fn pin_pages(&mut self, start: u64, bytes: usize) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(start, bytes);
    }

    /// Whether a range lies within one allocation.
    pub(super) fn check(&self, address: u64, bytes: u64) -> Result<(), GpuError> {
        let fits =
            |start: u64, length: u64| (address - start).checked_add(bytes).is_some_and(|end| end <= length);
        let own = self.own.range(..=address).next_back();
        if own.is_some_and(|(start, memory)| fits(*start, memory.len() as u64)) {
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
            out.copy_from_slice(&memory[from..from + out.len()]);
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
        if let Some((start, memory)) = self.own.range_mut(..=address).next_back() {
            let from = (address - start) as usize;
            memory[from..from + bytes.len()].copy_from_slice(bytes);
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
        self.narrow_word(address, 8)
    }

    /// A little-endian word of at most 8 bytes.
    pub(super) fn narrow_word(&self, address: u64, width: u32) -> Result<u64, GpuError> {
        let mut bytes = [0; 8];
        let out = bytes.get_mut(..width as usize).ok_or(GpuError::NotSupported { function: "atomics" })?;
        self.read(address, out)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
