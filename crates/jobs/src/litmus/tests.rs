//! Tests of the litmus on the test fabric: it passes if every rule is kept, fails if one is broken, and ends when a rank
//! is lost.

use rackloom_protocol::{NodeId, Tenant};

use super::layout::{CONTROL, Content, DATA, READABLE};
use super::test_rack::{Defect, TestRack};
use super::*;
use crate::measure::OperationKind;

fn ranks(count: usize) -> Vec<Rank> {
    (0..count).map(|rank| Rank { name: format!("n{rank}"), tenant: Tenant(1) }).collect()
}

fn settings() -> LitmusSettings {
    LitmusSettings { seed: 42, bytes_max: 5000, rounds: 2, atomics_per_word: 8, ..LitmusSettings::default() }
}

fn results(rack: &mut TestRack, count: usize) -> Vec<JobResult> {
    (0..count).map(|rank| rack.job(rank).result()).collect()
}

fn pass(results: &[JobResult]) -> bool {
    results.iter().all(JobResult::is_pass)
}

#[test]
fn it_passes_where_every_rule_is_kept_however_disorderly_the_fabric() {
    for (count, seed) in [(1, 1), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6)] {
        let mut rack = TestRack::new(&ranks(count), &settings(), seed);
        rack.run().unwrap();
        let results = results(&mut rack, count);
        assert!(
            pass(&results),
            "{count} ranks, seed {seed}: {:?} {:?}",
            results[0].failures,
            results[0].mismatches
        );
        if count > 1 {
            for kind in OperationKind::ALL {
                let measured =
                    results[0].operations.get(kind).unwrap_or_else(|| panic!("{kind:?} did not occur"));
                assert!(measured.count > 0 && measured.error_count() == 0, "{kind:?}");
            }
        }
    }
}

/// Defects that take effect at every opportunity.
const STEADY: [Defect; 12] = [
    Defect::TagIgnored,
    Defect::CancelIgnored,
    Defect::SignalEarly,
    Defect::FenceIgnored,
    Defect::FlushEarly,
    Defect::AtomicTooWide,
    Defect::KeyIgnored,
    Defect::BoundsLoose,
    Defect::PermissionIgnored,
    Defect::RefusedTooLate,
    Defect::RefusalSilent,
    Defect::FailureForgotten,
];

/// Defects that take effect once in a run.
const SINGLE: [Defect; 17] = [
    Defect::MessageOvertakes,
    Defect::MessageChanged,
    Defect::MessageShort,
    Defect::MessageTwice,
    Defect::PostedStoreLost,
    Defect::AcknowledgedStoreLost,
    Defect::SegmentLost,
    Defect::BitFlipped,
    Defect::Shifted,
    Defect::ByteTooMuch,
    Defect::WrongSource,
    Defect::AddTwice,
    Defect::SwapTwice,
    Defect::SwapWithoutCompare,
    Defect::ReadWrong,
    Defect::ReadShort,
    Defect::WaitEarly,
];

#[test]
fn it_fails_where_a_rule_is_always_broken() {
    for defect in STEADY {
        for seed in 0..3 {
            let mut rack = TestRack::new(&ranks(3), &settings(), seed).with_defect(defect, 0);
            let ended = rack.run();
            assert!(ended.is_err() || !pass(&results(&mut rack, 3)), "{defect:?} went unseen, seed {seed}");
        }
    }
}

#[test]
fn it_fails_where_a_rule_is_broken_once() {
    for defect in SINGLE {
        for after in [0, 1, 5, 17] {
            let mut rack = TestRack::new(&ranks(3), &settings(), u64::from(after)).with_defect(defect, after);
            let ended = rack.run();
            assert!(ended.is_err() || !pass(&results(&mut rack, 3)), "{defect:?} after {after} went unseen");
        }
    }
}

/// Returns positions in extents of each kind at which a changed byte must be detected.
fn planted(rack: &mut TestRack) -> Vec<(rackloom_protocol::RegionId, u64, &'static str)> {
    let layout = &rack.job(1).view.layout;
    let mut positions =
        vec![(READABLE, 77, "read-only"), (READABLE, layout.region_bytes(READABLE) - 1, "read-only")];
    for region in [CONTROL, DATA] {
        let extents: Vec<_> = layout.extents(region).filter(|extent| extent.bytes > 0).collect();
        let guards: Vec<_> = extents.iter().filter(|extent| extent.content == Content::Guard).collect();
        for guard in [guards[0], guards[guards.len() / 2], guards[guards.len() - 1]] {
            positions.push((region, guard.offset, "guard"));
            positions.push((region, guard.offset + guard.bytes - 1, "guard"));
        }
        let slots = extents.iter().filter(|extent| matches!(extent.content, Content::Slot { .. }));
        positions.extend(slots.step_by(9).map(|slot| (region, slot.offset + slot.bytes / 2, "round")));
    }
    positions
}

#[test]
fn a_byte_planted_in_the_owners_memory_is_found_by_the_owner() {
    let mut probe = TestRack::new(&ranks(3), &settings(), 9);
    for (region, offset, word) in planted(&mut probe) {
        let mut rack = TestRack::new(&ranks(3), &settings(), 9);
        // The last check of round 1 comes after the barrier that follows the forbidden accesses.
        rack.run_until(|rack| rack.job(1).position().contains("round 2 of 2, barrier after the work"))
            .unwrap();
        rack.memory(1).bytes_mut(region)[offset as usize] ^= 0x20;
        rack.run().unwrap();
        let results = results(&mut rack, 3);
        let found = &results[1].mismatches;
        assert_eq!(found.len(), 1, "{region} {offset}: {found:?}");
        assert_eq!((found[0].region, found[0].offset), (region.0, offset));
        assert!(found[0].location.contains(word), "{found:?}");
        assert!(results[0].is_pass() && results[2].is_pass());
    }
}

#[test]
fn a_spoiled_contended_word_is_found() {
    let offset = TestRack::new(&ranks(3), &settings(), 9)
        .job(1)
        .view
        .layout
        .contended_offset(super::layout::ContendedWord::FetchAddEight);
    let mut rack = TestRack::new(&ranks(3), &settings(), 9);
    rack.run_until(|rack| rack.job(1).position().contains("round 2 of 2, barrier after the work")).unwrap();
    rack.memory(1).bytes_mut(DATA)[offset as usize] ^= 1;
    rack.run().unwrap();
    assert_eq!(rack.job(1).result().mismatch_count, 1);
}

/// Kills rank 2 after `steps` steps and reports the loss to the others. Returns `None` if the run was over before.
fn kill_after(steps: u32, seed: u64, all_receive: bool) -> Option<Vec<JobResult>> {
    let settings = LitmusSettings { drain_timeout_ns: 500_000, ..settings() };
    let mut rack = TestRack::new(&ranks(4), &settings, seed);
    let mut step = 0_u32;
    rack.run_until(|_| {
        step += 1;
        step > steps
    })
    .unwrap();
    // At its end a rank has no outstanding work for others, so its end is no loss.
    if step <= steps || rack.job(2).position().contains("the end") {
        return None;
    }
    rack.kill(2);
    let mut step = 0_u32;
    rack.run_until(|_| {
        step += 1;
        step > 300
    })
    .unwrap();
    // Rank 3 may have to learn of the loss from the notices of the others. Then its operations to the lost rank never
    // complete.
    for rank in if all_receive { vec![3, 0, 1] } else { vec![0, 1] } {
        rack.announce_loss(rank, 2);
        rack.run_until(|rack| {
            step += 1;
            rack.job(rank).position().contains("broken off") || step.is_multiple_of(100)
        })
        .unwrap();
    }
    rack.run().unwrap_or_else(|stuck| panic!("killed after {steps} steps: {stuck}"));
    Some([0, 1, 3].map(|rank| rack.job(rank).result()).to_vec())
}

#[test]
fn a_failure_at_any_time_ends_the_run_and_names_only_the_failed_rank() {
    let mut moments = 0;
    for steps in (0..40_000).step_by(151) {
        let Some(results) = kill_after(steps, u64::from(steps), steps % 2 == 0) else { break };
        moments += 1;
        for result in results {
            assert!(!result.complete && !result.is_pass(), "after {steps}");
            assert_eq!(result.lost_nodes, ["n2"], "after {steps}");
            assert_eq!(result.mismatch_count, 0, "after {steps}: {:?}", result.mismatches);
            let is_explained =
                |failure: &String| failure.contains("broke off") || failure.contains("did not end in time");
            assert!(result.failures.iter().all(is_explained), "{:?}", result.failures);
            assert!(result.verified_bytes > 0 || steps < 1_000);
        }
    }
    assert!(moments > 10, "the run is too short for this test: {moments}");
}

#[test]
fn what_survivors_hold_is_still_checked_after_a_death() {
    let mut rack = TestRack::new(&ranks(3), &settings(), 5);
    rack.run_until(|rack| rack.job(0).position().contains("order")).unwrap();
    rack.kill(2);
    let guard = rack.job(0).view.layout.extents(DATA).next().unwrap();
    rack.memory(0).bytes_mut(DATA)[guard.offset as usize] ^= 1;
    for rank in [0, 1] {
        rack.announce_loss(rank, 2);
    }
    rack.run().unwrap();
    assert_eq!(rack.job(0).result().mismatches[0].location, "guard");
    assert_eq!(rack.job(1).result().mismatch_count, 0);
}

#[test]
fn a_rank_that_is_never_reached_ends_the_start() {
    let settings = LitmusSettings { start_timeout_ns: 100_000, ..settings() };
    let mut rack = TestRack::new(&ranks(3), &settings, 1);
    rack.announce_loss(0, 2);
    rack.announce_loss(1, 2);
    rack.kill(2);
    rack.run().unwrap();
    assert_eq!(rack.job(0).result().lost_nodes, ["n2"]);
}

#[test]
fn tenants_share_the_rack_and_not_a_byte() {
    let mut ranks = ranks(5);
    ranks[1].tenant = Tenant(2);
    ranks[3].tenant = Tenant(2);
    ranks[4].tenant = Tenant(3);
    let mut rack = TestRack::new(&ranks, &settings(), 3);
    rack.run().unwrap();
    for (rank, result) in results(&mut rack, 5).iter().enumerate() {
        assert!(result.is_pass(), "{rank}: {:?} {:?}", result.failures, result.mismatches);
    }
    assert_eq!(rack.job(1).view.peers, [3]);
    assert_eq!(rack.job(0).view.key(1, DATA), rack.job(1).view.key(NodeId(1).0, DATA));
}

#[test]
fn what_it_waits_for_names_round_phase_and_rank() {
    let mut rack = TestRack::new(&ranks(3), &settings(), 5);
    rack.run_until(|rack| rack.job(0).position().contains("order")).unwrap();
    rack.kill(2);
    let stuck = rack.run().unwrap_err();
    assert!(stuck.contains("round 1 of 2, order, waiting for flags of"), "{stuck}");
    assert!(stuck.contains("n2"), "{stuck}");
}
