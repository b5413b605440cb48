//! Pools of a node: regions whose memory is kept for later regions.
//!
//! A [`MemoryPool`] makes regions of memory on the host or on the node's device. The memory of a dropped region goes back to the pool, which hands it
//! out again or releases it to the system, as its release threshold says. So a program that allocates and frees regions of similar sizes pays for
//! memory once. A node has a default pool and a current pool for each place, and any number of further ones.
//!
//! [`crate::fabric::NodePool`] is for many small blocks of a few regions that all have one key. Here each allocation is a region of its own.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rackloom_plan::MemoryOptions;
use rackloom_protocol::{Access, NodeId};

use super::error::{Error, Invalid};
use super::node::{Node, announce};
use super::on_device;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::local::exports::Exports;
use crate::fabric::memory::bytes::Bytes;
use crate::fabric::memory::pooled::{NodePools, PoolState, PooledBytes, Segment};
use crate::fabric::memory::region::{Region, RegionOptions};
use crate::memory::{DeviceChoice, DeviceRegions};
use crate::pool::cache::{Found, FreePiece, REUSE_WAIT_MS};
use crate::pool::{ReusePolicies, Statistics};

/// Granularity in bytes of memory on the host and on a fake device.
const PAGE_BYTES: u64 = 4096;
/// Granularity in bytes of memory on a GPU: a handle opens whole blocks.
const BLOCK_BYTES: u64 = 2 << 20;
/// Interval between looks at memory that other nodes use, for an allocation that waits for it.
const LOOK_INTERVAL: Duration = Duration::from_micros(200);

/// Pool of a node's memory, on the host or on the node's device. All clones refer to the same pool.
///
/// The pool ends with its last handle and its last region. A dropped region gives its memory back when no operation of this node uses it any more.
/// Memory that other nodes still have mapped is handed out again under [`ReusePolicies`], and never released before they have closed it.
///
/// `Send` and `Sync`. Any number of threads may call any method.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    engine: Arc<Engine>,
    state: Arc<PoolState>,
}

impl Node {
    /// Returns the node's default pool on a device, or on the host if `device` is `None`. The first call makes it; the first call for a device opens
    /// the device. Its release threshold and reuse policies are those of the rack file (`pool_release_threshold` and `pool_reuse` of the node's `memory`): 0 and all
    /// policies unless stated.
    ///
    /// # Errors
    /// [`Error::System`] with a hint if there is no such device; [`Error::Invalid`] for a second device; [`Error::Closed`].
    pub fn default_pool(&self, device: Option<DeviceChoice>) -> Result<MemoryPool, Error> {
        self.pool_of(device, NodePools::default_of)
    }

    /// Returns the pool that was set with [`Node::set_current_pool`], or else the default pool.
    ///
    /// # Errors
    /// Those of [`Node::default_pool`].
    pub fn current_pool(&self, device: Option<DeviceChoice>) -> Result<MemoryPool, Error> {
        self.pool_of(device, NodePools::current_of)
    }

    /// Makes a pool current for its place: [`Node::current_pool`] returns it from now on. The node keeps it until another pool is current.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pool belongs to another node.
    pub fn set_current_pool(&self, pool: &MemoryPool) -> Result<(), Error> {
        if !Arc::ptr_eq(&pool.engine, self.engine()) {
            return Err(Error::Invalid(Invalid::OtherNode));
        }
        self.pools().lock().unwrap_or_else(PoisonError::into_inner).set_current(&pool.state);
        Ok(())
    }

    /// Makes another pool, on a device or on the host. It is independent of all other pools, with a release threshold of 0 and all reuse policies.
    ///
    /// # Errors
    /// Those of [`Node::default_pool`].
    pub fn new_pool(&self, device: Option<DeviceChoice>) -> Result<MemoryPool, Error> {
        self.pool_of(device, |_, device, _| Arc::new(PoolState::new(device)))
    }

    fn pool_of(
        &self,
        device: Option<DeviceChoice>,
        find: impl FnOnce(&mut NodePools, Option<DeviceChoice>, MemoryOptions) -> Arc<PoolState>,
    ) -> Result<MemoryPool, Error> {
        match device {
            Some(device) => drop(on_device::device_of(self.engine(), device)?),
            None => self.with_core(|core| core.member().map(|_| ()))?,
        }
        let mut pools = self.pools().lock().unwrap_or_else(PoisonError::into_inner);
        let state = find(&mut pools, device, self.engine().memory);
        Ok(MemoryPool { engine: Arc::clone(self.engine()), state })
    }
}

impl MemoryPool {
    /// Returns the device of the memory, or `None` for the host.
    #[must_use]
    pub fn device(&self) -> Option<DeviceChoice> {
        self.state.device
    }

    /// Allocates a region of `length` bytes from the pool. `tag` is its purpose, which reports of leaks show. The bytes are zero only if the system
    /// has just provided them: a pool does not clear memory that it hands out again. Nodes of the same server and tenant map the region as one of
    /// [`Node::allocate`] or [`Node::allocate_on_device`].
    ///
    /// # Errors
    /// Those of [`Node::allocate`]; [`Error::System`] with a hint if the device has no memory.
    pub fn allocate(&self, options: RegionOptions, length: u64, tag: &str) -> Result<Region, Error> {
        let mapped = usize::try_from(length).map_err(|_| Error::Invalid(Invalid::RegionTooLarge))?;
        let unit = match self.state.device {
            Some(DeviceChoice::Cuda(_)) => BLOCK_BYTES,
            Some(DeviceChoice::Fake(_)) | None => PAGE_BYTES,
        };
        let wanted = length.max(1).checked_next_multiple_of(unit);
        let free = self.take(wanted.ok_or(Error::Invalid(Invalid::RegionTooLarge))?)?;
        let pooled = PooledBytes::new(&self.state, free, tag);
        // The lock is held until the region is announced, so that no change of the rights misses it.
        let rights = self.rights();
        announce(&self.engine, options, Bytes::pooled(pooled, mapped), &rights)
    }

    /// Sets the access rights of one node to all regions of the pool, those that exist and later ones, in place of those of [`RegionOptions`]. `None`
    /// removes them. All mappings of the regions end, also those of other nodes: operations map a region again, and a view ([`Node::map_peer`]) has
    /// to be mapped again.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] if the plan has no such GPU node; [`Error::Closed`].
    pub fn set_access(&self, node: NodeId, access: Option<Access>) -> Result<(), Error> {
        let mut rights = self.rights();
        let mut held = self.engine.hold();
        let core = held.core();
        core.check_endpoints(&[node])?;
        rights.retain(|(known, _)| *known != node);
        rights.extend(access.map(|access| (node, access)));
        let is_ours =
            |bytes: &Bytes| bytes.pooled_bytes().is_some_and(|pooled| Arc::ptr_eq(&pooled.pool, &self.state));
        let memory = core.member()?.memory_mut();
        let regions: Vec<_> =
            memory.regions_in_use().filter(|(_, bytes)| is_ours(bytes)).map(|(region, _)| region).collect();
        regions.into_iter().try_for_each(|region| core.set_access(region, node, access))
    }

    /// Returns the access rights that were set for a node with [`MemoryPool::set_access`]. `None`: those of each region's options.
    #[must_use]
    pub fn access(&self, node: NodeId) -> Option<Access> {
        self.rights().iter().find(|(known, _)| *known == node).map(|(_, access)| *access)
    }

    /// Lock order: before the node's lock.
    fn rights(&self) -> MutexGuard<'_, Vec<(NodeId, Access)>> {
        self.state.rights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the number of bytes above which the pool releases unused memory to the system, whenever a region gives memory back. 0 by default: nothing
    /// unused is kept. `u64::MAX` keeps everything.
    pub fn set_release_threshold(&self, bytes: u64) {
        self.state.lock().release_threshold = bytes;
    }

    /// Returns the release threshold, in bytes.
    #[must_use]
    pub fn release_threshold(&self) -> u64 {
        self.state.lock().release_threshold
    }

    /// Sets the policies for memory that other nodes still have mapped.
    pub fn set_reuse_policies(&self, policies: ReusePolicies) {
        self.state.lock().reuse = policies;
    }

    /// Returns the policies for memory that other nodes still have mapped.
    #[must_use]
    pub fn reuse_policies(&self) -> ReusePolicies {
        self.state.lock().reuse
    }

    /// Releases unused memory to the system, the oldest first, until at most `keep_bytes` stay reserved. Memory in use and memory that other nodes
    /// have mapped stays. Returns the number of bytes released.
    #[expect(clippy::must_use_candidate, reason = "called for its effect")]
    pub fn trim(&self, keep_bytes: u64) -> u64 {
        let mut cache = self.state.lock();
        let before = cache.statistics.reserved.current;
        let released = cache.trim(keep_bytes);
        let bytes = before - cache.statistics.reserved.current;
        drop(cache);
        // Without the pool's lock: memory of a device waits for the device.
        drop(released);
        bytes
    }

    /// Returns the counters. *Reserved* is the memory that the pool holds; *used* is the part that regions hold, in whole pages, or in whole blocks of
    /// 2 MiB on a GPU.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.state.lock().statistics
    }

    /// Resets the recorded maximum values to the current ones.
    pub fn reset_high(&self) {
        let statistics = &mut self.state.lock().statistics;
        statistics.reserved.reset_high();
        statistics.used.reset_high();
    }

    /// Takes a piece of at least `bytes` out of the pool, or reserves one.
    fn take(&self, bytes: u64) -> Result<FreePiece<Arc<Segment>>, Error> {
        let until = self.engine.clock.now() + REUSE_WAIT_MS * 1_000_000;
        loop {
            // Taken before the pool's lock: bytes are dropped under the node's lock, and give their memory back then.
            let exports = self.engine.hold().core().local.as_ref().map(|local| local.exports());
            let is_used = |free: &FreePiece<Arc<Segment>>| is_used(exports.as_deref(), free);
            match self.state.lock().take(bytes, is_used) {
                Found::Piece(mut free) => {
                    let exports = exports.as_deref().map(Exports::lock);
                    free.exports
                        .retain(|export| exports.as_ref().is_some_and(|exports| exports.is_kept(*export)));
                    return Ok(free);
                }
                Found::InUse if self.engine.clock.now() < until => {}
                Found::InUse | Found::Nothing => break,
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        let system = Error::system("cannot allocate a region");
        let segment = match self.state.device {
            None => Segment::on_host(bytes).map_err(system)?,
            Some(device) => {
                let placing = |regions: &mut DeviceRegions, region| {
                    regions.allocate_apart(region, bytes, false).map_err(system)
                };
                Segment::on_device(on_device::place(&self.engine, device, placing)?, bytes)
            }
        };
        self.state.lock().reserve(bytes);
        Ok(FreePiece { piece: Arc::new(segment), exports: Vec::new() })
    }
}

/// Returns `true` if another node may be in an access to a piece that it has open.
fn is_used(exports: Option<&Exports>, free: &FreePiece<Arc<Segment>>) -> bool {
    // Every holder besides the pool is an ended export.
    let holders = Arc::strong_count(&free.piece) - 1;
    exports.is_none_or(|exports| exports.lock().quiet_among(&free.exports) < holders)
}
