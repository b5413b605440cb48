//! Settings of a latency or bandwidth job. They are equal for every rank.

use serde::{Deserialize, Serialize};

/// Quantity that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Time until a message is visible at its target, or, for a get, here. One message at a time.
    #[default]
    Latency,
    /// Bytes that arrive per time, with many messages outstanding.
    Bandwidth,
}

/// Operation that moves a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairOperation {
    /// An acknowledged store.
    Store,
    /// A put, until it is visible.
    Put,
    /// A get, until its bytes have arrived.
    Get,
    /// A put with signal that is answered by one of the same size. The time is half of a round trip, as between sender
    /// and receiver of a message. Latency only.
    Send,
}

impl PairOperation {
    /// Returns a lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Put => "put",
            Self::Get => "get",
            Self::Send => "send",
        }
    }
}

/// Pairs of ranks that are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// From rank 0 to rank 1.
    #[default]
    First,
    /// From every rank to every other, one pair after the other.
    All,
}

/// Settings of a latency or bandwidth job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSettings {
    /// Quantity that is measured: latency or bandwidth.
    pub measure: Measure,
    /// Operations to measure, one after the other. An operation skips the sizes that it cannot move.
    pub operations: Vec<PairOperation>,
    /// Message sizes in bytes.
    pub sizes: Vec<u64>,
    /// Number of measured messages per size; at least one is sent.
    pub repetitions: u32,
    /// Number of warm-up messages per size, before the measured ones.
    pub warm_up: u32,
    /// Pairs of ranks that are measured.
    pub pairs: Pairs,
    /// Seed of the bytes.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Largest store in bytes.
    pub store_bytes_max: u64,
    /// Memory of the smallest endpoint, in bytes.
    pub memory_bytes: u64,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

impl PairSettings {
    /// Returns settings that measure this quantity on all operations that support it.
    #[must_use]
    pub fn new(measure: Measure) -> Self {
        use PairOperation::{Get, Put, Send, Store};
        let operations = match measure {
            Measure::Latency => vec![Store, Put, Get, Send],
            Measure::Bandwidth => vec![Store, Put, Get],
        };
        Self {
            measure,
            operations,
            sizes: vec![8, 4096],
            repetitions: 100,
            warm_up: 10,
            pairs: Pairs::First,
            seed: 0,
            key_seed: 0,
            store_bytes_max: 1024,
            memory_bytes: 64 << 20,
            start_timeout_ns: 30_000_000_000,
            drain_timeout_ns: 5_000_000_000,
        }
    }

    /// Returns whether an operation can move a message of this size.
    #[must_use]
    pub const fn can(&self, operation: PairOperation, bytes: u64) -> bool {
        match operation {
            PairOperation::Store => bytes >= 1 && bytes <= self.store_bytes_max,
            PairOperation::Put => bytes >= 1,
            PairOperation::Get => bytes >= 1 && bytes < 1 << 32,
            PairOperation::Send => matches!(self.measure, Measure::Latency),
        }
    }
}
