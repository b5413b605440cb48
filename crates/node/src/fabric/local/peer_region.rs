//! A view of a peer's region that is mapped into this process.

use std::time::Duration;

use rackloom_protocol::{Atomic, AtomicKind, NodeId, RegionId, RemoteAddress};

use super::MappingState;
use crate::fabric::engine::core::Core;
use crate::fabric::error::Error;
use crate::fabric::memory::element::{Element, bytes_of, bytes_of_mut};
use crate::fabric::memory::region::Region;
use crate::fabric::memory::word::{Word, maximum, minimum};
use crate::fabric::node::Node;
use crate::sharing::{AccessError, ImportedRegion, Inside};

/// Region of another node of this server, mapped into this process: loads, stores and atomics without a call of the node.
///
/// Each access checks bounds, the access rights of the owner, and that the owner still exports the region. An access is visible to the
/// owner and to all others that map the region when it returns. It is not ordered with operations of the node that are in flight: flush
/// first. The owner's waits for words end only after [`PeerRegion::signal`], or with any frame to it.
///
/// A region on a device is accessed by the device of this node, some microseconds per access. Its owner frees the memory only after the view was
/// dropped, also if the owner has dropped the region or has left.
///
/// `Send` and `Sync`: any number of threads may access the region. The thread that is first is the fastest. Two accesses to the same bytes at
/// the same time leave or read a mixture, except for aligned words of 4 or 8 bytes.
#[derive(Debug)]
pub struct PeerRegion {
    imported: ImportedRegion,
}

impl Node {
    /// Maps the region at an address of a peer. The offset of the address is ignored. Call it once per region, after the owner has allocated it.
    ///
    /// # Errors
    /// [`Error::NotMapped`] with the reason: the peer is in another server or of another tenant, the rack has `force_wire`, the owner refuses,
    /// the memory is the owner's own, it is on a device and this node has no region on a device of that kind, both nodes are in one process and the
    /// device is a GPU, or there is no answer within `timeout`. [`Error::Closed`].
    pub fn map_peer(&self, address: RemoteAddress, timeout: Duration) -> Result<PeerRegion, Error> {
        let not_mapped = |reason: &str| Error::NotMapped {
            peer: address.node,
            region: address.region,
            reason: reason.to_owned(),
        };
        let until = self.engine().clock.now() + u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let look = |core: &mut Core| {
            let now = match core.member() {
                Ok(member) => member.now(),
                Err(closed) => return Some(Err(closed)),
            };
            let Some(local) = &mut core.local else {
                return Some(Err(not_mapped("no node of this rack shares memory with this one")));
            };
            match local.request(now, &address) {
                MappingState::Mapped => {
                    local.take(address.node, address.region).map(|imported| Ok(PeerRegion { imported }))
                }
                MappingState::InProgram => Some(Err(not_mapped(
                    "the memory belongs to the owner's program; hint: use a put or a get, which the system copies",
                ))),
                MappingState::Pending => None,
                MappingState::Refused(reason) => Some(Err(not_mapped(reason))),
                MappingState::NotLocal => Some(Err(not_mapped(
                    "it is in another server or of another tenant; hint: use a put or a get",
                ))),
            }
        };
        self.engine().wait(until, look, |_, _| {}).unwrap_or_else(|| Err(not_mapped("no answer in time")))
    }
}

impl Region {
    /// Maps the region of the same number and key at another node. For memory that all nodes allocate in the same way.
    ///
    /// # Errors
    /// Those of [`Node::map_peer`].
    pub fn map_peer(&self, node: &Node, peer: NodeId, timeout: Duration) -> Result<PeerRegion, Error> {
        node.map_peer(RemoteAddress { node: peer, ..self.address(0) }, timeout)
    }
}

impl PeerRegion {
    /// Returns the owner.
    #[must_use]
    pub const fn owner(&self) -> NodeId {
        self.imported.owner()
    }

    /// Returns the number of the region at its owner.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        self.imported.region()
    }

    /// Returns the length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a region's length is chosen, not found out")]
    pub const fn len(&self) -> u64 {
        self.imported.length()
    }

    /// Copies numbers into the region, at `offset` in bytes.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason: out of bounds, no permission, revoked. [`Error::PeerLost`] if the owner has ended.
    #[inline]
    pub fn write<T: Element>(&self, offset: u64, values: &[T]) -> Result<(), Error> {
        self.imported.store(offset, bytes_of(values)).map_err(|error| self.error(error))
    }

    /// Copies numbers out of the region, from `offset` in bytes.
    ///
    /// # Errors
    /// Those of [`PeerRegion::write`].
    #[inline]
    pub fn read<T: Element>(&self, offset: u64, values: &mut [T]) -> Result<(), Error> {
        self.imported.load(offset, bytes_of_mut(values)).map_err(|error| self.error(error))
    }

    /// Returns the number at `offset`, in bytes.
    ///
    /// # Errors
    /// Those of [`PeerRegion::write`].
    #[inline]
    pub fn get<T: Element>(&self, offset: u64) -> Result<T, Error> {
        let mut value = [T::default()];
        self.read(offset, &mut value)?;
        Ok(value[0])
    }

    /// Returns the mapping.
    #[cfg(feature = "gpu")]
    pub(in crate::fabric) const fn imported(&self) -> &ImportedRegion {
        &self.imported
    }

    /// Announces several accesses at once, so that each of them costs less. The owner's revocation waits for the end of the value, for a bounded
    /// time, so keep it for microseconds.
    ///
    /// # Errors
    /// [`Error::Refused`] if the region is revoked. [`Error::PeerLost`] if the owner has ended.
    pub fn enter(&self) -> Result<PeerAccess<'_>, Error> {
        let inside = self.imported.enter().map_err(|error| self.error(error))?;
        Ok(PeerAccess { region: self, inside })
    }

    /// Adds to a word of 4 or 8 bytes, wrapping, and returns the old value. The type of the word is that of the addend. The offset is a multiple of
    /// the width.
    ///
    /// # Errors
    /// Those of [`PeerRegion::write`]; misaligned.
    pub fn fetch_add<W: Word>(&self, offset: u64, addend: W) -> Result<W, Error> {
        self.atomic(AtomicKind::FetchAdd, offset, addend, 0)
    }

    /// Keeps the bits of a word that `operand` has as well. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn fetch_and<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(AtomicKind::And, offset, operand, 0)
    }

    /// Sets the bits of `operand` in a word. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn fetch_or<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(AtomicKind::Or, offset, operand, 0)
    }

    /// Inverts the bits of `operand` in a word. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn fetch_xor<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(AtomicKind::Xor, offset, operand, 0)
    }

    /// Replaces a word by `operand` if that is smaller. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn fetch_min<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(minimum::<W>(), offset, operand, 0)
    }

    /// Replaces a word by `operand` if that is larger. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn fetch_max<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(maximum::<W>(), offset, operand, 0)
    }

    /// Replaces a word by `operand`. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn swap<W: Word>(&self, offset: u64, operand: W) -> Result<W, Error> {
        self.atomic(AtomicKind::Swap, offset, operand, 0)
    }

    /// Replaces a word if it equals `expected`. Returns the old value.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn compare_swap<W: Word>(&self, offset: u64, expected: W, new: W) -> Result<W, Error> {
        self.atomic(AtomicKind::CompareSwap, offset, new, expected.to_bits())
    }

    /// Stores a word of 8 bytes after all earlier writes of this thread, and wakes the owner if it sleeps. Ends the owner's waits for the word.
    ///
    /// # Errors
    /// Those of [`PeerRegion::fetch_add`].
    pub fn signal(&self, offset: u64, value: u64) -> Result<(), Error> {
        let kind = rackloom_protocol::SignalKind::Set;
        self.imported.signal(offset, kind, value).map_err(|error| self.error(error))
    }

    fn atomic<W: Word>(&self, kind: AtomicKind, offset: u64, operand: W, compare: u64) -> Result<W, Error> {
        let atomic = Atomic { kind, width: W::WIDTH, operand: operand.to_bits(), compare };
        self.imported.atomic(offset, &atomic).map(W::of_bits).map_err(|error| self.error(error))
    }

    #[cold]
    pub(in crate::fabric) fn error(&self, error: AccessError) -> Error {
        Error::from_end(error.as_operation_error(), Some(self.owner()))
    }
}

/// Several accesses to a [`PeerRegion`] that were announced at once.
///
/// `Send` and `Sync`, as the region is.
#[derive(Debug)]
pub struct PeerAccess<'r> {
    region: &'r PeerRegion,
    inside: Inside<'r>,
}

impl PeerAccess<'_> {
    /// Copies numbers into the region, at `offset` in bytes.
    ///
    /// # Errors
    /// Those of [`PeerRegion::write`].
    #[inline]
    pub fn write<T: Element>(&self, offset: u64, values: &[T]) -> Result<(), Error> {
        self.inside.store(offset, bytes_of(values)).map_err(|error| self.region.error(error))
    }

    /// Copies numbers out of the region, from `offset` in bytes.
    ///
    /// # Errors
    /// Those of [`PeerRegion::write`].
    #[inline]
    pub fn read<T: Element>(&self, offset: u64, values: &mut [T]) -> Result<(), Error> {
        self.inside.load(offset, bytes_of_mut(values)).map_err(|error| self.region.error(error))
    }
}
