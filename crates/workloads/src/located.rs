//! Mistakes of operations at the lines or records that state them.

use std::sync::Arc;

use crate::check::check;
use crate::error::{Place, WorkloadError, WorkloadErrors};
use crate::model::Workload;

/// For each rank the places of its operations. Ranks with equal operations may share them.
pub(crate) type Places = Vec<Arc<[Place]>>;

/// Checks a workload. Mistakes of operations stand at their places; the reason names rank and operation. `origin` returns the name
/// of the file of a rank. Only the mistakes of the first file that has any are returned.
pub(crate) fn check_at<'n>(
    workload: &Workload,
    places: &Places,
    origin: impl Fn(usize) -> &'n str,
) -> Result<(), WorkloadErrors> {
    check(workload).map_err(|errors| {
        let file = |error: &WorkloadError| match error.place {
            Place::Operation { rank, .. } => origin(rank),
            _ => origin(0),
        };
        let first = errors.first().map_or("", file);
        let same = errors.into_iter().filter(|error| file(error) == first);
        WorkloadErrors::new(first, same.map(|error| located(error, places)).collect())
    })
}

fn located(error: WorkloadError, places: &Places) -> WorkloadError {
    let Place::Operation { rank, operation } = error.place else { return error };
    let Some(place) = places.get(rank).and_then(|places| places.get(operation)) else { return error };
    let reason = format!("{}: {}", error.place, error.reason);
    WorkloadError::at(*place, reason, error.hint)
}
