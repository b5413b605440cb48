//! Declares fault scripts: events and expectations.

use rackloom_protocol::NodeId;

use crate::faults::{ExpectedEnd, FaultExpectations, FaultKind, FramePart, RequiredEvents};
use crate::model::links::loss::KIND_NAMES;
use crate::model::links::pick::OPERATION_NAMES;
use crate::setting::complaint::{Complaint, quoted};
use crate::setting::name::Named;
use crate::setting::section::{Reference, section};
use crate::setting::table::{Kind, REQUIRED, SCRIPT_NAME};
use crate::setting::value::{Shown, Value};

const DAY_NS: u64 = 24 * 3_600_000_000_000;
/// Largest number of frames counted before a fault, and of listed frames.
const FRAMES_MAX: u64 = 1_000_000_000;
/// Largest number of beginnings of one event.
const TIMES_MAX: u64 = 1_000_000;
/// Shortest period of a repeated fault. No cable flaps faster.
pub(crate) const EVERY_NS_MIN: u64 = 100;

/// Time at which an event begins, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartTime(pub(crate) u64);

impl Shown for StartTime {
    fn encode(&self, kind: &Kind, text: &mut String) {
        self.0.encode(kind, text);
    }

    fn shown(&self, kind: &Kind) -> String {
        self.0.shown(kind)
    }

    fn number(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl Value for StartTime {
    fn read(text: &str, kind: &Kind) -> Result<Self, Complaint> {
        if text.starts_with('-') {
            let complaint = Complaint::about(format!("{} lies in the past", quoted(text)));
            return Err(complaint.hint("time counts from the moment at which all links are up"));
        }
        u64::read(text, kind).map(Self)
    }
}

section! {
    /// Keys of a script.
    pub(crate) struct ScriptKeys: FAULTS = SCRIPT_NAME {
        /// Name of the scenario.
        name: String {
            form = Kind::Name(Named::Script);
            default = String::new();
            shown = REQUIRED;
        }
        /// Faults of the scenario.
        events: Reference {
            form = Kind::List(&EVENT);
            default = Reference;
            shown = "";
        }
        /// Expectations of the run.
        expect: Reference {
            form = Kind::Table(&FAULTS_EXPECT);
            default = Reference;
            shown = "";
        }
    }
}

section! {
    /// Trigger of an event by data frames.
    pub(crate) struct AfterKeys: AFTER = "events.after" {
        /// Number of data frames that have been sent.
        frames: u64 {
            form = Kind::Count(1, FRAMES_MAX);
            default = 1;
            shown = REQUIRED;
        }
        /// In this direction of a link: `n0:n1`.
        direction: Reference {
            form = Kind::Direction;
            default = Reference;
            shown = REQUIRED;
        }
    }
}

section! {
    /// Trigger of an event by the progress of the job.
    pub(crate) struct WhenKeys: WHEN = "events.when" {
        /// On this GPU node.
        node: Reference {
            form = Kind::Name(Named::Member);
            default = Reference;
            shown = REQUIRED;
        }
        /// Number of the run of the job, counted from 1, runs that warm up included.
        run: u64 {
            form = Kind::Count(1, FRAMES_MAX);
            default = 1;
        }
        /// Number of the step of that run, counted from 1.
        step: u64 {
            form = Kind::Count(1, FRAMES_MAX);
            default = 1;
        }
    }
}

section! {
    /// Keys of an event. Which of them it takes depends on its kind ([`FaultKind::keys`]).
    #[derive(Clone, Debug)]
    pub(crate) struct EventKeys: EVENT = "events" {
        /// The kind of fault.
        what: FaultKind {
            form = Kind::Choice(FaultKind::NAMES);
            default = FaultKind::Loss;
            shown = REQUIRED;
        }
        /// Links: `n0--n1` for both directions, `n0:n1` for one (`where: n0--n1/forward` and `n0->n1` mean the same, and a shell takes an
        /// unquoted `>` for a file), a member's name for all of its links, `plane 0`, or `all`. For `partition`, `pause` and `kill`:
        /// members, by name; for faults of memory: GPU nodes; for faults of queue pairs: `n0` for all of the programs on a GPU node, `n0/3` for the third one
        /// that each process there makes.
        targets: Reference {
            key = "where";
            form = Kind::Where;
            default = Reference;
            shown = REQUIRED;
        }
        /// Share of frames that `loss`, `corrupt`, `duplicate` or `reorder` hits, of requests and readings that `fail-memory` hits, and of completions that
        /// `drop-completions` hits.
        rate: Option<f64> {
            form = Kind::Probability;
            default = None;
        }
        /// Only frames of these kinds are lost, by `loss`.
        kinds: Vec<&'static str> {
            form = Kind::ChoiceList(KIND_NAMES);
            default = Vec::new();
            shown = "all";
        }
        /// Only frames of data are lost, by `loss`, that carry one of these operations.
        operations: Vec<&'static str> {
            form = Kind::ChoiceList(OPERATION_NAMES);
            default = Vec::new();
            shown = "all";
        }
        /// Only frames of data are lost, by `loss`, whose packet number lies between these two, both included.
        sequence: Vec<u32> {
            form = Kind::Counts;
            default = Vec::new();
            shown = "all";
        }
        /// Part of the frame in which `corrupt` flips a bit: between the Ethernet header and the operations, in the operations and their data, or anywhere.
        part: FramePart {
            form = Kind::Choice(FramePart::NAMES);
            default = FramePart::Any;
        }
        /// Data frames to `drop`, counted from 1 and from the moment at which the event begins.
        frames: Vec<u64> {
            form = Kind::Counts;
            default = Vec::new();
            shown = "none";
        }
        /// Packets that the queue pair sends before `fail-queue-pair` fails it, counted from the moment at which the event begins.
        packets: u64 {
            form = Kind::Count(0, FRAMES_MAX);
            default = 0;
        }
        /// `delay`: time on top of the link's own. `slow-memory`: how much later memory answers. `delay-queue-pair`: how much later requests start.
        by_ns: Option<u64> {
            key = "by";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "none";
        }
        /// `slow`: share of the link's rate that is left.
        share: Option<f64> {
            form = Kind::Probability;
            default = None;
        }
        /// Begins so long after all links of the member concerned have been up: the sender's, for a direction of a link.
        at_ns: StartTime {
            key = "at";
            form = Kind::Time(0, DAY_NS);
            default = StartTime(0);
        }
        /// Begins when so many data frames have passed, in place of `at`.
        after: Reference {
            form = Kind::Table(&AFTER);
            default = Reference;
            shown = "none";
        }
        /// Begins when the job has come to a place, in place of `at`.
        when: Reference {
            form = Kind::Table(&WHEN);
            default = Reference;
            shown = "none";
        }
        /// Duration. Then a paused member continues, and a killed member is followed by a new incarnation.
        for_ns: Option<u64> {
            key = "for";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "to the end";
        }
        /// Time in which it grows to its full strength.
        ramp_ns: Option<u64> {
            key = "ramp";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "at once";
        }
        /// Begins again so long after each beginning: a flap has this period.
        every_ns: Option<u64> {
            key = "every";
            form = Kind::Time(EVERY_NS_MIN, DAY_NS);
            default = None;
            shown = "once";
        }
        /// Number of beginnings, for an event with `every`.
        times: Option<u64> {
            form = Kind::Count(1, TIMES_MAX);
            default = None;
            shown = "without end";
        }
    }
}

section! {
    /// Expectations of a script that states none and kills no member.
    pub(crate) const EXPECTATIONS: FaultExpectations, FAULTS_EXPECT = "expect" {
        /// End of the job on the surviving nodes. A wrong byte, an operation applied twice, or a hang fails every run.
        ends: ExpectedEnd {
            form = Kind::Choice(ExpectedEnd::NAMES);
            default = ExpectedEnd::Right;
            shown = "`right`; where a GPU node is killed, `right-or-clean-error`";
        }
        /// Exactly these members are lost by the end.
        lost: Vec<NodeId> {
            form = Kind::Names;
            default = Vec::new();
            shown = "those killed for good";
        }
        /// Events that must have happened. A fault that did not happen proves nothing.
        happen: RequiredEvents {
            form = Kind::Choice(RequiredEvents::NAMES);
            default = RequiredEvents::All;
        }
        /// Longest time from each `down`, `unplug`, `partition` or `kill` to the first link that is reported down.
        detected_within_ns: Option<u64> {
            key = "detected_within";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "not judged";
        }
        /// Longest time from each of these to the last change of path that it causes.
        switched_within_ns: Option<u64> {
            key = "switched_within";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "not judged";
        }
        /// Longest time from the end of each of these to the last link concerned that is up again, before anything else begins.
        recovered_within_ns: Option<u64> {
            key = "recovered_within";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "not judged";
        }
        /// Longest time from the first frame to the job's end.
        elapsed_max_ns: Option<u64> {
            key = "elapsed_max";
            form = Kind::Time(1, DAY_NS);
            default = None;
            shown = "not judged";
        }
        /// Least goodput of the job's sweep or operations, in bits per second.
        goodput_min_bits_per_s: Option<u64> {
            key = "goodput_min";
            form = Kind::Rate(1, 100_000_000_000_000);
            default = None;
            shown = "not judged";
        }
        /// Fewest packets that all nodes send again.
        retransmitted_min: Option<u64> {
            form = Kind::Count(0, u64::MAX);
            default = None;
            shown = "not judged";
        }
        /// Most packets that all nodes send again.
        retransmitted_max: Option<u64> {
            form = Kind::Count(0, u64::MAX);
            default = None;
            shown = "not judged";
        }
    }
}
