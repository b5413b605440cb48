//! Memory that peers may access: its number and key, and the owner's access to it.
//!
//! Peers may write to a region at any time, so its bytes are copied in and out. Two reads are consistent: that of a word of 4 or 8 bytes, and
//! that of data after its signal.

use std::ops::{Bound, RangeBounds};
use std::ptr::NonNull;
use std::sync::Arc;

use rackloom_protocol::{
    Access, Arithmetic, Key, LocalRange, MemoryFault, NodeId, Number, OperationError, RegionId, RemoteAddress,
};

use super::bytes::Bytes;
use super::element::{Element, bytes_of, bytes_of_mut};
use crate::fabric::engine::core::Core;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::error::{Error, Invalid};

/// Number, key and access rights of a region. The owner chooses all of them, and the program distributes them to peers.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionOptions {
    /// Number of the region, unique at its owner.
    pub region: RegionId,
    /// Key that accesses must bear.
    pub key: Key,
    /// Access rights of peers. All kinds of access unless changed.
    pub access: Access,
}

impl RegionOptions {
    /// Returns options for a region that accesses with `key` may read, write and update with atomics.
    #[must_use]
    pub const fn new(region: u32, key: u64) -> Self {
        Self { region: RegionId(region), key: Key(key), access: Access::ALL }
    }

    /// Sets the access rights.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }
}

/// Region of a node of this process. All clones refer to the same region. When the last one is dropped, remote access ends at once. The
/// number is free when no operation of this node uses the bytes any more ([`crate::fabric::Node::wait_until_free`]).
///
/// `Send` and `Sync`. Several threads may call any method. Two calls that access the same bytes at the same time read or
/// leave a mixture, except for aligned words of 4 or 8 bytes.
#[derive(Clone, Debug)]
pub struct Region {
    pub(in crate::fabric) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(in crate::fabric) struct Inner {
    pub(in crate::fabric) engine: Arc<Engine>,
    pub(in crate::fabric) options: RegionOptions,
    pub(in crate::fabric) bytes: Arc<Bytes>,
}

/// Part of a [`Region`], as the local end of a transfer. Keeps the region.
///
/// `Send` and `Sync`, as the region is.
#[derive(Clone, Debug)]
pub struct Slice {
    pub(in crate::fabric) region: Region,
    pub(in crate::fabric) range: LocalRange,
}

impl Region {
    /// Returns the length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a region's length is chosen, not found out")]
    pub fn len(&self) -> u64 {
        self.inner.bytes.length()
    }

    /// Returns the region's address in the memory of its device, for kernels. `None` for memory of the host.
    #[must_use]
    pub fn device_address(&self) -> Option<u64> {
        self.inner.bytes.device()?.address()
    }

    /// Returns the address of the first byte in this process. `None` for memory of a device. Peers may change the bytes at any time, so they are
    /// accessed through raw pointers or atomics. The address is valid as long as a handle of the region exists.
    ///
    /// ```
    /// # use rackloom::fabric::{DeviceChoice, Fabric, Plan, RegionOptions};
    /// # let fabric = Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?)?;
    /// # let [initiator, target] = fabric.nodes() else { unreachable!() };
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// let region = target.allocate(RegionOptions::new(1, 7), 64)?;
    /// let word = region.host_address().expect("memory of the host").cast::<AtomicU64>();
    /// initiator.fetch_add::<u64>(region.address(0), 5).wait()?;
    /// // SAFETY: the region begins at a page and is longer than a word. Peers update the word with atomics.
    /// assert_eq!(unsafe { word.as_ref() }.load(Ordering::Acquire), 5);
    /// let on_device = target.allocate_on_device(RegionOptions::new(2, 7), DeviceChoice::Fake(1), 64)?;
    /// assert!(on_device.host_address().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn host_address(&self) -> Option<NonNull<u8>> {
        self.inner.bytes.host_address()
    }

    pub(in crate::fabric) fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// Returns number, key and access rights.
    #[must_use]
    pub fn options(&self) -> RegionOptions {
        self.inner.options
    }

    /// Returns the owner.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.inner.engine.node
    }

    /// Returns the address with which peers access the byte at `offset`.
    #[must_use]
    pub fn address(&self, offset: u64) -> RemoteAddress {
        let RegionOptions { region, key, .. } = self.inner.options;
        RemoteAddress { node: self.node(), region, offset, key }
    }

    /// Returns a range of the region, as source or destination of a transfer. A range beyond the end of the region is refused when the
    /// slice is used.
    #[must_use]
    pub fn slice(&self, bytes: impl RangeBounds<u64>) -> Slice {
        let offset = match bytes.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match bytes.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len(),
        };
        let length = end.saturating_sub(offset);
        let range = LocalRange { region: self.inner.options.region, offset, length };
        Slice { region: self.clone(), range }
    }

    /// Sets the access rights of one node to this region, in place of those of its options, until the region ends. `None` removes them. All mappings of
    /// the region end, also those of other nodes: operations map it again, and a view ([`crate::fabric::Node::map_peer`]) has to be mapped again.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] if the plan has no such GPU node; [`Error::Closed`].
    pub fn set_peer_access(&self, node: NodeId, access: Option<Access>) -> Result<(), Error> {
        let mut held = self.inner.engine.hold();
        held.core().check_endpoints(&[node])?;
        held.core().set_access(self.inner.options.region, node, access)
    }

    /// Returns the access rights of one node to this region: those that were set for the node or its pool, or else those of the options.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn peer_access(&self, node: NodeId) -> Result<Access, Error> {
        let RegionOptions { region, access, .. } = self.inner.options;
        let mut held = self.inner.engine.hold();
        Ok(held.core().member()?.member().access_of(region, node).unwrap_or(access))
    }

    /// Copies numbers into the region, at `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they do not fit; [`Error::Failed`] if the device of the region has failed.
    pub fn write<T: Element>(&self, offset: u64, values: &[T]) -> Result<(), Error> {
        self.inner.bytes.write(offset, bytes_of(values)).map_err(refused)
    }

    /// Copies numbers out of the region, from `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the region has fewer bytes; [`Error::Failed`] if the device of the region has failed.
    pub fn read<T: Element>(&self, offset: u64, values: &mut [T]) -> Result<(), Error> {
        self.inner.bytes.read(offset, bytes_of_mut(values)).map_err(refused)
    }

    /// Returns the number at `offset`, in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is outside of the region.
    pub fn get<T: Element>(&self, offset: u64) -> Result<T, Error> {
        let mut value = [T::default()];
        self.read(offset, &mut value)?;
        Ok(value[0])
    }

    /// Combines values with those of a region, this one or another, on the device of both, if they have one that supports the arithmetic.
    pub(in crate::fabric) fn combine(
        &self,
        target: u64,
        (from, source): (&Self, u64),
        length: u64,
        how: Option<(Arithmetic, Number)>,
    ) -> Result<bool, Error> {
        let (Some(device), Some(other)) = (self.inner.bytes.device(), from.inner.bytes.device()) else {
            return Ok(false);
        };
        from.inner.bytes.check(source, length).map_err(refused)?;
        self.inner.bytes.check(target, length).map_err(refused)?;
        device.combine(target, (other, source), length, how).map_err(refused)
    }

    /// Copies bytes of another region to `offset`. Returns `false` if the two are in different memory.
    pub(in crate::fabric) fn copy_from(
        &self,
        offset: u64,
        from: &Self,
        from_offset: u64,
        length: usize,
    ) -> Result<bool, Error> {
        if self.is_on_host() && from.is_on_host() {
            let source = from.inner.bytes.window();
            let copied = self.inner.bytes.window().copy_from(offset, source, from_offset, length);
            return copied.map(|()| true).map_err(refused);
        }
        self.combine(offset, (from, from_offset), length as u64, None)
    }

    /// Returns true if the bytes are in memory of the host.
    pub(in crate::fabric) fn is_on_host(&self) -> bool {
        self.inner.bytes.device().is_none()
    }

    /// Returns true if both regions are in memory of the host, or of one device.
    pub(in crate::fabric) fn is_beside(&self, other: &Self) -> bool {
        match (self.inner.bytes.device(), other.inner.bytes.device()) {
            (None, None) => true,
            (Some(device), Some(other)) => Arc::ptr_eq(&device.memory, &other.memory),
            _ => false,
        }
    }

    /// Waits until all earlier requests to the region's device are visible.
    pub(in crate::fabric) fn settle(&self) -> Result<(), Error> {
        self.inner.bytes.device().map_or(Ok(()), |device| device.finish().map_err(refused))
    }

    /// Ends remote access, waits for operations of this node and for copies by other processes on the region, and returns the buffer if it was registered with
    /// [`crate::fabric::Node::register`] and has elements of type `T`. Afterwards nothing accesses the bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are other handles to the region, which stays registered; [`Error::RegionInUse`] if a wait or a receive
    /// still uses it after ten seconds, or another process was stopped in the middle of a copy. The bytes are then kept until that ends.
    pub fn deregister<T: Element>(self) -> Result<Option<Vec<T>>, Error> {
        let inner = Arc::try_unwrap(self.inner).map_err(|_| Error::Invalid(Invalid::RegionShared))?;
        let (engine, bytes) = (Arc::clone(&inner.engine), Arc::clone(&inner.bytes));
        let region = inner.options.region;
        drop(inner);
        // Now only the node's memory and this function hold the bytes.
        let until = engine.clock.now() + FREE_TIMEOUT_NS;
        let is_free = engine.wait(
            until,
            |core| {
                let Core { member: Some(member), table, local, .. } = core else { return Some(()) };
                let is_copied = local.as_ref().is_some_and(|local| local.is_copied(region));
                let is_free = !table.uses.of(region) && !is_copied;
                is_free.then(|| member.memory_mut().remove(region))
            },
            |_, _| {},
        );
        is_free.ok_or(Error::RegionInUse(region))?;
        Ok(Arc::try_unwrap(bytes).ok().and_then(Bytes::into_buffer))
    }
}

/// Longest time that operations may still use a region: longer than the detection of any dead path.
const FREE_TIMEOUT_NS: u64 = 10_000_000_000;

pub(in crate::fabric) const OUTSIDE: Error = Error::Invalid(Invalid::OutsideRegion);

/// Converts an error of the memory into an error of the public API.
fn refused(fault: MemoryFault) -> Error {
    match fault {
        MemoryFault::Device => Error::Failed(OperationError::MemoryFailed),
        _ => OUTSIDE,
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut held = self.engine.hold();
        if let Core { member: Some(member), table, local, .. } = held.core() {
            member.member_mut().revoke(self.options.region);
            let kept = local.as_mut().and_then(|local| local.retire(self.options.region));
            if let (Some(generation), Some(pooled)) = (kept, self.bytes.pooled_bytes()) {
                pooled.note_export(generation);
            }
            member.memory_mut().retire(self.options.region, &table.uses);
        }
    }
}
