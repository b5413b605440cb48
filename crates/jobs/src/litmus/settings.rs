//! What can be set about the litmus job, and what it does when nobody sets anything.

/// Settings of one litmus run; the same for every rank, because every rank derives every address from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LitmusSettings {
    /// Seed of patterns, guards and alignments.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Largest transfer between neighbouring ranks. The layout lowers it to what fits, and the result says so.
    pub bytes_max: u64,
    /// Memory of the smallest endpoint; all regions together stay below it.
    pub memory_bytes: u64,
    /// Payload that one rank sends and reads per round, roughly; large transfers between distant ranks are left out first.
    pub round_bytes_max: u64,
    /// Largest store and load; larger transfers are puts and gets.
    pub store_bytes_max: u64,
    /// Times that the whole script is run, each time with other patterns.
    pub rounds: u32,
    /// Atomics that one rank issues on each contended word per round.
    pub atomics_per_word: u32,
    /// Operations under way per rank, waits not counted.
    pub outstanding_max: usize,
    /// Messages that a rank may have waiting for their receives at a peer.
    pub offers_max: usize,
    /// How long to wait at the start until every other rank can be reached.
    pub start_timeout_ns: u64,
    /// How long to wait, once the run is broken off, for outstanding operations to end.
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
