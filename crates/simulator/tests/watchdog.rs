//! A run never hangs.

mod common;

use common::{Counting, Idle, plan};
use rackloom_jobs::Job;
use rackloom_protocol::{Instant, NodeId};
use rackloom_simulator::{Action, MemberState, Simulation, StallCause};

const TEXT: &str = "{name: pair, shape: {ring: {nodes: 2}}, watchdog: 5ms}";

#[test]
fn a_job_that_waits_for_ever_is_named() {
    let jobs: Vec<Box<dyn Job>> = vec![Box::new(Idle), Box::new(Idle)];
    let stalled = Simulation::new(&plan(TEXT), 1, jobs).run().unwrap_err();
    assert_eq!(stalled.cause, StallCause::NoProgress { since: Instant::ZERO });
    assert!(stalled.at <= Instant(5_000_000 + 100_000_000), "{stalled}");
    assert!(stalled.to_string().contains("n1 job: the end of the world"), "{stalled}");
}

#[test]
fn a_run_without_jobs_is_over_at_once() {
    assert_eq!(Simulation::new(&plan(TEXT), 1, Vec::new()).run().unwrap().ended_at, Instant::ZERO);
}

#[test]
fn the_number_of_events_can_be_limited() {
    let mut simulation = Simulation::new(&plan(TEXT), 1, Counting::jobs(2, 1_000_000));
    simulation.limit_events(10_000);
    assert_eq!(simulation.run().unwrap_err().cause, StallCause::TooManyEvents { limit: 10_000 });
}

#[test]
fn a_run_can_be_ended_early_and_goes_on_as_if_it_had_not_been() {
    let whole = Simulation::new(&plan(TEXT), 1, Counting::jobs(2, 100_000)).run().unwrap();
    let mut simulation = Simulation::new(&plan(TEXT), 1, Counting::jobs(2, 100_000));
    let mut looks = 0;
    let ended = simulation.run_while(500, |_| {
        looks += 1;
        looks < 3
    });
    assert_eq!((ended.unwrap(), looks), (None, 3));
    assert!(simulation.now() < whole.ended_at, "the jobs are not over");
    assert_eq!(simulation.run_while(500, |_| true).unwrap(), Some(whole));
}

#[test]
fn the_run_waits_only_for_living_members() {
    let jobs: Vec<Box<dyn Job>> = vec![Box::new(Idle), Box::new(Idle)];
    let mut simulation = Simulation::new(&plan(TEXT), 1, jobs);
    for member in 0..2 {
        simulation.schedule(Instant(1_000), Action::Kill { member: NodeId(member) });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!((outcome.ended_at, outcome.members), (Instant(1_000), vec![MemberState::Killed; 2]));
}
