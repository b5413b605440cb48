//! From a rack file, a command line and the user's arrays to a plan and its inputs, in the supervisor and once more in
//! every seat.
//!
//! Seats get the text and not a path: the file may change while the rack starts. Arrays are too large for that; seats open
//! them again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rackloom::seal::{KeyPlace, RackKey};
use rackloom_collectives::{Collective, ElementType};
use rackloom_jobs::arrays::result_shape;
use rackloom_jobs::collective::Inputs;
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{
    Checks, CollectiveName, CollectivePlan, ElementName, JobKind, Objection, Plan, PlanError, Sizes,
    Unreadable, WireKind,
};
use rackloom_protocol::RetransmissionMode;
use serde::{Deserialize, Serialize};

use crate::arguments::{
    ArrayOptions, CheckpointOptions, FaultOptions, JobOptions, Overrides, Processes, Transport, Wire,
};
use crate::arrays::InputArrays;
use crate::capture::CaptureOptions;
use crate::failure::Failure;
use crate::here::Here;
use crate::snapshots::SnapshotOrders;
use crate::{arrays, capacity, meta};

/// Everything from which a plan is built.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Source {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// What is in it.
    pub(crate) text: String,
    /// Where the key of the rack is looked for.
    #[serde(default)]
    pub(crate) key: KeyPlace,
    /// The command line that named the file.
    #[serde(default)]
    pub(crate) command: String,
    /// What the command line says instead.
    pub(crate) overrides: Overrides,
    /// What the command line says about the wire.
    pub(crate) wire: Option<Wire>,
    /// Whether the command line wants everything in frames.
    #[serde(default)]
    pub(crate) force_wire: bool,
    /// Whose share of the rack is started; all of it if nobody's in particular.
    #[serde(default)]
    pub(crate) host: Option<String>,
    /// Whether `ip netns` shall show the members' network namespaces.
    #[serde(default)]
    pub(crate) netns_names: bool,
    /// The rack's name, if it is another than the file's.
    pub(crate) rack: Option<String>,
    /// Where the user's arrays are, and where the results go.
    pub(crate) arrays: ArrayOptions,
    /// Where captures go, if frames are captured.
    #[serde(default)]
    pub(crate) capture: CaptureOptions,
    /// What befalls the rack, if anything does.
    #[serde(default)]
    pub(crate) faults: Option<FaultFile>,
    /// What is saved of the job, and from where it goes on.
    #[serde(default)]
    pub(crate) snapshots: SnapshotOrders,
}

/// A fault script, as text for the same reasons as the rack file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct FaultFile {
    /// The file's name, for messages.
    name: String,
    pub(crate) text: String,
}

impl FaultFile {
    /// Read it; what it says is not looked at here.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let text = rackloom_plan::text_of(file).map_err(|Unreadable { message, .. }| {
            Failure::bad_input(message.replace("rack file", "fault script"))
                .at_path(file)
                .hint("scripts that come with the project are in scripts/faults/")
        })?;
        Ok(Self { name: file.display().to_string(), text })
    }
}

/// What a source comes to.
pub(crate) struct Work {
    pub(crate) plan: Plan,
    /// What befalls the rack.
    pub(crate) faults: Option<FaultScript>,
    /// What the ranks give.
    pub(crate) inputs: Inputs,
    /// The shape of what each rank gets, by rank; nothing for ranks that get nothing.
    pub(crate) result_shapes: Vec<Option<Vec<u64>>>,
}

impl Source {
    pub(crate) fn read(file: &Path, overrides: &Overrides) -> Result<Self, Failure> {
        let text = rackloom_plan::text_of(file)
            .map_err(|Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint))?;
        Ok(Self {
            name: file.display().to_string(),
            text: rackloom_plan::with_settings(&text, &overrides.set),
            key: KeyPlace::beside(file),
            command: meta::command_line(),
            overrides: overrides.clone(),
            wire: None,
            force_wire: false,
            host: None,
            netns_names: false,
            rack: None,
            arrays: ArrayOptions::default(),
            capture: CaptureOptions::default(),
            faults: None,
            snapshots: SnapshotOrders::default(),
        })
    }

    /// For a rack of processes, as the command line wants it.
    pub(crate) fn for_processes(mut self, processes: &Processes) -> Result<Self, Failure> {
        self.wire = processes.wire;
        self.force_wire = processes.force_wire;
        self.host.clone_from(&processes.host);
        self.netns_names = processes.netns_names;
        self.with_faults(&processes.faults)?.with_arrays(&processes.arrays)?.with_capture(&processes.capture)
    }

    /// With a fault script, if there is one.
    pub(crate) fn with_faults(mut self, options: &FaultOptions) -> Result<Self, Failure> {
        self.faults = options.faults.as_deref().map(FaultFile::read).transpose()?;
        Ok(self)
    }

    /// With snapshots of a job that this plan has.
    pub(crate) fn with_snapshots(
        mut self,
        options: &CheckpointOptions,
        plan: &Plan,
    ) -> Result<Self, Failure> {
        self.snapshots = SnapshotOrders::prepare(options, plan)?;
        Ok(self)
    }

    pub(crate) fn named(mut self, rack: Option<String>) -> Self {
        self.rack = rack;
        self
    }

    /// With arrays of the user. Their places must mean the same in every seat.
    pub(crate) fn with_arrays(mut self, arrays: &ArrayOptions) -> Result<Self, Failure> {
        let absolute = |path: &Option<PathBuf>| {
            let absolute = path.as_deref().map(std::path::absolute).transpose();
            absolute.map_err(|error| Failure::bad_input(error.to_string()))
        };
        self.arrays = ArrayOptions { input: absolute(&arrays.input)?, output: absolute(&arrays.output)? };
        Ok(self)
    }

    /// With captures, whose place must mean the same in every seat.
    pub(crate) fn with_capture(mut self, capture: &CaptureOptions) -> Result<Self, Failure> {
        self.capture = capture.absolute()?;
        Ok(self)
    }

    /// The plan and what the ranks give, with what the command line says, checked; whether the job can be done is left
    /// open.
    pub(crate) fn work(&self) -> Result<Work, Failure> {
        self.work_judged_by(|_| Vec::new())
    }

    /// The same, and the job can be done. What speaks against the file's own job is said with its place in the file.
    pub(crate) fn possible_work(&self) -> Result<Work, Failure> {
        if self.overrides.job == JobOptions::default() && self.arrays.input.is_none() {
            return self.work_judged_by(|plan| rackloom_jobs::objections(plan, &Inputs::Pattern));
        }
        let work = self.work()?;
        match rackloom_jobs::objections(&work.plan, &work.inputs).into_iter().next() {
            Some(first) => Err(Failure::bad_input(first.message).hint(first.hint)),
            None => Ok(work),
        }
    }

    /// The same for a rack of processes, with all that these need on this machine: memory, and directories for
    /// results and captures.
    pub(crate) fn ready_work(&self, processes: &Processes) -> Result<Work, Failure> {
        let work = self.possible_work()?;
        let here = Here::of(&work.plan, self.host.as_deref())?;
        if let Some(path) = &work.plan.security.key_file {
            // Members read it again; here a mistake is said once.
            RackKey::read(path).map_err(|error| Failure::bad_input(error.to_string()))?;
        }
        let followed = work.faults.iter().flat_map(FaultScript::followed);
        if let Some(node) = followed.into_iter().find(|node| here.leads_abroad(&work.plan, *node)) {
            let name = &work.plan.members[node.index()].name;
            let what = format!(
                "the fault script kills {name} for a time, and its link to another host is laid only once"
            );
            return Err(Failure::bad_input(what).hint("leave `for` out of its `kill`, or kill somebody else"));
        }
        capacity::must_suffice(&work.plan, &here)?;
        arrays::make_place(&processes.arrays, &work.is_written())?;
        self.capture.make_directory()?;
        Ok(work)
    }

    fn work_judged_by(&self, judge: impl Fn(&Plan) -> Vec<Objection>) -> Result<Work, Failure> {
        // The size check must look at the job that will run.
        let is_another_job = self.overrides.job.changes_size() || self.arrays.input.is_some();
        let plan = match is_another_job {
            true => Plan::parse_for_another_job(&self.text, &self.name),
            false => Plan::parse_judged(&self.text, &self.name, judge),
        };
        let mut plan = plan.map_err(|error| Failure::bad_input(words(&error)))?;
        self.overrides.apply(&mut plan)?;
        plan.security.key_file = self.key.resolve(plan.security.key_file.as_deref());
        if let Some(rack) = &self.rack {
            plan.change(|plan| plan.name.clone_from(rack));
        }
        if let Some(wire) = self.wire {
            plan.set_wire(wire.into());
        }
        if self.force_wire {
            plan.change(|plan| plan.force_wire = true);
        }
        let arrays = self.take_arrays(&mut plan)?;
        plan.check().map_err(|error| Failure::bad_input(words(&error)).at("the command line"))?;
        let faults = self.take_faults(&mut plan)?;
        let result_shapes = result_shapes(&plan, arrays.as_ref());
        let inputs = arrays.map_or(Inputs::Pattern, |arrays| Inputs::Arrays(Arc::new(arrays)));
        Ok(Work { plan, faults, inputs, result_shapes })
    }

    /// The plan alone.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        self.work().map(|work| work.plan)
    }

    /// Read the fault script against the plan. Frames carry the end-to-end check where it flips bits.
    fn take_faults(&self, plan: &mut Plan) -> Result<Option<FaultScript>, Failure> {
        let Some(FaultFile { name, text }) = &self.faults else { return Ok(None) };
        let script =
            FaultScript::parse(text, name, plan).map_err(|error| Failure::bad_input(words(&error)))?;
        if script.corrupts() {
            plan.change(|plan| plan.checks = Checks::Always);
        }
        Ok(Some(script))
    }

    /// Open the user's arrays, if there are any, and let the plan follow them: type and size are theirs.
    fn take_arrays(&self, plan: &mut Plan) -> Result<Option<InputArrays>, Failure> {
        let ArrayOptions { input, output } = &self.arrays;
        let JobKind::Collective(mut job) = plan.job.kind else {
            return match input.as_ref().or(output.as_ref()) {
                None => Ok(None),
                Some(_) => Err(Failure::bad_input(format!("job {} takes no arrays", plan.job.kind.name()))
                    .hint("say --job collective")),
            };
        };
        if let (false, Some(directory)) = (job.collective.moves_data(), input.as_ref().or(output.as_ref())) {
            let what = format!("{} takes and gives no arrays", job.collective);
            return Err(Failure::bad_input(what).at_path(directory).hint("leave --input and --output out"));
        }
        if let (true, Some(directory)) = (job.algorithm.names().len() > 1, output) {
            let what =
                format!("--output takes the results of one algorithm, and {} are measured", job.algorithm);
            return Err(Failure::bad_input(what).at_path(directory).hint("name one algorithm"));
        }
        let Some(directory) = input else { return Ok(None) };
        let options = &self.overrides.job;
        if options.bytes.is_some() || options.sizes.is_some() {
            return Err(Failure::bad_input(
                "--bytes and --sizes mean nothing beside --input: the arrays have a size",
            )
            .hint("leave them out"));
        }
        let (ranks, collective) = (plan.endpoint_count(), collective(&job)?);
        let wanted = options.element.as_deref().and_then(|name| name.parse().ok());
        let arrays = InputArrays::open(directory, collective, ranks, wanted).map_err(|problems| {
            let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
            Failure::bad_input(lines.join("\n")).at_path(directory)
        })?;
        let per_rank = arrays.elements() * arrays.element.bytes() as u64;
        let whole = match job.collective {
            CollectiveName::AllGather | CollectiveName::Gather => per_rank.saturating_mul(ranks as u64),
            _ => per_rank,
        };
        job.element = element_name(arrays.element);
        job.sweep.sizes = Sizes::one(whole);
        plan.change(|plan| plan.job.kind = JobKind::Collective(job));
        Ok(Some(arrays))
    }
}

impl Work {
    /// By rank: whether it gets anything that could be written.
    pub(crate) fn is_written(&self) -> Vec<bool> {
        self.result_shapes.iter().map(Option::is_some).collect()
    }
}

/// A plan's mistakes, of which the first says "error" as the command does.
fn words(error: &PlanError) -> String {
    let text = error.to_string();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// The shape of what each rank gets: from the shape of the arrays, or flat where there are none.
fn result_shapes(plan: &Plan, arrays: Option<&InputArrays>) -> Vec<Option<Vec<u64>>> {
    let ranks = plan.endpoint_count();
    let collective = match &plan.job.kind {
        JobKind::Collective(job) => collective(job).ok(),
        _ => None,
    };
    let Some(collective) = collective else { return vec![None; ranks] };
    let flat = |rank| {
        // Which ranks get anything does not depend on how much; the number of elements comes with the result.
        (collective.output_elements(rank, ranks, ranks) > 0).then(Vec::new)
    };
    let shape = |rank| match arrays {
        Some(arrays) => result_shape(collective, rank, ranks, &arrays.shape),
        None => flat(rank),
    };
    (0..ranks).map(shape).collect()
}

/// What the plan's word stands for.
pub(crate) fn collective(job: &CollectivePlan) -> Result<Collective, Failure> {
    let name = job.collective.name();
    Collective::from_name(name, job.root.index())
        .ok_or_else(|| Failure::bad_input(format!("{name} has no schedule")))
}

fn element_name(element: ElementType) -> ElementName {
    // Both lists name the same types; a test compares them.
    ElementName::from_name(element.name()).unwrap_or_default()
}

impl From<Wire> for WireKind {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::SharedMemory => Self::SharedMemory,
            Wire::Packet => Self::Packet,
            Wire::Udp => Self::Udp,
        }
    }
}

impl From<Transport> for RetransmissionMode {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::GoBackN => Self::GoBackN,
            Transport::Selective => Self::Selective,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_one_name() {
        for element in ElementType::ALL {
            assert_eq!(element_name(element).name(), element.name());
        }
        assert_eq!(ElementName::ALL.len(), ElementType::ALL.len());
    }
}
