//! Checks that a workload can be performed: references, messages, collectives, and the order between ranks.
//!
//! References are checked first, then the partners of messages and the agreement of collectives, then the order. A later check
//! needs the earlier ones, so a workload with a mistake of one kind is not searched for those of the next.
//!
//! Memory of a rank and time are not checked here.

mod collectives;
mod describe;
mod durations;
mod messages;
mod nodes;
mod order;
mod references;
mod report;

use crate::error::WorkloadError;
use crate::model::Workload;
pub use durations::check_durations;
use nodes::Numbers;
pub(crate) use references::check_group;
use report::Report;

/// Checks that each operation of a workload can begin and end.
///
/// # Errors
///
/// Returns mistakes in the order of ranks and operations, at most [`ERRORS_MAX`](crate::error::ERRORS_MAX). Those of references
/// come alone. Lost peers, unequal messages and collectives that do not agree come together. A deadlock comes alone, with its
/// circle of operations.
pub fn check(workload: &Workload) -> Result<(), Vec<WorkloadError>> {
    let mut report = Report::default();
    references::check(workload, &mut report);
    report.finish()?;
    let numbers = Numbers::new(workload);
    let mut report = Report::default();
    let partners = messages::matched(workload, &numbers, &mut report);
    let instances = collectives::agreed(workload, &numbers, &mut report);
    report.finish()?;
    order::check(workload, &numbers, &partners, &instances).map_err(|error| vec![error])
}

#[cfg(test)]
mod tests;
