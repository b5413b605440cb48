//! Settings of the litmus job and their defaults.

/// Settings of one litmus run. They are equal for every rank, because every rank derives every address from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LitmusSettings {
    /// Seed of patterns, guards and alignments.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Largest transfer between neighbouring ranks, in bytes. The layout lowers it to what fits, and the result reports
    /// that.
    pub bytes_max: u64,
    /// Memory of the smallest endpoint, in bytes. All regions together stay below it.
    pub memory_bytes: u64,
    /// Approximate payload that one rank sends and reads per round, in bytes. Large transfers between distant ranks are
    /// left out first.
    pub round_bytes_max: u64,
    /// Largest store and load in bytes. Larger transfers are puts and gets.
    pub store_bytes_max: u64,
    /// Number of times that the whole script is run, each time with other patterns.
    pub rounds: u32,
    /// Number of atomics that one rank issues on each contended word per round.
    pub atomics_per_word: u32,
    /// Maximum number of outstanding operations per rank, not counting waits.
    pub outstanding_max: usize,
    /// Maximum number of a rank's messages that may wait for their receives at a peer.
    pub offers_max: usize,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

impl Default for LitmusSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            key_seed: 0,
            bytes_max: 1 << 20,
            memory_bytes: 64 << 20,
            round_bytes_max: 16 << 20,
            store_bytes_max: 1024,
            rounds: 4,
            atomics_per_word: 32,
            outstanding_max: 32,
            offers_max: 64,
            start_timeout_ns: 30_000_000_000,
            drain_timeout_ns: 5_000_000_000,
        }
    }
}
