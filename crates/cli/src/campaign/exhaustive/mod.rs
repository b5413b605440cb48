//! `rackloom campaign --exhaustive`: every failure of one part, or of two at once, in virtual time and in parallel.
//!
//! Each case is a fault script ([`cases`]) with an outcome ([`outcome`]). With failure and repair rates of the parts, the outcomes give the
//! expected goodput ([`goodput`]).

mod cases;
mod goodput;
mod outcome;
mod page;
mod result;
mod show;

use std::time::{Duration, Instant};

use rackloom_experiments::parallel::{self, processors};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{CollectivePlan, JobKind, Plan};
use rackloom_runtime::machine::interruption::Interruption;
use rackloom_runtime::request::work::Work;

use self::cases::{Case, Part};
use self::goodput::State;
use self::outcome::{Kind, Outcome};
pub(super) use self::result::DisplayedCase;
pub(crate) use self::result::ExhaustiveResult;
use self::result::{CaseResult, ExpectedResult, PartResult};
use super::trial::Range;
use crate::arguments::{CampaignArguments, Engine, Failing, PartKind, passed_on};
use crate::exit::Exit;
use crate::failure::{Failure, print_to_stderr};
use crate::reporting::{print_text, write_json, write_page};
use crate::tally::Tally;
use crate::time_limit;

/// Returns the notes: runs without a warm-up contain the time until the failure is detected.
fn notes(plan: &Plan) -> Vec<String> {
    let warms_up = match &plan.job.kind {
        JobKind::Collective(CollectivePlan { sweep, .. })
        | JobKind::Latency(sweep)
        | JobKind::Bandwidth(sweep) => sweep.warm_up > 0,
        JobKind::Litmus | JobKind::Traffic(_) | JobKind::None => false,
    };
    let note = "the job has no warm-up: times and goodput contain the detection of the failure, and not only the lost capacity";
    if warms_up { Vec::new() } else { vec![note.to_owned()] }
}

/// Runs every failure and prints the outcomes.
pub(super) fn run(arguments: &CampaignArguments, work: Work) -> Result<Exit, Failure> {
    if arguments.engine == Engine::Processes {
        return Err(
            Failure::bad_input("every failure is run in virtual time only").hint("leave `--engine` out")
        );
    }
    let ratios = Ratios::of(arguments)?;
    let parts = cases::parts(&work.plan, &arguments.exhaustive);
    let cases = cases::cases(&parts, &arguments.exhaustive)?;
    let range = Range::prepare(work)?;
    let threads = arguments.threads.map_or_else(processors, usize::from);
    let begun = Instant::now();
    let healthy_ns = healthy_ns(&range)?;
    must_suffice(begun.elapsed(), cases.len(), threads, arguments.time_limit)?;
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen to signals", error))?;
    print_to_stderr(&format!("{} failures, {threads} at once", cases.len()));
    let search =
        Search { range: &range, parts: &parts, cases: &cases, healthy_ns, interruption: &interruption };
    let outcomes = search.run(threads)?;
    let result = ExhaustiveResult {
        version: env!("CARGO_PKG_VERSION"),
        rack: arguments.file.display().to_string(),
        config_hash: format!("{:016x}", range.plan().config_hash),
        options: passed_on(CampaignArguments::OWN, &[]),
        healthy_ns,
        cases: cases.len(),
        survived: count(&outcomes, Kind::Survived),
        degraded: count(&outcomes, Kind::Degraded),
        lost: count(&outcomes, Kind::Lost),
        wrong: count(&outcomes, Kind::Wrong),
        outcomes: outcomes.iter().map(|(case, outcome)| search.case_result(case, outcome)).collect(),
        notes: notes(range.plan()),
        expected: ratios.map(|ratios| expected(&ratios.of_parts(&parts), &parts, &outcomes, healthy_ns)),
    };
    print_text(&arguments.output, &show::text(&result))?;
    if let Some(path) = &arguments.junit {
        super::junit::write_failures(path, &result)?;
    }
    write_json(&arguments.output, &result)?;
    write_page(&arguments.page, || page::page(&result))?;
    Ok(match result.wrong {
        _ if interruption.is_requested() => Exit::Interrupted,
        0 => Exit::Pass,
        _ => Exit::Fail,
    })
}

/// Outcome of each case that ran, in the order of the cases.
type Outcomes = Vec<(Case, Outcome)>;

fn count(outcomes: &Outcomes, kind: Kind) -> usize {
    outcomes.iter().filter(|(_, outcome)| outcome.kind == kind).count()
}

/// Returns the time of the job without failures, in nanoseconds.
fn healthy_ns(range: &Range) -> Result<f64, Failure> {
    let nothing = FaultScript { name: "nothing".to_owned(), ..FaultScript::default() };
    let judged = range.report_of(&nothing);
    let judged = judged.map_err(|reasons| Failure::new(Exit::Fail, reasons.join("; ")))?;
    Ok(outcome::time_ns(&judged.report).max(1.0))
}

fn must_suffice(one: Duration, cases: usize, threads: usize, limit: Duration) -> Result<(), Failure> {
    let estimate = Duration::from_secs_f64(one.as_secs_f64() * cases as f64 / threads as f64);
    let what = format!("the campaign of {cases} failures");
    time_limit::must_suffice(&what, estimate, limit, "fail one part at a time, such as links:1")
}

/// Runs of all cases.
struct Search<'a> {
    range: &'a Range,
    parts: &'a [Part],
    cases: &'a [Case],
    healthy_ns: f64,
    interruption: &'a Interruption,
}

impl Search<'_> {
    fn run(&self, threads: usize) -> Result<Outcomes, Failure> {
        // All scripts differ in names only, so the first one shows if the job takes them.
        if let Some(case) = self.cases.first() {
            let failed = |error: rackloom_plan::PlanError| {
                Failure::bad_input(format!(
                    "the job of the rack takes no failures: {}",
                    error.without_heading()
                ))
                .hint("name a job, such as --collective all-reduce")
            };
            cases::script(self.range.plan(), &self.parts_of(case)).map_err(failed)?;
        }
        let tally = Tally::begin("failures", self.cases.len() as u64, threads);
        let is_over = || self.interruption.is_requested();
        let outcome = |case: &Case| self.outcome(case);
        let outcomes = parallel::map_until(self.cases, threads, is_over, outcome, |_| tally.add());
        let outcomes = self.cases.iter().zip(outcomes);
        Ok(outcomes.filter_map(|(case, outcome)| Some((case.clone(), outcome?))).collect())
    }

    fn outcome(&self, case: &Case) -> Outcome {
        let plan = self.range.plan();
        match cases::script(plan, &self.parts_of(case)) {
            Ok(script) => Outcome::of(self.range.report_of(&script), plan.endpoint_count(), self.healthy_ns),
            Err(error) => Outcome { kind: Kind::Wrong, time_ns: None, reason: error.to_string() },
        }
    }

    fn parts_of(&self, case: &Case) -> Vec<&Part> {
        case.parts.iter().filter_map(|index| self.parts.get(*index)).collect()
    }

    fn case_result(&self, case: &Case, outcome: &Outcome) -> CaseResult {
        let parts = self.parts_of(case);
        CaseResult {
            parts: parts.iter().map(|part| part.name.clone()).collect(),
            kind: kinds(&parts),
            outcome: outcome.kind,
            time_ns: outcome.time_ns,
            goodput: outcome.goodput(self.healthy_ns),
            reason: outcome.reason.clone(),
            script: cases::text(self.range.plan(), &parts),
        }
    }
}

/// Returns the kinds of parts that fail together, as on the command line: `links`, or `links+switches`.
fn kinds(parts: &[&Part]) -> String {
    let mut kinds: Vec<_> = parts.iter().map(|part| part.kind.name()).collect();
    kinds.dedup();
    kinds.join("+")
}

/// Failure rate times time to repair, by kind of part.
struct Ratios(Vec<(PartKind, f64)>);

impl Ratios {
    /// Returns the ratios that the options state, or `None` if they state no failure rates.
    fn of(arguments: &CampaignArguments) -> Result<Option<Self>, Failure> {
        let mut ratios = Vec::new();
        for rate in &arguments.failure_rates {
            let name = rate.kind.name();
            let runs_alone = arguments.exhaustive.contains(&Failing::One(rate.kind));
            if !runs_alone {
                let message = format!("{name} have a failure rate and do not fail alone in this campaign");
                return Err(Failure::bad_input(message).hint(format!("add --exhaustive {name}:1")));
            }
            let of_kind = arguments.repair.iter().find(|repair| repair.kind == Some(rate.kind));
            let of_all = || arguments.repair.iter().find(|repair| repair.kind.is_none());
            let Some(repair) = of_kind.or_else(of_all) else {
                let hint = format!("add --repair {name}=4h");
                return Err(Failure::bad_input(format!("{name} have no time to repair")).hint(hint));
            };
            ratios.push((rate.kind, rate.per_hour * repair.time.as_secs_f64() / 3600.0));
        }
        Ok((!ratios.is_empty()).then_some(Self(ratios)))
    }

    fn of_parts(&self, parts: &[Part]) -> Vec<f64> {
        let ratio =
            |part: &Part| self.0.iter().find(|(kind, _)| *kind == part.kind).map_or(0.0, |(_, ratio)| *ratio);
        parts.iter().map(ratio).collect()
    }
}

fn expected(ratios: &[f64], parts: &[Part], outcomes: &Outcomes, healthy_ns: f64) -> ExpectedResult {
    let states: Vec<State> = outcomes
        .iter()
        .map(|(case, outcome)| State { parts: case.parts.clone(), goodput: outcome.goodput(healthy_ns) })
        .collect();
    let found = goodput::expected(ratios, &states);
    let mut ranking: Vec<PartResult> = parts
        .iter()
        .zip(&found.loss_by_part)
        .map(|(part, loss)| PartResult { part: part.name.clone(), kind: part.kind.name(), loss: *loss })
        .collect();
    ranking.sort_by(|one, other| other.loss.total_cmp(&one.loss));
    ExpectedResult {
        goodput_least: found.least,
        goodput_most: found.most,
        covered: found.covered,
        healthy: found.healthy,
        parts: ranking,
    }
}
