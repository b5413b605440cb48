//! Faults as data: what befalls whom, when, and how a run under them must end.
//!
//! A fault script (`docs/fault-scripts.md`) is read against a plan, so that every name in it is a link or a member of that
//! rack (`read`, `select`). A [`Conductor`] per member then says what holds at each moment; the simulator and the running members
//! drive the same one. [`Conditions`] is what a link direction is like while faults are on.
//!
//! Nothing here applies a fault, judges a run, or knows a clock.

mod conditions;
mod conductor;
mod draw;
mod kind;
mod memory;
mod read;
mod select;
mod shrink;
#[cfg(test)]
mod tests;
mod timeline;
mod write;

use std::path::Path;

use rackloom_protocol::NodeId;

use crate::impair::Direction;
use crate::job::JobKind;
use crate::loss::LossByKind;
use crate::mistake::{Complaint, PlanError, Source};
use crate::plan::Plan;
use crate::text::{Unreadable, text_of};
use crate::words::words;

pub use crate::pick::Pick;
pub use conditions::{Conditions, FramePart};
pub use conductor::{Conductor, FaultAction};
pub use draw::{Reach, draw};
pub use kind::FaultKind;
pub use memory::{MemoryConditions, MemoryFaults};
pub use shrink::shrink;
pub use timeline::Timing;

/// Faults for one rack, and what must come of a run under them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultScript {
    /// Name of the scenario.
    pub name: String,
    /// What happens, in the order of the file.
    pub events: Vec<FaultEvent>,
    /// What must come of it.
    pub expect: FaultExpectations,
}

/// One fault.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultEvent {
    /// What it does, and to whom.
    pub fault: Fault,
    /// What sets it off.
    pub trigger: Trigger,
    /// What follows from there: how long, how often, how fast it grows.
    pub timing: Timing,
    /// Kind and place as the file has them, for reports: `down n0->n1`.
    pub label: String,
    /// The line of the file.
    pub line: u32,
}

impl FaultEvent {
    /// The field that names which beginning a line is about, where the event may begin more than once.
    pub const TIME_FIELD: &'static str = "time";

    /// The sentence that reports have for its beginning or its end.
    #[must_use]
    pub fn line_text(&self, begins: bool) -> String {
        let verb = if begins { "begins" } else { "ends" };
        format!("{} {verb} (line {})", self.label, self.line)
    }

    /// The fields that reports have beside that sentence. `number` counts events from 0, `time` their beginnings from 1.
    #[must_use]
    pub fn line_fields(&self, number: usize, time: u64, begins: bool) -> Vec<(&'static str, String)> {
        let mut fields = vec![("event", (number + 1).to_string()), ("begins", begins.to_string())];
        if self.timing.every_ns.is_some() {
            fields.push((Self::TIME_FIELD, time.to_string()));
        }
        fields
    }
}

/// What a fault does, and to whom.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// These directions of links are like this, on top of what the rack file says of them.
    Links {
        /// Which directions.
        ways: Vec<Way>,
        /// What they are like.
        conditions: Conditions,
    },
    /// These data frames are lost, counted from one and from the moment at which the event begins.
    Drop {
        /// Which directions.
        ways: Vec<Way>,
        /// Which frames.
        numbers: Vec<u64>,
    },
    /// These members stand still, and go on when the event's time is over.
    Pause(Vec<NodeId>),
    /// The memory of these GPU nodes is like this for requests of others.
    Memory {
        /// Whose.
        members: Vec<NodeId>,
        /// What it is like.
        conditions: MemoryConditions,
    },
    /// These GPU nodes revoke the keys of what their jobs have registered.
    Revoke(Vec<NodeId>),
    /// These members die; when the event's time is over, a new life takes each one's place.
    Kill(Vec<NodeId>),
}

/// One direction of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the link in the plan.
    pub edge: u16,
    /// Which direction.
    pub direction: Direction,
}

/// Phases of one round of a litmus, which are its steps.
const LITMUS_PHASES: u64 = 6;

/// How far a rank's part of a job is, for faults that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The run in which it is, counted from one, runs that warm up included.
    pub run: u64,
    /// The step of that run, counted from one.
    pub step: u64,
}

impl Place {
    /// Returns the last run and the last step of the plan's job, or `None` if they are not known before it runs.
    fn last(plan: &Plan) -> Option<Self> {
        match plan.job.kind {
            JobKind::Litmus => Some(Self { run: u64::from(plan.job.rounds), step: LITMUS_PHASES }),
            JobKind::Traffic(traffic) => {
                let messages = u64::from(traffic.messages).saturating_mul(plan.endpoint_count() as u64);
                Some(Self { run: 1, step: messages })
            }
            _ => None,
        }
    }
}

/// What sets a fault off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// So long after all links of the member concerned have been up.
    At(u64),
    /// So many data frames have been sent in this direction.
    Frames {
        /// Where.
        way: Way,
        /// How many.
        count: u64,
    },
    /// The job has come to this place on this node.
    Reached {
        /// Whose part of the job.
        node: NodeId,
        /// Where in it.
        place: Place,
    },
}

/// What must come of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultExpectations {
    /// How the job ends on those who live.
    pub ends: Ending,
    /// Exactly these members are lost by the end, in ascending order.
    pub lost: Vec<NodeId>,
    /// Which events must have happened.
    pub happen: Happen,
    /// Longest time from a fault to the first neighbour's notice of it.
    pub detected_within_ns: Option<u64>,
    /// Longest time from a fault to the last change of path that it causes.
    pub switched_within_ns: Option<u64>,
    /// Longest time from the end of a fault until the links that it took are back.
    pub recovered_within_ns: Option<u64>,
    /// Longest time from the first frame to the end of the job.
    pub elapsed_max_ns: Option<u64>,
    /// Least goodput of the job, in bits per second.
    pub goodput_min_bits_per_s: Option<u64>,
    /// Fewest packets that all nodes together send again.
    pub retransmitted_min: Option<u64>,
    /// Most packets that all nodes together send again.
    pub retransmitted_max: Option<u64>,
}

words! {
    /// How a job ends on those who live. A wrong byte, an operation applied twice and a hang are never right.
    pub enum Ending {
        /// With everything right.
        #[default]
        Right = "right",
        /// With an error that names whom it lost.
        Error = "clean-error",
        /// With either.
        Either = "right-or-clean-error",
    }
}

words! {
    /// Which events must have happened by the end.
    pub enum Happen {
        /// All of them: what did not happen proves nothing.
        #[default]
        All = "all",
        /// The run may be over first.
        Any = "any",
    }
}

impl Way {
    /// The member whose frames these are: who applies the fault.
    #[must_use]
    pub fn sender(self, plan: &Plan) -> NodeId {
        let edge = plan.links[usize::from(self.edge)].edge;
        match self.direction {
            Direction::Forward => edge.a,
            Direction::Backward => edge.b,
        }
    }

    /// `n0->n1`, with `#1` if it is the second of parallel links.
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
    /// The directions of links that it touches.
    #[must_use]
    pub fn ways(&self) -> &[Way] {
        match self {
            Self::Links { ways, .. } | Self::Drop { ways, .. } => ways,
            Self::Pause(_) | Self::Kill(_) | Self::Memory { .. } | Self::Revoke(_) => &[],
        }
    }

    /// The members that it strikes themselves.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        match self {
            Self::Pause(members)
            | Self::Kill(members)
            | Self::Revoke(members)
            | Self::Memory { members, .. } => members,
            Self::Links { .. } | Self::Drop { .. } => &[],
        }
    }

    /// Whether nothing comes through any more, so that somebody must notice.
    #[must_use]
    pub fn takes_away(&self) -> bool {
        match self {
            Self::Links { conditions, .. } => conditions.is_cut,
            Self::Kill(_) => true,
            Self::Drop { .. } | Self::Pause(_) | Self::Memory { .. } | Self::Revoke(_) => false,
        }
    }
}

impl FaultScript {
    /// Read a script for the rack of `plan`.
    ///
    /// # Errors
    /// Every mistake of the file, with line, column and hint; or one without a place if the file cannot be read.
    pub fn read(path: &Path, plan: &Plan) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = text_of(path).map_err(|Unreadable { message, .. }| {
            let source = Source::new(&origin, "");
            let message = message.replace("rack file", "fault script");
            let hint = "scripts that come with the project are in scripts/faults/";
            source.error(vec![source.mistake(None, Complaint::about(message).hint(hint))])
        })?;
        Self::parse(&text, &origin, plan)
    }

    /// Read a script from text; `origin` stands for the file in messages.
    ///
    /// # Errors
    /// Every mistake of the text, with line, column and hint.
    pub fn parse(text: &str, origin: &str, plan: &Plan) -> Result<Self, PlanError> {
        read::script(text, origin, plan)
    }

    /// Whether some event flips bits, so that frames must carry the end-to-end check.
    #[must_use]
    pub fn corrupts(&self) -> bool {
        self.events
            .iter()
            .any(|event| matches!(&event.fault, Fault::Links { conditions, .. } if conditions.corrupt > 0.0))
    }

    /// Whether some event picks frames by what they carry, so that whoever judges must see them whole.
    #[must_use]
    pub fn picks(&self) -> bool {
        let picks =
            |fault: &Fault| matches!(fault, Fault::Links { conditions, .. } if conditions.picked.is_some());
        self.events.iter().any(|event| picks(&event.fault))
    }

    /// Whether memory may refuse what is right, so that a job may end with such a refusal.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.events.iter().any(|event| match &event.fault {
            Fault::Memory { conditions, .. } => conditions.fail > 0.0,
            Fault::Revoke(_) => true,
            _ => false,
        })
    }

    /// The longest time for which a member stands still.
    #[must_use]
    pub fn longest_pause_ns(&self) -> u64 {
        let pauses = self.events.iter().filter(|event| matches!(event.fault, Fault::Pause(_)));
        pauses.filter_map(|event| event.timing.for_ns).max().unwrap_or(0)
    }

    /// Members that it kills for a time, so that somebody sits in their places afterwards.
    pub fn followed(&self) -> impl Iterator<Item = NodeId> {
        let brief = self.events.iter().filter(|event| event.timing.for_ns.is_some());
        let killed = brief.filter(|event| matches!(event.fault, Fault::Kill(_)));
        killed.flat_map(|event| event.fault.members()).copied()
    }

    /// Whether it kills this member, for good or for a time, or expects it to be lost.
    #[must_use]
    pub fn may_lose(&self, node: NodeId) -> bool {
        let kills =
            |event: &FaultEvent| matches!(&event.fault, Fault::Kill(members) if members.contains(&node));
        self.expect.lost.contains(&node) || self.events.iter().any(kills)
    }

    /// The members that it kills for good, in ascending order.
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

/// Frames of these kinds are lost with this probability.
fn loss_of(kinds: &[rackloom_protocol::wire::FrameKind], rate: f64) -> LossByKind {
    let mut loss = LossByKind::default();
    kinds.iter().for_each(|kind| loss.set(*kind, Some(rate)));
    loss
}
