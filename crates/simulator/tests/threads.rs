//! A rack on several threads has the results of the same rack on one.

mod common;

use common::{Counting, Idle, plan};
use rackloom_jobs::Job;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::recorder::{MemberSeries, Recording};
use rackloom_plan::Plan;
use rackloom_plan::impair::Direction;
use rackloom_protocol::NodeId;
use rackloom_simulator::parts::Threads;
use rackloom_simulator::{
    LinkStatistics, MemberState, RecordedEvent, Simulation, Stalled, Statistics, parts,
};

const STAR: &str =
    "{name: star, shape: {star: {nodes: 5, planes: 2}}, link: {delay: 700ns, rate: 100Gbit/s}}";
const RETRY: &str = "{name: retry, shape: {star: {nodes: 5}}, link: {delay: 300ns, rate: 100Gbit/s, loss: 2%, duplicate: 1%, llr: on}}";
const LOSSY: &str = "{name: lossy, shape: {ring: {nodes: 5}}, checks: always, \
    link: {delay: 1us, rate: 100Gbit/s, loss: 3%, corrupt: 1%, duplicate: 2%}}";
const THROUGH: &str = "{name: through, shape: {star: {nodes: 5}}, forwarding: {mode: cut-through, latency: 90ns}, \
    link: {length: 30m, rate: 400Gbit/s}}";
const FAR: &str = "{name: far, shape: {ring: {nodes: 5}}, link: {delay: 90us, rate: 10Gbit/s}}";

/// Results of a run that may not depend on the number of threads.
#[derive(Debug, PartialEq)]
struct Seen {
    ended_at: u64,
    trace_hash: u64,
    statistics: Statistics,
    events: Vec<RecordedEvent>,
    states: Vec<MemberState>,
    links: Vec<LinkStatistics>,
    reports: Vec<String>,
    stalled: Option<Stalled>,
}

/// Returns the results of a rack with these jobs on these threads; `None`: without division into parts.
fn seen(plan: &Plan, jobs: Vec<Box<dyn Job>>, threads: Option<Threads>) -> Seen {
    let (mut results, stalled) = if let Some(threads) = threads {
        parts::run(plan, 5, jobs, threads, &Recording::default(), 1_000, &|_, _| {})
    } else {
        let mut simulation = Simulation::new(plan, 5, jobs);
        let stalled = simulation.run().err();
        (simulation.take_results(), stalled)
    };
    let may_share = threads.is_some_and(|threads| threads.count > 1);
    assert!(may_share || results.windows_shared == 0, "one thread shares nothing");
    if threads.is_some_and(|threads| may_share && threads.shared_events_min == 0) {
        assert!(results.windows_shared > 0, "windows without a minimum are shared");
    }
    // The number of frames that exist at once depends on the order in which members are polled.
    results.statistics.frames_alive_max = 0;
    let directions = [Direction::Forward, Direction::Backward];
    let links = (0..plan.links.len() as u16)
        .flat_map(|edge| directions.map(|direction| *results.link(edge, direction)))
        .collect();
    let reports = results.members.iter_mut().filter_map(|member| member.job.as_mut());
    Seen {
        ended_at: results.ended_at.0,
        trace_hash: results.trace_hash,
        statistics: results.statistics,
        events: results.events.clone(),
        reports: reports.map(|job| format!("{:?}", job.result())).collect(),
        states: results.members.iter().map(|member| member.state).collect(),
        links,
        stalled,
    }
}

/// Compares a rack on one thread with the same rack on several.
fn compare(text: &str, jobs: impl Fn(&Plan) -> Vec<Box<dyn Job>>) -> Seen {
    let plan = plan(text);
    let alone = seen(&plan, jobs(&plan), None);
    for count in [1, 2, 3, 7] {
        // All windows are shared, some, or none.
        for shared_events_min in [0, 12, u64::MAX] {
            let threads = Threads { count, shared_events_min };
            let together = seen(&plan, jobs(&plan), Some(threads));
            assert_eq!(together.stalled, alone.stalled, "{text} on {threads:?}");
            assert_eq!(together, alone, "{text} on {threads:?}");
        }
    }
    alone
}

fn built(plan: &Plan) -> Vec<Box<dyn Job>> {
    rackloom_jobs::build_all(plan, 5, &Inputs::Pattern)
}

#[test]
fn racks_with_faults_on_their_links_have_the_same_results() {
    for text in [STAR, RETRY, LOSSY, THROUGH, FAR] {
        for rounds in [1, 7, 60] {
            let seen = compare(text, |_| Counting::jobs(5, rounds));
            assert_eq!(seen.states[..5], [MemberState::Finished; 5], "{text}");
            assert!(seen.statistics.frames_delivered > 20 * rounds, "{text}");
        }
    }
}

#[test]
fn collectives_have_the_same_results_with_and_without_payload() {
    for payload in ["full", "elided"] {
        for (shape, algorithm) in [
            ("star: {nodes: 12}", "two-shot"),
            ("ring: {nodes: 9}", "ring"),
            ("full-mesh: {nodes: 8}", "halving-doubling"),
        ] {
            let text = format!(
                "{{name: c, shape: {{{shape}}}, payload: {payload}, link: {{delay: 400ns, rate: 200Gbit/s}}, \
                 job: {{collective: {{algorithm: {algorithm}, bytes: 96KiB, repetitions: 2, warm_up: 1}}}}}}"
            );
            let seen = compare(&text, built);
            assert!(seen.stalled.is_none(), "{text}");
            assert_eq!(
                seen.reports.len(),
                seen.states.iter().filter(|state| **state == MemberState::Finished).count()
            );
        }
    }
}

#[test]
fn traffic_has_the_same_results_with_and_without_payload() {
    for payload in ["full", "elided"] {
        for pattern in ["permutation", "incast", "uniform", "pipeline"] {
            let text = format!(
                "{{name: t, shape: {{star: {{nodes: 24, planes: 2}}}}, payload: {payload}, link: {{delay: 250ns, rate: 400Gbit/s}}, \
                 job: {{traffic: {{pattern: {pattern}, bytes: 20KiB, messages: 6}}}}}}"
            );
            assert!(compare(&text, built).stalled.is_none(), "{text}");
        }
    }
}

#[test]
fn a_litmus_has_the_same_results() {
    let text = "{name: l, shape: {ring: {nodes: 6}}, link: {delay: 300ns, rate: 100Gbit/s, loss: 1%}, \
        job: {litmus: {bytes_max: 16KiB}}}";
    let seen = compare(text, built);
    assert!(seen.stalled.is_none() && seen.reports.len() == 6);
}

#[test]
fn a_stall_is_found_at_the_same_time_with_the_same_members() {
    let text = "{name: stalls, shape: {ring: {nodes: 5}}, watchdog: 3ms, link: {delay: 1us}}";
    let jobs = |_: &Plan| {
        let mut jobs = Counting::jobs(5, 20);
        jobs[3] = Box::new(Idle);
        jobs
    };
    let seen = compare(text, jobs);
    let stalled = seen.stalled.expect("a job without an end stalls");
    assert!(stalled.waiting.iter().any(|member| member.node == NodeId(3)), "{stalled}");
}

#[test]
fn racks_that_need_one_order_of_all_events_are_refused() {
    for (text, part) in [
        ("{name: r, shape: {ring: {nodes: 4}}, link: {delay: 1us, reorder: 1%}}", "reorders"),
        ("{name: r, shape: {ring: {nodes: 4}}, link: {delay: 0ns}}", "nanosecond"),
    ] {
        let objection = parts::objection(&plan(text)).unwrap_or_default();
        assert!(objection.contains(part), "{text}: {objection}");
    }
    assert_eq!(parts::objection(&plan(STAR)), None);
}

/// Returns the windows that two threads shared, and the events of the run.
fn shared(text: &str) -> (u64, u64) {
    let plan = plan(text);
    let (results, stalled) = parts::run(&plan, 5, built(&plan), 2, &Recording::default(), 1_000, &|_, _| {});
    assert_eq!(stalled, None, "{text}");
    (results.windows_shared, results.statistics.events_handled)
}

/// A window with little work costs more to hand over than to compute. Losses make many of them: most members wait.
#[test]
fn threads_share_windows_with_much_work_only() {
    let (windows, events) = shared(
        "{name: small, shape: {star: {nodes: 80}}, payload: elided, link: {delay: 1us, rate: 400Gbit/s, loss: 1%}, \
         job: {traffic: {pattern: uniform, messages: 10}}}",
    );
    assert!(events > 50_000 && windows * 2_000 < events, "{windows} windows of {events} events");
    let (windows, events) = shared(
        "{name: large, shape: {star: {nodes: 160}}, payload: elided, link: {delay: 1us, rate: 400Gbit/s}, \
         job: {traffic: {pattern: permutation, bytes: 1MB, messages: 1}}}",
    );
    assert!(windows > 10 && windows * 2_000 > events / 4, "{windows} windows of {events} events");
}

/// A thread that panics ends the run with its panic, and leaves none waiting.
#[test]
fn a_panic_on_one_thread_ends_the_run() {
    a_panic_ends_the_run(0);
    a_panic_ends_the_run(u64::MAX);
}

fn a_panic_ends_the_run(shared_events_min: u64) {
    let threads = Threads { count: 2, shared_events_min };
    let plan = plan(STAR);
    let look = |thread: usize, part: &Simulation| {
        assert!(thread == 0 || part.now().0 < 10_000, "the look of thread {thread} fails");
    };
    let run = std::panic::AssertUnwindSafe(|| {
        parts::run(&plan, 5, Counting::jobs(5, 50), threads, &Recording::default(), 100, &look)
    });
    let panic = std::panic::catch_unwind(run).expect_err("the look panics");
    let message = panic.downcast_ref::<String>().expect("a panic with a message");
    assert!(message.contains("the look of thread 1 fails"), "{message}");
}

/// Returns the series of all members of a lossy rack on this number of threads, and the frames that each port sent.
fn recorded(threads: usize, interval_ns: u64) -> (Vec<MemberSeries>, Vec<Vec<u64>>) {
    let plan = plan(RETRY);
    let recording = Recording { series: true, interval_ns: Some(interval_ns), operations: false };
    let mut jobs = rackloom_jobs::build_all(&plan, 5, &Inputs::Pattern);
    jobs.iter_mut().for_each(|job| job.observe(recording.of_operations(5)));
    let (results, stalled) = parts::run(&plan, 5, jobs, threads, &recording, 1_000, &|_, _| {});
    assert_eq!(stalled, None);
    let sent =
        results.members.iter().map(|member| member.ports.iter().map(|port| port.frames_sent).collect());
    let sent = sent.collect();
    (results.members.into_iter().filter_map(|member| member.series).collect(), sent)
}

#[test]
fn time_series_have_the_sums_of_the_counters_and_do_not_depend_on_the_number_of_threads() {
    let (series, sent) = recorded(1, 2_000);
    assert_eq!(series.len(), 6, "each member recorded");
    for (series, sent) in series.iter().zip(&sent) {
        let sums: Vec<u64> = series.ports.iter().map(|port| port.frames.iter().sum()).collect();
        assert_eq!(&sums, sent);
        assert!(series.ports.iter().all(|port| port.bytes.len() == series.intervals));
    }
    let operations: u64 = series.iter().flat_map(|series| &series.operations).sum();
    assert!(operations > 0 && series[0].ports[0].replayed.iter().sum::<u64>() > 0);
    assert_eq!(recorded(3, 2_000), (series, sent));
}

#[test]
fn time_series_of_a_long_run_have_a_bounded_number_of_intervals() {
    let (series, sent) = recorded(1, 1);
    assert!(series.iter().all(|series| series.intervals < 4_096 && series.interval_ns > 1));
    let sums: Vec<u64> = series[0].ports.iter().map(|port| port.frames.iter().sum()).collect();
    assert_eq!(sums, sent[0]);
}
