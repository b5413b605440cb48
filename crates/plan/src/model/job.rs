//! Jobs of a rack and their settings.
//!
//! Collectives, algorithms, operators and element types are names in this file. The crates that run them define their meaning and
//! translate by name. They also decide which algorithm implements which collective.

use rackloom_protocol::NodeId;

use crate::model::algorithm::{AlgorithmList, AlgorithmName};
use crate::setting::name::Named;
use crate::setting::quantity::{Unit, shown};
use crate::setting::section::{Field, Section, Text, Visit, section};
use crate::setting::table::{DefaultText, Key, Kind, REQUIRED, Table, joined, key, table, with_defaults};
use crate::setting::word::words;

/// Largest array of a job: the largest memory.
const BYTES_MAX: u64 = 64 << 30;
const COUNT_MAX: u64 = 1_000_000;

/// Job of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// Kind of the job, with its own settings.
    pub kind: JobKind,
    /// Settings of the litmus.
    pub litmus: LitmusPlan,
}

section! {
    /// Settings of the litmus.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LitmusPlan: LITMUS = "job.litmus" {
        /// Largest transfer; no larger than the memory of any node.
        bytes_max: u32 {
            form = Kind::Size(1, 1 << 30);
            default = 1 << 20;
            ours = true;
        }
        /// Number of times that all operations are performed.
        rounds: u32 {
            form = Kind::Count(1, COUNT_MAX);
            default = 1;
            ours = true;
        }
    }
}

/// Kinds of jobs, with their settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// Every ordered pair of nodes performs every kind of operation, and the owner checks every byte.
    #[default]
    Litmus,
    /// One collective over all nodes.
    Collective(CollectivePlan),
    /// Measures the time of single operations.
    Latency(Sweep),
    /// Measures the throughput of many operations.
    Bandwidth(Sweep),
    /// Many concurrent messages. A pattern determines senders and receivers.
    Traffic(TrafficPlan),
    /// Brings the links up and ends.
    None,
}

impl JobKind {
    /// Returns true if a fault can be triggered by a run and a step of the job.
    #[must_use]
    pub const fn has_steps(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Collective, with sizes and numbers of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectivePlan {
    /// Collective to perform.
    pub collective: CollectiveName,
    /// Algorithms to use. Several algorithms are measured one after the other.
    pub algorithm: AlgorithmList,
    /// Number of segments into which [`crate::AlgorithmName::RingPipeline`] splits the array.
    pub segments: u32,
    /// Operator that combines values, for collectives that reduce.
    pub op: OperatorName,
    /// Type of one element.
    pub element: ElementName,
    /// Sizes of the whole array and number of repetitions of each.
    pub sweep: Sweep,
    /// Root of the collective, if it has one.
    pub root: NodeId,
    /// Reaction to the loss of ranks.
    pub on_loss: OnLoss,
}

section! {
    /// Pattern of traffic, and its amount.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TrafficPlan: TRAFFIC = "job.traffic" {
        /// Senders and receivers. `permutation`: each node to one other. `uniform`: each to nodes drawn at random. `incast`: all to the first.
        /// `all-to-all`: each to all others, equal amounts. `experts`: each to all others, and the k-th node gets a k-th of the amount of the
        /// first. `pipeline`: each forwards to the next node what it receives from the previous one. `tensor-parallel`: each to all others,
        /// round by round, and a round begins when one message of each other node has arrived; two rounds are a direct all-reduce.
        /// `kv-cache`: each of the first half to one of the second. `small-stores`: as `uniform`, in acknowledged stores.
        pattern: PatternName {
            form = Kind::Word(PatternName::NAMES);
            default = PatternName::Permutation;
        }
        /// Bytes of one message. Each node holds one of every other, which must fit its memory.
        bytes: u64 {
            form = Kind::Size(1, 1 << 30);
            default = 4 << 10;
            ours = true;
        }
        /// Messages of each flow (of `experts` to the first node), which are rounds of `tensor-parallel`; of each node where targets are
        /// drawn.
        messages: u32 {
            form = Kind::Count(1, COUNT_MAX);
            default = 100;
            ours = true;
        }
    }
}

section! {
    /// Sizes to measure, and number of repetitions of each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Sweep: SWEEP = "job" {
        /// Several sizes, in place of `bytes`.
        sizes: Sizes {
            form = Kind::Table(&SIZES);
            default = Sizes::one(1 << 20);
            shown = "";
        }
        /// Number of measured repetitions of each size.
        repetitions: u32 {
            form = Kind::Count(1, COUNT_MAX);
            default = 20;
            ours = true;
        }
        /// Number of unmeasured repetitions of each size before the measured ones.
        warm_up: u32 {
            form = Kind::Count(0, COUNT_MAX);
            default = 5;
            ours = true;
        }
    }
}

section! {
    /// One size, or several that grow by a factor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Sizes: SIZES = "sizes" {
        /// First size.
        from_bytes: u64 {
            key = "from";
            form = Kind::Size(1, BYTES_MAX);
            default = 0;
            shown = REQUIRED;
        }
        /// Upper bound of all sizes.
        to_bytes: u64 {
            key = "to";
            form = Kind::Size(1, BYTES_MAX);
            default = 0;
            shown = REQUIRED;
        }
        /// Ratio of each size to the one before.
        factor: u32 {
            form = Kind::Count(2, 1024);
            default = Sizes::FACTOR;
        }
    }
}

section! {
    pub(crate) fields of CollectivePlan: COLLECTIVE_SETTINGS = "job.collective" {
        /// Collective to perform.
        collective: CollectiveName {
            form = Kind::Word(CollectiveName::NAMES);
            default = CollectiveName::AllReduce;
        }
        /// Algorithm. `auto` chooses by size, shape and the links' latency and rate. Not every algorithm implements every collective. Of a
        /// list, each algorithm is measured at each size, in this order; `auto` is not in a list.
        algorithm: AlgorithmList {
            form = Kind::Either(&[Kind::Word(AlgorithmName::NAMES), Kind::WordList(AlgorithmName::NAMES)]);
            default = AlgorithmList::default();
            shown = "`auto`";
        }
        /// Number of segments into which `ring-pipeline` splits the array.
        segments: u32 {
            form = Kind::Count(1, 1024);
            default = 8;
            ours = true;
        }
        /// Operator that combines values, for collectives that reduce.
        op: OperatorName {
            form = Kind::Word(OperatorName::NAMES);
            default = OperatorName::Sum;
        }
        /// Type of one element.
        element: ElementName {
            key = "type";
            form = Kind::Word(ElementName::NAMES);
            default = ElementName::F32;
        }
        /// Node that gives (`broadcast`, `scatter`) or gets (`reduce`, `gather`).
        root: NodeId {
            form = Kind::Name(Named::Member);
            default = NodeId(0);
            shown = "the first node";
        }
        /// Reaction to the loss of ranks: every rank breaks off with an error, or those that still reach each other repeat the collective
        /// among themselves (`all-reduce` and `barrier` of at most 64 nodes).
        on_loss: OnLoss {
            form = Kind::Word(OnLoss::NAMES);
            default = OnLoss::BreakOff;
        }
    }
}

const SIZE: Kind = Kind::Size(0, BYTES_MAX);

/// Returns the default of a key of a sweep for the document.
const fn ours(shown: fn() -> String) -> DefaultText {
    DefaultText::Constant { shown, is_ours: true }
}

/// Defaults of the keys of [`SWEEP`] for a job whose default is this sweep.
macro_rules! defaults_of {
    ($sweep:expr) => {
        [
            ours(|| $sweep.sizes.as_written()),
            ours(|| $sweep.repetitions.to_string()),
            ours(|| $sweep.warm_up.to_string()),
        ]
    };
}

const BYTES_OF_OPERATION: Key = key("bytes", SIZE, "see `sizes`", "Bytes of one operation.");
static LATENCY_KEYS: [Key; 4] =
    joined(&[&[BYTES_OF_OPERATION], &with_defaults::<3>(SWEEP.keys, defaults_of!(Sweep::LATENCY))]);
static BANDWIDTH_KEYS: [Key; 4] =
    joined(&[&[BYTES_OF_OPERATION], &with_defaults::<3>(SWEEP.keys, defaults_of!(Sweep::BANDWIDTH))]);
const BYTES_OF_ARRAY: Key = Key {
    default: ours(|| SIZE.number_shown(Sweep::default().sizes.from_bytes)),
    ..key(
        "bytes",
        SIZE,
        "",
        "Bytes of the whole array, which is divided into parts; a multiple of the element's size. Input and output together are no \
         larger than the memory of any node.",
    )
};
static COLLECTIVE_KEYS: [Key; 11] = joined(&[COLLECTIVE_SETTINGS.keys, &[BYTES_OF_ARRAY], SWEEP.keys]);
pub(crate) static LATENCY: Table = table("job.latency", &LATENCY_KEYS);
pub(crate) static BANDWIDTH: Table = table("job.bandwidth", &BANDWIDTH_KEYS);
pub(crate) static COLLECTIVE: Table = table("job.collective", &COLLECTIVE_KEYS);

impl JobKind {
    /// Visits the keys of the job.
    pub(crate) fn visit(&self, litmus: &LitmusPlan, visit: &mut dyn Visit) {
        match self {
            Self::None => {}
            Self::Litmus => litmus.visit(visit),
            Self::Latency(sweep) => sweep.visit_against(&Sweep::LATENCY, visit),
            Self::Bandwidth(sweep) => sweep.visit_against(&Sweep::BANDWIDTH, visit),
            Self::Traffic(plan) => plan.visit(visit),
            Self::Collective(plan) => {
                Section::visit(plan, visit);
                plan.sweep.visit(visit);
            }
        }
    }
}

impl Field for Sizes {
    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit) {
        let Self { from_bytes, to_bytes, factor } = self;
        visit.value(key, &Text(&format!("{from_bytes}..{to_bytes}*{factor}")), self == default);
    }
}

impl Field for AlgorithmList {
    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit) {
        visit.value(key, &Text(&self.to_string()), self == default);
    }
}

impl Field for NodeId {
    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit) {
        visit.value(key, self, self == default);
    }
}

words! {
    /// Names of collectives.
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
    /// Reaction of a collective to the loss of ranks.
    pub enum OnLoss {
        /// Every rank aborts with an error that names the lost ranks.
        #[default]
        BreakOff = "break-off",
        /// The ranks that still reach each other repeat the collective among themselves.
        Shrink = "shrink",
    }
}

words! {
    /// Patterns of traffic.
    pub enum PatternName {
        /// Each node sends to one other node and receives from one other node.
        #[default]
        Permutation = "permutation",
        /// Each node sends to nodes drawn at random.
        Uniform = "uniform",
        /// All nodes send to the first one.
        Incast = "incast",
        /// Each node sends equal amounts to all others.
        AllToAll = "all-to-all",
        /// Each node sends to all others. The k-th receiver gets 1/k of the bytes of the first, like tokens of experts.
        Experts = "experts",
        /// Each node forwards to the next node what it receives from the previous one.
        Pipeline = "pipeline",
        /// Each node sends to all others, round by round. A round begins after the previous round has arrived from all nodes, as in
        /// trains of all-reduces.
        TensorParallel = "tensor-parallel",
        /// Each node of one half sends to one node of the other half, like caches of keys and values.
        KvCache = "kv-cache",
        /// Each node sends acknowledged stores to nodes drawn at random, like flags and other words.
        SmallStores = "small-stores",
    }
}

words! {
    /// Operators that combine values.
    pub enum OperatorName {
        /// Sum.
        #[default]
        Sum = "sum",
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
        /// Product.
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
    /// Names of all jobs.
    pub const NAMES: &'static [&'static str] =
        &["litmus", "collective", "latency", "bandwidth", "traffic", "none"];

    /// Returns the name in files and reports.
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

    /// Returns the job with this name and default settings, or `None`.
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

    /// Returns sizes and repetitions, or `None` if the job has none.
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
    /// Returns the least memory that the largest step needs at every node, in bytes, without working space. It is the largest
    /// transfer of the litmus, or source and target, or input and output of a rank.
    #[must_use]
    pub fn memory_bytes_min(&self, ranks: usize) -> u64 {
        let largest = |sweep: &Sweep| sweep.sizes.largest_bytes();
        match &self.kind {
            JobKind::None => 0,
            JobKind::Litmus => u64::from(self.litmus.bytes_max),
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
    /// Returns true if the collective combines values, so that an operator applies.
    #[must_use]
    pub const fn takes_operator(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Returns true if the collective has a root.
    #[must_use]
    pub const fn takes_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Returns true if the collective carries an array, so that a size and a type apply.
    #[must_use]
    pub const fn moves_data(self) -> bool {
        !matches!(self, Self::Barrier)
    }

    /// Returns the names of the collectives for which `is_true` holds, for hints: `broadcast, reduce, gather, scatter`.
    #[must_use]
    pub fn listed(is_true: impl Fn(Self) -> bool) -> String {
        let words = Self::ALL.iter().filter(|one| is_true(**one)).map(|one| one.name());
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Default for CollectivePlan {
    fn default() -> Self {
        let plan = Self {
            collective: CollectiveName::default(),
            algorithm: AlgorithmList::default(),
            segments: 0,
            op: OperatorName::default(),
            element: ElementName::default(),
            sweep: Sweep::default(),
            root: NodeId(0),
            on_loss: OnLoss::default(),
        };
        plan.with_defaults()
    }
}

impl ElementName {
    /// Returns the size of one element in bytes.
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
    /// Default sizes and repetitions of a latency job.
    pub const LATENCY: Self = Self {
        sizes: Sizes { from_bytes: 8, to_bytes: 4 << 10, factor: 2 },
        repetitions: 1000,
        warm_up: 100,
    };
    /// Default sizes and repetitions of a bandwidth job.
    pub const BANDWIDTH: Self = Self {
        sizes: Sizes { from_bytes: 4 << 10, to_bytes: 1 << 20, factor: 4 },
        repetitions: 20,
        warm_up: 5,
    };
}

impl Sizes {
    /// Default growth of sizes.
    pub(crate) const FACTOR: u32 = 2;

    /// Returns a list with one size.
    #[must_use]
    pub const fn one(bytes: u64) -> Self {
        Self { from_bytes: bytes, to_bytes: bytes, factor: Self::FACTOR }
    }

    /// Returns the sizes as a rack file states them.
    fn as_written(self) -> String {
        let shown = |bytes| shown(bytes, Unit::Bytes);
        format!("{{from: {}, to: {}, factor: {}}}", shown(self.from_bytes), shown(self.to_bytes), self.factor)
    }

    /// Returns all sizes, in bytes, ascending.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        // Stop at a size that does not grow, because it would repeat for ever.
        let grow = move |size: &u64| {
            size.checked_mul(self.factor.into()).filter(|next| *next > *size && *next <= self.to_bytes)
        };
        std::iter::successors((self.from_bytes <= self.to_bytes).then_some(self.from_bytes), grow)
    }

    /// Returns the largest size in bytes, or 0 if there is none.
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
        assert_eq!(sizes(0, 8, 2), [0], "a size that does not grow ends the list");
        assert_eq!(sizes(7, 8, 1), [7]);
        assert_eq!(sizes(1 << 62, u64::MAX, 4), [1 << 62], "a size that overflows ends the list");
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
    fn every_name_leads_back_to_its_variant() {
        assert!(CollectiveName::ALL.iter().all(|one| CollectiveName::from_name(one.name()) == Some(*one)));
        assert_eq!(CollectiveName::ALL.len(), CollectiveName::NAMES.len());
        assert_eq!(OperatorName::from_name("mean"), None);
        assert_eq!(format!("{:>5}", ElementName::Bf16), " bf16");
    }

    #[test]
    fn settings_of_a_collective_follow_from_its_kind() {
        assert_eq!(
            CollectiveName::listed(CollectiveName::takes_operator),
            "all-reduce, reduce-scatter, reduce"
        );
        assert_eq!(CollectiveName::listed(CollectiveName::takes_root), "broadcast, reduce, gather, scatter");
        assert_eq!(CollectiveName::listed(|one| !one.moves_data()), "barrier");
    }

    #[test]
    fn a_rank_needs_memory_for_input_and_output() {
        let needed = |collective, bytes| {
            let sweep = Sweep { sizes: Sizes::one(bytes), repetitions: 1, warm_up: 0 };
            let kind = JobKind::Collective(CollectivePlan { collective, sweep, ..CollectivePlan::default() });
            JobPlan { kind, litmus: LitmusPlan::default() }.memory_bytes_min(4)
        };
        assert_eq!(needed(CollectiveName::AllReduce, 1000), 2000);
        assert_eq!(needed(CollectiveName::AllGather, 1000), 1250, "input is a quarter, output is the whole");
        assert_eq!(needed(CollectiveName::Scatter, 1001), 1252, "the largest part counts");
        assert_eq!(needed(CollectiveName::Barrier, 1000), 0);
    }
}
