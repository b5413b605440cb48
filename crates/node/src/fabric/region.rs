//! Memory that others may reach: named and keyed by its owner, and the owner's own view of it.
//!
//! A region's bytes may change at any time under the hands of its owner, because peers write into them. So they are
//! copied in and out; what must not be seen half-written is a word of 4 or 8 bytes, or follows a signal.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use rackloom_protocol::{
    Access, Arithmetic, Key, LocalRange, MemoryFault, NodeId, Number, OperationError, RegionId, RemoteAddress,
};

use super::bytes::Bytes;
use super::core::Core;
use super::element::{Element, bytes_of, bytes_of_mut};
use super::engine::Engine;
use super::error::Error;

/// Name, key and permissions of a region, all chosen by its owner. How peers learn them is up to the program.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionOptions {
    /// Name, unique at its owner.
    pub region: RegionId,
    /// What callers must present.
    pub key: Key,
    /// What callers may do; everything unless changed.
    pub access: Access,
}

impl RegionOptions {
    /// A region that may be read, written and used for atomics by whoever presents `key`.
    #[must_use]
    pub const fn new(region: u32, key: u64) -> Self {
        Self { region: RegionId(region), key: Key(key), access: Access::ALL }
    }

    /// The same with these permissions.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }
}

/// A region of this process's own node. Clones are the same region; when the last one goes, remote access ends at once, and the
/// name is free as soon as no operation of the node's own uses the bytes any more: at once if none is under way
/// ([`super::Node::wait_until_free`]).
///
/// `Send` and `Sync`. Every method may be called from several threads; two that touch the same bytes at the same time
/// see or leave a mixture, except for aligned words of 4 or 8 bytes.
#[derive(Clone, Debug)]
pub struct Region {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) engine: Arc<Engine>,
    pub(super) options: RegionOptions,
    pub(super) bytes: Arc<Bytes>,
}

/// Part of a [`Region`]: the local end of a transfer. Holds the region.
///
/// `Send` and `Sync`, as the region is.
#[derive(Clone, Debug)]
pub struct Slice {
    pub(super) region: Region,
    pub(super) range: LocalRange,
}

impl Region {
    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a region's length is chosen, not found out")]
    pub fn len(&self) -> u64 {
        self.inner.bytes.length()
    }

    /// Where the region lies in the memory of a device, for kernels; `None` for memory of the host.
    #[must_use]
    pub fn device_address(&self) -> Option<u64> {
        self.inner.bytes.device()?.address()
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// Name, key and permissions.
    #[must_use]
    pub fn options(&self) -> RegionOptions {
        self.inner.options
    }

    /// The owner.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.inner.engine.node
    }

    /// What a peer needs to reach the byte at `offset`.
    #[must_use]
    pub fn address(&self, offset: u64) -> RemoteAddress {
        let RegionOptions { region, key, .. } = self.inner.options;
        RemoteAddress { node: self.node(), region, offset, key }
    }

    /// Some bytes of the region, as source or destination of a transfer. An end beyond the region is refused when the
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

    /// Copy numbers into the region, `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they do not fit; [`Error::Failed`] if a device that holds them has failed.
    pub fn write<T: Element>(&self, offset: u64, values: &[T]) -> Result<(), Error> {
        self.inner.bytes.write(offset, bytes_of(values)).map_err(refused)
    }

    /// Copy numbers out of the region, `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the region has fewer bytes; [`Error::Failed`] if a device that holds them has failed.
    pub fn read<T: Element>(&self, offset: u64, values: &mut [T]) -> Result<(), Error> {
        self.inner.bytes.read(offset, bytes_of_mut(values)).map_err(refused)
    }

    /// One number, `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is outside of the region.
    pub fn get<T: Element>(&self, offset: u64) -> Result<T, Error> {
        let mut value = [T::default()];
        self.read(offset, &mut value)?;
        Ok(value[0])
    }

    /// Copy to another region where a device that holds both does it. False: none does.
    pub(super) fn copy_on_device(&self, from: u64, to: &Self, at: u64, length: u64) -> Result<bool, Error> {
        let (Some(source), Some(target)) = (self.inner.bytes.device(), to.inner.bytes.device()) else {
            return Ok(false);
        };
        target.combine(at, (source, from), length, None).map_err(refused)
    }

    /// Combine values within the region, if a device holds it and does such work.
    pub(super) fn combine(
        &self,
        target: u64,
        source: u64,
        length: u64,
        how: Option<(Arithmetic, Number)>,
    ) -> Result<bool, Error> {
        let Some(device) = self.inner.bytes.device() else { return Ok(false) };
        device.combine(target, (device, source), length, how).map_err(refused)
    }

    /// Wait until what was asked of a device that holds the region is visible.
    pub(super) fn settle(&self) -> Result<(), Error> {
        self.inner.bytes.device().map_or(Ok(()), |device| device.finish().map_err(refused))
    }

    /// End remote access, wait for this node's own operations on the region, and give back the buffer if one of type
    /// `T` was handed over with [`super::Node::register`]. When this returns, nobody touches the bytes any more.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are other handles to the region (which stays as it is), [`Error::RegionInUse`] if a
    /// wait or receive that nobody cancels still uses it after ten seconds (it is then kept for that operation and no longer).
    pub fn deregister<T: Element>(self) -> Result<Option<Vec<T>>, Error> {
        let inner = Arc::try_unwrap(self.inner).map_err(|_| {
            Error::Invalid("other handles or slices of the region are alive; hint: drop them first")
        })?;
        let (engine, bytes) = (Arc::clone(&inner.engine), Arc::clone(&inner.bytes));
        let region = inner.options.region;
        drop(inner);
        // Now nobody holds the bytes but the node's memory and this function.
        let until = engine.clock.now() + PATIENCE_NS;
        let is_free = engine.wait(
            until,
            |core| {
                let Core { member: Some(member), table, .. } = core else { return Some(()) };
                (!table.uses.of(region)).then(|| member.memory_mut().remove(region))
            },
            |_, _| {},
        );
        is_free.ok_or(Error::RegionInUse(region))?;
        Ok(Arc::try_unwrap(bytes).ok().and_then(Bytes::into_buffer))
    }
}

/// How long operations may take to let go of a region: longer than any path takes to be declared dead.
const PATIENCE_NS: u64 = 10_000_000_000;

pub(super) const OUTSIDE: Error = Error::Invalid("the range is not within the region");

/// Memory's word in a caller's.
fn refused(fault: MemoryFault) -> Error {
    match fault {
        MemoryFault::Device => Error::Failed(OperationError::MemoryFailed),
        _ => OUTSIDE,
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut held = self.engine.hold();
        if let Core { member: Some(member), table, .. } = held.core() {
            member.member_mut().revoke(self.options.region);
            member.memory_mut().retire(self.options.region, &table.uses);
        }
    }
}
