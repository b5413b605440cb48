//! What a kernel can want, as it lies in a slot, and how that can end.

use super::numbered::numbered;

numbered! {
    /// What a kernel wants.
    ///
    /// `Send` and `Sync`: plain data.
    CommandKind: u32 {
        /// Write a word of 4 or 8 bytes: the operand.
        Store = 1,
        /// Read bytes into a region of one's own.
        Load = 2,
        /// Copy bytes of a region of one's own to the peer, and perhaps signal it.
        Put = 3,
        /// The same the other way, of any length.
        Get = 4,
        /// Add to a word; the old value.
        FetchAdd = 5,
        /// Replace a word that equals `compare`; the old value.
        CompareSwap = 6,
        /// Replace a word; the old value.
        Swap = 7,
        /// Ends when everything before it is visible.
        Flush = 8,
        /// What comes later becomes visible later.
        Fence = 9,
    }
}

/// No peer in particular.
pub const ANYBODY: u32 = u32::MAX;
/// Nobody waits for the end.
pub const POSTED: u32 = 1;
/// A put ends with a signal.
pub const SIGNAL: u32 = 2;
/// The signal is added to its word instead of replacing it.
pub const SIGNAL_ADDS: u32 = 4;

/// A command as it lies in its slot. `kernels/rackloom.cuh` has the same structure.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Command {
    /// A [`CommandKind`].
    pub kind: u32,
    /// Whom it concerns, or [`ANYBODY`].
    pub peer: u32,
    /// The peer's region.
    pub region: u32,
    /// [`POSTED`], [`SIGNAL`], [`SIGNAL_ADDS`]; bytes of a word in the upper half.
    pub flags: u32,
    /// First byte in the peer's region.
    pub offset: u64,
    /// What the peer wants to see.
    pub key: u64,
    /// A region of one's own.
    pub local_region: u32,
    /// The peer's region that has the signal.
    pub signal_region: u32,
    /// First byte in one's own region.
    pub local_offset: u64,
    /// Bytes.
    pub length: u64,
    /// What is stored, added or put in place.
    pub operand: u64,
    /// What a compare-and-swap expects.
    pub compare: u64,
    /// Where the signal is.
    pub signal_offset: u64,
    /// What the peer wants to see for it.
    pub signal_key: u64,
    /// The signal.
    pub signal_value: u64,
}

pub(super) const WORDS: usize = size_of::<Command>() / 8;

impl Command {
    /// What it wants, if that is anything known.
    #[must_use]
    pub fn kind(&self) -> Option<CommandKind> {
        CommandKind::of(self.kind)
    }

    /// Whether nobody waits for the end.
    #[must_use]
    pub const fn is_posted(&self) -> bool {
        self.flags & POSTED != 0
    }

    /// Bytes of the word that it is about: 4 or 8.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.flags >> 16
    }

    pub(super) fn words(&self) -> [u64; WORDS] {
        let pair = |low: u32, high: u32| low as u64 | (high as u64) << 32;
        [
            pair(self.kind, self.peer),
            pair(self.region, self.flags),
            self.offset,
            self.key,
            pair(self.local_region, self.signal_region),
            self.local_offset,
            self.length,
            self.operand,
            self.compare,
            self.signal_offset,
            self.signal_key,
            self.signal_value,
        ]
    }

    pub(super) const fn from_words(words: [u64; WORDS]) -> Self {
        let (low, high) = (0xffff_ffff, 32);
        Self {
            kind: (words[0] & low) as u32,
            peer: (words[0] >> high) as u32,
            region: (words[1] & low) as u32,
            flags: (words[1] >> high) as u32,
            offset: words[2],
            key: words[3],
            local_region: (words[4] & low) as u32,
            signal_region: (words[4] >> high) as u32,
            local_offset: words[5],
            length: words[6],
            operand: words[7],
            compare: words[8],
            signal_offset: words[9],
            signal_key: words[10],
            signal_value: words[11],
        }
    }
}

numbered! {
    /// How a command ended, as kernels see it.
    ///
    /// `Send` and `Sync`: plain data.
    Status: u8 {
        /// It is done and visible.
        Done = 0,
        /// It makes no sense to anybody.
        Invalid = 1,
        /// The peer said no.
        Refused = 2,
        /// The peer is gone; nothing was done.
        Lost = 3,
        /// The peer is gone; it may have been done.
        OutcomeUnknown = 4,
        /// Nobody serves the ring any more.
        Closed = 5,
    }
}
