//! Tests of groups made from groups, of several collectives in flight, and of groups that the library names.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use rackloom::fabric::*;

/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(10);
const EIGHT: &str = "name: boxes\nshape: {star: {nodes: 8}}\nservers: {a: [n0, n1, n2], b: [n3, n4, n5]}\n";

/// Runs `act` on every node of the rack in a thread, as member of a group of all that the library names.
fn together<T: Send>(plan: &str, options: GroupOptions, act: impl Fn(&Node, Group) -> T + Sync) -> Vec<T> {
    let plan = Plan::parse(plan, "test").unwrap();
    let fabric = Fabric::local(&plan).unwrap();
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = fabric
            .nodes()
            .iter()
            .map(|node| scope.spawn(move || act(node, Group::of_rack(node, options).unwrap())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn sum(group: &Group, value: i64) -> i64 {
    let mut values = [value];
    group.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
    values[0]
}

fn me(node: &Node) -> i64 {
    i64::from(node.id().0)
}

#[test]
fn a_split_makes_groups_in_the_chosen_order() {
    together(EIGHT, GroupOptions::default(), |node, group| {
        let number = u32::from(node.id().0);
        // Node 7 joins no part. The others are ordered from the last to the first.
        let part = group.split((number < 7).then_some(number % 2), 100 - number).unwrap();
        assert_eq!(part.is_some(), number < 7);
        if let Some(part) = &part {
            let members: Vec<_> = part.members().iter().map(|member| member.0).collect();
            assert_eq!(members, if number % 2 == 0 { vec![6, 4, 2, 0] } else { vec![5, 3, 1] });
            assert_eq!(part.members()[part.rank()], node.id());
            assert_eq!(sum(part, me(node)), if number % 2 == 0 { 12 } else { 9 });
        }
        assert_eq!(sum(&group, 1), 8, "the first group works beside its parts");
    });
}

#[test]
fn duplicates_and_parts_by_server_and_plane_are_groups_of_their_own() {
    together(EIGHT, GroupOptions::default(), |node, group| {
        let other = group.duplicate().unwrap();
        assert_eq!((other.members(), other.rank()), (group.members(), group.rank()));
        let server = group.split_by_server().unwrap();
        let expected = match node.id().0 {
            0..3 => 3,
            3..6 => 3,
            _ => 1,
        };
        assert_eq!(server.members().len(), expected);
        assert_eq!(sum(&server, 1), expected as i64);
        assert_eq!(sum(&other, me(node)), 28);
        assert_eq!(group.on_plane(0).unwrap().map(|all| all.members().len()), Some(8));
        assert!(group.on_plane(3).unwrap().is_none());
        assert_eq!(sum(&group, me(node)), 28);
    });
}

#[test]
fn groups_of_one_list_of_members_need_different_names() {
    together(EIGHT, GroupOptions::default(), |node, group| {
        let again = Group::of_rack(node, GroupOptions::default());
        assert!(matches!(again, Err(Error::RegionExists(_))), "{again:?}");
        let chosen = Group::of_rack(node, GroupOptions::new(1, 1)).unwrap();
        assert_eq!(sum(&chosen, 1), 8);
        group.barrier().wait().unwrap();
    });
}

#[test]
fn started_collectives_run_in_order_in_one_lane_and_in_several() {
    for lanes in [1, 3] {
        together(EIGHT, GroupOptions::default().lanes(lanes), |node, group| {
            let count = 7;
            let regions: Vec<_> = (0..count)
                .map(|index| node.allocate(RegionOptions::new(index, 1), 1 << 16).unwrap())
                .collect();
            for round in 1..=3 {
                let begin = |(index, region): (usize, &Region)| {
                    region.write(0, &vec![me(node) + index as i64 * round; 1 << 13]).unwrap();
                    let all = region.slice(..);
                    let (sum, element) = (ReduceOperation::Sum, ElementType::I64);
                    group.on_slices(Collective::AllReduce, sum, element, &all, &all).start().unwrap()
                };
                let mut pending: Vec<_> = regions.iter().enumerate().map(begin).collect();
                // A call that the thread waits for comes after those that were started.
                group.barrier().wait().unwrap();
                pending.reverse();
                wait_all(pending).unwrap();
                for (index, region) in regions.iter().enumerate() {
                    let expected = 28 + 8 * index as i64 * round;
                    assert_eq!(region.get::<i64>(8).unwrap(), expected, "{lanes} lanes, call {index}");
                    assert_eq!(region.get::<i64>((1 << 16) - 8).unwrap(), expected);
                }
            }
        });
    }
}

#[test]
fn several_lanes_run_at_the_same_time() {
    let plan = "name: two\nshape: {ring: {nodes: 2}}\n";
    together(plan, GroupOptions::default().lanes(2), |node, group| {
        // The first call cannot end before the second one has: member 1 begins it only then.
        let region = node.allocate(RegionOptions::new(1, 1), 64).unwrap();
        let all = region.slice(..);
        let (sum_of, element) = (ReduceOperation::Sum, ElementType::I64);
        let reduce = || group.on_slices(Collective::AllReduce, sum_of, element, &all, &all).start().unwrap();
        if group.rank() == 0 {
            let (first, second) = (reduce(), group.barrier().start().unwrap());
            second.wait().unwrap();
            first.wait().unwrap();
        } else {
            // The calls have places in the order before one of them ends.
            let mut first = group.on_slices(Collective::AllReduce, sum_of, element, &all, &all);
            assert!(matches!(first.wait_for(Duration::ZERO), Ok(()) | Err(Error::TimedOut { .. })));
            group.barrier().wait().unwrap();
            let _ = first.wait_for(BOUND);
        }
    });
}

#[test]
fn a_failure_in_one_lane_ends_the_calls_of_all_lanes() {
    let plan = "name: three\nshape: {ring: {nodes: 3}}\n";
    let steps = Barrier::new(3);
    together(plan, GroupOptions::default().lanes(2), |_, group| {
        group.barrier().wait().unwrap();
        if group.rank() == 0 {
            let mut given_up = group.barrier();
            assert!(matches!(given_up.wait_for(Duration::ZERO), Err(Error::TimedOut { .. })));
            // The other members begin only now, and have begun both calls before this one is given up.
            steps.wait();
            steps.wait();
            drop(given_up);
        } else {
            steps.wait();
            let pending = [group.barrier().start().unwrap(), group.barrier().start().unwrap()];
            steps.wait();
            let [same, other] = pending.map(Pending::wait);
            // A barrier may end at a member that has all signals it waits for.
            assert!(matches!(same, Ok(()) | Err(Error::GroupBroken { peer: NodeId(0) })), "{same:?}");
            assert!(matches!(other, Err(Error::GroupBroken { peer: NodeId(0) })), "{other:?}");
        }
        let error = group.barrier().wait().unwrap_err();
        assert!(matches!(error, Error::GroupBroken { peer: NodeId(0) }), "{error}");
    });
}

#[test]
fn a_call_behind_a_paused_one_of_its_lane_is_refused() {
    let plan = "name: two\nshape: {ring: {nodes: 2}}\n";
    together(plan, GroupOptions::default(), |_, group| {
        let mut values = [1_i64];
        if group.rank() == 0 {
            let mut first = group.all_reduce(&mut values, ReduceOperation::Sum);
            if let Err(Error::TimedOut { .. }) = first.wait_for(Duration::ZERO) {
                let refused = group.barrier().wait().unwrap_err();
                assert!(matches!(refused, Error::Invalid(Invalid::GroupBusy)), "{refused}");
                first.wait_for(BOUND).unwrap();
            }
        } else {
            group.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
        }
        group.barrier().wait().unwrap();
    });
}

#[test]
fn lanes_out_of_bounds_are_refused() {
    let fabric =
        Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap()).unwrap();
    for lanes in [0, GroupOptions::LANES_MAX + 1] {
        let joined = Group::of_rack(&fabric.nodes()[0], GroupOptions::default().lanes(lanes));
        assert!(matches!(joined, Err(Error::Invalid(Invalid::LaneCount))), "{joined:?}");
    }
}

#[test]
fn members_of_several_servers_use_the_hierarchical_algorithm() {
    let plan = "name: boxes\nshape: {star: {nodes: 6}}\nservers: {a: [n0, n1, n2], b: [n3, n4, n5]}\n";
    for algorithm in [None, Some(Algorithm::Hierarchical)] {
        let mut options = GroupOptions::default();
        options.algorithm = algorithm;
        together(plan, options, |node, group| {
            for length in [1, 7, 3000] {
                let mut values: Vec<_> = (0..length).map(|position| me(node) * 10 + position).collect();
                group.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
                assert!((0..length).all(|position| values[position as usize] == 150 + 6 * position));
                let root = group.members()[4];
                let mut values = vec![me(node); length as usize];
                group.broadcast(&mut values, root).wait().unwrap();
                assert!(values.iter().all(|value| *value == 4));
            }
        });
    }
}
