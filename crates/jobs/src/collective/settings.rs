//! Settings of a collective job. They are equal for every rank, because every rank derives every address from them.

use std::sync::Arc;

use rackloom_collectives::choose::{Spread, TopologyKind};
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};
use rackloom_plan::LocalPath;

use super::common::Common;
use super::inputs::{Arrays, Inputs};

/// Settings of a collective job.
#[derive(Clone, Debug)]
pub struct CollectiveSettings {
    /// Collective to run.
    pub collective: Collective,
    /// Named algorithms. Each is measured at each size, in this order. If none is named, one is chosen per size, by
    /// trial runs or by closed forms.
    pub algorithms: Vec<Algorithm>,
    /// True if the algorithm is chosen again when runs become slower or faster. No algorithm is named.
    pub adapts: bool,
    /// Reduction that combines values, if the collective combines them.
    pub operation: ReduceOperation,
    /// Type of one element.
    pub element: ElementType,
    /// Elements of the whole array for each size, as [`Collective`] counts them.
    pub sizes: Vec<usize>,
    /// Number of measured runs per size; at least one is done.
    pub repetitions: u32,
    /// Number of warm-up runs per size, before the measured ones.
    pub warm_up: u32,
    /// Seed of derived inputs.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Input data of the ranks.
    pub inputs: Inputs,
    /// True if the remaining ranks repeat the collective after a loss.
    pub shrinks: bool,
    /// Ranks of the rack by rank of a group, whose inputs the group uses. Empty if every rank gives its own.
    pub members: Vec<u16>,
    /// The server of each rank, by rank; empty when each has its own.
    pub servers: Vec<usize>,
    /// Path between ranks of one server, of the slowest server. Closed forms use it.
    pub local: LocalPath,
    /// Kind of the rack's topology.
    pub topology: TopologyKind,
    /// Number of planes of a star, or of leaves and spines.
    pub planes: u32,
    /// Use of planes and spines.
    pub spread: Spread,
    /// Rate of the slowest link in one direction; `None` unless every link states a rate.
    pub link_bits_per_s: Option<u64>,
    /// Memory of the smallest endpoint, in bytes.
    pub memory_bytes: u64,
    /// State that the ranks of this process share, if any. The settings of all ranks that share it must be equal.
    pub common: Option<Common>,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

impl CollectiveSettings {
    /// Returns what the ranks of this process share.
    pub(crate) fn common(&self) -> Common {
        self.common.clone().unwrap_or_default()
    }

    /// Returns the number of switches whose units take part.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.algorithms.iter().map(|algorithm| algorithm.switches()).max().unwrap_or(0)
    }

    /// Returns the number of ranks among this many participants. The others are units in switches, behind the ranks.
    pub(crate) fn ranks_of(&self, participants: usize) -> usize {
        participants.saturating_sub(self.switches())
    }

    /// Returns the settings with the user's arrays as input: their type, and the one size that they have.
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
            adapts: false,
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
            local: LocalPath::default(),
            topology: TopologyKind::Custom,
            planes: 1,
            spread: Spread::default(),
            link_bits_per_s: None,
            memory_bytes: 64 << 20,
            common: None,
            start_timeout_ns: 30_000_000_000,
            drain_timeout_ns: 5_000_000_000,
        }
    }
}
