//! `rackloom recommend`: the largest rack whose collective reaches a bus bandwidth.
//!
//! Every shape and size of the search is a candidate ([`candidate`]). The cost model gives each its fastest algorithm and its time ([`model`]).
//! The best candidates are simulated ([`simulate`]), because the model knows nothing of frames, queues and the choice of planes. More nodes are
//! better, then fewer links and switches.

mod candidate;
mod model;
mod result;
mod show;
mod simulate;

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use rackloom_collectives::Algorithm;
use rackloom_collectives::choose::Estimate;

use self::candidate::{Rack, Size};
use self::model::Work;
use self::result::{CandidateResult, Recommendation};
use self::simulate::Simulated;
use crate::arguments::{RecommendArguments, Target};
use crate::exit::Exit;
use crate::failure::{Failure, print_to_stderr};
use crate::reporting;
use crate::tally::{Tally, processors};

/// Share of the target that an estimate must reach for a simulation: estimates are rough.
const WORTH_MIN: f64 = 0.9;

/// Searches, simulates and prints.
pub(crate) fn run(arguments: &RecommendArguments) -> Result<Exit, Failure> {
    reporting::must_be_writable(&arguments.output)?;
    let work = work(arguments)?;
    let mut candidates = candidates(arguments, work)?;
    // A stable sort: candidates of equal cost stay in the order of shapes and planes.
    candidates.sort_by_key(|one| (Reverse(one.size.nodes), one.links(), one.switches()));
    let worth: Vec<usize> = (0..candidates.len())
        .filter(|index| candidates[*index].of_target(work, arguments.target) >= WORTH_MIN)
        .take(usize::from(arguments.best))
        .collect();
    let simulated = simulated(arguments, work, &candidates, &worth);
    for (index, outcome) in simulated {
        candidates[index].simulated = Some(outcome.map_err(|failure| first_line(&failure.to_string())));
    }
    let result = recommendation(arguments, work, &candidates);
    reporting::print_text(&arguments.output, &show::text(&result, arguments.all))?;
    reporting::write_json(&arguments.output, &result)?;
    Ok(if result.recommended.is_some() { Exit::Pass } else { Exit::Fail })
}

fn work(arguments: &RecommendArguments) -> Result<Work, Failure> {
    let kind = arguments.collective;
    if !kind.moves_data() {
        return Err(
            Failure::bad_input(format!("{kind} has no bandwidth")).hint("name a collective that moves data")
        );
    }
    Ok(Work { collective: kind.at(0), element: arguments.element, bytes: arguments.bytes })
}

/// Candidate with everything that is known of it.
struct Candidate {
    size: Size,
    /// The rack, or the reason for which it cannot be built.
    rack: Result<Rack, String>,
    /// Fastest algorithm.
    estimate: Option<Estimate>,
    /// Result of the simulation, or the reason of its failure.
    simulated: Option<Result<Simulated, String>>,
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

fn candidates(arguments: &RecommendArguments, work: Work) -> Result<Vec<Candidate>, Failure> {
    let sizes = candidate::sizes(arguments);
    let mut candidates = Vec::new();
    let mut refused = None;
    for size in sizes {
        let rack = candidate::rack(&arguments.file, candidate::settings(arguments, size));
        let estimate =
            rack.as_ref().ok().and_then(|rack| model::best(work, size, rack, &arguments.algorithm));
        let rack = rack.map_err(|failure| {
            let line = first_line(&failure.to_string());
            refused.get_or_insert(failure);
            line
        });
        candidates.push(Candidate { size, rack, estimate, simulated: None });
    }
    // If no rack can be built, the mistake is one of the file and not of a size.
    match refused {
        Some(failure) if candidates.iter().all(|one| one.rack.is_err()) => Err(failure),
        _ if candidates.is_empty() => Err(Failure::bad_input("there are no candidates")
            .hint("name two nodes at least, such as --nodes 8..64")),
        _ => Ok(candidates),
    }
}

fn first_line(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// Simulates the candidates with these indices in parallel.
fn simulated(
    arguments: &RecommendArguments,
    work: Work,
    candidates: &[Candidate],
    worth: &[usize],
) -> Vec<(usize, Result<Simulated, Failure>)> {
    let threads = processors().min(worth.len().max(1));
    print_to_stderr(&format!(
        "{} candidates by their estimates, {} to simulate, {threads} at once",
        candidates.len(),
        worth.len()
    ));
    let tally = Tally::begin("simulations", worth.len() as u64, threads);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(index) = worth.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = &candidates[*index];
                    let (Ok(rack), Some(Estimate { algorithm, .. })) = (&one.rack, one.estimate) else {
                        continue;
                    };
                    let outcome = simulate::simulate(arguments, work, one.size, rack, algorithm);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((*index, outcome));
                    tally.add();
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn recommendation(arguments: &RecommendArguments, work: Work, candidates: &[Candidate]) -> Recommendation {
    let meets = |one: &Candidate| {
        matches!(one.simulated, Some(Ok(_))) && one.of_target(work, arguments.target) >= 1.0
    };
    Recommendation {
        version: env!("CARGO_PKG_VERSION"),
        rack: arguments.file.display().to_string(),
        collective: work.collective.name().to_owned(),
        bytes: work.bytes,
        target: target(arguments.target),
        candidates: candidates.iter().map(|one| result_of(arguments, work, one)).collect(),
        recommended: candidates.iter().position(meets),
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
        reason: reason(arguments, work, one),
        command: algorithm
            .map(|algorithm| simulate::command(arguments, work, one.size, algorithm))
            .unwrap_or_default(),
    }
}

/// Returns the reason for which a candidate is taken or left out.
fn reason(arguments: &RecommendArguments, work: Work, one: &Candidate) -> String {
    let percent = one.of_target(work, arguments.target) * 100.0;
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
        (Ok(_), None) if one.estimate.is_none() => "no algorithm can perform the collective".to_owned(),
        (Ok(_), None) if percent >= WORTH_MIN * 100.0 => {
            format!("not simulated: behind the best {} in the order", arguments.best)
        }
        (Ok(_), None) => format!("the estimate is {percent:.1}% of the target"),
    }
}
