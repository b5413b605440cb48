//! Payloads of long transfers in frames: references to bytes that are copied later, or nothing.
//!
//! The core states where in its own memory a frame's payload is. Nothing is copied then: the memory adds a *reference* to the bytes,
//! the frame stores a reference, and only the memory that takes the payload ([`crate::memory::memories`]) copies it. Between
//! the two ends a frame is its headers. The plan's mode decides what the target's memory receives: the bytes (`full`,
//! see [`crate::memory::references`]), or nothing (`elided`).
//!
//! A link that repeats lost frames keeps them as short as they travel ([`crate::frames`]).
//!
//! If whole frames are needed (a check, a flipped bit), `full` moves bytes in frames; with `elided` such frames have
//! zeros. A capture does not need them: it gets a copy of the referenced bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rackloom_plan::PayloadMode;
use rackloom_protocol::NodeId;
use rackloom_protocol::memory::vector::VectorMemory;

use crate::cells::{Flag, Number};
use crate::ledger::Ledger;
use crate::memory::references::{BytesLocation, References};

/// Shorter payloads are moved in every mode: a reference would save nothing.
pub(crate) const PAYLOAD_BYTES_MIN: usize = 64;

/// The part of a frame that is borrowed from a node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Offset of the first byte in the frame.
    pub(crate) at: u16,
    /// Number of bytes; 0 if the frame has no such part.
    pub(crate) length: u16,
    /// The node whose memory has the bytes.
    pub(crate) source: NodeId,
    /// Number of the reference, if it refers to bytes.
    pub(crate) reference: u32,
}

impl Payload {
    pub(crate) const fn is_none(&self) -> bool {
        self.length == 0
    }

    pub(crate) const fn end(&self) -> usize {
        self.at as usize + self.length as usize
    }
}

/// A payload with several owners.
#[derive(Debug, Default)]
struct SharedPayload {
    /// Offset, length and source.
    place: Number,
    reference: Number,
}

impl SharedPayload {
    fn set(&self, payload: Payload) {
        let Payload { at, length, source, reference } = payload;
        self.place.set(u64::from(at) << 32 | u64::from(length) << 16 | u64::from(source.0));
        self.reference.set(reference.into());
    }

    /// Returns the payload and clears it.
    fn take(&self) -> Payload {
        let (place, reference) = (self.place.get(), self.reference.get() as u32);
        self.place.set(0);
        Payload {
            at: (place >> 32) as u16,
            length: (place >> 16) as u16,
            source: NodeId(place as u16),
            reference,
        }
    }
}

/// Data about payloads that memories and frames share.
#[derive(Debug)]
pub(crate) struct PayloadTable {
    pub(crate) mode: PayloadMode,
    /// True if whole frames in flight are read, or have bits flipped.
    pub(crate) is_watched: Flag,
    /// True if an observer or another part gets frames with their referenced bytes, which are then copied aside from the
    /// start.
    pub(crate) is_observed: Flag,
    /// True if a link computes sums over whole frames, so that they must be equal at both of its ends.
    pub(crate) is_summed: Flag,
    /// References by node.
    references: Mutex<Vec<References>>,
    /// Payload of the frame from which memory is taking something.
    unloaded: SharedPayload,
    /// True if a ledger is kept.
    has_ledger: Flag,
    ledger: Mutex<Option<Box<Ledger>>>,
}

impl PayloadTable {
    pub(crate) fn new(mode: PayloadMode, members: usize) -> Self {
        Self {
            mode,
            is_watched: Flag::default(),
            is_observed: Flag::default(),
            is_summed: Flag::default(),
            references: Mutex::new((0..members).map(|_| References::default()).collect()),
            unloaded: SharedPayload::default(),
            has_ledger: Flag::default(),
            ledger: Mutex::default(),
        }
    }

    /// Returns the references by node.
    pub(crate) fn references(&self) -> MutexGuard<'_, Vec<References>> {
        self.references.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Option<Box<Ledger>>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn share(&self, payload: &Payload) {
        self.of(payload, |references| references.share(payload.reference));
    }

    pub(crate) fn give_back(&self, payload: &Payload) {
        self.of(payload, |references| references.release(payload.reference));
    }

    /// Copies the referenced bytes of a frame into the copy for an observer, if it refers to bytes.
    pub(crate) fn show(&self, payload: &Payload, frame: &mut [u8]) {
        let references = self.references();
        let references = references.get(payload.source.index()).filter(|_| self.mode == PayloadMode::Full);
        if let Some(BytesLocation::Kept(bytes)) =
            references.and_then(|references| references.locate(payload.reference))
        {
            frame[usize::from(payload.at)..payload.end()].copy_from_slice(bytes);
        }
    }

    /// Appends the referenced bytes of a frame that leaves for another part, which were copied aside. Returns their number; 0
    /// if the frame refers to none.
    pub(crate) fn append_bytes(&self, payload: &Payload, to: &mut Vec<u8>) -> u16 {
        if payload.is_none() || self.mode != PayloadMode::Full {
            return 0;
        }
        let references = self.references();
        let located = references.get(payload.source.index()).and_then(|of| of.locate(payload.reference));
        let Some(BytesLocation::Kept(bytes)) = located else {
            debug_assert!(located.is_none(), "bytes that leave for another part are copied aside");
            return 0;
        };
        to.extend_from_slice(bytes);
        payload.length
    }

    /// Returns the payload of a frame from another part, as a reference to a copy of its bytes.
    pub(crate) fn adopt(&self, payload: Payload, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return payload;
        }
        let mut all = self.references();
        match all.get_mut(payload.source.index()) {
            Some(references) => Payload { reference: references.add_copy(bytes), ..payload },
            None => payload,
        }
    }

    fn of(&self, payload: &Payload, change: impl FnOnce(&mut References)) {
        if !payload.is_none()
            && self.mode == PayloadMode::Full
            && let Some(references) = self.references().get_mut(payload.source.index())
        {
            change(references);
        }
    }

    /// Keeps a ledger from now on.
    pub(crate) fn keep_ledger(&self, members: usize) {
        let has_bytes = self.mode == PayloadMode::Full;
        *self.ledger() = Some(Box::new(Ledger::new(members, has_bytes)));
        self.has_ledger.set(true);
    }

    /// Returns true if a ledger is kept.
    pub(crate) fn keeps_ledger(&self) -> bool {
        self.has_ledger.get()
    }

    /// Calls `act` with the ledger, if one is kept.
    #[inline]
    pub(crate) fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> Option<T> {
        if self.has_ledger.get() { self.ledger().as_deref_mut().map(act) } else { None }
    }

    /// Sets the payload of the frame from which memory is about to take something.
    pub(crate) fn unload(&self, payload: Payload) {
        self.unloaded.set(payload);
    }

    /// Returns that payload and clears it.
    pub(crate) fn unloaded(&self) -> Payload {
        self.unloaded.take()
    }

    /// Copies all references of a node aside, before writes at unspecified offsets of its memory.
    pub(crate) fn keep_all(&self, node: NodeId, memory: &VectorMemory) {
        if let Some(references) = self.references().get_mut(node.index()) {
            references.keep_all(memory);
        }
    }
}
