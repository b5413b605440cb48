//! Everything from which supervisor and seats build the same plan: the text of the rack file, and the options that replace its values.
//!
//! Seats receive the text and not a path: the file may change while the rack starts. Arrays are too large for that; seats open
//! them again.

use std::path::PathBuf;

use rackloom_plan::faults::FaultScript;
use rackloom_plan::{
    AlgorithmChoice, Checks, CollectiveKind, ElementType, JobName, OnLoss, PatternName, PayloadMode, Plan,
    PlanError, ReduceOperation, RetryPlan, Sizes, WireKind,
};
use rackloom_protocol::RetransmissionMode;
use serde::{Deserialize, Serialize};

use crate::key::KeyLocation;
use crate::named_value;

/// Request for a rack, as it crosses process boundaries.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Source {
    /// Name of the rack file, for messages.
    pub name: String,
    /// Text of the rack file.
    pub text: String,
    /// Search location of the rack's key.
    #[serde(default)]
    pub key: KeyLocation,
    /// Command line that named the file.
    #[serde(default)]
    pub command: String,
    /// Values that replace those of the rack file.
    pub overrides: Overrides,
    /// Wire, instead of the file's.
    #[serde(default, with = "named_value")]
    pub wire: Option<WireKind>,
    /// True if all data goes in frames.
    #[serde(default)]
    pub force_wire: bool,
    /// Host of which the members are started; all members if absent.
    #[serde(default)]
    pub host: Option<String>,
    /// True if the members' network namespaces get names for `ip netns`.
    #[serde(default)]
    pub netns_names: bool,
    /// Name of the rack, if it is not the file's.
    pub rack: Option<String>,
    /// Directories of the user's arrays and of the results.
    pub arrays: ArrayOptions,
    /// Captures of frames.
    #[serde(default)]
    pub capture: CaptureOptions,
    /// Fault script.
    #[serde(default)]
    pub faults: Option<FaultFile>,
    /// Snapshots to save and to restore.
    #[serde(default)]
    pub snapshots: SnapshotOrders,
}

impl Source {
    /// Replaces the values of the plan that this request replaces, except those of the job. Every process of a rack calls it, so that
    /// all have one plan. The caller checks the changed plan.
    pub fn apply(&self, plan: &mut Plan) {
        self.overrides.apply(plan);
        plan.security.key_file = self.key.resolve(plan.security.key_file.as_deref());
        plan.change(|plan| {
            if let Some(rack) = &self.rack {
                plan.name.clone_from(rack);
            }
            plan.settings.wire = self.wire.unwrap_or(plan.settings.wire);
            plan.settings.force_wire |= self.force_wire;
        });
    }

    /// Reads the fault script against the plan. If it flips bits, frames get the end-to-end check: the plan changes. Every process of
    /// a rack calls it, because a member with the check drops frames without it.
    ///
    /// # Errors
    /// Returns every mistake of the script.
    pub fn take_faults(&self, plan: &mut Plan) -> Result<Option<FaultScript>, PlanError> {
        let Some(FaultFile { name, text }) = &self.faults else { return Ok(None) };
        let script = FaultScript::parse(text, name, plan)?;
        if script.corrupts() {
            plan.change(|plan| plan.settings.checks = Checks::Always);
        }
        Ok(Some(script))
    }
}

/// Fault script, as text for the same reasons as the rack file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FaultFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Values that replace those of the rack file. Members receive them with the text of the file, so that all build the same plan.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Overrides {
    /// The job.
    pub job: JobOptions,
    /// Assignments `KEY=VALUE` to keys of the rack file. They are applied to its text.
    #[serde(skip)]
    pub set: Vec<String>,
    /// Seed of the job's data and of every random fault.
    pub seed: Option<u64>,
    /// Retransmission of lost packets, end to end.
    #[serde(default, with = "named_value")]
    pub transport: Option<RetransmissionMode>,
    /// True to switch link-level retry on for every link, false to switch it off.
    pub llr: Option<bool>,
    /// Share of frames lost on every link, from 0 to 1.
    pub loss: Option<f64>,
    /// Share of frames in which a bit is flipped, from 0 to 1.
    pub corrupt: Option<f64>,
    /// Share of frames that arrive twice, from 0 to 1.
    pub duplicate: Option<f64>,
    /// Share of frames that arrive after a later frame, from 0 to 1.
    pub reorder: Option<f64>,
    /// Payload mode of long transfers. It applies to virtual time only.
    #[serde(default, with = "named_value")]
    pub payload: Option<PayloadMode>,
}

impl Overrides {
    /// Replaces values of the plan, except those of the job. The caller checks the changed plan.
    pub fn apply(&self, plan: &mut Plan) {
        // A new field must be applied here. The text of the rack file contains `set` already.
        let &Self { job: _, set: _, seed, transport, llr, loss, corrupt, duplicate, reorder, payload } = self;
        plan.change(|plan| {
            plan.settings.seed = seed.unwrap_or(plan.settings.seed);
            plan.settings.payload = payload.unwrap_or(plan.settings.payload);
            plan.transport.mode = transport.unwrap_or(plan.transport.mode);
        });
        plan.override_links(|profile| {
            profile.loss = loss.unwrap_or(profile.loss);
            profile.corrupt = corrupt.unwrap_or(profile.corrupt);
            profile.duplicate = duplicate.unwrap_or(profile.duplicate);
            profile.reorder = reorder.unwrap_or(profile.reorder);
            profile.llr = match llr {
                // The retry settings of the rack file remain.
                Some(true) => profile.llr.or(Some(RetryPlan::default())),
                Some(false) => None,
                None => profile.llr,
            };
        });
    }
}

/// Values that replace those of the rack file's job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct JobOptions {
    /// Kind of job.
    #[serde(default, with = "named_value")]
    pub job: Option<JobName>,
    /// Collective.
    #[serde(default, with = "named_value")]
    pub collective: Option<CollectiveKind>,
    /// Reduction operator.
    #[serde(default, with = "named_value")]
    pub op: Option<ReduceOperation>,
    /// Type of one element.
    #[serde(default, with = "named_value")]
    pub element: Option<ElementType>,
    /// Algorithms of the collective.
    #[serde(default, with = "named_value::list")]
    pub algorithm: Option<Vec<AlgorithmChoice>>,
    /// Name of the collective's root node.
    pub root: Option<String>,
    /// Reaction of a collective to lost ranks.
    #[serde(default, with = "named_value")]
    pub on_loss: Option<OnLoss>,
    /// Traffic pattern.
    #[serde(default, with = "named_value")]
    pub pattern: Option<PatternName>,
    /// Number of messages of each flow.
    pub messages: Option<u32>,
    /// Size of the array or of one message, in bytes.
    pub bytes: Option<u64>,
    /// Sizes.
    #[serde(default, with = "sizes")]
    pub sizes: Option<Sizes>,
    /// Number of measured runs of each size.
    pub repetitions: Option<u32>,
    /// Number of runs of each size before the measured ones.
    pub warm_up: Option<u32>,
}

/// Directories of arrays in files.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ArrayOptions {
    /// Directory of the ranks' arrays.
    pub input: Option<PathBuf>,
    /// Directory of the ranks' results.
    pub output: Option<PathBuf>,
}

/// Captures of frames.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CaptureOptions {
    /// Directory of the captures; no captures if absent.
    pub directory: Option<PathBuf>,
    /// Largest capture of one link, in bytes.
    pub bytes_max: Option<u64>,
}

/// Snapshots that seats save and restore.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SnapshotOrders {
    /// Directory to which snapshots are saved, and number of runs between two of them.
    pub save: Option<(PathBuf, u32)>,
    /// Directory of the snapshots to restore, and their identity.
    pub restore: Option<(PathBuf, SnapshotSet)>,
}

/// A set of snapshots, one of each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SnapshotSet {
    /// Number of runs of the collective that were complete.
    pub number: u64,
    /// Number of times that the job had been restored, plus one.
    pub epoch: u64,
}

/// Sizes of messages between processes.
mod sizes {
    use rackloom_plan::Sizes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize, Serialize)]
    #[serde(remote = "Sizes")]
    struct Fields {
        from_bytes: u64,
        to_bytes: u64,
        factor: u32,
    }

    #[derive(Deserialize, Serialize)]
    struct Wrapped(#[serde(with = "Fields")] Sizes);

    pub(super) fn serialize<S: Serializer>(sizes: &Option<Sizes>, serializer: S) -> Result<S::Ok, S::Error> {
        sizes.map(Wrapped).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sizes>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|Wrapped(sizes)| sizes))
    }
}
