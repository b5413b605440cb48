//! Requests and their results: the checked plan and the inputs of its job. The supervisor and every seat
//! build them from the same request.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rackloom::seal::{KeyLocation, RackKey};
use rackloom_collectives::{Collective, CollectiveKind};
use rackloom_control::recorder::Recording;
use rackloom_control::source::{
    ArrayOptions, CaptureOptions, FaultFile, JobOptions, Overrides, ProcessSeats, SnapshotOrders, Source,
    WorkloadFile,
};
use rackloom_jobs::arrays::result_shape;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::workload::Prepared;
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{CollectivePlan, JobKind, Objection, Plan, Sizes, TextFile, Unreadable};

use super::arrays::{self, InputArrays};
use super::options::{CheckpointOptions, ProcessOptions};
use super::{overrides, snapshots, workload};
use crate::capture;
use crate::machine::capacity;
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Request for a rack. The plan and the inputs of the job are built from it.
#[derive(Clone, Debug)]
pub struct RackRequest {
    source: Source,
}

/// Plan of a rack and the inputs of its job.
pub struct Work {
    /// The plan, checked.
    pub plan: Plan,
    /// The fault script, if there is one.
    pub faults: Option<FaultScript>,
    /// Inputs of the ranks.
    pub inputs: Inputs,
    /// Shape of each rank's result, by rank. `None` for ranks without a result.
    pub result_shapes: Vec<Option<Vec<u64>>>,
    /// Workload that is performed instead of the plan's job.
    pub workload: Option<Arc<Prepared>>,
}

/// Reads a fault script. Its contents are checked later, against the plan.
///
/// # Errors
/// The file cannot be read.
pub fn read_faults(file: &Path) -> Result<FaultFile, Failure> {
    let text = rackloom_plan::text_of(file, TextFile::FaultScript)
        .map_err(|Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint))?;
    Ok(FaultFile { name: file.display().to_string(), text })
}

/// Returns settings `KEY=VALUE` with their keys in full.
fn in_full(text: &str, settings: &[String]) -> Result<Vec<String>, Failure> {
    let full = |setting: &String| {
        rackloom_plan::full_setting(text, setting)
            .map_err(|line| Failure::of_line(Exit::BadInput, &line).at(format!("--set {setting}")))
    };
    settings.iter().map(full).collect()
}

impl From<Source> for RackRequest {
    fn from(source: Source) -> Self {
        Self { source }
    }
}

impl RackRequest {
    /// Reads a rack file.
    ///
    /// # Errors
    /// The file cannot be read, or a setting has a key that is the end of several keys.
    pub fn read(file: &Path, overrides: &Overrides) -> Result<Self, Failure> {
        let text = rackloom_plan::text_of(file, TextFile::Rack)
            .map_err(|Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint))?;
        let set = in_full(&text, &overrides.set)?;
        let source = Source {
            name: file.display().to_string(),
            text: rackloom_plan::with_settings(&text, &set),
            key: KeyLocation::beside(file),
            command: String::new(),
            overrides: Overrides { set, ..overrides.clone() },
            wire: None,
            force_wire: false,
            process_seats: ProcessSeats::None,
            host: None,
            netns_names: false,
            rack: None,
            arrays: ArrayOptions::default(),
            capture: CaptureOptions::default(),
            recording: Recording::default(),
            faults: None,
            snapshots: SnapshotOrders::default(),
            workload: None,
        };
        Ok(Self { source })
    }

    /// Returns the request in the form that crosses process boundaries.
    #[must_use]
    pub fn into_source(self) -> Source {
        self.source
    }

    /// Returns the request in the form that crosses process boundaries.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Adds the command line, for the report.
    #[must_use]
    pub fn with_command(mut self, command: String) -> Self {
        self.source.command = command;
        self
    }

    /// Adds the options of racks of processes.
    ///
    /// # Errors
    /// The fault script cannot be read, or a directory has no absolute path.
    pub fn for_processes(mut self, processes: &ProcessOptions) -> Result<Self, Failure> {
        self.source.wire = processes.wire;
        self.source.force_wire = processes.force_wire;
        self.source.host.clone_from(&processes.host);
        self.source.netns_names = processes.netns_names;
        self.with_faults(processes.faults.as_deref())?
            .with_arrays(&processes.arrays)?
            .with_capture(&processes.capture)
            .map(|request| request.with_recording(processes.recording))
    }

    /// Adds process seats to each GPU node.
    #[must_use]
    pub fn with_process_seats(mut self, process_seats: ProcessSeats) -> Self {
        self.source.process_seats = process_seats;
        self
    }

    /// Adds a fault script, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn with_faults(mut self, file: Option<&Path>) -> Result<Self, Failure> {
        self.source.faults = file.map(read_faults).transpose()?;
        Ok(self)
    }

    /// Adds snapshots of the job of `plan`.
    ///
    /// # Errors
    /// The job has no snapshots, or a set of snapshots cannot be restored.
    pub fn with_snapshots(mut self, options: &CheckpointOptions, plan: &Plan) -> Result<Self, Failure> {
        self.source.snapshots = snapshots::prepare(options, plan)?;
        Ok(self)
    }

    /// Adds a workload, if there is one. It is performed instead of the job of the rack file.
    #[must_use]
    pub fn with_workload(mut self, workload: Option<WorkloadFile>) -> Self {
        self.source.workload = workload;
        self
    }

    /// Names the rack. `None` keeps the name of the rack file.
    #[must_use]
    pub fn named(mut self, rack: Option<String>) -> Self {
        self.source.rack = rack;
        self
    }

    /// Adds directories of arrays. They become absolute, because seats open them again.
    ///
    /// # Errors
    /// A directory has no absolute path.
    pub fn with_arrays(mut self, arrays: &ArrayOptions) -> Result<Self, Failure> {
        let absolute = |path: &Option<PathBuf>| {
            let absolute = path.as_deref().map(std::path::absolute).transpose();
            absolute.map_err(|error| Failure::bad_input(error.to_string()))
        };
        self.source.arrays =
            ArrayOptions { input: absolute(&arrays.input)?, output: absolute(&arrays.output)? };
        Ok(self)
    }

    /// Adds time series and operations that the run records.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Self {
        self.source.recording = recording;
        self
    }

    /// Adds captures. Their directory becomes absolute, because seats write to it.
    ///
    /// # Errors
    /// The directory has no absolute path.
    pub fn with_capture(mut self, capture: &CaptureOptions) -> Result<Self, Failure> {
        self.source.capture = capture::absolute(capture)?;
        Ok(self)
    }

    /// Builds the plan and the inputs, and checks them. Does not check that the job can run.
    ///
    /// # Errors
    /// Mistakes of the rack file, the options, the fault script or the arrays.
    pub fn work(&self) -> Result<Work, Failure> {
        self.work_judged_by(|_| Vec::new())
    }

    /// Builds the plan and the inputs, and checks that the job can run. Objections to the job of the rack
    /// file name their position in the file.
    ///
    /// # Errors
    /// Those of [`Self::work`], and objections to the job.
    pub fn possible_work(&self) -> Result<Work, Failure> {
        let is_job_of_file =
            self.source.overrides.job == JobOptions::default() && self.source.workload.is_none();
        if is_job_of_file && self.source.arrays.input.is_none() {
            return self.work_judged_by(|plan| rackloom_jobs::objections(plan, &Inputs::Pattern));
        }
        let work = self.work()?;
        match rackloom_jobs::objections(&work.plan, &work.inputs).into_iter().next() {
            Some(first) => Err(Failure::bad_input(first.message).hint(first.hint)),
            None => Ok(work),
        }
    }

    /// Builds the plan and the inputs for processes on this machine. Checks memory, key and hosts, and makes
    /// the directories of results and captures.
    ///
    /// # Errors
    /// Those of [`Self::possible_work`]. Memory, key or hosts of this machine do not fit the rack.
    pub fn ready_work(&self, processes: &ProcessOptions) -> Result<Work, Failure> {
        workload::must_fit_orders(&self.source)?;
        let work = self.possible_work()?;
        must_not_reduce_in_switches(&work.plan)?;
        let here = Here::of(&work.plan, self.source.host.as_deref())?;
        if let Some(path) = &work.plan.security.key_file {
            // Members read the key again. An error found here is reported once.
            RackKey::read(path).map_err(|error| Failure::bad_input(error.to_string()))?;
        }
        let followed = work.faults.iter().flat_map(FaultScript::followed);
        if let Some(node) = followed.into_iter().find(|node| here.has_link_to_other_host(&work.plan, *node)) {
            let name = &work.plan.members[node.index()].name;
            let what = format!(
                "the fault script kills {name} for a time, and its link to another host cannot be made again"
            );
            return Err(
                Failure::bad_input(what).hint("leave `for` out of its `kill`, or kill another member")
            );
        }
        capacity::must_suffice(&work.plan, &here)?;
        arrays::make_destination(&processes.arrays, &work.is_written())?;
        capture::make_directory(&self.source.capture)?;
        Ok(work)
    }

    fn work_judged_by(&self, judge: impl Fn(&Plan) -> Vec<Objection>) -> Result<Work, Failure> {
        // The size check must examine the job that will run.
        let options = workload::job_options(&self.source)?;
        let is_another_job = overrides::changes_size(&options) || self.source.arrays.input.is_some();
        let plan = match is_another_job {
            true => Plan::parse_for_another_job(&self.source.text, &self.source.name),
            false => Plan::parse_judged(&self.source.text, &self.source.name, judge),
        };
        let mut plan = plan.map_err(|error| Failure::bad_input(error.without_heading().to_string()))?;
        overrides::apply_to_job(&options, &mut plan)?;
        self.source.apply(&mut plan);
        let arrays = self.take_arrays(&mut plan)?;
        plan.check().map_err(|error| {
            Failure::bad_input(error.without_heading().to_string()).at("the command line")
        })?;
        let faults = self.source.take_faults(&mut plan);
        let faults = faults.map_err(|error| Failure::bad_input(error.without_heading().to_string()))?;
        let result_shapes = result_shapes(&plan, arrays.as_ref());
        let inputs = arrays.map_or(Inputs::Pattern, |arrays| Inputs::Arrays(Arc::new(arrays)));
        let workload = workload::prepared(&self.source, &mut plan)?;
        Ok(Work { plan, faults, inputs, result_shapes, workload })
    }

    /// Builds the plan alone.
    ///
    /// # Errors
    /// Those of [`Self::work`].
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.work().map(|work| work.plan)
    }

    /// Opens the user's arrays, if there are any. The plan takes type and size from them.
    fn take_arrays(&self, plan: &mut Plan) -> Result<Option<InputArrays>, Failure> {
        let ArrayOptions { input, output } = &self.source.arrays;
        let JobKind::Collective(mut job) = plan.job.kind else {
            return match input.as_ref().or(output.as_ref()) {
                None => Ok(None),
                Some(_) => Err(Failure::bad_input(format!("job {} takes no arrays", plan.job.kind.name()))
                    .hint("use --job collective")),
            };
        };
        if let (false, Some(directory)) = (job.collective.moves_data(), input.as_ref().or(output.as_ref())) {
            let what = format!("{} takes and gives no arrays", job.collective);
            return Err(Failure::bad_input(what).at_path(directory).hint("leave --input and --output out"));
        }
        if let (true, Some(directory)) = (job.algorithm.kinds().len() > 1, output) {
            let what =
                format!("--output stores the results of one algorithm, and {} are measured", job.algorithm);
            return Err(Failure::bad_input(what).at_path(directory).hint("name one algorithm"));
        }
        let Some(directory) = input else { return Ok(None) };
        let options = &self.source.overrides.job;
        if options.bytes.is_some() || options.sizes.is_some() {
            return Err(Failure::bad_input(
                "--bytes and --sizes have no effect with --input: the arrays have a size",
            )
            .hint("leave them out"));
        }
        let (ranks, collective) = (plan.endpoint_count(), collective(&job));
        let arrays =
            InputArrays::open(directory, collective, ranks, options.element).map_err(|problems| {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                Failure::bad_input(lines.join("\n")).at_path(directory)
            })?;
        let per_rank = arrays.elements() * arrays.element.bytes() as u64;
        let whole = match job.collective {
            CollectiveKind::AllGather | CollectiveKind::Gather => per_rank.saturating_mul(ranks as u64),
            _ => per_rank,
        };
        job.element = arrays.element;
        job.sweep.sizes = Sizes::one(whole);
        plan.change(|plan| plan.job.kind = JobKind::Collective(job));
        Ok(Some(arrays))
    }
}

impl Work {
    /// Returns, by rank, true for each rank that has a result.
    #[must_use]
    pub fn is_written(&self) -> Vec<bool> {
        self.result_shapes.iter().map(Option::is_some).collect()
    }
}

/// Refuses a job that needs reduction units. Switches have them in virtual time only.
fn must_not_reduce_in_switches(plan: &Plan) -> Result<(), Failure> {
    if plan.reducing_switches().is_none() {
        return Ok(());
    }
    let what = "algorithm in-switch needs switches that reduce, which processes are not";
    Err(Failure::bad_input(what).hint("use `rackloom sim`, or name another algorithm"))
}

/// Returns the shape of each rank's result: from the shape of the arrays, or flat without arrays.
fn result_shapes(plan: &Plan, arrays: Option<&InputArrays>) -> Vec<Option<Vec<u64>>> {
    let ranks = plan.endpoint_count();
    let collective = match &plan.job.kind {
        JobKind::Collective(job) => Some(collective(job)),
        _ => None,
    };
    let Some(collective) = collective else { return vec![None; ranks] };
    let flat = |rank| {
        // The ranks with a result do not depend on the size. The number of elements comes with the result.
        (collective.output_elements(rank, ranks, ranks) > 0).then(Vec::new)
    };
    let shape = |rank| match arrays {
        Some(arrays) => result_shape(collective, rank, ranks, &arrays.shape),
        None => flat(rank),
    };
    (0..ranks).map(shape).collect()
}

/// Returns the collective that the plan names.
#[must_use]
pub const fn collective(job: &CollectivePlan) -> Collective {
    job.collective.at(job.root.0 as usize)
}
