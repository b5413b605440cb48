//! Run of one drawn script in virtual time: from a number to a verdict.
//!
//! A first run without faults measures the duration of the job. Faults are drawn to begin within twice that
//! time. Simulation, report and judgement are those of `rackloom sim --faults`, so that the printed command
//! repeats a run.

use rackloom_jobs::report::{Report, Verdict};
use rackloom_plan::faults::{DrawLimits, FaultScript, draw};
use rackloom_plan::{Checks, Clock, Plan};
use rackloom_simulator::Simulation;

use rackloom_runtime::outcome::expectations;
use rackloom_runtime::request::work::Work;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::sim;

/// Maximum number of events of one run, far above those of any script of a campaign.
const EVENTS_MAX: u64 = 200_000_000;

/// Outcome of a run.
pub(super) enum Outcome {
    Pass,
    Fail(Vec<String>),
    /// The host had no processor for the members in time. The run neither passed nor failed.
    Starved,
    /// The campaign was interrupted while it ran.
    Cut,
}

/// Report of a run, judged.
pub(super) struct Judged {
    pub(super) report: Report,
    /// Failures that the report had before it was judged by the expectations of the script, which a clean error meets.
    pub(super) unjudged: Vec<String>,
}

/// Rack of the campaign, with the range from which its scripts are drawn.
pub(super) struct Range {
    work: Work,
    /// Plan with the end-to-end check, for scripts that flip bits.
    checked: Plan,
    reach: DrawLimits,
    /// Duration of the job without faults, in nanoseconds of virtual time.
    took_ns: u64,
}

impl Range {
    /// Runs the rack once without faults. A rack that fails by itself is an error.
    pub(super) fn prepare(work: Work) -> Result<Self, Failure> {
        sim::must_have_a_model(&work.plan)?;
        let mut checked = work.plan.clone();
        checked.change(|plan| plan.settings.checks = Checks::Always);
        // Links are suspected and lost within this time. Durations of faults are drawn from below to above
        // it.
        let last_ns = work.plan.timers_on(Clock::Virtual).detection_ns().saturating_mul(2);
        let reach = DrawLimits { begin_ns: 1, last_ns };
        let mut range = Self { work, checked, reach, took_ns: 0 };
        let no_faults = FaultScript { name: "nothing".into(), ..FaultScript::default() };
        let mut simulation = range.simulate(&no_faults);
        let (outcome, took_ns) = range.outcome(&no_faults, &mut simulation);
        if let Outcome::Fail(reasons) = outcome {
            return Err(Failure::new(
                Exit::Fail,
                format!("the rack fails without any fault: {}", reasons.join("; ")),
            )
            .hint("`rackloom sim` shows the whole report"));
        }
        range.took_ns = took_ns.max(1);
        range.reach.begin_ns = took_ns.saturating_mul(2).max(1);
        Ok(range)
    }

    /// Returns the duration of the job without faults, in nanoseconds of virtual time.
    pub(super) const fn took_ns(&self) -> u64 {
        self.took_ns
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.work.plan
    }

    /// Returns the script with this number, as it is read from its file, so that the file repeats it.
    pub(super) fn draw(&self, number: u64) -> FaultScript {
        let drawn = draw(&self.work.plan, number, self.reach);
        FaultScript::parse(&self.text(&drawn), "drawn", &self.work.plan).unwrap_or_else(|error| {
            debug_assert!(false, "every drawn script can be read: {error}");
            drawn
        })
    }

    /// Returns the text of the script's file.
    pub(super) fn text(&self, script: &FaultScript) -> String {
        script.to_text(&self.work.plan)
    }

    /// Runs the script. A panic counts as a failure. The simulation is dropped after it.
    pub(super) fn run(&self, script: &FaultScript) -> Outcome {
        let run = || {
            let mut simulation = self.simulate(script);
            self.outcome(script, &mut simulation).0
        };
        caught(run).unwrap_or_else(|message| Outcome::Fail(vec![message]))
    }

    /// Runs the script. Returns its judged report, or the reasons of a run that has none: it stalled or panicked.
    pub(super) fn report_of(&self, script: &FaultScript) -> Result<Judged, Vec<String>> {
        let run = || {
            let mut simulation = self.simulate(script);
            self.judged(script, &mut simulation).0
        };
        caught(run).unwrap_or_else(|message| Err(vec![message]))
    }

    fn plan_for(&self, script: &FaultScript) -> &Plan {
        if script.corrupts() { &self.checked } else { &self.work.plan }
    }

    fn simulate(&self, script: &FaultScript) -> Simulation {
        let plan = self.plan_for(script);
        let jobs = rackloom_jobs::build_all(plan, plan.settings.seed, &self.work.inputs);
        let mut simulation = Simulation::new(plan, plan.settings.seed, jobs);
        simulation.limit_events(EVENTS_MAX);
        simulation.watch();
        simulation.play(script, plan, plan.settings.seed);
        simulation
    }

    /// Runs the simulation. Returns the verdict, and the duration of the job without the healing after it.
    fn outcome(&self, script: &FaultScript, simulation: &mut Simulation) -> (Outcome, u64) {
        let (judged, took_ns) = self.judged(script, simulation);
        let outcome = match judged {
            Err(reasons) => Outcome::Fail(reasons),
            Ok(Judged { report, .. }) => match report.verdict {
                Verdict::Pass => Outcome::Pass,
                Verdict::Fail | Verdict::CouldNotTell | Verdict::Starved => Outcome::Fail(report.failures),
            },
        };
        (outcome, took_ns)
    }

    /// Runs the simulation. Returns its judged report, or who waits for what if it stalled, and the duration of the job without the healing
    /// after it.
    fn judged(
        &self,
        script: &FaultScript,
        simulation: &mut Simulation,
    ) -> (Result<Judged, Vec<String>>, u64) {
        let plan = self.plan_for(script);
        let stalled = simulation.run().err();
        let took_ns = simulation.now().0;
        let mut report = sim::report(plan, Some(script), simulation.take_results(), stalled.as_ref());
        if let Some(stalled) = stalled {
            return (Err(stalled.to_string().lines().map(str::to_owned).collect()), took_ns);
        }
        let unjudged = report.failures.clone();
        expectations::judge(plan, Some(script), &mut report);
        simulation.heal_and_probe();
        report.add_oracles(&simulation.verdicts());
        report.judge_refusals(expectations::refusals(Some(script)));
        (Ok(Judged { report, unjudged }), took_ns)
    }
}

/// Calls `run`. A panic becomes its message.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message =
            message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        format!("panicked: {message}")
    })
}
