//! Simulation of a candidate: the collective in virtual time, without payload, with an array that may be smaller than the one of the search.

use std::path::Path;

use rackloom_collectives::Algorithm;
use rackloom_control::report::Verdict;

use super::candidate::{Rack, Size};
use super::model::{self, Work};
use crate::arguments::{RecommendArguments, sim_arguments};
use crate::failure::Failure;
use crate::sim;

/// Least and largest memory of a node, in MiB. Without payload it costs nothing.
const MEMORY_MIB: [u64; 2] = [64, 64 << 10];

/// Result of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Simulated {
    /// Size of the array that was simulated.
    pub(super) bytes: u64,
    /// Time of the whole array, in nanoseconds. If a smaller one was simulated, it is scaled by the estimates of both.
    pub(super) time_ns: f64,
}

/// Simulates a candidate.
///
/// # Errors
/// The run is refused, or fails. Or `goes_on` returned false, and the run was ended: the exit is `Interrupted`.
pub(super) fn simulate(
    file: &Path,
    frames_max: u64,
    work: Work,
    size: Size,
    rack: &Rack,
    algorithm: Algorithm,
    goes_on: &dyn Fn() -> bool,
) -> Result<Simulated, Failure> {
    let bytes = model::simulated_bytes(work, size, rack, algorithm, frames_max);
    let options = options(work, size, rack, algorithm, bytes);
    let (report, exit) = sim::simulate_while(&sim_arguments(file, &options)?, goes_on)?;
    let row = report.sweep.first().filter(|_| report.verdict == Verdict::Pass);
    let Some(row) = row else {
        let reason = report.failures.first().map_or("the report has no times", String::as_str);
        return Err(Failure::new(exit, reason));
    };
    let estimate = |bytes: u64| model::time_ns(Work { bytes, ..work }, size, rack, algorithm.kind());
    let scale = match (estimate(work.bytes), estimate(bytes)) {
        (Some(whole), Some(part)) if part > 0.0 => whole / part,
        _ => work.bytes as f64 / bytes.max(1) as f64,
    };
    Ok(Simulated { bytes, time_ns: row.time_us * 1000.0 * scale })
}

/// Returns the settings of a candidate: its shape, the memory that arrays of this size need, and the job of a pipeline.
fn settings(work: Work, size: Size, rack: &Rack, algorithm: Algorithm, bytes: u64) -> Vec<String> {
    // A rank may hold the arrays of all others beside input and output.
    let arrays_mib = (bytes >> 20).saturating_mul(size.nodes + 2).min(MEMORY_MIB[1]);
    let memory_mib = arrays_mib.next_power_of_two().clamp(MEMORY_MIB[0], MEMORY_MIB[1]);
    let mut settings = rack.settings.clone();
    settings.push(format!("defaults.memory={memory_mib}MiB"));
    if matches!(algorithm, Algorithm::RingPipeline { .. }) {
        // Segments belong to the algorithm, so the whole job replaces the one of the rack file.
        let (collective, segments) = (work.collective.name(), model::segments(algorithm));
        let algorithm = algorithm.kind().name();
        let job = format!("{{collective: {collective}, algorithm: {algorithm}, segments: {segments}}}");
        settings.push(format!("job={{collective: {job}}}"));
    }
    settings
}

/// Returns the options that name the collective.
fn of_work(work: Work, algorithm: Algorithm, bytes: u64) -> [(&'static str, String); 5] {
    [
        ("--collective", work.collective.name().to_owned()),
        ("--type", work.element.name().to_owned()),
        ("--bytes", bytes.to_string()),
        ("--algorithm", algorithm.kind().name().to_owned()),
        ("--payload", "elided".to_owned()),
    ]
}

/// Returns the options of `rackloom sim` for a candidate.
fn options(work: Work, size: Size, rack: &Rack, algorithm: Algorithm, bytes: u64) -> Vec<String> {
    let settings = settings(work, size, rack, algorithm, bytes).into_iter().map(|setting| ("--set", setting));
    let once = ["--repetitions", "--warm-up"].map(|option| (option, "1".to_owned()));
    let options = settings.chain(of_work(work, algorithm, bytes)).chain(once);
    options.flat_map(|(option, value)| [option.to_owned(), value]).collect()
}

/// Returns the command that runs the candidate.
pub(super) fn command(
    arguments: &RecommendArguments,
    work: Work,
    size: Size,
    rack: &Rack,
    algorithm: Algorithm,
) -> String {
    let settings = settings(work, size, rack, algorithm, work.bytes);
    let settings = settings.into_iter().map(|setting| format!(" --set '{setting}'"));
    let work = of_work(work, algorithm, work.bytes).map(|(option, value)| format!(" {option} {value}"));
    format!("rackloom sim {}{}{}", arguments.file.display(), settings.collect::<String>(), work.concat())
}
