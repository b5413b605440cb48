//! `rackloom recommend`: the largest rack whose collective reaches a bus bandwidth.
//!
//! Every shape and size of the search is a candidate ([`candidate`], [`form`]). Each is built ([`builds`]), and the cost model gives it its fastest
//! algorithm and its time ([`model`]).
//! The best candidates are simulated ([`simulate`], [`simulations`]), because the model knows nothing of frames, queues and the hash that chooses paths. More nodes are
//! better, then fewer links and switches.

mod bounded;
mod builds;
mod candidate;
mod form;
mod model;
mod result;
mod show;
mod simulate;
mod simulations;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rackloom_collectives::Algorithm;
use rackloom_collectives::choose::Estimate;
use rackloom_control::source::{JobOptions, Overrides};
use rackloom_runtime::machine::interruption::Interruption;
use rackloom_runtime::request::work::RackRequest;

use self::builds::{BuildEnd, Builds, Built};
use self::candidate::{Rack, Size};
use self::model::Work;
pub(crate) use self::result::Recommendation;
use self::result::{CandidateResult, State};
use self::simulate::Simulated;
use self::simulations::{End, Planned, Simulations};
use crate::arguments::{RecommendArguments, Target};
use crate::exit::Exit;
use crate::failure::{Failure, print_to_stderr};
use crate::files::Files;
use crate::reporting;

/// Share of the target that an estimate must reach for a simulation: estimates are rough.
const WORTH_MIN: f64 = 0.9;

/// Searches, simulates and prints.
pub(crate) fn run(arguments: &RecommendArguments) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let files =
        Files::default().reads("the rack file", [&arguments.file]).writes("--json", &arguments.output.json);
    files.must_differ()?;
    reporting::must_be_writable(&arguments.output)?;
    let work = work(arguments)?;
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen to signals", error))?;
    let mut candidates = candidates(arguments, work, begun, &interruption)?;
    // A stable sort: candidates of equal cost stay in the order of shapes and planes.
    candidates.sort_by_key(|one| (Reverse(one.size.nodes), one.links(), one.switches()));
    simulate_best(arguments, work, begun, &mut candidates, &interruption);
    let result = recommendation(arguments, work, &candidates, begun.elapsed());
    reporting::print_text(&arguments.output, &show::text(&result, arguments.all))?;
    reporting::write_json(&arguments.output, &result)?;
    Ok(match result.recommended {
        _ if interruption.is_requested() => Exit::Interrupted,
        Some(_) => Exit::Pass,
        None if result.is_complete => Exit::Fail,
        None => Exit::NoVerdict,
    })
}

fn work(arguments: &RecommendArguments) -> Result<Work, Failure> {
    let kind = arguments.collective;
    if !kind.moves_data() {
        return Err(
            Failure::bad_input(format!("{kind} has no bandwidth")).hint("name a collective that moves data")
        );
    }
    if !arguments.bytes.is_multiple_of(arguments.element.bytes() as u64) {
        must_be_possible(arguments)?;
    }
    Ok(Work { collective: kind.at(0), element: arguments.element, bytes: arguments.bytes })
}

/// Checks that the rack of the file takes the collective, as `rackloom sim` does.
fn must_be_possible(arguments: &RecommendArguments) -> Result<(), Failure> {
    let job = JobOptions {
        collective: Some(arguments.collective),
        element: Some(arguments.element),
        bytes: Some(arguments.bytes),
        ..JobOptions::default()
    };
    let overrides = Overrides { job, set: arguments.set.clone(), ..Overrides::default() };
    RackRequest::read(&arguments.file, &overrides)?.plan()?;
    Ok(())
}

/// Candidate with everything that is known of it.
struct Candidate {
    size: Size,
    /// The rack, or the reason for which it cannot be built or was not.
    rack: Result<Rack, String>,
    /// Fastest algorithm.
    estimate: Option<Estimate>,
    /// Time that its build took.
    build_time: Duration,
    /// Result of the simulation, or the reason of its failure.
    simulated: Option<Result<Simulated, String>>,
    /// Reason for which it was not built or not simulated, although it was to be.
    left_out: Option<String>,
}

impl Candidate {
    fn links(&self) -> usize {
        self.rack.as_ref().map_or(usize::MAX, |rack| rack.links)
    }

    fn switches(&self) -> usize {
        self.rack.as_ref().map_or(usize::MAX, |rack| rack.switches)
    }

    /// Returns the simulated time, or else the estimated one.
    fn time_ns(&self) -> Option<f64> {
        let simulated = self.simulated.as_ref().and_then(|outcome| outcome.as_ref().ok());
        simulated.map(|simulated| simulated.time_ns).or(self.estimate.map(|estimate| estimate.time_ns))
    }

    fn bus_gbps(&self, work: Work) -> Option<f64> {
        self.time_ns().map(|time_ns| model::bus_gbps(work, self.size, time_ns))
    }

    fn of_target(&self, work: Work, target: Target) -> f64 {
        match (&self.rack, self.bus_gbps(work)) {
            (Ok(rack), Some(gbps)) => model::of_target(target, self.size, rack, gbps),
            _ => 0.0,
        }
    }
}

/// Builds all candidates, as far as the time limit permits.
fn candidates(
    arguments: &RecommendArguments,
    work: Work,
    begun: Instant,
    interruption: &Interruption,
) -> Result<Vec<Candidate>, Failure> {
    let sizes = candidate::sizes(arguments);
    let ends = Builds::new(arguments, work, begun, interruption).run(&sizes);
    let mut candidates = Vec::new();
    let mut refused = None;
    for (size, end) in sizes.into_iter().zip(ends) {
        let (Built { rack, estimate, time: build_time }, left_out) = match end {
            BuildEnd::Built(built) => (built, None),
            BuildEnd::NotBuilt(reason) => {
                let rack = Err(Failure::bad_input(reason.clone()));
                (Built { rack, estimate: None, time: Duration::ZERO }, Some(reason))
            }
        };
        let rack = rack.map_err(|failure| {
            let line = first_line(&failure.to_string());
            if left_out.is_none() {
                refused.get_or_insert(failure);
            }
            line
        });
        candidates.push(Candidate { size, rack, estimate, build_time, simulated: None, left_out });
    }
    let is_refused = |one: &Candidate| one.rack.is_err() && one.left_out.is_none();
    // If no rack can be built, the mistake is one of the file and not of a size.
    match refused {
        Some(failure) if candidates.iter().all(is_refused) => Err(failure),
        _ if candidates.is_empty() => Err(Failure::bad_input("there are no candidates")
            .hint("name two nodes at least, such as --nodes 8..64")),
        _ => Ok(candidates),
    }
}

fn first_line(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// Simulates the best candidates, and notes their ends.
fn simulate_best(
    arguments: &RecommendArguments,
    work: Work,
    begun: Instant,
    candidates: &mut [Candidate],
    interruption: &Arc<Interruption>,
) {
    let worth = candidates.iter().enumerate().filter_map(|(index, one)| {
        let is_worth = one.of_target(work, arguments.target) >= WORTH_MIN;
        let (rack, estimate) = (one.rack.as_ref().ok()?, one.estimate?);
        let planned =
            Planned { size: one.size, rack, algorithm: estimate.algorithm, build_time: one.build_time };
        is_worth.then_some((index, planned))
    });
    let (indices, planned): (Vec<_>, Vec<_>) = worth.take(usize::from(arguments.best)).unzip();
    let not_built = candidates.iter().filter(|one| one.left_out.is_some()).count();
    let not_built = if not_built == 0 { String::new() } else { format!(", {not_built} not built") };
    print_to_stderr(&format!(
        "{} candidates by their estimates{not_built}, {} to simulate",
        candidates.len(),
        planned.len()
    ));
    let ends = Simulations::new(arguments, work, begun, interruption).run(&planned);
    for (index, end) in indices.into_iter().zip(ends) {
        let one = &mut candidates[index];
        match end {
            End::Done(simulated) => one.simulated = Some(Ok(simulated)),
            End::Failed(failure) => one.simulated = Some(Err(first_line(&failure.to_string()))),
            End::NotSimulated(reason) => one.left_out = Some(reason),
        }
    }
}

fn recommendation(
    arguments: &RecommendArguments,
    work: Work,
    candidates: &[Candidate],
    elapsed: Duration,
) -> Recommendation {
    let meets = |one: &Candidate| {
        matches!(one.simulated, Some(Ok(_))) && one.of_target(work, arguments.target) >= 1.0
    };
    Recommendation {
        version: env!("CARGO_PKG_VERSION"),
        rack: arguments.file.display().to_string(),
        collective: work.collective.name().to_owned(),
        bytes: work.bytes,
        target: target(arguments.target),
        target_of_node: match arguments.target {
            Target::OfNode(share) => Some(share),
            Target::Gbps(_) => None,
        },
        target_gbps: match arguments.target {
            Target::Gbps(gbps) => Some(gbps),
            Target::OfNode(_) => None,
        },
        candidates: candidates.iter().map(|one| result_of(arguments, work, one)).collect(),
        recommended: candidates.iter().position(meets),
        is_complete: candidates.iter().all(|one| one.left_out.is_none()),
        time_limit_s: arguments.time_limit.as_secs_f64(),
        elapsed_s: elapsed.as_secs_f64(),
    }
}

fn target(target: Target) -> String {
    match target {
        Target::OfNode(share) => format!("a bus bandwidth of {:.1}% of the links of a node", share * 100.0),
        Target::Gbps(gbps) => format!("a bus bandwidth of {gbps} GB/s"),
    }
}

fn result_of(arguments: &RecommendArguments, work: Work, one: &Candidate) -> CandidateResult {
    let gbps = one.bus_gbps(work);
    let simulated = one.simulated.as_ref().and_then(|outcome| outcome.as_ref().ok());
    let algorithm = one.estimate.map(|estimate| estimate.algorithm);
    CandidateResult {
        nodes: one.size.nodes,
        shape: one.size.shape.name(),
        sizes: one.size.form.sizes(),
        planes: one.size.planes,
        algorithm: algorithm.as_ref().map(Algorithm::to_string).unwrap_or_default(),
        links: one.rack.as_ref().map_or(0, |rack| rack.links),
        switches: one.rack.as_ref().map_or(0, |rack| rack.switches),
        estimated_ns: one.estimate.map(|estimate| estimate.time_ns),
        simulated_ns: simulated.map(|simulated| simulated.time_ns),
        simulated_bytes: simulated.map(|simulated| simulated.bytes),
        bus_gbps: gbps,
        of_node: gbps.zip(one.rack.as_ref().ok()).map(|(gbps, rack)| model::of_node(one.size, rack, gbps)),
        of_target: gbps.map(|_| one.of_target(work, arguments.target)),
        state: state(one),
        reason: reason(arguments, work, one),
        command: algorithm
            .zip(one.rack.as_ref().ok())
            .map(|(algorithm, rack)| simulate::command(arguments, work, one.size, rack, algorithm))
            .unwrap_or_default(),
    }
}

fn state(one: &Candidate) -> State {
    match &one.simulated {
        _ if one.left_out.is_some() && one.rack.is_err() => State::NotBuilt,
        _ if one.left_out.is_some() => State::NotSimulated,
        _ if one.estimate.is_none() => State::Impossible,
        Some(Ok(_)) => State::Simulated,
        Some(Err(_)) => State::Failed,
        None => State::Estimated,
    }
}

/// Returns the reason for which a candidate is taken or left out.
fn reason(arguments: &RecommendArguments, work: Work, one: &Candidate) -> String {
    let percent = one.of_target(work, arguments.target) * 100.0;
    if let Some(reason) = &one.left_out {
        let kind = if one.rack.is_err() { "built" } else { "simulated" };
        return format!("not {kind}: {reason}");
    }
    match (&one.rack, &one.simulated) {
        (Err(line), _) => format!("cannot be built: {line}"),
        (Ok(_), Some(Err(line))) => format!("the simulation fails: {line}"),
        (Ok(_), Some(Ok(simulated))) => {
            let scaled = if simulated.bytes == work.bytes {
                String::new()
            } else {
                format!(", scaled from {} B", simulated.bytes)
            };
            let verb = if percent >= 100.0 { "meets" } else { "misses" };
            format!("{verb} the target in the simulation: {percent:.1}% of it{scaled}")
        }
        (Ok(_), None) if one.estimate.is_none() && arguments.algorithm.is_empty() => {
            "no algorithm can perform the collective".to_owned()
        }
        (Ok(_), None) if one.estimate.is_none() => {
            "none of the named algorithms can perform the collective on this shape".to_owned()
        }
        (Ok(_), None) if percent >= WORTH_MIN * 100.0 => {
            format!("not simulated: behind the best {} in the order", arguments.best)
        }
        (Ok(_), None) => format!("the estimate is {percent:.1}% of the target"),
    }
}
