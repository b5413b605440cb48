//! Jobs of a rack and their settings.
//!
//! Kinds of collectives and algorithms, operators and element types are those of the crate of the collectives, which also decides which
//! algorithm implements which collective.

use rackloom_collectives::{CollectiveKind, ElementType, ReduceOperation};
use rackloom_protocol::NodeId;

use crate::model::jobs::algorithm::{AlgorithmChoice, AlgorithmList};
use crate::setting::name::Named;
use crate::setting::named_value::named_values;
use crate::setting::quantity::{Unit, shown};
use crate::setting::section::{Field, Section, Text, Visit, section};
use crate::setting::table::{DefaultText, Key, Kind, REQUIRED, Table, joined, key, table, with_defaults};

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

section! {
    /// Pattern of traffic, and its amount.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TrafficPlan: TRAFFIC = "job.traffic" {
        /// Pattern of senders and receivers. `permutation`: each node to one other. `uniform`: each to nodes drawn at random. `incast`: all to the first.
        /// `all-to-all`: each to all others, equal amounts. `experts`: each to all others, and the k-th node gets a k-th of the amount of the
        /// first. `pipeline`: each forwards to the next node what it receives from the previous one. `tensor-parallel`: each to all others,
        /// round by round, and a round begins when one message of each other node has arrived; two rounds are a direct all-reduce.
        /// `kv-cache`: each of the first half to one of the second. `small-stores`: as `uniform`, in acknowledged stores.
        pattern: PatternName {
            form = Kind::Choice(PatternName::NAMES);
            default = PatternName::Permutation;
        }
        /// Bytes of one message. A node has space for one of its own and one of each node that may send to it, which must fit its memory.
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
        /// Number of measured repetitions of each size. `sim` measures a collective 3 times after one unmeasured repetition, if
        /// neither key is stated, no link has faults, and there is no fault script: the repetitions differ by some percent at most.
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
    /// Collective, with sizes and numbers of repetitions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CollectivePlan: COLLECTIVE_SETTINGS = "job.collective" {
        /// Collective to perform.
        collective: CollectiveKind {
            form = Kind::Choice(CollectiveKind::NAMES);
            default = CollectiveKind::AllReduce;
        }
        /// Algorithm of the collective. `auto` chooses by size, shape and the links' latency and rate. Not every algorithm implements every collective. Of a
        /// list, each algorithm is measured at each size, in this order; `auto` is not in a list.
        algorithm: AlgorithmList {
            form = Kind::Either(&[Kind::Choice(AlgorithmChoice::NAMES), Kind::ChoiceList(AlgorithmChoice::NAMES)]);
            default = AlgorithmList::default();
            shown = "`auto`";
        }
        /// True if the algorithm is chosen again when runs become slower or faster by 30 %, for example after the loss of a link. Each possible
        /// algorithm is then tried in three runs, and the fastest replaces the current one if it gains a tenth. Only with `algorithm: auto`.
        adapt: bool {
            form = Kind::Flag;
            default = false;
        }
        /// Number of segments into which `ring-pipeline` splits the array.
        segments: u32 {
            form = Kind::Count(1, 1024);
            default = 8;
            ours = true;
        }
        /// Operator that combines values, for collectives that reduce.
        op: ReduceOperation {
            form = Kind::Choice(ReduceOperation::NAMES);
            default = ReduceOperation::Sum;
        }
        /// Type of one element.
        element: ElementType {
            key = "type";
            form = Kind::Choice(ElementType::NAMES);
            default = ElementType::F32;
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
            form = Kind::Choice(OnLoss::NAMES);
            default = OnLoss::BreakOff;
        }
    }
    with {
        /// Sizes of the whole array and number of repetitions of each.
        sweep: Sweep = Sweep::default();
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
static COLLECTIVE_KEYS: [Key; 12] = joined(&[COLLECTIVE_SETTINGS.keys, &[BYTES_OF_ARRAY], SWEEP.keys]);
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

named_values! {
    /// Reaction of a collective to the loss of ranks.
    pub enum OnLoss {
        /// Every rank aborts with an error that names the lost ranks.
        #[default]
        BreakOff = "break-off",
        /// The ranks that still reach each other repeat the collective among themselves.
        Shrink = "shrink",
    }
}

named_values! {
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

impl PatternName {
    /// Returns the most nodes that may send to one node, itself included where targets are not fixed, among `ranks` nodes.
    #[must_use]
    pub const fn slots_max(self, ranks: u64) -> u64 {
        match self {
            Self::Permutation | Self::Pipeline | Self::KvCache => 1,
            _ => ranks,
        }
    }
}

named_values! {
    /// Names of jobs.
    pub enum JobName {
        /// Every ordered pair of nodes, every kind of operation, every byte checked by its owner.
        #[default]
        Litmus = "litmus",
        /// One collective over all nodes; results are checked to the bit.
        Collective = "collective",
        /// Latency of single operations.
        Latency = "latency",
        /// Throughput of many operations.
        Bandwidth = "bandwidth",
        /// Many messages at once; a pattern determines senders and receivers, and every byte is checked.
        Traffic = "traffic",
        /// Links come up, and no job runs.
        None = "none",
    }
}

impl JobName {
    /// Returns the job of this name with default settings.
    #[must_use]
    pub fn with_defaults(self) -> JobKind {
        match self {
            Self::Litmus => JobKind::Litmus,
            Self::Collective => JobKind::Collective(CollectivePlan::default()),
            Self::Latency => JobKind::Latency(Sweep::LATENCY),
            Self::Bandwidth => JobKind::Bandwidth(Sweep::BANDWIDTH),
            Self::Traffic => JobKind::Traffic(TrafficPlan::default()),
            Self::None => JobKind::None,
        }
    }
}

impl JobKind {
    /// Returns the name of the job.
    #[must_use]
    pub const fn job(&self) -> JobName {
        match self {
            Self::Litmus => JobName::Litmus,
            Self::Collective(_) => JobName::Collective,
            Self::Latency(_) => JobName::Latency,
            Self::Bandwidth(_) => JobName::Bandwidth,
            Self::Traffic(_) => JobName::Traffic,
            Self::None => JobName::None,
        }
    }

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.job().name()
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
            JobKind::Traffic(plan) => plan.bytes.saturating_mul(plan.pattern.slots_max(ranks as u64) + 1),
            JobKind::Collective(plan) => {
                let whole = largest(&plan.sweep);
                let part = whole.div_ceil(ranks.max(1) as u64);
                match plan.collective {
                    CollectiveKind::Barrier => 0,
                    CollectiveKind::ReduceScatter
                    | CollectiveKind::AllGather
                    | CollectiveKind::Gather
                    | CollectiveKind::Scatter => whole.saturating_add(part),
                    _ => whole.saturating_mul(2),
                }
            }
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
    fn every_name_leads_back_to_its_job() {
        for name in JobName::ALL {
            assert_eq!(name.with_defaults().job(), *name);
        }
        assert_eq!(JobName::from_name("litmuss"), None);
        assert_eq!(format!("{:>5}", OnLoss::Shrink), "shrink");
    }

    #[test]
    fn a_rank_needs_memory_for_input_and_output() {
        let needed = |collective, bytes| {
            let sweep = Sweep { sizes: Sizes::one(bytes), repetitions: 1, warm_up: 0 };
            let kind = JobKind::Collective(CollectivePlan { collective, sweep, ..CollectivePlan::default() });
            JobPlan { kind, litmus: LitmusPlan::default() }.memory_bytes_min(4)
        };
        assert_eq!(needed(CollectiveKind::AllReduce, 1000), 2000);
        assert_eq!(needed(CollectiveKind::AllGather, 1000), 1250, "input is a quarter, output is the whole");
        assert_eq!(needed(CollectiveKind::Scatter, 1001), 1252, "the largest part counts");
        assert_eq!(needed(CollectiveKind::Barrier, 1000), 0);
        let of_traffic = |pattern| {
            let kind = JobKind::Traffic(TrafficPlan { pattern, bytes: 1000, messages: 3 });
            JobPlan { kind, litmus: LitmusPlan::default() }.memory_bytes_min(4)
        };
        assert_eq!(of_traffic(PatternName::Permutation), 2000, "one own message and one of its sender");
        assert_eq!(of_traffic(PatternName::AllToAll), 5000);
    }
}
