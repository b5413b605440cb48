//! Tests of groups with missing members: not joined yet, never joined, gone, or in another collective. No
//! member waits without end in any of these cases.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{block_on, local};

const KEY: u64 = 0x5eed;
/// Time after which a test counts as hanging.
const BOUND: Duration = Duration::from_secs(60);

/// Returns the nodes of a ring, and their numbers.
fn ring(nodes: usize) -> (Vec<Node>, Vec<NodeId>) {
    let nodes = local(&format!("name: ring\nshape: {{ring: {{nodes: {nodes}}}}}\n")).into_nodes();
    let members = nodes.iter().map(Node::id).collect();
    (nodes, members)
}

fn groups(nodes: &[Node], members: &[NodeId], options: GroupOptions) -> Vec<Group> {
    nodes.iter().map(|node| Group::join(node, options, members).unwrap()).collect()
}

/// Returns the result of `act`. A hang fails the test instead of stopping it.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || send.send(act()));
    let result = receive.recv_timeout(BOUND);
    if !matches!(result, Err(mpsc::RecvTimeoutError::Timeout)) {
        thread.join().expect("the action has not panicked").expect("the receiver exists");
    }
    result.expect("it ends")
}

/// Runs `act` for each member in a thread. No member leaves before all are through.
fn each<T: Send>(groups: Vec<Group>, act: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = groups.iter().map(|group| scope.spawn(move || act(group))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn poll_once(request: std::pin::Pin<&mut GroupRequest<'_>>) -> Poll<Result<(), Error>> {
    request.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_member_that_joins_a_broken_group_gets_an_error() {
    let error = in_time(|| {
        let (nodes, members) = ring(2);
        let early = Group::join(&nodes[0], GroupOptions::new(9, KEY), &members).unwrap();
        assert!(poll_once(pin!(early.barrier())).is_pending());
        // The dropped call breaks the group, and no other member has joined yet to be notified. The flush
        // waits until the notification has been refused, before the other member joins.
        let _ = nodes[0].flush(Some(NodeId(1))).wait();
        let late = Group::join(&nodes[1], GroupOptions::new(9, KEY), &members).unwrap();
        late.barrier().wait().unwrap_err()
    });
    assert!(matches!(error, Error::GroupBroken { peer: NodeId(0) }), "{error}");
}

#[test]
fn a_root_that_never_joins_is_waited_for_until_the_timeout() {
    let errors = in_time(|| {
        let (nodes, members) = ring(3);
        let options = GroupOptions::new(9, KEY).join_timeout(Duration::from_millis(200));
        each(groups(&nodes[1..], &members, options), |group| {
            let mut values = [0_u8; 16];
            let broadcast = group.broadcast(&mut values, NodeId(0));
            // One member sleeps in a call, the other is a future that no thread wakes.
            if group.rank() == 1 { broadcast.wait() } else { block_on(broadcast) }.unwrap_err()
        })
    });
    let is_named = |error: &Error| matches!(error, Error::NotJoined { peer: NodeId(0), waited_ms: 200 });
    assert!(errors.iter().any(is_named), "{errors:?}");
    let is_expected = |error: &Error| is_named(error) || matches!(error, Error::GroupBroken { .. });
    assert!(errors.iter().all(is_expected), "{errors:?}");
}

#[test]
fn members_in_different_collectives_all_get_an_error() {
    for met_before in [false, true] {
        for awaited in [false, true] {
            let errors = in_time(move || {
                let (nodes, members) = ring(2);
                each(groups(&nodes, &members, GroupOptions::new(9, KEY)), |group| {
                    if met_before {
                        group.barrier().wait().unwrap();
                    }
                    let mut values = [1.0_f32; 10];
                    let request = match group.rank() {
                        0 => group.barrier(),
                        _ => group.all_reduce(&mut values, ReduceOperation::Sum),
                    };
                    if awaited { block_on(request) } else { request.wait() }.unwrap_err()
                })
            });
            let is_broken = |error: &Error| matches!(error, Error::GroupBroken { .. });
            assert!(errors.iter().all(is_broken), "met {met_before}, awaited {awaited}: {errors:?}");
        }
    }
}

#[test]
fn a_member_that_dropped_its_group_is_not_waited_for() {
    let error = in_time(|| {
        let (nodes, members) = ring(2);
        let mut groups = each_keeps(groups(&nodes, &members, GroupOptions::new(9, KEY)));
        // The node remains, but its group is dropped.
        drop(groups.pop());
        groups[0].broadcast(&mut [0_u8; 4], NodeId(1)).wait().unwrap_err()
    });
    assert!(matches!(error, Error::Refused { peer: NodeId(1), .. }), "{error}");
}

/// Returns the groups, after a first barrier.
fn each_keeps(groups: Vec<Group>) -> Vec<Group> {
    thread::scope(|scope| {
        let threads: Vec<_> = groups
            .into_iter()
            .map(|group| {
                scope.spawn(move || {
                    group.barrier().wait().unwrap();
                    group
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_member_that_has_done_its_part_may_leave() {
    let (nodes, members) = ring(3);
    let options = GroupOptions::new(9, KEY).algorithm(Algorithm::Ring);
    let groups = each_keeps(groups(&nodes, &members, options));
    let (mut first, mut second) = ([0_u64; 8], [0_u64; 8]);
    {
        // Along the ring: the root sends to one member, and that one to the other. Both are in the call and wait.
        let mut first = pin!(groups[0].broadcast(&mut first, NodeId(2)));
        let mut second = pin!(groups[1].broadcast(&mut second, NodeId(2)));
        assert!(poll_once(first.as_mut()).is_pending());
        assert!(poll_once(second.as_mut()).is_pending());
        groups[2].broadcast(&mut [7_u64; 8], NodeId(2)).wait().unwrap();
        nodes[2].leave();
        let begun = Instant::now();
        while nodes[0].reaches(NodeId(2)) || nodes[1].reaches(NodeId(2)) {
            assert!(begun.elapsed() < BOUND, "the root's end is noticed");
            thread::yield_now();
        }
        // Both know that the root has left. The data that it sent is complete.
        let mut open = [Some(first.as_mut()), Some(second.as_mut())];
        while open.iter().any(Option::is_some) {
            assert!(begun.elapsed() < BOUND, "the broadcast ends");
            for slot in &mut open {
                if let Some(Poll::Ready(result)) = slot.as_mut().map(|request| poll_once(request.as_mut())) {
                    result.unwrap();
                    *slot = None;
                }
            }
        }
    }
    assert_eq!((first, second), ([7; 8], [7; 8]));
    // The next call needs the root.
    for group in &groups[..2] {
        let error = group.barrier().wait().unwrap_err();
        assert!(matches!(error, Error::PeerLost { peer: NodeId(2), .. }), "{error}");
    }
}

#[test]
fn a_collective_continues_after_a_timeout_until_it_is_dropped() {
    let (nodes, members) = ring(2);
    let mut joined = groups(&nodes, &members, GroupOptions::new(9, KEY));
    let (theirs, mine) = (joined.pop().unwrap(), joined.pop().unwrap());
    let mut values = [1_i64; 100];
    let mut call = mine.all_reduce(&mut values, ReduceOperation::Sum);
    for _ in 0..3 {
        let timed_out = call.wait_for(Duration::from_millis(5));
        let Err(Error::TimedOut { peer, continues: true, .. }) = timed_out else { panic!("{timed_out:?}") };
        assert!(peer.is_none_or(|peer| peer == members[1]), "{peer:?}");
    }
    let other = thread::spawn(move || {
        theirs.all_reduce(&mut [2_i64; 100], ReduceOperation::Sum).wait().unwrap();
        theirs
    });
    call.wait_for(BOUND).unwrap();
    drop(call);
    assert_eq!(values, [3; 100], "what is over is not given up");
    let theirs = other.join().unwrap();
    let mut call = mine.barrier();
    assert!(matches!(call.wait_for(Duration::ZERO), Err(Error::TimedOut { .. })));
    drop(call);
    assert!(matches!(theirs.barrier().wait(), Err(Error::GroupBroken { peer }) if peer == members[0]));
}

#[test]
fn a_member_that_the_plan_does_not_have_is_refused_at_once() {
    let nodes = local("name: hub\nshape: {star: {nodes: 2}}\n").into_nodes();
    // A number that no node has, and that of the switch.
    for unknown in [NodeId(9), NodeId(2)] {
        let joined = Group::join(&nodes[0], GroupOptions::new(9, KEY), &[NodeId(0), unknown]);
        assert!(matches!(joined, Err(Error::NoSuchNode(node)) if node == unknown), "{unknown}");
    }
    let group = Group::join(&nodes[0], GroupOptions::new(9, KEY), &[NodeId(0), NodeId(1)]);
    assert!(group.is_ok(), "nothing was left behind: {:?}", group.err());
}

#[test]
fn members_that_disagree_about_the_group_get_an_error() {
    let order = |rank: usize| match rank {
        0 => vec![NodeId(0), NodeId(1), NodeId(2)],
        _ => vec![NodeId(0), NodeId(2), NodeId(1)],
    };
    let plain = |region| GroupOptions::new(region, KEY);
    type Joins<'a> = &'a (dyn Fn(&Node, usize) -> Group + Sync);
    let joins: [(&str, Joins<'_>); 3] = [
        ("another order", &|node, rank| Group::join(node, plain(1), &order(rank)).unwrap()),
        ("another algorithm", &|node, rank| {
            let algorithm = if rank == 0 { Algorithm::Ring } else { Algorithm::Direct };
            Group::join(node, plain(2).algorithm(algorithm), &order(0)).unwrap()
        }),
        ("other staging", &|node, rank| {
            let staging_bytes = if rank == 0 { 1 << 14 } else { 1 << 15 };
            Group::join(node, plain(3).staging(staging_bytes), &order(0)).unwrap()
        }),
    ];
    let (nodes, _) = ring(3);
    for (what, join) in joins {
        let groups = nodes.iter().enumerate().map(|(rank, node)| join(node, rank)).collect();
        let results = each(groups, |group| {
            let (mut values, mine) = ([0_u16; 6000], [group.rank() as u16; 2000]);
            let gathered = group.all_gather(&mine, &mut values).wait_for(BOUND);
            gathered.map(|()| values[0])
        });
        let all_failed = results.iter().all(|result| matches!(result, Err(Error::GroupBroken { .. })));
        assert!(all_failed, "{what}: {results:?}");
    }
}

#[test]
fn a_group_reports_a_departed_member_as_departed() {
    let (nodes, members) = ring(3);
    let groups = each_keeps(groups(&nodes, &members, GroupOptions::new(9, KEY)));
    nodes[2].leave_in_order(BOUND).unwrap();
    let errors = each(groups.into_iter().take(2).collect(), |group| group.barrier().wait().unwrap_err());
    for error in errors {
        assert!(matches!(error, Error::PeerLeft { peer: NodeId(2), .. }), "{error:?}");
    }
}
