//! What the rack shall do: the jobs and their settings.
//!
//! Collectives, algorithms, operators and element types stand here as names only. Whoever runs them holds what they mean
//! and translates by name; whether an algorithm can do a collective is known there and not here.

use rackloom_protocol::NodeId;

use crate::algorithm::AlgorithmList;
use crate::words::words;

/// What the rack shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// Which job, with its own settings.
    pub kind: JobKind,
    /// Largest transfer of the litmus, in bytes.
    pub bytes_max: u32,
    /// How often the litmus goes through all of its operations.
    pub rounds: u32,
}

/// The jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// Every ordered pair of nodes, every kind of operation, every byte checked by its owner.
    #[default]
    Litmus,
    /// One collective over all nodes.
    Collective(CollectivePlan),
    /// How long single operations take.
    Latency(Sweep),
    /// How much many operations move.
    Bandwidth(Sweep),
    /// Many messages at once, between whom a pattern says.
    Traffic(TrafficPlan),
    /// Bring the links up and end.
    None,
}

impl JobKind {
    /// Whether a fault can wait for a place in it, a run and a step.
    #[must_use]
    pub const fn has_places(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// One collective, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectivePlan {
    /// What is promised.
    pub collective: CollectiveName,
    /// How it is done. Several names are measured one after the other.
    pub algorithm: AlgorithmList,
    /// Into how many segments [`crate::AlgorithmName::RingPipeline`] cuts the array.
    pub segments: u32,
    /// How values are combined, where the collective combines them.
    pub op: OperatorName,
    /// Type of one element.
    pub element: ElementName,
    /// Sizes of the whole array and how often each is done.
    pub sweep: Sweep,
    /// The node that gives or gets, where the collective has one.
    pub root: NodeId,
    /// What becomes of it when ranks are lost.
    pub on_loss: OnLoss,
}

/// A pattern of traffic, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficPlan {
    /// Who sends to whom.
    pub pattern: PatternName,
    /// Bytes of one message.
    pub bytes: u64,
    /// Messages of each flow; of each node where targets are drawn.
    pub messages: u32,
}

impl Default for TrafficPlan {
    fn default() -> Self {
        Self { pattern: PatternName::default(), bytes: 4 << 10, messages: 100 }
    }
}

/// Sizes, and how often each is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The sizes.
    pub sizes: Sizes,
    /// How often each size is measured.
    pub repetitions: u32,
    /// How often each size is done before, unmeasured.
    pub warm_up: u32,
}

/// One size, or several that grow by a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The first, in bytes.
    pub from_bytes: u64,
    /// No size is larger, in bytes.
    pub to_bytes: u64,
    /// Each is so many times the one before.
    pub factor: u32,
}

words! {
    /// What a collective promises.
    pub enum CollectiveName {
        /// Every rank ends with the reduction of all inputs.
        #[default]
        AllReduce = "all-reduce",
        /// Rank *r* ends with part *r* of the reduction.
        ReduceScatter = "reduce-scatter",
        /// Every rank ends with the parts of all ranks.
        AllGather = "all-gather",
        /// Every rank ends with the root's input.
        Broadcast = "broadcast",
        /// The root ends with the reduction.
        Reduce = "reduce",
        /// Rank *r* ends with part *r* of each rank's input.
        AllToAll = "all-to-all",
        /// The root ends with the parts of all ranks.
        Gather = "gather",
        /// Rank *r* ends with part *r* of the root's input.
        Scatter = "scatter",
        /// No rank leaves before every rank has entered.
        Barrier = "barrier",
    }
}

words! {
    /// What becomes of a collective when ranks are lost.
    pub enum OnLoss {
        /// Every rank breaks off with an error that names whom it lost.
        #[default]
        BreakOff = "break-off",
        /// Those who still reach each other do it again among themselves.
        Shrink = "shrink",
    }
}

words! {
    /// Who sends to whom.
    pub enum PatternName {
        /// Each node to one other, and from one other.
        #[default]
        Permutation = "permutation",
        /// Each node to nodes drawn at random.
        Uniform = "uniform",
        /// All nodes to the first.
        Incast = "incast",
        /// Each node to all others alike.
        AllToAll = "all-to-all",
        /// Each node to all others, of which the k-th gets a k-th of the first: tokens to experts.
        Experts = "experts",
        /// Each node to the next, what came from the one before.
        Pipeline = "pipeline",
        /// Each node to all others, round by round: a round begins where one has come from everybody. Trains of all-reduces.
        TensorParallel = "tensor-parallel",
        /// Half of the nodes each to one of the other half: caches of keys and values.
        KvCache = "kv-cache",
        /// Each node to nodes drawn at random, in acknowledged stores: flags and other small words.
        SmallStores = "small-stores",
    }
}

words! {
    /// How values are combined.
    pub enum OperatorName {
        /// Added.
        #[default]
        Sum = "sum",
        /// The least.
        Min = "min",
        /// The greatest.
        Max = "max",
        /// Multiplied.
        Prod = "prod",
    }
}

words! {
    /// Type of one element.
    pub enum ElementName {
        /// IEEE 754 binary32.
        #[default]
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// The upper half of a binary32.
        Bf16 = "bf16",
        /// Signed, 32 bits.
        I32 = "i32",
        /// Signed, 64 bits.
        I64 = "i64",
        /// Unsigned, 8 bits.
        U8 = "u8",
    }
}

impl JobKind {
    /// The names of all jobs.
    pub const NAMES: &'static [&'static str] =
        &["litmus", "collective", "latency", "bandwidth", "traffic", "none"];

    /// Name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Litmus => "litmus",
            Self::Collective(_) => "collective",
            Self::Latency(_) => "latency",
            Self::Bandwidth(_) => "bandwidth",
            Self::Traffic(_) => "traffic",
            Self::None => "none",
        }
    }

    /// The job with this name and the settings that a file gets which gives none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let jobs = [
            Self::Litmus,
            Self::Collective(CollectivePlan::default()),
            Self::Latency(Sweep::LATENCY),
            Self::Bandwidth(Sweep::BANDWIDTH),
            Self::Traffic(TrafficPlan::default()),
            Self::None,
        ];
        jobs.into_iter().find(|job| job.name() == name)
    }

    /// Sizes and repetitions, where the job has them.
    #[must_use]
    pub const fn sweep(&self) -> Option<&Sweep> {
        match self {
            Self::Collective(plan) => Some(&plan.sweep),
            Self::Latency(sweep) | Self::Bandwidth(sweep) => Some(sweep),
            Self::Litmus | Self::Traffic(_) | Self::None => None,
        }
    }
}

impl JobPlan {
    /// Memory that the largest step takes at every node at least, in bytes, without working space: the largest transfer
    /// of the litmus, else source and target, or a rank's input and output.
    #[must_use]
    pub fn memory_bytes_min(&self, ranks: usize) -> u64 {
        let largest = |sweep: &Sweep| sweep.sizes.largest_bytes();
        match &self.kind {
            JobKind::None => 0,
            JobKind::Litmus => u64::from(self.bytes_max),
            JobKind::Latency(sweep) | JobKind::Bandwidth(sweep) => largest(sweep).saturating_mul(2),
            JobKind::Traffic(plan) => plan.bytes.saturating_mul(ranks as u64 + 1),
            JobKind::Collective(plan) => {
                let whole = largest(&plan.sweep);
                let part = whole.div_ceil(ranks.max(1) as u64);
                match plan.collective {
                    CollectiveName::Barrier => 0,
                    CollectiveName::ReduceScatter
                    | CollectiveName::AllGather
                    | CollectiveName::Gather
                    | CollectiveName::Scatter => whole.saturating_add(part),
                    _ => whole.saturating_mul(2),
                }
            }
        }
    }
}

impl CollectiveName {
    /// Whether it combines values, so that an operator means something to it.
    #[must_use]
    pub const fn takes_operator(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Whether one node gives or gets, so that a root means something to it.
    #[must_use]
    pub const fn takes_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Whether it carries an array, so that a size and a type mean something to it.
    #[must_use]
    pub const fn moves_data(self) -> bool {
        !matches!(self, Self::Barrier)
    }

    /// The words of those of which this is true, for hints: `broadcast, reduce, gather, scatter`.
    #[must_use]
    pub fn listed(is_true: impl Fn(Self) -> bool) -> String {
        let words = Self::ALL.iter().filter(|one| is_true(**one)).map(|one| one.name());
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Default for CollectivePlan {
    fn default() -> Self {
        Self {
            collective: CollectiveName::default(),
            algorithm: AlgorithmList::default(),
            segments: 8,
            op: OperatorName::default(),
            element: ElementName::default(),
            sweep: Sweep { sizes: Sizes::one(1 << 20), repetitions: 20, warm_up: 5 },
            root: NodeId(0),
            on_loss: OnLoss::default(),
        }
    }
}

impl ElementName {
    /// Size of one element in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }
}

impl Sweep {
    /// What a latency job measures unless told otherwise.
    pub const LATENCY: Self = Self {
        sizes: Sizes { from_bytes: 8, to_bytes: 4 << 10, factor: 2 },
        repetitions: 1000,
        warm_up: 100,
    };
    /// What a bandwidth job measures unless told otherwise.
    pub const BANDWIDTH: Self = Self {
        sizes: Sizes { from_bytes: 4 << 10, to_bytes: 1 << 20, factor: 4 },
        repetitions: 20,
        warm_up: 5,
    };
}

impl Sizes {
    /// How sizes grow unless told otherwise.
    pub(crate) const FACTOR: u32 = 2;

    /// One size alone.
    #[must_use]
    pub const fn one(bytes: u64) -> Self {
        Self { from_bytes: bytes, to_bytes: bytes, factor: Self::FACTOR }
    }

    /// All sizes, in bytes, ascending.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        // A size that does not grow would never end.
        let grow = move |size: &u64| {
            size.checked_mul(self.factor.into()).filter(|next| *next > *size && *next <= self.to_bytes)
        };
        std::iter::successors((self.from_bytes <= self.to_bytes).then_some(self.from_bytes), grow)
    }

    /// The largest size, in bytes; 0 if there is none.
    #[must_use]
    pub fn largest_bytes(self) -> u64 {
        self.iter().last().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_the_factor_up_to_the_last_that_fits() {
        let sizes =
            |from_bytes, to_bytes, factor| Sizes { from_bytes, to_bytes, factor }.iter().collect::<Vec<_>>();
        assert_eq!(sizes(8, 64, 2), [8, 16, 32, 64]);
        assert_eq!(sizes(8, 100, 3), [8, 24, 72]);
        assert_eq!(sizes(0, 0, 2), [0], "the empty array is a size");
        assert_eq!(sizes(9, 8, 2), [] as [u64; 0]);
        assert_eq!(sizes(0, 8, 2), [0], "what does not grow ends");
        assert_eq!(sizes(7, 8, 1), [7]);
        assert_eq!(sizes(1 << 62, u64::MAX, 4), [1 << 62], "what overflows ends");
        assert_eq!(Sizes { from_bytes: 8, to_bytes: 100, factor: 3 }.largest_bytes(), 72);
    }

    #[test]
    fn every_job_is_found_by_its_name() {
        for name in JobKind::NAMES {
            assert_eq!(JobKind::from_name(name).map(JobKind::name), Some(*name));
        }
        assert_eq!(JobKind::from_name("litmuss"), None);
    }

    #[test]
    fn every_word_leads_back_to_its_variant() {
        assert!(CollectiveName::ALL.iter().all(|one| CollectiveName::from_name(one.name()) == Some(*one)));
        assert_eq!(CollectiveName::ALL.len(), CollectiveName::NAMES.len());
        assert_eq!(OperatorName::from_name("mean"), None);
        assert_eq!(format!("{:>5}", ElementName::Bf16), " bf16");
    }

    #[test]
    fn what_a_collective_takes_follows_from_what_it_promises() {
        assert_eq!(
            CollectiveName::listed(CollectiveName::takes_operator),
            "all-reduce, reduce-scatter, reduce"
        );
        assert_eq!(CollectiveName::listed(CollectiveName::takes_root), "broadcast, reduce, gather, scatter");
        assert_eq!(CollectiveName::listed(|one| !one.moves_data()), "barrier");
    }

    #[test]
    fn a_rank_holds_its_input_and_its_output() {
        let needed = |collective, bytes| {
            let sweep = Sweep { sizes: Sizes::one(bytes), repetitions: 1, warm_up: 0 };
            let kind = JobKind::Collective(CollectivePlan { collective, sweep, ..CollectivePlan::default() });
            JobPlan { kind, bytes_max: 1, rounds: 1 }.memory_bytes_min(4)
        };
        assert_eq!(needed(CollectiveName::AllReduce, 1000), 2000);
        assert_eq!(needed(CollectiveName::AllGather, 1000), 1250, "a quarter in, the whole out");
        assert_eq!(needed(CollectiveName::Scatter, 1001), 1252, "the largest part counts");
        assert_eq!(needed(CollectiveName::Barrier, 1000), 0);
    }
}
