//! Tests of groups that choose their algorithms again.

#[path = "fabric/rig.rs"]
mod rig;

use std::thread;
use std::time::Duration;

use rackloom::fabric::*;
use rackloom_collectives::adapt::{Cause, EPOCH_RUNS, TRIAL_RUNS};
use rig::local;

const RACK: &str = "name: mesh\nshape: {full-mesh: {nodes: 3}}\n";
const ELEMENTS: usize = 64;
/// Longest time until the members have tried their algorithms, in calls.
const CALLS_MAX: usize = 60 * EPOCH_RUNS;
/// Delay of a member before each call, far above the time of a call.
const DELAY: Duration = Duration::from_millis(30);

/// Runs `act` on every node of the rack in a thread, as member of a group of all.
fn together<T: Send>(
    options: [GroupOptions; 3],
    act: impl Fn(&Group) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let nodes = local(RACK).into_nodes();
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter()
            .zip(options)
            .map(|(node, options)| scope.spawn(move || act(&Group::of_rack(node, options)?)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Gathers numbers that depend on member, call and position, and checks the result.
fn gather(group: &Group, call: usize) -> Result<(), Error> {
    let message = |rank: usize| (0..ELEMENTS).map(move |position| (rank * 1000 + call * 7 + position) as u32);
    let (mine, mut all) = (message(group.rank()).collect::<Vec<_>>(), vec![0; 3 * ELEMENTS]);
    group.all_gather(&mine, &mut all).wait()?;
    let expected: Vec<_> = (0..3).flat_map(message).collect();
    assert_eq!(all, expected, "call {call}");
    Ok(())
}

#[test]
fn members_try_the_same_algorithms_in_the_same_calls_after_one_has_become_slow() {
    let options = GroupOptions::default().adaptive().lanes(2);
    let ended = together([options; 3], |group| {
        let mut calls = 0;
        while group.rechoices().is_empty() && calls < CALLS_MAX {
            if group.rank() == 1 && calls >= 4 * EPOCH_RUNS {
                thread::sleep(DELAY);
            }
            gather(group, calls)?;
            // Another collective and size in the same lanes, which stays as it is.
            let mut sum = [1_i64, group.rank() as i64];
            group.all_reduce(&mut sum, ReduceOperation::Sum).wait()?;
            assert_eq!(sum, [3, 3], "call {calls}");
            calls += 1;
        }
        let mut sum = vec![1.5_f32; 3000];
        for _ in 0..2 * EPOCH_RUNS {
            sum.fill(1.5);
            group.all_reduce(&mut sum, ReduceOperation::Sum).wait()?;
            assert!(sum.iter().all(|value| *value == 4.5));
        }
        let of_gather = group.rechoices().into_iter().find(|one| one.collective == Collective::AllGather);
        Ok((calls, of_gather))
    });
    let ended: Vec<_> = ended.into_iter().map(Result::unwrap).collect();
    assert!(ended.iter().all(|one| *one == ended[0]), "{ended:?}");
    let (calls, rechoice) = &ended[0];
    let Some(rechoice) = rechoice else { panic!("no trial in {calls} calls") };
    assert_eq!((rechoice.bytes, rechoice.lane), (3 * ELEMENTS * size_of::<u32>(), 0));
    assert!(rechoice.outcome.times.len() > 1, "{rechoice:?}");
    assert!(rechoice.outcome.runs >= (3 * EPOCH_RUNS + TRIAL_RUNS) as u64, "{rechoice:?}");
    assert!(matches!(rechoice.outcome.cause, Cause::Deviated { .. }), "{rechoice:?}");
}

#[test]
fn a_group_re_chooses_only_if_it_says_so_and_names_no_algorithm() {
    let ended = together([GroupOptions::default(); 3], |group| {
        for call in 0..4 * EPOCH_RUNS {
            if group.rank() == 1 && call >= EPOCH_RUNS {
                thread::sleep(DELAY);
            }
            gather(group, call)?;
        }
        Ok(group.rechoices())
    });
    assert!(ended.iter().all(|rechoices| rechoices.as_ref().is_ok_and(Vec::is_empty)), "{ended:?}");
    let named = GroupOptions::default().algorithm(Algorithm::Ring).adaptive();
    for refused in together([named; 3], |_| Ok(())) {
        assert!(matches!(refused, Err(Error::Invalid(Invalid::AdaptsNamed))), "{refused:?}");
    }
}

#[test]
fn members_with_different_options_are_in_different_groups() {
    let adaptive = GroupOptions::default().adaptive();
    let ended = together([adaptive, GroupOptions::default(), adaptive], |group| gather(group, 0));
    assert!(ended.iter().all(|one| matches!(one, Err(Error::GroupBroken { .. }))), "{ended:?}");
}
