//! Pieces of memory that a pool holds without handing them out, and the choice of the piece for an allocation.
//!
//! A piece is handed out whole. A piece that comes back may still be open in other processes, which mapped the allocation that it was used for.
//! [`ReusePolicies`] say when such a piece is handed out again. It is never released to the system before they have closed it.
//!
//! This file knows neither the kind of the memory nor the processes: a piece tells whether it is open, and the caller whether it is in use.

use rackloom_plan::PoolReuse;

use crate::memory::Statistics;

/// Conditions under which a pool hands out freed memory that other nodes still have mapped. All hold unless changed.
///
/// Memory that no other node had mapped when it was freed is handed out again at once in any case. Without a policy that
/// applies, the memory waits for [`crate::fabric::MemoryPool::trim`], which releases it when all nodes have closed it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReusePolicies {
    /// Reuse when no other node is in an access, as its words in shared memory say. It may still have the memory mapped, but begins no further
    /// access: the freed region is revoked.
    pub follow_event_dependencies: bool,
    /// Reuse when all other nodes have closed the memory.
    pub opportunistic: bool,
    /// Reuse by waiting, at most [`REUSE_WAIT_MS`], until one of the other two conditions holds, instead of reserving more memory.
    pub internal_dependencies: bool,
}

/// Longest time that an allocation waits under [`ReusePolicies::internal_dependencies`], in milliseconds.
pub const REUSE_WAIT_MS: u64 = 100;

impl ReusePolicies {
    /// All policies hold.
    pub const ALL: Self =
        Self { follow_event_dependencies: true, opportunistic: true, internal_dependencies: true };
    /// No policy holds.
    pub const NONE: Self =
        Self { follow_event_dependencies: false, opportunistic: false, internal_dependencies: false };

    /// Sets whether memory is reused when no other node is in an access.
    #[must_use]
    pub const fn follow_event_dependencies(self, is_allowed: bool) -> Self {
        Self { follow_event_dependencies: is_allowed, ..self }
    }

    /// Sets whether memory is reused when all other nodes have closed it.
    #[must_use]
    pub const fn opportunistic(self, is_allowed: bool) -> Self {
        Self { opportunistic: is_allowed, ..self }
    }

    /// Sets whether an allocation waits for memory that other nodes use.
    #[must_use]
    pub const fn internal_dependencies(self, is_allowed: bool) -> Self {
        Self { internal_dependencies: is_allowed, ..self }
    }
}

impl Default for ReusePolicies {
    fn default() -> Self {
        Self::ALL
    }
}

impl From<PoolReuse> for ReusePolicies {
    fn from(reuse: PoolReuse) -> Self {
        match reuse {
            PoolReuse::All => Self::ALL,
            PoolReuse::FollowEventDependencies => Self::NONE.follow_event_dependencies(true),
            PoolReuse::Opportunistic => Self::NONE.opportunistic(true),
            PoolReuse::InternalDependencies => Self::NONE.internal_dependencies(true),
            PoolReuse::None => Self::NONE,
        }
    }
}

/// Piece of memory of a pool.
pub(crate) trait Piece {
    /// Returns the length in bytes.
    fn bytes(&self) -> u64;

    /// Returns `true` if other processes may have the piece open.
    fn is_open(&self) -> bool;
}

/// Piece that is not handed out.
#[derive(Debug)]
pub(crate) struct FreePiece<P> {
    pub(crate) piece: P,
    /// Ended exports whose importers had the piece open when it came back.
    pub(crate) exports: Vec<u64>,
}

/// Result of a search for a piece.
#[derive(Debug)]
pub(crate) enum Found<P> {
    Piece(FreePiece<P>),
    /// A piece fits, and may be handed out when other processes no longer use it.
    InUse,
    Nothing,
}

/// Pieces of a pool that are not handed out, and the counters of the pool.
#[derive(Debug)]
pub(crate) struct Cache<P> {
    /// In the order in which they came back.
    free: Vec<FreePiece<P>>,
    pub(crate) release_threshold: u64,
    pub(crate) reuse: ReusePolicies,
    pub(crate) statistics: Statistics,
}

impl<P> Default for Cache<P> {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            release_threshold: 0,
            reuse: ReusePolicies::ALL,
            statistics: Statistics::default(),
        }
    }
}

impl<P: Piece> Cache<P> {
    /// Takes the smallest free piece of at least `bytes`, and at most twice as long, that may be handed out. `is_used` tells if another process is in
    /// an access to an open piece.
    pub(crate) fn take(&mut self, bytes: u64, is_used: impl Fn(&FreePiece<P>) -> bool) -> Found<P> {
        let fits = |free: &FreePiece<P>| (bytes..=bytes.saturating_mul(2)).contains(&free.piece.bytes());
        let mut best: Option<usize> = None;
        let mut waits = false;
        for (index, free) in self.free.iter().enumerate().filter(|(_, free)| fits(free)) {
            if !self.may_be_reused(free, &is_used) {
                waits = true;
            } else if best.is_none_or(|best| free.piece.bytes() < self.free[best].piece.bytes()) {
                best = Some(index);
            }
        }
        match best {
            Some(index) => {
                let free = self.free.remove(index);
                self.statistics.hand_out(free.piece.bytes());
                Found::Piece(free)
            }
            None if waits && self.reuse.internal_dependencies => Found::InUse,
            None => Found::Nothing,
        }
    }

    fn may_be_reused(&self, free: &FreePiece<P>, is_used: impl Fn(&FreePiece<P>) -> bool) -> bool {
        let ReusePolicies { follow_event_dependencies, opportunistic, internal_dependencies } = self.reuse;
        match free.piece.is_open() {
            false if free.exports.is_empty() => true,
            // What was closed is in no access either, and there is nothing to wait for.
            false => follow_event_dependencies || opportunistic || internal_dependencies,
            true => follow_event_dependencies && !is_used(free),
        }
    }

    /// Counts a new piece, which is handed out.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.statistics.reserved.add(bytes);
        self.statistics.hand_out(bytes);
    }

    /// Takes a piece back. Returns the pieces that are above the release threshold, to be dropped.
    pub(crate) fn give(&mut self, free: FreePiece<P>) -> Vec<FreePiece<P>> {
        self.statistics.take_back(free.piece.bytes());
        self.free.push(free);
        self.trim(self.release_threshold)
    }

    /// Returns the pieces that are to be dropped so that at most `keep_bytes` stay reserved, the oldest first. Pieces that are handed out or open
    /// stay.
    pub(crate) fn trim(&mut self, keep_bytes: u64) -> Vec<FreePiece<P>> {
        let Self { free, statistics, .. } = self;
        free.extract_if(.., |free| {
            let is_released = statistics.reserved.current > keep_bytes && !free.piece.is_open();
            if is_released {
                statistics.reserved.remove(free.piece.bytes());
            }
            is_released
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum State {
        Closed,
        Open,
        Used,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Block(u64, State);

    impl Piece for Block {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn is_open(&self) -> bool {
            self.1 != State::Closed
        }
    }

    /// Returns a cache with free pieces of these lengths.
    fn cache(pieces: &[(Block, &[u64])]) -> Cache<Block> {
        let mut cache = Cache { release_threshold: u64::MAX, ..Cache::default() };
        for (piece, exports) in pieces {
            cache.reserve(piece.0);
            assert!(cache.give(FreePiece { piece: *piece, exports: exports.to_vec() }).is_empty());
        }
        cache
    }

    fn take(cache: &mut Cache<Block>, bytes: u64) -> Found<Block> {
        cache.take(bytes, |free| free.piece.1 == State::Used)
    }

    #[test]
    fn the_smallest_piece_that_fits_is_handed_out() {
        let closed = |bytes| (Block(bytes, State::Closed), [].as_slice());
        let mut cache = cache(&[closed(300), closed(200), closed(100)]);
        assert!(matches!(take(&mut cache, 150), Found::Piece(free) if free.piece.0 == 200));
        assert!(matches!(take(&mut cache, 150), Found::Piece(free) if free.piece.0 == 300));
        assert!(matches!(take(&mut cache, 150), Found::Nothing), "100 is too short");
        assert!(matches!(take(&mut cache, 40), Found::Nothing), "100 is more than twice as long");
        let counts = cache.statistics;
        assert_eq!((counts.reserved.current, counts.used.current, counts.blocks), (600, 500, 2));
        assert_eq!((counts.allocations, counts.frees), (5, 3));
    }

    /// Each policy decides about one state of a piece, and only that.
    #[test]
    fn each_policy_has_its_condition() {
        let none = ReusePolicies::NONE;
        let (follow, opportunistic, internal) = (
            none.follow_event_dependencies(true),
            none.opportunistic(true),
            none.internal_dependencies(true),
        );
        // Result for a piece that was never open, was closed since, is open, and is in use.
        let cases = [
            (none, "piece nothing nothing nothing"),
            (follow, "piece piece piece nothing"),
            (opportunistic, "piece piece nothing nothing"),
            (internal, "piece piece in-use in-use"),
            (ReusePolicies::ALL, "piece piece piece in-use"),
        ];
        let pieces: [(Block, &[u64]); 4] = [
            (Block(64, State::Closed), &[]),
            (Block(64, State::Closed), &[1]),
            (Block(64, State::Open), &[1]),
            (Block(64, State::Used), &[1]),
        ];
        for (reuse, expected) in cases {
            let found = pieces.map(|piece| {
                let mut cache = Cache { reuse, ..cache(&[piece]) };
                match take(&mut cache, 64) {
                    Found::Piece(_) => "piece",
                    Found::InUse => "in-use",
                    Found::Nothing => "nothing",
                }
            });
            assert_eq!(found.join(" "), expected, "{reuse:?}");
        }
    }

    #[test]
    fn pieces_above_the_threshold_are_released_unless_they_are_open() {
        let piece = |bytes, state| FreePiece { piece: Block(bytes, state), exports: Vec::new() };
        let mut cache = Cache { release_threshold: 250, ..Cache::default() };
        (0..4).for_each(|_| cache.reserve(100));
        assert!(cache.give(piece(100, State::Open)).is_empty(), "an open piece stays");
        // 400 bytes are reserved. Two pieces must go, and only this one may.
        assert_eq!(cache.give(piece(100, State::Closed)).len(), 1);
        assert_eq!(cache.give(piece(100, State::Closed)).len(), 1);
        assert_eq!(cache.statistics.reserved.current, 200);
        assert!(cache.give(piece(100, State::Closed)).is_empty(), "200 bytes are below the threshold");
        assert_eq!((cache.trim(200).len(), cache.trim(0).len()), (0, 1));
        let counts = cache.statistics;
        assert_eq!((counts.reserved.current, counts.reserved.high, counts.used.current), (100, 400, 0));
    }
}
