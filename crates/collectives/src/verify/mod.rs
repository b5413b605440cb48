//! Proof of a schedule: run on symbols instead of numbers, for every timing at once.
//!
//! Four questions, each in its file: is it well formed (`structure`); does it end, and what happens before what (`order`);
//! do two accesses of one element ever race (`races`); is every element of every output the reduction of exactly the
//! ranks that were promised (`symbolic`, `promise`). Because accesses that conflict are always ordered by messages, one
//! symbolic run speaks for all interleavings.
//!
//! Time and memory grow with ranks x steps x ranks; a ring of a thousand ranks is beyond it. No number is computed here:
//! arithmetic is proved in [`reduce`](crate::reduce).

mod finding;
mod order;
mod promise;
mod races;
mod structure;
mod symbolic;

pub use finding::Finding;
pub use promise::{Contributors, Promise, promised};

use crate::schedule::Schedule;

/// Properties of a proved schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of messages on the longest chain of messages that wait for each other: how often the step latency is paid.
    pub messages_deep: usize,
    /// True if no rank can finish before every rank has started, so that two sets of buffers may alternate without a barrier.
    pub synchronizing: bool,
    /// True if every output is reduced in ascending order of rank, as a reduction that does not commute needs.
    pub keeps_rank_order: bool,
}

/// Proves a schedule.
///
/// # Errors
/// The errors of the schedule. Later properties are checked only if the earlier ones hold.
pub fn verify(schedule: &Schedule) -> Result<Report, Vec<Finding>> {
    let steps_of = structure::check(schedule)?;
    let order = order::Order::establish(schedule, &steps_of)?;
    let mut findings = races::find(schedule, &steps_of, &order);
    let outcome = symbolic::run(schedule, &order);
    findings.extend(outcome.findings);
    let report = Report {
        messages_deep: order.messages_deep(),
        synchronizing: order.synchronizing(),
        keeps_rank_order: outcome.is_in_order,
    };
    if schedule.collective == crate::Collective::Barrier && !report.synchronizing {
        findings.push(Finding::BarrierLeaks);
    }
    if findings.is_empty() { Ok(report) } else { Err(findings) }
}
