//! Requests of a kernel, in the layout of a slot, and their results.

use super::numbered::numbered;

numbered! {
    /// Kind of request.
    ///
    /// `Send` and `Sync`: plain data.
    CommandKind: u32 {
        /// Writes a word of 4 or 8 bytes: the operand.
        Store = 1,
        /// Reads bytes into a local region.
        Load = 2,
        /// Copies bytes of a local region to the peer, and signals it if [`SIGNAL`] is set.
        Put = 3,
        /// Copies bytes of the peer, of any length, into a local region.
        Get = 4,
        /// Adds to a word and returns the old value.
        FetchAdd = 5,
        /// Replaces a word that equals `compare` and returns the old value.
        CompareSwap = 6,
        /// Replaces a word and returns the old value.
        Swap = 7,
        /// Ends when everything before it is visible.
        Flush = 8,
        /// Orders visibility: later commands become visible after earlier ones.
        Fence = 9,
    }
}

/// Peer number of a command that has no peer in particular.
pub const ANY_PEER: u32 = u32::MAX;
/// Flag: the kernel does not wait for the end.
pub const POSTED: u32 = 1;
/// Flag: a put ends with a signal.
pub const SIGNAL: u32 = 2;
/// Flag: the signal is added to its word instead of replacing it.
pub const SIGNAL_ADDS: u32 = 4;

/// Command in the layout of its slot. `crates/gpu/kernels/rackloom.cuh` has the same structure.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Command {
    /// Number of a [`CommandKind`].
    pub kind: u32,
    /// Number of the peer, or [`ANY_PEER`].
    pub peer: u32,
    /// Number of the peer's region.
    pub region: u32,
    /// [`POSTED`], [`SIGNAL`], [`SIGNAL_ADDS`]; the width of a word, in bytes, in the upper half.
    pub flags: u32,
    /// Offset of the first byte in the peer's region.
    pub offset: u64,
    /// Key of the peer's region.
    pub key: u64,
    /// Number of the local region.
    pub local_region: u32,
    /// Number of the peer's region that has the signal.
    pub signal_region: u32,
    /// Offset of the first byte in the local region.
    pub local_offset: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Value that is stored or added.
    pub operand: u64,
    /// Value that a compare-and-swap expects.
    pub compare: u64,
    /// Offset of the signal in its region.
    pub signal_offset: u64,
    /// Key of the signal's region.
    pub signal_key: u64,
    /// Value of the signal.
    pub signal_value: u64,
}

pub(super) const WORDS: usize = size_of::<Command>() / 8;

impl Command {
    /// Returns the kind, or `None` if the number has no meaning.
    #[must_use]
    pub fn kind(&self) -> Option<CommandKind> {
        CommandKind::of(self.kind)
    }

    /// Returns true if no thread waits for the end.
    #[must_use]
    pub const fn is_posted(&self) -> bool {
        self.flags & POSTED != 0
    }

    /// Returns the width of the command's word: 4 or 8 bytes.
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
    /// Result of a command for the kernel.
    ///
    /// `Send` and `Sync`: plain data.
    Status: u8 {
        /// The command is done and visible.
        Done = 0,
        /// The command has no meaning.
        Invalid = 1,
        /// The peer refused.
        Refused = 2,
        /// The peer is lost; nothing was done.
        Lost = 3,
        /// The peer is lost; the command may have been done.
        OutcomeUnknown = 4,
        /// The ring is not served any more.
        Closed = 5,
    }
}
