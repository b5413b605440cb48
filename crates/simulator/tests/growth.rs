//! Work of whole runs by the number of members: allocations, events and frames. Time is never measured.
//!
//! A run is everything from the text of a rack to the results of its jobs, on a star without payload. The exponent of a count is the slope of
//! its logarithm over that of the number of members, by least squares.
//!
//! To bring up a rack of n members is n^2 work: each member learns of each other one from a report of the other's link. So the bring-up has
//! bounds for each pair of members. All other tests leave it out: they subtract the counts of a rack of equal size without a job.

mod common;

use common::counted::{Counted, allocated};
use common::plan;
use rackloom_jobs::collective::Inputs;
use rackloom_simulator::Simulation;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const MEMBERS: [u16; 4] = [32, 64, 128, 256];
/// Bytes that all members of a permutation send together.
const PERMUTED_BYTES: u64 = 32 << 20;

/// Counts of one run: allocations, allocated bytes, events and frames.
type Work = [f64; 4];

const NAMES: [&str; 4] = ["allocations", "allocated bytes", "events", "frames"];
const EVENTS: usize = 2;
const FRAMES: usize = 3;

/// Returns the counts of a run of a job on a star.
fn run(nodes: u16, job: &str) -> Work {
    let before = allocated();
    let star = format!("shape: {{star: {{nodes: {nodes}}}}}, link: {{rate: 400Gbit/s}}");
    let plan = plan(&format!("{{name: growth, payload: elided, {star}, job: {job}}}"));
    let jobs = rackloom_jobs::build_all(&plan, 1, &Inputs::Pattern);
    let mut simulation = Simulation::new(&plan, 1, jobs);
    let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    for mut job in simulation.take_jobs() {
        let result = job.result();
        assert!(result.is_pass(), "{result:?}");
    }
    let after = allocated();
    let counts = [
        after.count - before.count,
        after.bytes - before.bytes,
        outcome.statistics.events_handled,
        outcome.statistics.frames_delivered,
    ];
    counts.map(|count| count as f64)
}

/// Returns the counts of a job without those of the bring-up, for each number of members.
fn without_bring_up(job: impl Fn(u16) -> String) -> [Work; 4] {
    MEMBERS.map(|nodes| {
        let (whole, bring_up) = (run(nodes, &job(nodes)), run(nodes, "none"));
        std::array::from_fn(|count| whole[count] - bring_up[count])
    })
}

/// Returns the exponent of counts for [`MEMBERS`].
fn exponent(counts: [f64; 4]) -> f64 {
    let members = MEMBERS.map(|nodes| f64::from(nodes).ln());
    let counts = counts.map(f64::ln);
    let mean = |values: [f64; 4]| values.iter().sum::<f64>() / 4.0;
    let (member, count) = (mean(members), mean(counts));
    let products = members.iter().zip(counts).map(|(x, y)| (x - member) * (y - count));
    products.sum::<f64>() / members.iter().map(|x| (x - member).powi(2)).sum::<f64>()
}

/// Requires that no count grows faster than this. `per`: divisor of the counts of a run.
fn must_grow_less_than(exponent_max: f64, work: [Work; 4], per: impl Fn(Work) -> f64) {
    for (count, name) in NAMES.iter().enumerate() {
        let counts = work.map(|work| work[count] / per(work));
        let exponent = exponent(counts);
        println!("{name}: {counts:.2?}, exponent {exponent:.2}");
        assert!(exponent < exponent_max, "{name} grow with exponent {exponent}: {counts:?}");
    }
}

fn all_reduce(algorithm: &str) -> String {
    format!("{{collective: {{algorithm: {algorithm}, bytes: 256KiB, repetitions: 1, warm_up: 0}}}}")
}

/// The number of messages of a collective grows with the members, and so does that of the frames. What remains is the work of each frame.
fn must_not_grow_per_frame(job: &str) {
    must_grow_less_than(0.25, without_bring_up(|_| job.to_owned()), |work| work[FRAMES]);
}

/// Measured with 256 members: 4.1 allocations of 636 bytes, 0.07 events and 0.05 frames for each pair. The exponents are 1.6 and 1.7 for
/// allocations, and 1.05 for events and frames, because a frame carries many reports.
#[test]
fn a_bring_up_has_bounds_for_each_pair_of_members() {
    let work = MEMBERS.map(|nodes| run(nodes, "none"));
    must_grow_less_than(2.0, work, |_| 1.0);
    for count in [EVENTS, FRAMES] {
        assert!(exponent(work.map(|work| work[count])) < 1.2, "{} grow faster", NAMES[count]);
    }
    let pairs = f64::from(MEMBERS[3]).powi(2);
    for ((count, name), most) in work[3].iter().zip(NAMES).zip([5.0, 800.0, 0.1, 0.08]) {
        assert!(count / pairs < most, "{name} for each pair of members: {}", count / pairs);
    }
}

/// The memories of the nodes hold all bytes twice, at senders and receivers.
#[test]
fn constant_traffic_is_less_than_quadratic_work() {
    let job = |nodes: u16| {
        let bytes = PERMUTED_BYTES / u64::from(nodes);
        format!("{{traffic: {{pattern: permutation, bytes: {bytes}B, messages: 1}}}}")
    };
    let memories = [0.0, 2.0 * PERMUTED_BYTES as f64, 0.0, 0.0];
    let work = without_bring_up(job).map(|work| std::array::from_fn(|count| work[count] - memories[count]));
    must_grow_less_than(1.2, work, |_| 1.0);
}

#[test]
fn a_ring_is_constant_work_for_each_frame() {
    must_not_grow_per_frame(&all_reduce("ring"));
}

#[test]
fn halving_and_doubling_is_constant_work_for_each_frame() {
    must_not_grow_per_frame(&all_reduce("halving-doubling"));
}

#[test]
fn a_two_shot_all_reduce_is_constant_work_for_each_frame() {
    must_not_grow_per_frame(&all_reduce("two-shot"));
}

#[test]
fn a_chosen_barrier_is_constant_work_for_each_frame() {
    must_not_grow_per_frame("{collective: {collective: barrier, repetitions: 1, warm_up: 0}}");
}
