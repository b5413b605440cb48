//! Memory of a pool: its pieces, and the pool's state that pieces come back to.
//!
//! A piece is one file of pages, or one allocation of a device. A region of a pool uses a whole piece, which comes back when the region's bytes are
//! dropped: after the last handle, and after the last operation of this node. Importers of an ended export keep the piece itself
//! ([`crate::sharing::MemoryOwner`]), not the bytes, so a piece that came back may still be open.
//!
//! Lock order: the node's lock, the pool's, then the exporter's or the device's. No method here takes the node's lock.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rackloom_plan::MemoryOptions;
use rackloom_protocol::{Access, NodeId};

use super::device_memory::DeviceBytes;
use crate::mapping::{Mapping, sealed_memfd};
use crate::memory::{DeviceChoice, Offer};
use crate::pool::cache::{Cache, FreePiece, Piece};

/// One piece of a pool.
#[derive(Debug)]
pub(in crate::fabric) struct Segment {
    memory: SegmentMemory,
    bytes: u64,
}

#[derive(Debug)]
enum SegmentMemory {
    Pages { mapping: Mapping, file: OwnedFd },
    Device(DeviceBytes),
}

impl Segment {
    /// Allocates zeroed pages.
    pub(in crate::fabric) fn on_host(bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let file = sealed_memfd("rackloom-pool", bytes)?;
        let mapping = Mapping::new(file.as_fd(), length)?;
        Ok(Self { memory: SegmentMemory::Pages { mapping, file }, bytes })
    }

    /// Uses an allocation of a device.
    pub(in crate::fabric) const fn on_device(memory: DeviceBytes, bytes: u64) -> Self {
        Self { memory: SegmentMemory::Device(memory), bytes }
    }

    /// Returns the memory of the device, if the piece is on one.
    pub(in crate::fabric) const fn device(&self) -> Option<&DeviceBytes> {
        match &self.memory {
            SegmentMemory::Device(bytes) => Some(bytes),
            SegmentMemory::Pages { .. } => None,
        }
    }

    /// Lets other processes open memory of a device.
    pub(in crate::fabric) fn offer(&self) -> io::Result<Offer> {
        let memory = self.device().ok_or(io::ErrorKind::Unsupported)?;
        memory.memory.offer(memory.region)
    }

    /// Returns the pages and their file, if the piece is on the host.
    pub(in crate::fabric) const fn pages(&self) -> Option<(&Mapping, &OwnedFd)> {
        match &self.memory {
            SegmentMemory::Pages { mapping, file } => Some((mapping, file)),
            SegmentMemory::Device(_) => None,
        }
    }
}

impl Piece for Arc<Segment> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_open(&self) -> bool {
        // Besides the free piece itself, only ended exports have one.
        Self::strong_count(self) > 1
    }
}

/// Pool of a node.
#[derive(Debug)]
pub(in crate::fabric) struct PoolState {
    /// Device of the memory, or `None` for the host.
    pub(in crate::fabric) device: Option<DeviceChoice>,
    cache: Mutex<Cache<Arc<Segment>>>,
    /// Access rights of single nodes to all regions of the pool.
    pub(in crate::fabric) rights: Mutex<Vec<(NodeId, Access)>>,
}

impl PoolState {
    pub(in crate::fabric) fn new(device: Option<DeviceChoice>) -> Self {
        Self { device, cache: Mutex::default(), rights: Mutex::default() }
    }

    /// Enters a poisoned lock too: each change is complete before anything can panic.
    pub(in crate::fabric) fn lock(&self) -> MutexGuard<'_, Cache<Arc<Segment>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pools of a node. The first one of each pair is on the host, the second one on the device.
#[derive(Debug, Default)]
pub(in crate::fabric) struct NodePools {
    defaults: [Option<Arc<PoolState>>; 2],
    /// `None`: the default one.
    current: [Option<Arc<PoolState>>; 2],
}

impl NodePools {
    /// `memory` holds the settings of the rack file for a new default pool.
    pub(in crate::fabric) fn default_of(
        &mut self,
        device: Option<DeviceChoice>,
        memory: MemoryOptions,
    ) -> Arc<PoolState> {
        let place = &mut self.defaults[usize::from(device.is_some())];
        let new = || {
            let state = PoolState::new(device);
            state.lock().release_threshold = memory.pool_release_threshold;
            state.lock().reuse = memory.pool_reuse.into();
            Arc::new(state)
        };
        Arc::clone(place.get_or_insert_with(new))
    }

    pub(in crate::fabric) fn current_of(
        &mut self,
        device: Option<DeviceChoice>,
        memory: MemoryOptions,
    ) -> Arc<PoolState> {
        let current = self.current[usize::from(device.is_some())].clone();
        current.unwrap_or_else(|| self.default_of(device, memory))
    }

    pub(in crate::fabric) fn set_current(&mut self, pool: &Arc<PoolState>) {
        self.current[usize::from(pool.device.is_some())] = Some(Arc::clone(pool));
    }
}

/// Piece of a pool that a region uses. Dropping the value gives the piece back.
#[derive(Debug)]
pub(in crate::fabric) struct PooledBytes {
    /// `None` only while the value is dropped.
    segment: Option<Arc<Segment>>,
    pub(in crate::fabric) pool: Arc<PoolState>,
    /// Purpose of the allocation.
    pub(in crate::fabric) tag: String,
    /// Ended exports of the piece whose importers had it open.
    exports: Mutex<Vec<u64>>,
}

impl PooledBytes {
    /// Uses a piece that the pool has handed out.
    pub(in crate::fabric) fn new(pool: &Arc<PoolState>, free: FreePiece<Arc<Segment>>, tag: &str) -> Self {
        let FreePiece { piece, exports } = free;
        let (pool, exports) = (Arc::clone(pool), Mutex::new(exports));
        Self { segment: Some(piece), pool, tag: tag.to_owned(), exports }
    }

    /// Remembers an ended export whose importers have the piece open.
    pub(in crate::fabric) fn note_export(&self, generation: u64) {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner).push(generation);
    }

    /// Returns the piece.
    pub(in crate::fabric) const fn segment(&self) -> &Arc<Segment> {
        self.segment.as_ref().expect("the piece goes back when the value is dropped")
    }

    /// Returns the length of the piece in bytes.
    pub(in crate::fabric) fn reserved_bytes(&self) -> u64 {
        self.segment().bytes()
    }
}

impl Drop for PooledBytes {
    fn drop(&mut self) {
        let exports = std::mem::take(self.exports.get_mut().unwrap_or_else(PoisonError::into_inner));
        let Some(piece) = self.segment.take() else { return };
        let released = self.pool.lock().give(FreePiece { piece, exports });
        // Without the pool's lock: memory of a device waits for the device.
        drop(released);
    }
}
