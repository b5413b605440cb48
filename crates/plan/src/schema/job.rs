//! Declares jobs and expectations.

use crate::model::algorithm::AlgorithmName;
use crate::model::expect::ExpectedVerdict;
use crate::model::job::{CollectiveName, ElementName, OnLoss, OperatorName, PatternName};
use crate::schema::{Choose, Key, Kind, REQUIRED, Table, key, table};

/// Largest array of a job: the largest memory.
const BYTES_MAX: u64 = 64 << 30;
const COUNT_MAX: u64 = 1_000_000;
const SIZE: Kind = Kind::Size(0, BYTES_MAX);
const REPETITIONS: Kind = Kind::Count(1, COUNT_MAX);
const ALGORITHMS: Kind =
    Kind::Either(&[Kind::Word(AlgorithmName::NAMES), Kind::WordList(AlgorithmName::NAMES)]);
const WARM_UP: Kind = Kind::Count(0, COUNT_MAX);
const REPETITIONS_MEANING: &str = "How often each size is measured.";
const WARM_UP_MEANING: &str = "How often each size is done before, unmeasured.";
const SIZES_MEANING: &str = "Several sizes, in place of `bytes`.";

pub(crate) static JOB: Table = Table { name: "job", keys: JOB_KEYS, choose: Choose::One };
pub(crate) static LITMUS: Table = table(
    "job.litmus",
    &[
        key(
            "bytes_max",
            Kind::Size(1, 1 << 30),
            "`1MiB` (ours)",
            "Largest transfer; no larger than the memory of any node.",
        ),
        key("rounds", Kind::Count(1, COUNT_MAX), "1 (ours)", "How often the whole is done."),
    ],
);
pub(crate) static COLLECTIVE: Table = table("job.collective", COLLECTIVE_KEYS);
pub(crate) static LATENCY: Table = table(
    "job.latency",
    &[
        key("bytes", SIZE, "see `sizes`", "Bytes of one operation."),
        key("sizes", Kind::Table(&SIZES), "`{from: 8B, to: 4KiB, factor: 2}` (ours)", SIZES_MEANING),
        key("repetitions", REPETITIONS, "1000 (ours)", REPETITIONS_MEANING),
        key("warm_up", WARM_UP, "100 (ours)", WARM_UP_MEANING),
    ],
);
pub(crate) static BANDWIDTH: Table = table(
    "job.bandwidth",
    &[
        key("bytes", SIZE, "see `sizes`", "Bytes of one operation."),
        key("sizes", Kind::Table(&SIZES), "`{from: 4KiB, to: 1MiB, factor: 4}` (ours)", SIZES_MEANING),
        key("repetitions", REPETITIONS, "20 (ours)", REPETITIONS_MEANING),
        key("warm_up", WARM_UP, "5 (ours)", WARM_UP_MEANING),
    ],
);
pub(crate) static TRAFFIC: Table = table(
    "job.traffic",
    &[
        key(
            "pattern",
            Kind::Word(PatternName::NAMES),
            "`permutation`",
            "Senders and receivers. `permutation`: each to one other. `uniform`: each to nodes drawn at random. `incast`: all to the \
             first. `all-to-all`: each to all others alike. `experts`: the same, but the k-th node gets a k-th of what the first \
             gets. `pipeline`: each to the next, what came from the one before. `tensor-parallel`: each to all others, \
             round by round, and on only when one has come from each other node; two rounds are a direct all-reduce. `kv-cache`: each of the first half to one of \
             the second. `small-stores`: as `uniform`, in acknowledged stores.",
        ),
        key(
            "bytes",
            Kind::Size(1, 1 << 30),
            "`4KiB` (ours)",
            "Bytes of one message. Each node holds one of every other, which must fit its memory.",
        ),
        key(
            "messages",
            Kind::Count(1, COUNT_MAX),
            "100 (ours)",
            "Messages of each flow (of `experts` to the first node), which are rounds of `tensor-parallel`; of each node where targets are drawn.",
        ),
    ],
);
pub(crate) static SIZES: Table = table(
    "sizes",
    &[
        key("from", Kind::Size(1, BYTES_MAX), REQUIRED, "The first size."),
        key("to", Kind::Size(1, BYTES_MAX), REQUIRED, "No size is larger."),
        key("factor", Kind::Count(2, 1024), "2", "Each size is so many times the one before."),
    ],
);
pub(crate) static EXPECT: Table = table("expect", EXPECT_KEYS);

const JOB_KEYS: &[Key] = &[
    key(
        "litmus",
        Kind::Table(&LITMUS),
        "",
        "Every ordered pair of nodes, every kind of operation, every byte checked by its owner.",
    ),
    key("collective", Kind::Table(&COLLECTIVE), "", "One collective over all nodes."),
    key("latency", Kind::Table(&LATENCY), "", "How long single operations take."),
    key("bandwidth", Kind::Table(&BANDWIDTH), "", "How much many operations move."),
    key(
        "traffic",
        Kind::Table(&TRAFFIC),
        "",
        "Many messages at once; a pattern determines senders and receivers, and every byte is checked.",
    ),
];

const COLLECTIVE_KEYS: &[Key] = &[
    key("collective", Kind::Word(CollectiveName::NAMES), "`all-reduce`", "What is promised."),
    key(
        "algorithm",
        ALGORITHMS,
        "`auto`",
        "How it is done. `auto` chooses by size, shape and the links' latency and rate. Not every algorithm can do every \
         collective. Of a list, each algorithm is measured at each size, in this order; `auto` is not in a list.",
    ),
    key("segments", Kind::Count(1, 1024), "8 (ours)", "Into how many parts `ring-pipeline` cuts the array."),
    key("op", Kind::Word(OperatorName::NAMES), "`sum`", "How values are combined, where they are."),
    key("type", Kind::Word(ElementName::NAMES), "`f32`", "Type of one element."),
    key(
        "bytes",
        SIZE,
        "`1MiB` (ours)",
        "Bytes of the whole array, of which parts are dealt out; a multiple of the element's size. Input and output \
         together are no larger than the memory of any node.",
    ),
    key("sizes", Kind::Table(&SIZES), "", SIZES_MEANING),
    key("repetitions", REPETITIONS, "20 (ours)", REPETITIONS_MEANING),
    key("warm_up", WARM_UP, "5 (ours)", WARM_UP_MEANING),
    key(
        "root",
        Kind::Name,
        "the first node",
        "The node that gives (`broadcast`, `scatter`) or gets (`reduce`, `gather`).",
    ),
    key(
        "on_loss",
        Kind::Word(OnLoss::NAMES),
        "`break-off`",
        "What becomes of it when ranks are lost: every rank breaks off with an error, or those who still reach each other do it again \
         among themselves (`all-reduce` and `barrier` of at most 64 nodes).",
    ),
];

const EXPECT_KEYS: &[Key] = &[
    key(
        "verdict",
        Kind::Word(ExpectedVerdict::NAMES),
        "`pass`",
        "What the job itself ends with. A rack that shows an outage expects `fail`.",
    ),
    key(
        "operations_complete",
        Kind::Flag,
        "`false`",
        "Whether every operation must end without an error or an unknown outcome, also where the job tolerates one.",
    ),
    key(
        "elapsed_max",
        Kind::Time(1, u64::MAX),
        "not judged",
        "Longest time from the first frame to the job's end.",
    ),
    key(
        "retransmitted_min",
        Kind::Count(0, u64::MAX),
        "not judged",
        "Fewest packets that all nodes send again.",
    ),
    key(
        "retransmitted_max",
        Kind::Count(0, u64::MAX),
        "not judged",
        "Most packets that all nodes send again.",
    ),
    key(
        "nodes_lost",
        Kind::Names,
        "none",
        "Exactly these members, nodes or switches, are lost by the end. The loss of any other member fails the run.",
    ),
];
