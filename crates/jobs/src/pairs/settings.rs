//! What is asked of a latency or bandwidth job; the same for every rank.

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// One message at a time: how long until it is visible at its target, or here.
    #[default]
    Latency,
    /// Many messages under way: how much arrives per time.
    Bandwidth,
}

/// How a message is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairOperation {
    /// An acknowledged store.
    Store,
    /// A put, until it is visible.
    Put,
    /// A get, until its bytes are here.
    Get,
    /// A put with signal that is answered by one of the same size: half of a round trip, as between sender and receiver of a
    /// message. Latency only.
    Send,
}

impl PairOperation {
    /// Lower-case name.
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

/// Between whom.
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
    /// Latency or bandwidth.
    pub measure: Measure,
    /// How messages are moved, one after the other. An operation leaves out the sizes that it cannot move.
    pub operations: Vec<PairOperation>,
    /// Bytes of a message.
    pub sizes: Vec<u64>,
    /// Messages per size that are measured; at least one is sent.
    pub repetitions: u32,
    /// Messages per size before those.
    pub warm_up: u32,
    /// Between whom.
    pub pairs: Pairs,
    /// Seed of the bytes.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Largest store.
    pub store_bytes_max: u64,
    /// Memory of the smallest endpoint.
    pub memory_bytes: u64,
    /// How long to wait at the start until every other rank can be reached.
    pub start_timeout_ns: u64,
    /// How long to wait, once the run is broken off, for outstanding operations to end.
    pub drain_timeout_ns: u64,
}

impl PairSettings {
    /// A job that measures this on all operations that it can be measured on.
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

    /// Whether an operation can move a message of this size.
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
