//! Workload of a request: its text becomes what the ranks share, and the options of jobs are checked.

use std::borrow::Cow;
use std::sync::Arc;

use rackloom_control::source::{JobOptions, Source, WorkloadFile};
use rackloom_jobs::workload::{Prepared, WorkloadError};
use rackloom_plan::{AlgorithmList, JobName, Plan};
use rackloom_workloads::{Place, text};

use crate::outcome::failure::Failure;

/// Largest text of a workload that seats receive, in bytes. A start order holds it.
pub const TEXT_BYTES_MAX: usize = 32 << 20;

/// Returns the options of the plan's job. With a workload the rack file's job does not run, and its expectations do not
/// apply.
///
/// # Errors
/// A workload takes none of the options beside `--algorithm`.
pub(super) fn job_options(source: &Source) -> Result<Cow<'_, JobOptions>, Failure> {
    let options = &source.overrides.job;
    if source.workload.is_none() {
        return Ok(Cow::Borrowed(options));
    }
    let others = JobOptions { algorithm: None, ..options.clone() };
    if others != JobOptions::default() {
        return Err(Failure::bad_input("a workload takes no option of a job beside --algorithm")
            .hint("leave the others out: the workload has kinds and sizes"));
    }
    Ok(Cow::Owned(JobOptions { job: Some(JobName::None), ..JobOptions::default() }))
}

/// Returns the workload, prepared for the plan. Makes it part of the plan's configuration hash.
///
/// # Errors
/// The text is no workload, the rack cannot perform it, or an option has no effect on it.
pub(super) fn prepared(source: &Source, plan: &mut Plan) -> Result<Option<Arc<Prepared>>, Failure> {
    let Some(file) = &source.workload else { return Ok(None) };
    let algorithms = match &source.overrides.job.algorithm {
        None => AlgorithmList::AUTO,
        Some(names) => AlgorithmList::new(names).map_err(|objection| {
            Failure::bad_input(format!("--algorithm: {}", objection.message)).hint(objection.hint)
        })?,
    };
    let workload =
        text::read(&file.text, &file.name).map_err(|errors| Failure::bad_input(errors.to_string()))?;
    plan.set_workload(&text::write(&workload), &algorithms);
    let prepared = rackloom_jobs::prepare_workload(plan, workload, &algorithms).map_err(|error| {
        let reason = error.reason();
        Failure::bad_input(reason.message).at(location(file, &error)).hint(reason.hint)
    })?;
    Ok(Some(prepared))
}

/// Returns the place of a mistake: the file, and the line of the operation if it has one.
fn location(file: &WorkloadFile, error: &WorkloadError) -> String {
    let place = match error {
        WorkloadError::NoComputeRate { rank, operation, .. } => text::place_of(&file.text, *rank, *operation),
        _ => None,
    };
    match place {
        Some(place @ Place::Line { .. }) => format!("{}:{place}", file.name),
        _ => file.name.clone(),
    }
}

/// Checks that a workload is not too large for the start orders of seats.
///
/// # Errors
/// It is.
pub(super) fn must_fit_orders(source: &Source) -> Result<(), Failure> {
    match &source.workload {
        Some(file) if file.text.len() > TEXT_BYTES_MAX => {
            let what = format!(
                "the workload has {} bytes as text, and processes take at most {} MiB",
                file.text.len(),
                TEXT_BYTES_MAX >> 20
            );
            Err(Failure::bad_input(what)
                .at(file.name.as_str())
                .hint("use `rackloom sim`, or a workload of fewer operations"))
        }
        _ => Ok(()),
    }
}
