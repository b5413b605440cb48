//! Everything from which supervisor and seats build the same plan: the text of the rack file, and the options that replace its values.
//!
//! Seats receive the text and not a path: the file may change while the rack starts. Arrays are too large for that; seats open
//! them again.

use std::path::PathBuf;

use rackloom_plan::faults::FaultScript;
use rackloom_plan::{
    AlgorithmChoice, Checks, CollectiveKind, ElementType, JobName, OnLoss, PatternName, PayloadMode, Plan,
    PlanError, ReduceOperation, Sizes, WireKind,
};
use rackloom_protocol::RetransmissionMode;
use serde::{Deserialize, Serialize};

use crate::key::KeyLocation;
use crate::named_value;
use crate::recorder::Recording;

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
    /// Process seats of each GPU node.
    #[serde(default)]
    pub process_seats: ProcessSeats,
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
    /// Time series and operations that are recorded.
    #[serde(default, skip_serializing_if = "Recording::is_off")]
    pub recording: Recording,
    /// Fault script.
    #[serde(default)]
    pub faults: Option<FaultFile>,
    /// Snapshots to save and to restore.
    #[serde(default)]
    pub snapshots: SnapshotOrders,
    /// Workload that is performed instead of the job of the rack file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadFile>,
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
        let count = match self.process_seats {
            ProcessSeats::None => return,
            ProcessSeats::OfFile => plan.settings.processes.unwrap_or(Plan::PROCESSES_DEFAULT),
            ProcessSeats::Number(count) => count,
        };
        plan.add_processes(count);
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

/// Process seats of each GPU node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessSeats {
    /// The rack has none.
    #[default]
    None,
    /// As many as the key `processes` of the rack file states, or its default for racks for programs.
    OfFile,
    /// This number.
    Number(u16),
}

/// Fault script, as text for the same reasons as the rack file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FaultFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Workload, as text for the same reasons as the rack file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WorkloadFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text in the format of `rackloom_workloads::text`.
    pub text: String,
    /// Performance of computations on processes.
    #[serde(default)]
    pub compute: ComputeMode,
}

/// Performance of the computations of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// The rank waits for the end of the time. In virtual time it costs nothing.
    #[default]
    Sleep,
    /// The rank keeps its processor busy until the end of the time.
    Spin,
}

impl ComputeMode {
    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Spin => "spin",
        }
    }
}

/// Passes the declarations of the options that replace one value of the rack file to the macro `$declare`. This list is the only
/// place that names them: the message to the seats, its effect on a plan and the options of the command follow from it.
///
/// A declaration has attributes of the message's field, name and type of the value, a form with its arguments, the heading in
/// help texts, and the effect. `rack` effects change the plan, `links` effects change the profile of every link.
///
/// | form | value | help text |
/// |---|---|---|
/// | `number(NAME, HELP)` | any number of the type | `HELP` |
/// | `switch(HELP)` | `on` or `off` | `HELP` |
/// | `choice(NAME, KEY)` | one of the names of the type | meaning of the key |
/// | `share(KEY)` | a share in the range of the key | meaning of the key, and that it holds on every link |
#[macro_export]
macro_rules! override_options {
    ($declare:ident) => {
        $declare! {
            rack {
                /// Seed of the job's data and of every random fault.
                seed: u64, number("N", "Seed of the job's data and of every random fault"), DATA,
                    |plan, seed| plan.settings.seed = seed;
                /// Retransmission of lost packets, end to end.
                #[serde(default, with = "named_value")]
                transport: RetransmissionMode, choice("MODE", "transport.mode"), LINKS,
                    |plan, mode| plan.transport.mode = mode;
            }
            links {
                /// True to switch link-level retry on for every link, false to switch it off.
                llr: bool, switch("Link-level retry on every link: lost frames are replayed on the link"), LINKS,
                    // The retry settings of the rack file remain.
                    |profile, is_on| profile.llr = is_on.then(|| profile.llr.unwrap_or_default());
                /// Share of frames lost on every link, from 0 to 1.
                loss: f64, share("link.loss"), FAULTS, |profile, share| profile.loss = share;
                /// Share of frames in which a bit is flipped, from 0 to 1.
                corrupt: f64, share("link.corrupt"), FAULTS, |profile, share| profile.corrupt = share;
                /// Share of frames that arrive twice, from 0 to 1.
                duplicate: f64, share("link.duplicate"), FAULTS, |profile, share| profile.duplicate = share;
                /// Share of frames that arrive after a later frame, from 0 to 1.
                reorder: f64, share("link.reorder"), FAULTS, |profile, share| profile.reorder = share;
            }
        }
    };
}

/// Declares the message with all options, and their effect on a plan.
macro_rules! declare_overrides {
    (
        rack { $($(#[$rack_attribute:meta])* $rack:ident: $rack_type:ty, $rack_form:ident($($rack_text:literal),*),
            $rack_heading:ident, |$plan:ident, $rack_value:ident| $rack_effect:expr;)* }
        links { $($(#[$link_attribute:meta])* $link:ident: $link_type:ty, $link_form:ident($($link_text:literal),*),
            $link_heading:ident, |$profile:ident, $link_value:ident| $link_effect:expr;)* }
    ) => {
        /// Values that replace those of the rack file. Members receive them with the text of the file, so that all build the
        /// same plan.
        #[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
        pub struct Overrides {
            /// The job.
            pub job: JobOptions,
            /// Assignments `KEY=VALUE` to keys of the rack file. They are applied to its text.
            #[serde(skip)]
            pub set: Vec<String>,
            $($(#[$rack_attribute])* pub $rack: Option<$rack_type>,)*
            $($(#[$link_attribute])* pub $link: Option<$link_type>,)*
            /// Payload mode of long transfers. It applies to virtual time only.
            #[serde(default, with = "named_value")]
            pub payload: Option<PayloadMode>,
        }

        impl Overrides {
            /// Replaces values of the plan, except those of the job. The caller checks the changed plan.
            pub fn apply(&self, plan: &mut Plan) {
                // The text of the rack file contains `set` already.
                plan.change(|plan| {
                    plan.settings.payload = self.payload.unwrap_or(plan.settings.payload);
                });
                $(if let Some($rack_value) = self.$rack {
                    plan.change(|$plan| $rack_effect);
                })*
                $(if let Some($link_value) = self.$link {
                    plan.override_links(|$profile| $link_effect);
                })*
            }
        }
    };
}

override_options!(declare_overrides);

/// Passes the declarations of the options that replace values of the rack file's job to the macro `$declare`: the message to the seats
/// and the options of the command follow from it. Their effect depends on the job; `rackloom_runtime::request::overrides` has it.
///
/// A declaration has attributes of the message's field, name and type of the value, the name of the option with an alias if it has one, a
/// form with its arguments, and the heading in help texts.
///
/// | form | value | help text |
/// |---|---|---|
/// | `choice(NAME, KEY)` | one of the names of the type | meaning of the key |
/// | `implying(NAME, KEY, HELP)` | one of the names of the type | first sentence of the key's meaning, then `HELP` |
/// | `list(NAME, KEY)` | names of the type, with commas between | meaning of the key |
/// | `text(NAME, KEY)` | any text | meaning of the key |
/// | `switch(NAME, KEY)` | `on` or `off` | meaning of the key |
/// | `count(NAME, KEY)` | a number in the range of the key | meaning of the key |
/// | `size(NAME, HELP)` | a number of bytes, with or without a unit | `HELP` |
/// | `sizes(NAME, HELP)` | one size or a range of sizes; not together with `--bytes` | `HELP` |
#[macro_export]
macro_rules! job_options {
    ($declare:ident) => {
        $declare! {
            /// Kind of job.
            #[serde(default, with = "named_value")]
            job: JobName, "job", choice("JOB", "job"), WHAT;
            /// Collective.
            #[serde(default, with = "named_value")]
            collective: CollectiveKind, "collective", choice("NAME", "job.collective.collective"), WHAT;
            /// Reduction operator.
            #[serde(default, with = "named_value")]
            op: ReduceOperation, "op", choice("NAME", "job.collective.op"), DATA;
            /// Type of one element.
            #[serde(default, with = "named_value")]
            element: ElementType, "type" | "dtype", choice("NAME", "job.collective.type"), DATA;
            /// Algorithms of the collective.
            #[serde(default, with = "named_value::list")]
            algorithm: AlgorithmNames, "algorithm", list("NAME[,NAME]", "job.collective.algorithm"), WHAT;
            /// True if the algorithm is chosen again when runs become slower or faster.
            adapt: bool, "adapt", switch("on|off", "job.collective.adapt"), WHAT;
            /// Name of the collective's root node.
            root: String, "root", text("NODE", "job.collective.root"), WHAT;
            /// Reaction of a collective to lost ranks.
            #[serde(default, with = "named_value")]
            on_loss: OnLoss, "on-loss", choice("NAME", "job.collective.on_loss"), FAULTS;
            /// Traffic pattern.
            #[serde(default, with = "named_value")]
            pattern: PatternName, "pattern",
                implying("NAME", "job.traffic.pattern", "; implies --job traffic"), WHAT;
            /// Number of messages of each flow.
            messages: u32, "messages", count("N", "job.traffic.messages"), DATA;
            /// Size of the array or of one message, in bytes.
            bytes: u64, "bytes", size("SIZE", "Size of the array or of one message, such as 1MiB"), DATA;
            /// Sizes.
            #[serde(default, with = "sizes")]
            sizes: Sizes, "sizes", sizes("SIZE|FROM..TO", "One size, such as 64KiB, or a range, such as 8B..1MiB (each \
                twice the previous one) or 8B..1MiB*4"), DATA;
            /// Number of measured runs of each size.
            repetitions: u32, "repetitions", count("N", "job.collective.repetitions"), DATA;
            /// Number of runs of each size before the measured ones.
            warm_up: u32, "warm-up", count("N", "job.collective.warm_up"), DATA;
        }
    };
}

/// Names of several algorithms, in order.
pub type AlgorithmNames = Vec<AlgorithmChoice>;

/// Declares the message.
macro_rules! declare_job_options {
    ($($(#[$attribute:meta])* $name:ident: $type:ty, $long:literal $(| $alias:literal)?, $form:ident($($text:literal),*),
        $heading:ident;)*) => {
        /// Values that replace those of the rack file's job.
        #[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
        pub struct JobOptions {
            $($(#[$attribute])* pub $name: Option<$type>,)*
        }
    };
}

job_options!(declare_job_options);

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
