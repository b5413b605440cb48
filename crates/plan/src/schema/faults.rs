//! Declares fault scripts: events and expectations.

use crate::faults::{ExpectedEnd, FaultKind, FramePart, RequiredEvents};
use crate::model::loss::KIND_NAMES;
use crate::model::pick::OPERATION_NAMES;
use crate::schema::{Key, Kind, REQUIRED, Table, key, table};
use crate::setting::table::SCRIPT_NAME;

const DAY_NS: u64 = 24 * 3_600_000_000_000;
/// Largest number of frames counted before a fault, and of listed frames.
const FRAMES_MAX: u64 = 1_000_000_000;
/// Largest number of beginnings of one event.
const TIMES_MAX: u64 = 1_000_000;
/// Shortest period of a repeated fault. No cable flaps faster.
pub(crate) const EVERY_NS_MIN: u64 = 100;

pub(crate) static FAULTS: Table = table(SCRIPT_NAME, KEYS);
pub(crate) static EVENT: Table = table("events", EVENT_KEYS);
pub(crate) static AFTER: Table = table(
    "events.after",
    &[
        key("frames", Kind::Count(1, FRAMES_MAX), REQUIRED, "So many data frames have been sent."),
        key("way", Kind::Direction, REQUIRED, "In this direction of a link: `n0:n1`."),
    ],
);
pub(crate) static WHEN: Table = table(
    "events.when",
    &[
        key("node", Kind::Name, REQUIRED, "On this GPU node."),
        key(
            "run",
            Kind::Count(1, FRAMES_MAX),
            "1",
            "Which run of the job, counted from 1, runs that warm up included.",
        ),
        key("step", Kind::Count(1, FRAMES_MAX), "1", "Which step of that run, counted from 1."),
    ],
);
pub(crate) static FAULTS_EXPECT: Table = table("expect", EXPECT_KEYS);

const KEYS: &[Key] = &[
    key("name", Kind::Name, REQUIRED, "Name of the scenario."),
    key("events", Kind::List(&EVENT), "", "What happens."),
    key("expect", Kind::Table(&FAULTS_EXPECT), "", "What must come of it."),
];

const EVENT_KEYS: &[Key] = &[
    key("what", Kind::Word(FaultKind::NAMES), REQUIRED, "The kind of fault."),
    key(
        "where",
        Kind::Where,
        REQUIRED,
        "Links: `n0--n1` for both directions, `n0:n1` for one (`where: n0--n1/forward` and `n0->n1` mean the same, and a shell takes an unquoted `>` for a file), a member's name for all of its links, `plane 0`, or \
         `all`. For `partition`, `pause` and `kill`: members, by name; for faults of memory: GPU nodes.",
    ),
    key(
        "rate",
        Kind::Probability,
        "none",
        "Share of frames that `loss`, `corrupt`, `duplicate` or `reorder` hits, and of requests and readings that `fail-memory` does.",
    ),
    key("kinds", Kind::WordList(KIND_NAMES), "all", "Only frames of these kinds are lost, by `loss`."),
    key(
        "operations",
        Kind::WordList(OPERATION_NAMES),
        "all",
        "Only frames of data are lost, by `loss`, that carry one of these operations.",
    ),
    key(
        "sequence",
        Kind::Counts,
        "all",
        "Only frames of data are lost, by `loss`, whose packet number lies between these two, both included.",
    ),
    key(
        "part",
        Kind::Word(FramePart::NAMES),
        "`any`",
        "Where `corrupt` flips a bit: between the Ethernet header and the operations, in the operations and their data, or anywhere.",
    ),
    key(
        "frames",
        Kind::Counts,
        "none",
        "Data frames to `drop`, counted from 1 and from the moment at which the event begins.",
    ),
    key(
        "by",
        Kind::Time(1, DAY_NS),
        "none",
        "`delay`: time on top of the link's own. `slow-memory`: how much later memory answers.",
    ),
    key("share", Kind::Probability, "none", "`slow`: share of the link's rate that is left."),
    key(
        "at",
        Kind::Time(0, DAY_NS),
        "`0ns`",
        "Begins so long after all links of the member concerned have been up: the sender's, for a direction of a link.",
    ),
    key(
        "after",
        Kind::Table(&AFTER),
        "none",
        "Begins when so many data frames have passed, in place of `at`.",
    ),
    key("when", Kind::Table(&WHEN), "none", "Begins when the job has come to a place, in place of `at`."),
    key(
        "for",
        Kind::Time(1, DAY_NS),
        "to the end",
        "Duration. Then a paused member continues, and a killed member is followed by a new incarnation.",
    ),
    key("ramp", Kind::Time(1, DAY_NS), "at once", "How long it takes to grow to its full strength."),
    key(
        "every",
        Kind::Time(EVERY_NS_MIN, DAY_NS),
        "once",
        "Begins again so long after each beginning: a flap has this period.",
    ),
    key(
        "times",
        Kind::Count(1, TIMES_MAX),
        "without end",
        "How often it begins, where it does `every` so often.",
    ),
];

const EXPECT_KEYS: &[Key] = &[
    key(
        "ends",
        Kind::Word(ExpectedEnd::NAMES),
        "`right`; where a GPU node is killed, `right-or-clean-error`",
        "How the job ends on those who live. A wrong byte, an operation applied twice, or a hang fails every run.",
    ),
    key("lost", Kind::Names, "those killed for good", "Exactly these members are lost by the end."),
    key(
        "happen",
        Kind::Word(RequiredEvents::NAMES),
        "`all`",
        "Which events must have happened: a fault that did not proves nothing.",
    ),
    key(
        "detected_within",
        Kind::Time(1, DAY_NS),
        "not judged",
        "Longest time from each `down`, `unplug`, `partition` or `kill` to the first link that is reported down.",
    ),
    key(
        "switched_within",
        Kind::Time(1, DAY_NS),
        "not judged",
        "Longest time from each of these to the last change of path that it causes.",
    ),
    key(
        "recovered_within",
        Kind::Time(1, DAY_NS),
        "not judged",
        "Longest time from the end of each of these to the last link concerned that is up again, before anything else begins.",
    ),
    key(
        "elapsed_max",
        Kind::Time(1, DAY_NS),
        "not judged",
        "Longest time from the first frame to the job's end.",
    ),
    key(
        "goodput_min",
        Kind::Rate(1, 100_000_000_000_000),
        "not judged",
        "Least goodput of the job's sweep or operations, in bits per second.",
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
];
