//! What frames carry of long transfers: bytes that stay where they are until they are needed, stand-ins for them, or nothing.
//!
//! The core says of a frame's payload where in its own memory it lies. Here nothing is copied then: memory *lends*, the frame takes
//! note, and only the memory that the payload ends in ([`crate::memories`]) asks for it. Between the two ends a frame is its headers.
//! The plan's mode says what is found in the end: the bytes themselves (`full`, see [`crate::loans`]), fingerprints of them (`shadow`,
//! see [`crate::shadow`]), or nothing (`elided`).
//!
//! A link that repeats what it loses keeps frames as short as they travel ([`crate::frames`]).
//!
//! Where whole frames are needed (a check, a flipped bit), `full` does without all this and bytes are moved; in the other modes such frames
//! have stand-ins and zeros. A capture does not need them: it is shown a copy of the lent bytes.

use std::cell::{Cell, RefCell};

use rackloom_plan::PayloadMode;
use rackloom_protocol::NodeId;
use rackloom_protocol::memory::vector::VectorMemory;

use crate::ledger::Ledger;
use crate::loans::{Loaned, Loans};
use crate::shadow::{stand_in_bytes, write_fingerprints};

/// Shorter payloads are moved in every mode: a stand-in would save nothing.
pub(crate) const PAYLOAD_BYTES_MIN: usize = 64;

/// The part of a frame that is somebody's lent memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// First byte in the frame.
    pub(crate) at: u16,
    /// Number of bytes; 0 if the frame has no such part.
    pub(crate) length: u16,
    /// Who lent it.
    pub(crate) source: NodeId,
    /// Under which number, where bytes are lent.
    pub(crate) loan: u32,
}

impl Payload {
    pub(crate) const fn is_none(&self) -> bool {
        self.length == 0
    }

    pub(crate) const fn end(&self) -> usize {
        self.at as usize + self.length as usize
    }
}

/// What members' memories and the frames between them know of payloads.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) mode: PayloadMode,
    /// Somebody looks at whole frames under way, or turns their bits over.
    pub(crate) is_watched: Cell<bool>,
    /// A witness is shown frames with their lent bytes, so that these are kept from the start.
    pub(crate) is_witnessed: Cell<bool>,
    /// Some link sums up whole frames, so that they must be the same at both of its ends.
    pub(crate) is_summed: Cell<bool>,
    /// By node.
    pub(crate) loans: RefCell<Vec<Loans>>,
    /// Of the loan that was given last.
    stand_in: RefCell<Vec<u8>>,
    /// Of the frame from which memory takes something at present.
    unloaded: Cell<Payload>,
    /// Who asked for what, if anybody wants to know.
    ledger: RefCell<Option<Box<Ledger>>>,
}

impl Books {
    pub(crate) fn new(mode: PayloadMode, members: usize) -> Self {
        Self {
            mode,
            is_watched: Cell::new(false),
            is_witnessed: Cell::new(false),
            is_summed: Cell::new(false),
            loans: RefCell::new((0..members).map(|_| Loans::default()).collect()),
            stand_in: RefCell::default(),
            unloaded: Cell::default(),
            ledger: RefCell::default(),
        }
    }

    /// Bytes that stand in a frame in place of so many.
    pub(crate) const fn stand_in_bytes(&self, payload_bytes: usize) -> usize {
        match self.mode {
            PayloadMode::Full | PayloadMode::Elided => 0,
            PayloadMode::Shadow => stand_in_bytes(payload_bytes),
        }
    }

    /// Make the stand-in of a loan that is given now.
    pub(crate) fn make_stand_in(&self, bytes: &[u8]) {
        let mut stand_in = self.stand_in.borrow_mut();
        stand_in.clear();
        write_fingerprints(bytes, &mut stand_in);
    }

    /// Write the stand-in of the loan that was given last.
    pub(crate) fn write_stand_in(&self, out: &mut [u8]) {
        let stand_in = self.stand_in.borrow();
        out[..stand_in.len()].copy_from_slice(&stand_in);
    }

    pub(crate) fn share(&self, payload: &Payload) {
        self.of(payload, |loans| loans.share(payload.loan));
    }

    pub(crate) fn give_back(&self, payload: &Payload) {
        self.of(payload, |loans| loans.give_back(payload.loan));
    }

    /// Put the lent bytes of a frame into what a witness is shown of it, where bytes are lent.
    pub(crate) fn show(&self, payload: &Payload, frame: &mut [u8]) {
        let loans = self.loans.borrow();
        let loans = loans.get(payload.source.index()).filter(|_| self.mode == PayloadMode::Full);
        if let Some(Loaned::Kept(bytes)) = loans.and_then(|loans| loans.loaned(payload.loan)) {
            frame[usize::from(payload.at)..payload.end()].copy_from_slice(bytes);
        }
    }

    fn of(&self, payload: &Payload, change: impl FnOnce(&mut Loans)) {
        if !payload.is_none()
            && self.mode == PayloadMode::Full
            && let Some(loans) = self.loans.borrow_mut().get_mut(payload.source.index())
        {
            change(loans);
        }
    }

    /// Keep a ledger from now on.
    pub(crate) fn keep_ledger(&self, members: usize) {
        let has_bytes = self.mode == PayloadMode::Full;
        *self.ledger.borrow_mut() = Some(Box::new(Ledger::new(members, has_bytes)));
    }

    /// Do something with the ledger, if one is kept.
    #[inline]
    pub(crate) fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> Option<T> {
        self.ledger.borrow_mut().as_deref_mut().map(act)
    }

    /// Memory is about to take something from a frame with this payload.
    pub(crate) fn unload(&self, payload: Payload) {
        self.unloaded.set(payload);
    }

    /// The payload of the frame that memory is about to take something from. Asked once.
    pub(crate) fn unloaded(&self) -> Payload {
        self.unloaded.take()
    }

    /// Somebody may write anywhere in a node's memory.
    pub(crate) fn keep_all(&self, node: NodeId, memory: &VectorMemory) {
        if let Some(loans) = self.loans.borrow_mut().get_mut(node.index()) {
            loans.keep_all(memory);
        }
    }
}
