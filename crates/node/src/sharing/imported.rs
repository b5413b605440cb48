//! A peer's region, mapped into this process or opened by its device: loads, stores, copies and atomics without a frame.
//!
//! Every access has five steps: announce it, check the generation, access, check the generation, withdraw the announcement. So an owner that
//! revokes detects the end of the last access, and an access that overlapped a revocation returns [`AccessError::Revoked`]: it
//! may or may not have happened. The steps cost the first thread that uses a region two plain stores, and other threads two atomic
//! additions (`control`). Bytes are moved by plain copies.
//!
//! The importer checks the bounds and the owner's permissions here. That protects against mistakes and not against malice: a process that
//! can map these pages can access them without checks.

#![expect(private_bounds, reason = "the memories of this crate are the only ones, and callers name none")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rackloom_protocol::{Access, Atomic, AtomicKind, Key, LocalRange, NodeId, RegionId, SignalKind, Width};

use super::access::{AccessError, Need};
use super::backing::{Backing, Span};
use super::control::{Control, OWNER_LEFT, Slot, WITHHELD, begun};
use super::first_thread::FirstThread;
use super::message::Grant;
use super::socket;
#[cfg(feature = "gpu")]
use crate::memory::SharedDevice;
use crate::memory::{Local, LocalMemory};
use crate::wires::Doorbell;

/// Number of accesses of a thread after which it checks if the owner has ended.
const ACCESSES_PER_LOOK: u64 = 1024;
/// Generation that matches none. Owners count up from 1.
const NO_GENERATION: u64 = u64::MAX;

/// Mapped region of a peer. Dropping it unmaps the pages and then notifies the owner.
///
/// `Send` and `Sync`. Any thread may make any access, without a lock. Two accesses to the same bytes at the same time read or
/// leave a mixture, except for aligned words of 4 or 8 bytes. The first thread that uses the region has the cheapest accesses (see above).
#[derive(Debug)]
pub struct ImportedRegion {
    // Fields are dropped in this order: the owner may take the end of the connection for the end of the mapping.
    bytes: Backing,
    control: Control,
    connection: OwnedFd,
    doorbell: Option<Doorbell>,
    length: usize,
    access: Access,
    is_awaited: bool,
    generation: u64,
    slot: Slot,
    owner: NodeId,
    region: RegionId,
    key: Key,
    /// Generation whose accesses may begin. None after the owner has ended.
    generation_open: AtomicU64,
    /// Thread that announces its accesses in the importer's first word.
    first_thread: FirstThread,
}

/// Parts from which an import is made.
pub(super) struct Parts {
    pub(super) bytes: Backing,
    pub(super) control: Control,
    pub(super) connection: OwnedFd,
    pub(super) doorbell: Option<Doorbell>,
    pub(super) grant: Grant,
    pub(super) owner: NodeId,
    pub(super) region: RegionId,
    pub(super) key: Key,
}

impl ImportedRegion {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { bytes, control, connection, doorbell, grant, owner, region, key } = parts;
        let first_thread =
            if control.has_barriers() { FirstThread::default() } else { FirstThread::denied() };
        Self {
            length: usize::try_from(grant.length).unwrap_or(0).min(bytes.length()),
            bytes,
            control,
            connection,
            doorbell,
            access: grant.access,
            is_awaited: grant.is_awaited,
            generation: grant.generation,
            slot: Slot::new(grant.slot),
            owner,
            region,
            key,
            generation_open: AtomicU64::new(grant.generation),
            first_thread,
        }
    }

    /// Returns the owner.
    #[must_use]
    pub const fn owner(&self) -> NodeId {
        self.owner
    }

    /// Returns the number of the owner's region.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        self.region
    }

    /// Returns the key of the import.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length as u64
    }

    /// Checks that the region can still be used. Makes a system call, so that an end of the owner is detected at once and not only after
    /// some more accesses.
    ///
    /// # Errors
    /// [`AccessError::Revoked`], [`AccessError::OwnerGone`], [`AccessError::Withheld`].
    #[cold]
    pub fn check(&self) -> Result<(), AccessError> {
        self.is_granted()
            .or_else(|error| if error == AccessError::Withheld { Ok(()) } else { Err(error) })?;
        if self.is_owner_gone() || socket::is_gone(self.connection.as_fd()) {
            return self.fail_for_good();
        }
        self.is_granted()
    }

    /// Checks the generation.
    #[cold]
    fn is_granted(&self) -> Result<(), AccessError> {
        match self.control.generation() {
            generation if generation == self.generation => Ok(()),
            generation if generation == self.generation | WITHHELD => Err(AccessError::Withheld),
            OWNER_LEFT => Err(AccessError::OwnerGone),
            _ => Err(AccessError::Revoked),
        }
    }

    /// Begins several accesses under one announcement. A revocation waits for its end, at most for its timeout.
    ///
    /// # Errors
    /// [`AccessError::Revoked`], [`AccessError::OwnerGone`], [`AccessError::Withheld`].
    pub fn enter(&self) -> Result<Inside<'_>, AccessError> {
        let before = self.control.enter(self.slot);
        let inside = Inside { region: self };
        self.is_open(before)?;
        Ok(inside)
    }

    /// Copies bytes out of the region. A single aligned word of 4 or 8 bytes is read atomically. Later loads see bytes that were written
    /// before the word.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    #[inline]
    pub fn load(&self, offset: u64, out: &mut [u8]) -> Result<(), AccessError> {
        self.once(Need::Read, offset, out.len() as u64, |span| span.read(out))
    }

    /// Copies bytes into the region. A single aligned word of 4 or 8 bytes is written atomically, after all earlier writes.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    #[inline]
    pub fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), AccessError> {
        self.once(Need::Write, offset, bytes.len() as u64, |span| span.write(bytes))
    }

    /// Executes an atomic. Returns the old value.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn atomic(&self, offset: u64, atomic: &Atomic) -> Result<u64, AccessError> {
        self.once(Need::Atomic, offset, atomic.width.bytes(), |span| span.atomic(offset, atomic))
    }

    /// Adds to a word, wrapping. Returns the old value.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn fetch_add(&self, offset: u64, width: Width, operand: u64) -> Result<u64, AccessError> {
        self.atomic(offset, &Atomic { kind: AtomicKind::FetchAdd, width, operand, compare: 0 })
    }

    /// Replaces a word that equals `compare`. Returns the old value.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn compare_swap(
        &self,
        offset: u64,
        width: Width,
        compare: u64,
        operand: u64,
    ) -> Result<u64, AccessError> {
        self.atomic(offset, &Atomic { kind: AtomicKind::CompareSwap, width, operand, compare })
    }

    /// Replaces a word. Returns the old value.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn swap(&self, offset: u64, width: Width, operand: u64) -> Result<u64, AccessError> {
        self.atomic(offset, &Atomic { kind: AtomicKind::Swap, width, operand, compare: 0 })
    }

    /// Updates an 8-byte word after all earlier writes, and wakes the owner if it sleeps.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn signal(&self, offset: u64, kind: SignalKind, value: u64) -> Result<(), AccessError> {
        self.once(Need::Write, offset, 8, |span| span.signal(offset, kind, value))?;
        self.ring();
        Ok(())
    }

    /// Copies from this member's own memory into the region (a put).
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn copy_from(
        &self,
        offset: u64,
        memory: &impl LocalMemory,
        source: LocalRange,
    ) -> Result<(), AccessError> {
        let (local, length) = local_range(memory, source)?;
        self.once(Need::Write, offset, source.length, |span| span.copy_from(local, length))
    }

    /// Copies from the region into this member's own memory (a get).
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn copy_to(
        &self,
        offset: u64,
        memory: &impl LocalMemory,
        into: LocalRange,
    ) -> Result<(), AccessError> {
        let (local, length) = local_range(memory, into)?;
        self.once(Need::Read, offset, into.length, |span| span.copy_to(local, length))
    }

    /// Wakes the owner if it sleeps, has a doorbell and may wait for a word of the region. Accesses do not wake it, except [`Self::signal`].
    pub fn ring(&self) {
        if let Some(doorbell) = &self.doorbell
            && self.control.is_awaited()
        {
            doorbell.ring();
        }
    }

    /// Makes one access under an announcement of its own. Inlined into each caller, which knows most arguments at compile time.
    #[inline(always)]
    fn once<T>(
        &self,
        need: Need,
        offset: u64,
        length: u64,
        act: impl FnOnce(Span<'_>) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let span = self.span(need, offset, length)?;
        let announced = self.announce()?;
        let done = self.act(span, act);
        match announced {
            Announced::Alone(before) => self.control.end(self.slot, before),
            Announced::Shared => self.control.leave(self.slot),
        }
        done
    }

    #[inline(always)]
    fn announce(&self) -> Result<Announced, AccessError> {
        if !self.first_thread.is_here() {
            return self.announce_shared();
        }
        let before = self.control.begin(self.slot);
        if let Err(error) = self.is_open(before) {
            self.control.end(self.slot, before);
            return Err(error);
        }
        Ok(Announced::Alone(before))
    }

    #[inline(never)]
    fn announce_shared(&self) -> Result<Announced, AccessError> {
        std::mem::forget(self.enter()?);
        Ok(Announced::Shared)
    }

    /// Checks that an access that was just announced may continue. `before` is the previous value of the word.
    #[inline(always)]
    fn is_open(&self, before: u64) -> Result<(), AccessError> {
        let is_open = self.control.generation() == self.generation_open.load(Ordering::Relaxed);
        if is_open && !begun(before).is_multiple_of(ACCESSES_PER_LOOK) {
            return Ok(());
        }
        self.check()
    }

    /// Makes an access within bounds, under an announcement.
    #[inline(always)]
    fn act<T>(
        &self,
        span: Span<'_>,
        act: impl FnOnce(Span<'_>) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let done = act(span)?;
        if self.control.generation() != self.generation && self.is_granted() == Err(AccessError::Revoked) {
            return Err(AccessError::Revoked);
        }
        // If the owner has withheld the region since the access began, the access came before.
        Ok(done)
    }

    /// Returns the bytes of an access that passes the checks of bounds and permission.
    #[inline(always)]
    fn span(&self, need: Need, offset: u64, length: u64) -> Result<Span<'_>, AccessError> {
        self.allows(need, offset, length)?;
        // `self.length` is no longer than the bytes are.
        Ok(self.bytes.span(offset, length, &self.connection))
    }

    /// Checks bounds, alignment and permission of an access.
    #[inline(always)]
    pub(super) fn allows(&self, need: Need, offset: u64, length: u64) -> Result<(), AccessError> {
        let is_allowed = match need {
            Need::Read => self.access.read,
            Need::Write => self.access.write,
            Need::Atomic => self.access.atomic,
        };
        if !is_allowed {
            return Err(AccessError::PermissionDenied);
        }
        let is_within = offset.checked_add(length).is_some_and(|end| end <= self.length());
        if is_within { Ok(()) } else { Err(AccessError::OutOfBounds) }
    }

    /// Returns the device that has opened the region, and the address there. `None` for pages.
    #[cfg(feature = "gpu")]
    pub(crate) const fn on_device(&self) -> Option<(&SharedDevice, u64)> {
        self.bytes.on_device()
    }

    /// Checks that this importer may read or write a word of 8 bytes.
    ///
    /// # Errors
    /// [`AccessError`] as for a load or a store of the word.
    #[cfg(feature = "gpu")]
    pub(crate) fn allows_word(&self, offset: u64, is_written: bool) -> Result<(), AccessError> {
        if !offset.is_multiple_of(8) {
            return Err(AccessError::Misaligned);
        }
        self.allows(if is_written { Need::Write } else { Need::Read }, offset, 8)
    }

    /// Returns `true` if the owner has ended the export, so that no access can succeed any more. Makes no system call.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.is_granted(), Err(AccessError::Revoked | AccessError::OwnerGone))
    }

    /// Returns `true` if the memory belongs to the owner's program, and only copies reach it.
    pub(crate) const fn is_in_program(&self) -> bool {
        self.bytes.is_in_program()
    }

    /// Returns `true` if the owner keeps the memory until this import is dropped.
    pub(super) const fn is_awaited_by_owner(&self) -> bool {
        self.is_awaited
    }

    pub(super) fn connection(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    pub(super) fn is_owner_gone(&self) -> bool {
        self.generation_open.load(Ordering::Relaxed) == NO_GENERATION
    }

    /// Handles the end of the connection. An owner that revokes raises the generation before it closes anything.
    pub(super) fn fail_for_good(&self) -> Result<(), AccessError> {
        if self.is_granted() == Err(AccessError::Revoked) {
            return Err(AccessError::Revoked);
        }
        self.generation_open.store(NO_GENERATION, Ordering::Relaxed);
        Err(AccessError::OwnerGone)
    }
}

/// Form of an announcement.
#[derive(Clone, Copy, Debug)]
enum Announced {
    /// In the first thread's word. Contains its previous value.
    Alone(u64),
    /// In the word that threads share.
    Shared,
}

/// Announced series of accesses. Keep it short: a revocation waits for it.
///
/// `Send` and `Sync`. Another thread than the one that began it may end it.
#[derive(Debug)]
pub struct Inside<'a> {
    region: &'a ImportedRegion,
}

impl Inside<'_> {
    /// Copies bytes out of the region, like [`ImportedRegion::load`].
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    #[inline]
    pub fn load(&self, offset: u64, out: &mut [u8]) -> Result<(), AccessError> {
        self.access(Need::Read, offset, out.len() as u64, |span| span.read(out))
    }

    /// Copies bytes into the region, like [`ImportedRegion::store`].
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    #[inline]
    pub fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), AccessError> {
        self.access(Need::Write, offset, bytes.len() as u64, |span| span.write(bytes))
    }

    /// Executes an atomic, like [`ImportedRegion::atomic`].
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn atomic(&self, offset: u64, atomic: &Atomic) -> Result<u64, AccessError> {
        self.access(Need::Atomic, offset, atomic.width.bytes(), |span| span.atomic(offset, atomic))
    }

    /// Updates a signal's word like [`ImportedRegion::signal`], without waking the owner.
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn signal(&self, offset: u64, kind: SignalKind, value: u64) -> Result<(), AccessError> {
        self.access(Need::Write, offset, 8, |span| span.signal(offset, kind, value))
    }

    /// Copies from this member's own memory, like [`ImportedRegion::copy_from`].
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn copy_from(
        &self,
        offset: u64,
        memory: &impl LocalMemory,
        source: LocalRange,
    ) -> Result<(), AccessError> {
        let (local, length) = local_range(memory, source)?;
        self.access(Need::Write, offset, source.length, |span| span.copy_from(local, length))
    }

    /// Copies into this member's own memory, like [`ImportedRegion::copy_to`].
    ///
    /// # Errors
    /// [`AccessError`]; each variant documents if anything was done.
    pub fn copy_to(
        &self,
        offset: u64,
        memory: &impl LocalMemory,
        into: LocalRange,
    ) -> Result<(), AccessError> {
        let (local, length) = local_range(memory, into)?;
        self.access(Need::Read, offset, into.length, |span| span.copy_to(local, length))
    }

    #[inline(always)]
    fn access<T>(
        &self,
        need: Need,
        offset: u64,
        length: u64,
        act: impl FnOnce(Span<'_>) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let region = self.region;
        let span = region.span(need, offset, length)?;
        if region.control.generation() != region.generation {
            region.is_granted()?;
        }
        region.act(span, act)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.region.control.leave(self.region.slot);
    }
}

fn local_range(memory: &impl LocalMemory, range: LocalRange) -> Result<(Local<'_>, usize), AccessError> {
    let length = usize::try_from(range.length).map_err(|_| AccessError::LocalRange)?;
    Ok((memory.local(range).ok_or(AccessError::LocalRange)?, length))
}
