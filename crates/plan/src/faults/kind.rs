//! Kinds of faults, with the keys of an event that each of them takes and with the options of `rackloom inject`.
//!
//! Reading, checking, writing, the campaigns, the command and the document use these tables. A key that does not apply to a kind is
//! refused, and a missing key that the kind needs is reported. `conditions` and `script` say what the values of the keys do.

use crate::setting::named_value::named_values;

named_values! {
    /// Kinds of faults.
    pub enum FaultKind {
        /// Frames are lost.
        #[default]
        Loss = "loss",
        /// One bit of a frame is flipped.
        Corrupt = "corrupt",
        /// Frames arrive twice.
        Duplicate = "duplicate",
        /// Frames are overtaken by later ones.
        Reorder = "reorder",
        /// Single data frames are lost.
        Drop = "drop",
        /// All frames are lost. The devices do not notice it.
        Down = "down",
        /// All frames are lost, and the sending device loses its carrier.
        Unplug = "unplug",
        /// Frames take longer.
        Delay = "delay",
        /// The rate is reduced to a share, as if lanes have failed.
        Slow = "slow",
        /// All frames between these members and all others are lost.
        Partition = "partition",
        /// Memory answers late.
        SlowMemory = "slow-memory",
        /// Memory fails.
        FailMemory = "fail-memory",
        /// Keys are revoked.
        Revoke = "revoke",
        /// A queue pair fails.
        FailQueuePair = "fail-queue-pair",
        /// Requests of a queue pair start late.
        DelayQueuePair = "delay-queue-pair",
        /// Completions of a queue pair are lost.
        DropCompletions = "drop-completions",
        /// Members stop for a time.
        Pause = "pause",
        /// Members are killed.
        Kill = "kill",
    }
}

/// Things that `where` names for a kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Directions of links.
    Links,
    /// Members. The fault affects the links between them and all other members.
    Boundary,
    /// Members.
    Members,
    /// GPU nodes, because the fault affects memory.
    Owners,
    /// Queue pairs of programs on GPU nodes: all of a node, or one.
    QueuePairs,
}

/// Keys of a kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindKeys {
    /// Required keys.
    pub(crate) needed: &'static [&'static str],
    /// Optional keys.
    pub(crate) allowed: &'static [&'static str],
    /// Things that `where` names.
    pub(crate) target: Target,
}

/// Keys that every event may have.
pub(crate) const COMMON: &[&str] = &["what", "where", "at", "after", "when", "for", "every", "times"];
/// Key of the time of growth, for kinds with a strength.
pub(crate) const RAMP: &str = "ramp";

impl FaultKind {
    /// Returns the keys of the kind.
    pub(crate) const fn keys(self) -> KindKeys {
        use Target::{Boundary, Links, Members, Owners, QueuePairs};
        let (needed, allowed, target): (&[&str], &[&str], Target) = match self {
            Self::Loss => (&["rate"], &["kinds", "operations", "sequence", RAMP], Links),
            Self::Corrupt => (&["rate"], &["part", RAMP], Links),
            Self::Duplicate | Self::Reorder => (&["rate"], &[RAMP], Links),
            Self::Drop => (&["frames"], &[], Links),
            Self::Down | Self::Unplug => (&[], &[], Links),
            Self::Delay => (&["by"], &[RAMP], Links),
            Self::Slow => (&["share"], &[RAMP], Links),
            Self::Partition => (&[], &[], Boundary),
            Self::SlowMemory => (&["by"], &[RAMP], Owners),
            Self::FailMemory => (&["rate"], &[RAMP], Owners),
            Self::Revoke => (&[], &[], Owners),
            Self::FailQueuePair => (&[], &["packets"], QueuePairs),
            Self::DelayQueuePair => (&["by"], &[], QueuePairs),
            Self::DropCompletions => (&["rate"], &[], QueuePairs),
            Self::Pause => (&["for"], &[], Members),
            Self::Kill => (&[], &[], Members),
        };
        KindKeys { needed, allowed, target }
    }

    /// Returns true if an event of this kind happens at one moment, so that it has no duration.
    pub(crate) const fn is_moment(self) -> bool {
        matches!(self, Self::Drop | Self::Revoke)
    }

    /// Returns true if the fault affects queue pairs of programs. Jobs of the command have none.
    #[must_use]
    pub(crate) const fn is_of_queue_pairs(self) -> bool {
        matches!(self.keys().target, Target::QueuePairs)
    }

    /// Returns true if the fault may grow to its full strength. Others are on or off.
    pub(crate) fn grows(self) -> bool {
        self.keys().allowed.contains(&RAMP)
    }
}

impl KindKeys {
    /// Returns the keys that state the values of the fault, needed keys first. Keys of its time are not among them.
    pub(crate) fn of_values(self) -> impl Iterator<Item = &'static str> {
        let keys = self.needed.iter().chain(self.allowed).copied();
        keys.filter(|key| *key != RAMP && !COMMON.contains(key))
    }
}

/// Option of `rackloom inject` for a kind of fault, or for a further key of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectOption {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Name of the option, without dashes.
    pub name: &'static str,
    /// Key and name of its value, or `None` if the option has no value.
    pub value: Option<(&'static str, &'static str)>,
    /// Text for the help.
    pub help: &'static str,
    /// Name of the option that must be present, for a further key of a fault.
    pub requires: Option<&'static str>,
    /// Names of options that must be absent.
    pub conflicts: &'static [&'static str],
}

impl InjectOption {
    const fn new(kind: FaultKind, name: &'static str, help: &'static str) -> Self {
        Self { kind, name, value: None, help, requires: None, conflicts: &[] }
    }

    /// Gives the option a value: the key of the event and the name of the value in the help.
    const fn value(self, key: &'static str, name: &'static str) -> Self {
        Self { value: Some((key, name)), ..self }
    }

    /// Makes the option depend on the option of its kind.
    const fn with(self, option: &'static str) -> Self {
        Self { requires: Some(option), ..self }
    }

    const fn without(self, conflicts: &'static [&'static str]) -> Self {
        Self { conflicts, ..self }
    }

    /// Returns true if the option stands for a fault of links, false if for a fault of a member.
    #[must_use]
    pub const fn is_of_links(&self) -> bool {
        matches!(self.kind.keys().target, Target::Links)
    }

    /// Returns true if the value is a list. The help then shows its items separated by commas.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.value.is_some_and(|(_, name)| name.contains(','))
    }
}

/// Options of `rackloom inject link` and `rackloom inject node`, in the order of the help. `partition` is a command of its own.
pub const INJECT_OPTIONS: &[InjectOption] = &[
    InjectOption::new(FaultKind::Loss, "loss", "Share of frames that are lost").value("rate", "P"),
    InjectOption::new(
        FaultKind::Loss,
        "kinds",
        "With --loss: only frames of these kinds, such as ack (an acknowledgement black hole) or credit (leaking credits)",
    )
    .value("kinds", "KIND,...")
    .with("loss"),
    InjectOption::new(
        FaultKind::Loss,
        "operations",
        "With --loss: only data frames with one of these operations, such as put or atomic",
    )
    .value("operations", "OPERATION,...")
    .with("loss")
    .without(&["kinds"]),
    InjectOption::new(
        FaultKind::Loss,
        "sequence",
        "With --loss: only data frames with packet numbers from FIRST to LAST",
    )
    .value("sequence", "FIRST,LAST")
    .with("loss")
    .without(&["kinds"]),
    InjectOption::new(FaultKind::Corrupt, "corrupt", "Share of frames in which a bit is flipped")
        .value("rate", "P"),
    InjectOption::new(
        FaultKind::Corrupt,
        "part",
        "With --corrupt: part of the frame; header, payload or any",
    )
    .value("part", "PART")
    .with("corrupt"),
    InjectOption::new(FaultKind::Duplicate, "duplicate", "Share of frames that arrive twice")
        .value("rate", "P"),
    InjectOption::new(FaultKind::Reorder, "reorder", "Share of frames that arrive after a later frame")
        .value("rate", "P"),
    InjectOption::new(
        FaultKind::Drop,
        "drop",
        "Numbers of data frames that are lost, counted from 1 and from now",
    )
    .value("frames", "N,..."),
    InjectOption::new(FaultKind::Delay, "delay", "Additional delay of each frame").value("by", "TIME"),
    InjectOption::new(FaultKind::Slow, "share", "Share of the link's rate that remains")
        .value("share", "P"),
    InjectOption::new(FaultKind::Down, "down", "Lose every frame; the carrier stays"),
    InjectOption::new(FaultKind::Unplug, "unplug", "Lose every frame, and remove the carrier"),
    InjectOption::new(FaultKind::Pause, "pause", "Stop the member for this time, as by SIGSTOP")
        .value("for", "TIME")
        .without(&["kill", "for", "ramp"]),
    InjectOption::new(
        FaultKind::Kill,
        "kill",
        "Kill the member, as by SIGKILL; with --for, a new process takes the seat after that time",
    ),
    InjectOption::new(FaultKind::SlowMemory, "slow-memory", "Additional latency of the memory")
        .value("by", "TIME"),
    InjectOption::new(FaultKind::FailMemory, "fail-memory", "Share of memory accesses that fail")
        .value("rate", "P"),
    InjectOption::new(FaultKind::Revoke, "revoke", "Revoke the keys of the job's regions"),
    InjectOption::new(
        FaultKind::FailQueuePair,
        "fail-queue-pair",
        "Fail a queue pair of a program: n0/3 is the third one that each process on n0 makes, n0 is each of them",
    ),
    InjectOption::new(
        FaultKind::FailQueuePair,
        "packets",
        "With --fail-queue-pair: number of packets that the queue pair sends before; 0 if absent",
    )
    .value("packets", "N")
    .with("fail-queue-pair"),
    InjectOption::new(
        FaultKind::DelayQueuePair,
        "delay-queue-pair",
        "Additional time before each request of a queue pair starts",
    )
    .value("by", "TIME"),
    InjectOption::new(
        FaultKind::DropCompletions,
        "drop-completions",
        "Share of completions of a queue pair that are lost",
    )
    .value("rate", "P"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_every_key_of_a_value_has_an_option() {
        for kind in FaultKind::ALL.iter().filter(|kind| **kind != FaultKind::Partition) {
            let options: Vec<_> = INJECT_OPTIONS.iter().filter(|option| option.kind == *kind).collect();
            assert_eq!(options.iter().filter(|option| option.requires.is_none()).count(), 1, "{kind}");
            for key in kind.keys().of_values() {
                let states = |option: &&&InjectOption| option.value.is_some_and(|(stated, _)| stated == key);
                assert_eq!(options.iter().filter(states).count(), 1, "{kind}: {key}");
            }
        }
    }
}
