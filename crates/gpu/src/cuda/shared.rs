//! Pools of a device whose memory processes share: the pool of this device, made with its first allocation, and allocations opened
//! from the pools of others. `sharing` has the operations.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use super::pool::{PointerHandle, Pool};
use crate::device::{Address, HANDLE_BYTES, PoolStatistics, Shared};
use crate::error::GpuError;

/// Upper limit for the length of an opened allocation, in bytes: more than a device has.
const PART_BYTES_MAX: u64 = 1 << 40;

/// Pools of a device: its own and those of other processes.
#[derive(Debug, Default)]
pub(super) struct SharedPools {
    pub(super) own: Option<Pool>,
    /// Length of each allocation that was not freed, by its address.
    pub(super) allocated: BTreeMap<u64, u64>,
    /// Handles made here. They cannot be opened here.
    pub(super) handles: BTreeSet<[u8; HANDLE_BYTES]>,
    /// Opened pools by the address of the allocation here.
    pub(super) opened: BTreeMap<u64, Pool>,
}

impl SharedPools {
    pub(super) fn holds(&self, address: Address) -> bool {
        self.allocated.contains_key(&address.0)
    }

    /// Returns true if an address may be in memory of a pool. The driver does not report the length of an opened part, so it counts as
    /// the largest.
    pub(super) fn may_hold(&self, address: Address) -> bool {
        let below = self.allocated.range(..=address.0).next_back();
        let opened = self.opened.range(..=address.0).next_back();
        below.is_some_and(|(start, bytes)| address.0 - start < *bytes)
            || opened.is_some_and(|(start, _)| address.0 - start < PART_BYTES_MAX)
    }

    pub(super) fn statistics(&self) -> Result<Option<PoolStatistics>, GpuError> {
        self.own.as_ref().map(Pool::statistics).transpose()
    }

    pub(super) fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        let pool = self.own.as_ref().ok_or(GpuError::NotSupported { function: "share" })?;
        // The order matters: the driver exports pointers only of pools that it has exported.
        let file = pool.export()?;
        let PointerHandle(handle) = pool.export_pointer(address)?;
        self.handles.insert(handle);
        Ok(Shared { handle, file: Some(file) })
    }

    /// Gives everything back. Memory of others goes first, because their owners may wait for it. Errors cannot be reported.
    pub(super) fn drop_all(&mut self) {
        for (address, pool) in std::mem::take(&mut self.opened) {
            drop(pool.free_on(ptr::null_mut(), Address(address)));
        }
        for address in std::mem::take(&mut self.allocated).into_keys() {
            drop(self.own.as_ref().map(|pool| pool.free_on(ptr::null_mut(), Address(address))));
        }
    }
}
