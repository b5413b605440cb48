//! Printed schedules.

use rackloom_collectives::print::table;
use rackloom_collectives::{Algorithm, Collective, Request, build};

fn printed(
    collective: Collective,
    algorithm: Algorithm,
    ranks: usize,
    elements: usize,
    rounds_max: u32,
) -> String {
    let servers: Vec<usize> = (0..ranks).map(|rank| rank / 2).collect();
    let request = Request { collective, ranks, elements, servers: &servers, parts: &[] };
    table(&build(&request, algorithm).unwrap(), rounds_max)
}

#[test]
fn a_ring() {
    insta::assert_snapshot!(printed(Collective::AllReduce, Algorithm::Ring, 3, 7, u32::MAX));
}

#[test]
fn a_one_shot_with_fewer_elements_than_ranks() {
    insta::assert_snapshot!(printed(Collective::AllReduce, Algorithm::OneShot, 3, 1, u32::MAX));
}

#[test]
fn a_two_level_barrier() {
    insta::assert_snapshot!(printed(Collective::Barrier, Algorithm::TwoLevel, 4, 0, u32::MAX));
}

#[test]
fn a_long_schedule_is_cut() {
    insta::assert_snapshot!(printed(Collective::AllGather, Algorithm::Ring, 64, 64, 0));
}
