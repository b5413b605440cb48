//! Tests of collectives on slices: each against the results of plain loops, in pieces, on several shapes, and when members are lost.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{block_on, ended, local};

const KEY: u64 = 0x5eed;
/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(10);

fn ring(nodes: usize) -> String {
    format!("name: ring\nshape: {{ring: {{nodes: {nodes}}}}}\n")
}

/// Runs `act` on every node of the rack in a thread, as member of a group of all.
fn together<T: Send>(plan: &str, options: GroupOptions, act: impl Fn(&Node, Group) -> T + Sync) -> Vec<T> {
    let nodes = local(plan).into_nodes();
    let members: Vec<_> = nodes.iter().map(Node::id).collect();
    let (act, members) = (&act, &members);
    thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(move || act(node, Group::join(node, options, members).unwrap())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns a member's input. It differs for each rank and position, and its sums are exact.
fn given(rank: usize, length: usize) -> Vec<i64> {
    (0..length as i64).map(|position| (rank as i64 + 1) * (position * position % 1009 + 1)).collect()
}

fn sum_of_all(members: usize, length: usize) -> Vec<i64> {
    let gave: Vec<_> = (0..members).map(|rank| given(rank, length)).collect();
    (0..length).map(|position| gave.iter().map(|gave| gave[position]).sum()).collect()
}

/// Performs all nine collectives, one after another, with parts of this length.
fn all_nine(group: &Group, part: usize) {
    let (me, count) = (group.rank(), group.members().len());
    let root = group.members()[count - 1];
    let (mine, whole) = (given(me, part), given(me, part * count));
    let part_of = |from: usize, of: usize| given(from, part * count)[of * part..][..part].to_vec();
    let from_all = |of: &dyn Fn(usize) -> Vec<i64>| (0..count).flat_map(of).collect::<Vec<_>>();

    let mut values = mine.clone();
    group.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
    assert_eq!(values, sum_of_all(count, part), "all-reduce");
    let mut values = mine.clone();
    group.reduce(&mut values, ReduceOperation::Sum, root).wait().unwrap();
    assert_eq!(values, if me == count - 1 { sum_of_all(count, part) } else { mine.clone() }, "reduce");
    let mut values = mine.clone();
    group.broadcast(&mut values, root).wait().unwrap();
    assert_eq!(values, given(count - 1, part), "broadcast");
    let mut output = vec![0; part * count];
    group.all_gather(&mine, &mut output).wait().unwrap();
    assert_eq!(output, from_all(&|from| given(from, part)), "all-gather");
    output.fill(0);
    group.all_to_all(&whole, &mut output).wait().unwrap();
    assert_eq!(output, from_all(&|from| part_of(from, me)), "all-to-all");
    output.fill(0);
    group.gather(&mine, &mut output, root).wait().unwrap();
    let gathered = if me == count - 1 { from_all(&|from| given(from, part)) } else { vec![0; part * count] };
    assert_eq!(output, gathered, "gather");
    let mut output = vec![0; part];
    group.reduce_scatter(&whole, &mut output, ReduceOperation::Sum).wait().unwrap();
    assert_eq!(output, sum_of_all(count, part * count)[me * part..][..part], "reduce-scatter");
    output.fill(0);
    group.scatter(&whole, &mut output, root).wait().unwrap();
    assert_eq!(output, part_of(count - 1, me), "scatter");
    group.barrier().wait().unwrap();
}

#[test]
fn each_collective_matches_plain_loops_also_in_pieces() {
    for (plan, staging) in [
        (ring(3), 1 << 20),
        // A small staging buffer, so that arrays are divided into many pieces.
        (ring(4), 1 << 12),
        ("name: star\nshape: {star: {nodes: 3}}\nlink: {loss: 1%, duplicate: 1%}\n".to_owned(), 1 << 14),
    ] {
        let options = GroupOptions::new(9, KEY).staging(staging);
        together(&plan, options, |_, group| {
            for part in [1, 7, 0, 2000, 300] {
                all_nine(&group, part);
            }
        });
    }
}

#[test]
fn a_named_algorithm_is_used_if_it_supports_the_collective() {
    for algorithm in [Algorithm::Ring, Algorithm::OneShot, Algorithm::HalvingDoubling] {
        let options = GroupOptions::new(9, KEY).algorithm(algorithm);
        together(&ring(3), options, |_, group| all_nine(&group, 50));
    }
}

#[test]
fn futures_have_the_results_of_calls_for_every_element_type() {
    together(&ring(3), GroupOptions::new(9, KEY), |_, group| {
        let me = group.rank() as f32;
        let mut values = vec![me + 0.5; 40_000];
        block_on(group.all_reduce(&mut values, ReduceOperation::Max)).unwrap();
        assert!(values.iter().all(|value| *value == 2.5));
        let mut bytes = vec![200_u8; 5];
        block_on(group.all_reduce(&mut bytes, ReduceOperation::Sum)).unwrap();
        assert_eq!(bytes, [88; 5], "600 wraps");
        block_on(group.barrier()).unwrap();
    });
}

#[test]
fn a_fast_member_does_not_disturb_a_slow_one() {
    // Roots send and continue. Without synchronisation in between, the next run would overwrite data that is still being read.
    together(&ring(3), GroupOptions::new(9, KEY).staging(1 << 14), |node, group| {
        for round in 0..200_u64 {
            let root = group.members()[(round % 3) as usize];
            let mut values = vec![if node.id() == root { round } else { u64::MAX }; 64];
            group.broadcast(&mut values, root).wait().unwrap();
            assert!(values.iter().all(|value| *value == round), "round {round}: {values:?}");
        }
    });
}

#[test]
fn members_may_join_late() {
    let nodes = local(&ring(2)).into_nodes();
    let members: Vec<_> = nodes.iter().map(Node::id).collect();
    let early = Group::join(&nodes[0], GroupOptions::new(9, KEY), &members).unwrap();
    let (entered, begun) = std::sync::mpsc::channel();
    let waiting = thread::spawn(move || {
        let mut values = [1_i32];
        entered.send(()).unwrap();
        early.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
        (values, early)
    });
    begun.recv().unwrap();
    // Time for the put to be refused. If it is not, the test proves less, but does not fail.
    thread::sleep(Duration::from_millis(50));
    let late = Group::join(&nodes[1], GroupOptions::new(9, KEY), &members).unwrap();
    let mut values = [2_i32];
    late.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
    assert_eq!((values, waiting.join().unwrap().0), ([3], [3]));
}

#[test]
fn the_death_of_a_member_ends_the_collective_on_all_others() {
    // In a ring of five with the ring algorithm most members do not communicate with the lost one.
    let nodes = local(&ring(5)).into_nodes();
    let members: Vec<_> = nodes.iter().map(Node::id).collect();
    let options = GroupOptions::new(9, KEY).algorithm(Algorithm::Ring);
    let (ready, go) = std::sync::mpsc::channel();
    let threads: Vec<_> = nodes[..4]
        .iter()
        .map(|node| {
            let (node, members, ready) = (node.clone(), members.clone(), ready.clone());
            thread::spawn(move || {
                let group = Group::join(&node, options, &members).unwrap();
                let mut values = vec![1_i64; 100_000];
                group.all_reduce(&mut values, ReduceOperation::Sum).wait().unwrap();
                ready.send(()).unwrap();
                let error = loop {
                    if let Err(error) = group.all_reduce(&mut values, ReduceOperation::Sum).wait() {
                        break error;
                    }
                };
                let again = group.barrier().wait().unwrap_err();
                // Nodes stay until all are through, because a node that leaves is lost to the others.
                (node, error, again, Instant::now())
            })
        })
        .collect();
    let victim = thread::spawn({
        let (node, members) = (nodes[4].clone(), members.clone());
        move || {
            let group = Group::join(&node, options, &members).unwrap();
            let mut values = vec![1_i64; 100_000];
            while group.all_reduce(&mut values, ReduceOperation::Sum).wait().is_ok() {}
        }
    });
    (0..4).for_each(|_| go.recv().unwrap());
    let died = Instant::now();
    nodes[4].leave();
    victim.join().unwrap();
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for (node, error, again, at) in ended {
        assert!(matches!(error, Error::PeerLost { peer, .. } if peer == NodeId(4)), "{}: {error}", node.id());
        assert!(matches!(again, Error::PeerLost { peer, .. } if peer == NodeId(4)), "{}: {again}", node.id());
        assert!(at - died < BOUND, "{} took {:?}", node.id(), at - died);
    }
}

#[test]
fn sleeping_waits_and_futures_end_with_a_death() {
    let nodes = local(&ring(4)).into_nodes();
    let members: Vec<_> = nodes.iter().map(Node::id).collect();
    let groups: Vec<_> =
        nodes.iter().map(|node| Group::join(node, GroupOptions::new(9, KEY), &members).unwrap()).collect();
    // Only node 0 enters the barrier, in which it receives from nodes 3 and 2 only. Node 1 leaves.
    let waiting = thread::spawn(move || {
        let mut groups = groups;
        let others = groups.split_off(1);
        (block_on(groups[0].barrier()), others)
    });
    nodes[1].leave();
    let (result, _others) = waiting.join().unwrap();
    assert!(matches!(result, Err(Error::PeerLost { peer: NodeId(1), .. })), "{result:?}");
}

#[test]
fn a_member_that_gives_up_breaks_the_group_for_all() {
    let nodes = local(&ring(3)).into_nodes();
    let members: Vec<_> = nodes.iter().map(Node::id).collect();
    let groups: Vec<_> =
        nodes.iter().map(|node| Group::join(node, GroupOptions::new(9, KEY), &members).unwrap()).collect();
    {
        let mut barrier = pin!(groups[0].barrier());
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(barrier.as_mut().poll(&mut context), Poll::Pending));
    }
    for group in &groups[1..] {
        let error = group.barrier().wait().unwrap_err();
        assert!(matches!(error, Error::GroupBroken { peer: NodeId(0) }), "{error}");
    }
    assert!(matches!(groups[0].barrier().wait(), Err(Error::GroupBroken { peer: NodeId(0) })));
}

#[test]
fn members_in_different_collectives_get_an_error() {
    let results = together(&ring(2), GroupOptions::new(9, KEY), |_, group| {
        let mut values = vec![1.0_f32; 10 + group.rank()];
        let result = group.all_reduce(&mut values, ReduceOperation::Sum).wait();
        (result, group)
    });
    for (result, _) in &results {
        assert!(matches!(result, Err(Error::GroupBroken { .. })), "{result:?}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_anything_is_sent() {
    together(&ring(2), GroupOptions::new(9, KEY), |node, group| {
        let mut short = [0_u32; 3];
        let refused =
            |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
        refused(group.all_gather(&[1, 2], &mut short).wait());
        refused(group.broadcast(&mut short, NodeId(7)).wait());
        let mut first = pin!(group.barrier());
        let mut context = Context::from_waker(Waker::noop());
        while first.as_mut().poll(&mut context).is_pending() {
            refused(group.barrier().wait());
        }
        assert!(
            Group::join(node, GroupOptions::new(9, KEY), group.members()).is_err(),
            "the region is taken"
        );
        assert!(Group::join(node, GroupOptions::new(10, KEY), &[NodeId(1 - node.id().0)]).is_err());
        for staging in [u64::MAX, 1 << 62] {
            let joined = Group::join(node, GroupOptions::new(10, KEY).staging(staging), group.members());
            assert!(matches!(joined, Err(Error::Invalid(Invalid::StagingTooLarge))), "{joined:?}");
        }
        group.barrier().wait().unwrap();
    });
}

#[test]
fn submitted_collectives_complete_in_a_queue_while_the_application_computes() {
    together(&ring(3), GroupOptions::new(9, KEY).staging(1 << 14), |node, group| {
        let (me, count) = (group.rank(), group.members().len());
        let part = 5000;
        let mine = node.register(RegionOptions::new(1, KEY), given(me, part)).unwrap();
        let gathered = node.allocate(RegionOptions::new(2, KEY), (part * count * 8) as u64).unwrap();
        let queue = Queue::with_capacity(4);
        let (sum, element) = (ReduceOperation::Sum, ElementType::I64);
        let all_of = |region: &Region| {
            let mut values = vec![0_i64; (region.len() / 8) as usize];
            region.read(0, &mut values).unwrap();
            values
        };

        let gather =
            group.on_slices(Collective::AllGather, sum, element, &mine.slice(..), &gathered.slice(..));
        gather.submit(&queue, 1).unwrap();
        // Only the background thread drives the node.
        while queue.is_empty() {
            thread::yield_now();
        }
        let completion = queue.pop().unwrap();
        assert_eq!(completion.context, 1);
        completion.result.unwrap();
        let expected: Vec<_> = (0..count).flat_map(|from| given(from, part)).collect();
        assert_eq!(all_of(&gathered), expected);

        let both = mine.slice(..);
        group.on_slices(Collective::AllReduce, sum, element, &both, &both).submit(&queue, 2).unwrap();
        ended(node, &queue).result.unwrap();
        assert_eq!(all_of(&mine), sum_of_all(count, part));
        group.barrier().submit(&queue, 4).unwrap();
        ended(node, &queue).result.unwrap();
        let too_short = gathered.slice(0..8);
        let refused =
            group.on_slices(Collective::AllGather, sum, element, &both, &too_short).submit(&queue, 5);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        group.barrier().wait().unwrap();
    });
}
