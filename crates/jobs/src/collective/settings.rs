//! What is asked of a collective job; the same for every rank, because every rank derives every address from it.

use std::sync::Arc;

use rackloom_collectives::choose::TopologyKind;
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};

use super::inputs::{Arrays, Inputs};

/// Settings of a collective job.
#[derive(Clone, Debug)]
pub struct CollectiveSettings {
    /// What is promised.
    pub collective: Collective,
    /// The named algorithms. Each is measured at each size, in this order. If none is named, one is chosen per size, by trial
    /// runs or by closed forms.
    pub algorithms: Vec<Algorithm>,
    /// How values are combined, where they are.
    pub operation: ReduceOperation,
    /// Type of one element.
    pub element: ElementType,
    /// Elements of the whole array, as [`Collective`] counts them, for each size.
    pub sizes: Vec<usize>,
    /// Runs per size that are measured; at least one is done.
    pub repetitions: u32,
    /// Runs per size before those.
    pub warm_up: u32,
    /// Seed of derived inputs.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// What the ranks give.
    pub inputs: Inputs,
    /// Whether those who are left after a loss do it again among themselves.
    pub shrinks: bool,
    /// Of a group: whose part of the inputs each rank gives; nobody where every rank gives its own.
    pub members: Vec<u16>,
    /// The server of each rank, by rank; empty when each has its own.
    pub servers: Vec<usize>,
    /// The kind of the rack.
    pub topology: TopologyKind,
    /// Planes of a star.
    pub planes: u32,
    /// Rate of the slowest link in one direction; `None` unless every link states a rate.
    pub link_bits_per_s: Option<u64>,
    /// Memory of the smallest endpoint.
    pub memory_bytes: u64,
    /// How long to wait at the start until every other rank can be reached.
    pub start_timeout_ns: u64,
    /// How long to wait, once the run is broken off, for outstanding operations to end.
    pub drain_timeout_ns: u64,
}

impl CollectiveSettings {
    /// The same on the user's arrays: their type, and the one size that they make.
    #[must_use]
    pub fn on_arrays(mut self, arrays: Arc<dyn Arrays>, ranks: usize) -> Self {
        self.element = arrays.element();
        let elements = |rank| (arrays.bytes(rank) / self.element.bytes() as u64) as usize;
        let whole = match self.collective {
            Collective::AllGather | Collective::Gather { .. } => (0..ranks).map(elements).sum(),
            Collective::Barrier => 0,
            collective => elements(collective.root().unwrap_or(0)),
        };
        self.sizes = vec![whole];
        self.inputs = Inputs::Arrays(arrays);
        self
    }
}

impl Default for CollectiveSettings {
    fn default() -> Self {
        Self {
            collective: Collective::AllReduce,
            algorithms: Vec::new(),
            operation: ReduceOperation::Sum,
            element: ElementType::F32,
            sizes: vec![1 << 18],
            repetitions: 20,
            warm_up: 5,
            seed: 0,
            key_seed: 0,
            inputs: Inputs::Pattern,
            shrinks: false,
            members: Vec::new(),
            servers: Vec::new(),
            topology: TopologyKind::Custom,
            planes: 1,
            link_bits_per_s: None,
            memory_bytes: 64 << 20,
            start_timeout_ns: 30_000_000_000,
            drain_timeout_ns: 5_000_000_000,
        }
    }
}
