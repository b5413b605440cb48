//! Blocks in the regions of a node: many small allocations without a registration for each.
//!
//! [`NodePool`] connects [`crate::pool::Pool`], which decides what is free, with the regions of a [`Node`]. All regions of a pool have one key and
//! one set of access rights, so a peer that may access one block may access all of them. Memory of that kind belongs in one pool; other memory in
//! another.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;

use rackloom_protocol::{RegionId, RemoteAddress, Tenant};

use super::node::Node;
use crate::fabric::memory::region::{Region, RegionOptions, Slice};
use crate::pool::{Block, BlockRequest, LeakReport, Pool, PoolError, PoolMemory, PoolOptions};

/// Pool of blocks in regions of one node, made by [`Node::pool`]. Dereferences to [`Pool`] for its counters and reports.
///
/// Peers access a block at [`NodePool::address`]. The regions end with the pool, also where blocks are still allocated;
/// [`NodePool::on_leak`] reports these.
///
/// `Send`, not `Sync`: one thread uses it at a time, and it may move to another thread.
#[derive(Debug)]
pub struct NodePool {
    pool: Pool,
    regions: NodeRegions,
}

/// Regions of a pool, by number.
#[derive(Debug)]
struct NodeRegions {
    node: Node,
    options: RegionOptions,
    held: BTreeMap<RegionId, Region>,
}

impl PoolMemory for NodeRegions {
    fn reserve(&mut self, region: RegionId, bytes: u64) -> Result<(), PoolError> {
        let options = RegionOptions { region, ..self.options };
        let made = self.node.allocate(options, bytes).map_err(io::Error::other)?;
        self.held.insert(region, made);
        Ok(())
    }

    fn release(&mut self, region: RegionId) -> bool {
        self.held.remove(&region).is_some()
    }
}

impl Node {
    /// Makes a pool of `bytes`, in a region with these options. A pool that grows numbers its regions upwards from the first one.
    ///
    /// # Errors
    /// [`PoolError::System`] with the error of [`Node::allocate`].
    pub fn pool(&self, first: RegionOptions, bytes: u64) -> Result<NodePool, PoolError> {
        let mut regions = NodeRegions { node: self.clone(), options: first, held: BTreeMap::new() };
        let pool = Pool::new(&mut regions, bytes, PoolOptions::fixed(first.region))?;
        Ok(NodePool { pool, regions })
    }
}

impl NodePool {
    /// Lets the pool add regions of at least `growth_bytes` when it has no free space, up to `reserved_bytes_max` in all.
    #[must_use]
    pub fn growing(mut self, growth_bytes: u64, reserved_bytes_max: u64) -> Self {
        self.pool.set_growth(growth_bytes, reserved_bytes_max);
        self
    }

    /// Allocates a block. Its bytes are not zeroed if an earlier block had them.
    ///
    /// # Errors
    /// Those of [`Pool::allocate`].
    pub fn allocate(&mut self, wanted: BlockRequest<'_>) -> Result<Block, PoolError> {
        self.pool.allocate(&mut self.regions, wanted)
    }

    /// Frees a block. Peers may access its bytes until its region ends, and should no longer do so.
    ///
    /// # Errors
    /// [`PoolError::NotAllocated`] if the block belongs to another pool, or was freed before.
    pub fn free(&mut self, block: Block) -> Result<(), PoolError> {
        self.pool.free(block)
    }

    /// Ends regions without a block, as [`Pool::trim`] does. Returns the number of bytes released.
    pub fn trim(&mut self, keep_bytes: u64) -> u64 {
        self.pool.trim(&mut self.regions, keep_bytes)
    }

    /// Sets the limit of a tenant, in bytes, as [`Pool::set_quota`] does.
    pub fn set_quota(&mut self, tenant: Tenant, limit: Option<u64>) {
        self.pool.set_quota(tenant, limit);
    }

    /// Resets the recorded maximum values to the current ones.
    pub fn reset_high(&mut self) {
        self.pool.reset_high();
    }

    /// Sets the function that is called with the leak report if blocks are still allocated when the pool is dropped.
    pub fn on_leak(&mut self, listener: impl FnMut(&LeakReport) + Send + 'static) {
        self.pool.on_leak(listener);
    }

    /// Returns the region of the block, where the block begins at [`Block::offset`]. `None` if the block belongs to another pool.
    #[must_use]
    pub fn region(&self, block: &Block) -> Option<&Region> {
        self.regions.held.get(&block.region)
    }

    /// Returns the block's bytes as the local end of a transfer. `None` if the block belongs to another pool.
    #[must_use]
    pub fn slice(&self, block: &Block) -> Option<Slice> {
        let region = self.region(block)?;
        Some(region.slice(block.offset..block.offset + block.bytes))
    }

    /// Returns the address with which peers access the byte at `offset` of the block. `None` if the block belongs to another pool.
    #[must_use]
    pub fn address(&self, block: &Block, offset: u64) -> Option<RemoteAddress> {
        Some(self.region(block)?.address(block.offset + offset))
    }
}

impl Deref for NodePool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
