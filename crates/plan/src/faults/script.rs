//! Data of a fault script: faults, targets, triggers and expectations.

use rackloom_protocol::NodeId;

use super::exchange::Stated;
use super::kind::Target;
use super::{Conditions, FaultExpectations, FaultKind, MemoryConditions, QueuePairEffect, Timing};
use crate::impair::Direction;
use crate::model::jobs::job::JobKind;
use crate::model::plan::Plan;
use crate::schema::EventKeys;

/// Faults for one rack, and expectations of a run with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultScript {
    /// Name of the scenario.
    pub name: String,
    /// Faults, in the order of the file.
    pub events: Vec<FaultEvent>,
    /// Expectations of the run.
    pub expect: FaultExpectations,
}

/// One fault with its trigger and timing.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultEvent {
    /// Kind and target of the fault.
    pub fault: Fault,
    /// Condition that starts the fault.
    pub trigger: Trigger,
    /// Duration, repetition and growth, counted from the trigger.
    pub timing: Timing,
    /// Kind and target as written in the file, for reports: `down n0->n1`.
    pub label: String,
    /// Line of the file; 0 for an event that no file states.
    pub line: u32,
}

impl FaultScript {
    /// Name of scripts that are made from options. Their events have no lines, because there is no file.
    pub const INJECTED: &'static str = "injected";
}

impl FaultEvent {
    /// Name of the field with the number of the beginning that a line is about, for events that may begin more than once.
    pub const TIME_FIELD: &'static str = "time";

    /// Returns the name of the event, with its line: `down n0->n1 (line 3)`. An event that no file states is `(injected)`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.label, self.origin())
    }

    fn origin(&self) -> String {
        match self.line {
            0 => format!("({})", FaultScript::INJECTED),
            line => format!("(line {line})"),
        }
    }

    /// Returns the text of the report line about a beginning or an end.
    #[must_use]
    pub fn line_text(&self, begins: bool) -> String {
        let verb = if begins { "begins" } else { "ends" };
        format!("{} {verb} {}", self.label, self.origin())
    }

    /// Returns the fields of that report line. `number` counts events from 0, `time` their beginnings from 1.
    #[must_use]
    pub fn line_fields(&self, number: usize, time: u64, begins: bool) -> Vec<(&'static str, String)> {
        let mut fields = vec![("event", (number + 1).to_string()), ("begins", begins.to_string())];
        if self.timing.every_ns.is_some() {
            fields.push((Self::TIME_FIELD, time.to_string()));
        }
        fields
    }
}

/// Kind and target of a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Conditions on directions of links, in addition to the profiles of the rack file.
    Links {
        /// Affected directions.
        directions: Vec<LinkDirection>,
        /// Conditions on them.
        conditions: Conditions,
    },
    /// Loss of single data frames.
    Drop {
        /// Affected directions.
        directions: Vec<LinkDirection>,
        /// Numbers of the frames, counted from one at the beginning of the event.
        numbers: Vec<u64>,
    },
    /// Members that stop, and continue when the event ends.
    Pause(Vec<NodeId>),
    /// Conditions on the memory of GPU nodes, for requests of other nodes.
    Memory {
        /// Affected nodes.
        members: Vec<NodeId>,
        /// Conditions on their memory.
        conditions: MemoryConditions,
    },
    /// Effect on queue pairs of programs on GPU nodes.
    QueuePairs {
        /// Affected nodes.
        members: Vec<NodeId>,
        /// For each of them, the queue pair as in [`super::QueuePairFault::number`].
        numbers: Vec<Option<u32>>,
        /// Effect on them.
        effect: QueuePairEffect,
    },
    /// GPU nodes that revoke the keys of all regions that their jobs have registered.
    Revoke(Vec<NodeId>),
    /// Members that are killed. When the event ends, a new incarnation of each member starts.
    Kill(Vec<NodeId>),
}

/// One direction of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// Index of the link in the plan.
    pub edge: u16,
    /// Direction on that link.
    pub direction: Direction,
}

/// Number of phases in one round of a litmus. Each phase is a step.
const LITMUS_PHASES: u64 = 6;

/// Progress of a rank in a job, for faults with a job trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobPosition {
    /// Number of the run, counted from one, warm-up runs included.
    pub run: u64,
    /// Number of the step within the run, counted from one.
    pub step: u64,
}

impl JobPosition {
    /// Returns the last run and the last step of the plan's job, or `None` if they are not known before it runs.
    pub(super) fn last(plan: &Plan) -> Option<Self> {
        match plan.job.kind {
            JobKind::Litmus => Some(Self { run: u64::from(plan.job.litmus.rounds), step: LITMUS_PHASES }),
            JobKind::Traffic(traffic) => {
                let messages = u64::from(traffic.messages).saturating_mul(plan.endpoint_count() as u64);
                Some(Self { run: 1, step: messages })
            }
            _ => None,
        }
    }
}

/// Condition that starts a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Time in nanoseconds, counted from the moment at which all links of the affected member have been up.
    At(u64),
    /// Number of data frames that have been sent in a direction.
    Frames {
        /// Direction in which frames are counted.
        direction: LinkDirection,
        /// Number of frames.
        count: u64,
    },
    /// Progress of the job on one node.
    Reached {
        /// Node whose progress counts.
        node: NodeId,
        /// Run and step.
        position: JobPosition,
    },
}

impl LinkDirection {
    /// Returns the member that sends in this direction. It applies the fault.
    #[must_use]
    pub fn sender(self, plan: &Plan) -> NodeId {
        let edge = plan.links[usize::from(self.edge)].edge;
        match self.direction {
            Direction::Forward => edge.a,
            Direction::Backward => edge.b,
        }
    }

    /// Returns the name: `n0->n1`, with `#1` for the second of parallel links.
    #[must_use]
    pub fn name(self, plan: &Plan) -> String {
        let link = &plan.links[usize::from(self.edge)];
        let (ends, number) = link.name.split_once('#').unwrap_or((&link.name, ""));
        let (a, b) = ends.split_once("--").unwrap_or((ends, ""));
        let (from, to) = if self.direction == Direction::Forward { (a, b) } else { (b, a) };
        let number = if number.is_empty() { String::new() } else { format!("#{number}") };
        format!("{from}->{to}{number}")
    }
}

impl Fault {
    /// Returns the fault that an event with these keys states. `directions` or `members` are what its `where` names, with `numbers` of queue pairs.
    pub(super) fn stated_by(
        keys: &EventKeys,
        directions: Vec<LinkDirection>,
        members: Vec<NodeId>,
        numbers: Vec<Option<u32>>,
    ) -> Self {
        match keys.what {
            FaultKind::Drop => Self::Drop { directions, numbers: keys.frames.clone() },
            FaultKind::Revoke => Self::Revoke(members),
            FaultKind::Pause => Self::Pause(members),
            FaultKind::Kill => Self::Kill(members),
            // All other kinds set conditions, of links, of memory or of queue pairs.
            kind => match kind.keys().target {
                Target::Links | Target::Boundary => {
                    Self::Links { directions, conditions: Conditions::stated_by(keys) }
                }
                Target::QueuePairs => {
                    Self::QueuePairs { members, numbers, effect: QueuePairEffect::stated_by(keys) }
                }
                Target::Members | Target::Owners => {
                    Self::Memory { members, conditions: MemoryConditions::stated_by(keys) }
                }
            },
        }
    }

    /// Returns the keys of an event with this fault, without those of its targets and its time. A partition is stated as the links
    /// that are down.
    pub(super) fn keys(&self) -> EventKeys {
        let of_kind = |what| EventKeys { what, ..EventKeys::default() };
        let kinds = FaultKind::ALL.iter().copied();
        let acts_on = |target| move |kind: &FaultKind| kind.keys().target == target;
        match self {
            Self::Links { conditions, .. } => {
                kinds.filter(acts_on(Target::Links)).find_map(|kind| conditions.keys_of(kind))
            }
            Self::Memory { conditions, .. } => {
                kinds.filter(acts_on(Target::Owners)).find_map(|kind| conditions.keys_of(kind))
            }
            Self::QueuePairs { effect, .. } => {
                kinds.filter(acts_on(Target::QueuePairs)).find_map(|kind| effect.keys_of(kind))
            }
            Self::Drop { numbers, .. } => {
                Some(EventKeys { frames: numbers.clone(), ..of_kind(FaultKind::Drop) })
            }
            Self::Pause(_) => Some(of_kind(FaultKind::Pause)),
            Self::Revoke(_) => Some(of_kind(FaultKind::Revoke)),
            Self::Kill(_) => Some(of_kind(FaultKind::Kill)),
        }
        .unwrap_or_default()
    }

    /// Returns the affected directions of links.
    #[must_use]
    pub fn directions(&self) -> &[LinkDirection] {
        match self {
            Self::Links { directions, .. } | Self::Drop { directions, .. } => directions,
            Self::Pause(_)
            | Self::Kill(_)
            | Self::Memory { .. }
            | Self::QueuePairs { .. }
            | Self::Revoke(_) => &[],
        }
    }

    /// Returns the affected members.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        match self {
            Self::Pause(members)
            | Self::Kill(members)
            | Self::Revoke(members)
            | Self::Memory { members, .. }
            | Self::QueuePairs { members, .. } => members,
            Self::Links { .. } | Self::Drop { .. } => &[],
        }
    }

    /// Returns the queue pairs of a process of this node that the fault affects, as in [`super::QueuePairFault::number`].
    pub(super) fn queue_pairs_of(&self, node: NodeId) -> Vec<Option<u32>> {
        let Self::QueuePairs { members, numbers, .. } = self else { return Vec::new() };
        members
            .iter()
            .zip(numbers)
            .filter(|(member, _)| **member == node)
            .map(|(_, number)| *number)
            .collect()
    }

    /// Returns true if all frames are lost, so that a neighbour must detect it.
    #[must_use]
    pub fn blocks_traffic(&self) -> bool {
        match self {
            Self::Links { conditions, .. } => conditions.is_cut,
            Self::Kill(_) => true,
            Self::Drop { .. }
            | Self::Pause(_)
            | Self::Memory { .. }
            | Self::QueuePairs { .. }
            | Self::Revoke(_) => false,
        }
    }
}

impl FaultScript {
    /// Returns true if some event flips bits, so that frames must carry the end-to-end check.
    #[must_use]
    pub fn corrupts(&self) -> bool {
        self.events
            .iter()
            .any(|event| matches!(&event.fault, Fault::Links { conditions, .. } if conditions.corrupt > 0.0))
    }

    /// Returns true if some event selects frames by their operations. [`crate::impair::Judge`] then needs all bytes of a frame.
    #[must_use]
    pub fn picks(&self) -> bool {
        let picks =
            |fault: &Fault| matches!(fault, Fault::Links { conditions, .. } if conditions.picked.is_some());
        self.events.iter().any(|event| picks(&event.fault))
    }

    /// Returns true if memory may refuse a correct access, so that a job may end with a refusal.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.events.iter().any(|event| match &event.fault {
            Fault::Memory { conditions, .. } => conditions.fail > 0.0,
            Fault::Revoke(_) => true,
            _ => false,
        })
    }

    /// Returns the longest pause of a member, in nanoseconds.
    #[must_use]
    pub fn longest_pause_ns(&self) -> u64 {
        let pauses = self.events.iter().filter(|event| matches!(event.fault, Fault::Pause(_)));
        pauses.filter_map(|event| event.timing.for_ns).max().unwrap_or(0)
    }

    /// Returns the members that are killed for a time and followed by a new incarnation.
    pub fn followed(&self) -> impl Iterator<Item = NodeId> {
        let brief = self.events.iter().filter(|event| event.timing.for_ns.is_some());
        let killed = brief.filter(|event| matches!(event.fault, Fault::Kill(_)));
        killed.flat_map(|event| event.fault.members()).copied()
    }

    /// Returns true if the script kills this member, for good or for a time, or expects it to be lost.
    #[must_use]
    pub fn may_lose(&self, node: NodeId) -> bool {
        let kills =
            |event: &FaultEvent| matches!(&event.fault, Fault::Kill(members) if members.contains(&node));
        self.expect.lost.contains(&node) || self.events.iter().any(kills)
    }

    /// Returns the members that the script kills for good, in ascending order.
    #[must_use]
    pub fn kills(&self) -> Vec<NodeId> {
        let killed = self.events.iter().filter(|event| event.timing.for_ns.is_none());
        let mut killed: Vec<_> = killed
            .filter_map(|event| if let Fault::Kill(members) = &event.fault { Some(members) } else { None })
            .flatten()
            .copied()
            .collect();
        killed.sort_unstable();
        killed.dedup();
        killed
    }
}
