//! Tests of the library's guarantees for operations that no peer completes: losses are reported, waits end, and dropped requests have no effect.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{local, pair};

const KEY: u64 = 0x5eed;
/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(20);

/// Drives the node until it has detected the loss of the other one.
fn forget(node: &Node, gone: NodeId) {
    let begin = Instant::now();
    while node.reaches(gone) {
        assert!(begin.elapsed() < BOUND, "{} still reaches {gone}", node.id());
        let nothing = node.poll_wait(&Queue::with_capacity(1), Duration::from_millis(1));
        assert!(nothing.is_none());
    }
}

/// Begins a request and drops it.
fn begin_and_drop<T: Outcome>(request: Request<'_, T>) {
    let mut request = pin!(request);
    assert!(request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn posted_stores_to_a_dead_node_show_in_a_flush_that_names_it() {
    for target in [None, Some(NodeId(1))] {
        let (near, far) = pair();
        let theirs = far.allocate(RegionOptions::new(1, KEY), 64).unwrap();
        far.leave();
        // The core accepts the operation, unless the loss has been detected already.
        let posted = near.store_posted(theirs.address(0), &[1]).wait();
        forget(&near, far.id());
        let error = near.flush(target).wait_for(BOUND).err();
        match (&posted, target, error) {
            (Ok(()), _, Some(Error::PeerLost { peer, maybe_done: true })) => assert_eq!(peer, far.id()),
            (Err(_), Some(_), Some(Error::PeerLost { peer, .. })) => assert_eq!(peer, far.id()),
            (Err(_), None, None) => {}
            (_, _, error) => panic!("{posted:?}, then {error:?}"),
        }
    }
}

#[test]
fn a_refused_posted_store_names_who_refused() {
    let (near, far) = pair();
    let theirs = far.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let wrong = RemoteAddress { key: Key(1), ..theirs.address(0) };
    near.store_posted(wrong, &[1]).wait().unwrap();
    let error = near.flush(None).wait_for(BOUND).unwrap_err();
    assert!(matches!(error, Error::Refused { reason: OperationError::EarlierFailure, .. }), "{error:?}");
    assert_eq!(error.peer(), Some(far.id()));
    near.flush(None).wait_for(BOUND).unwrap();
}

#[test]
fn receives_from_any_node_end_with_the_last_peer() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(1);
    near.receive(None, 1, 0, &mine.slice(..)).submit(&queue, 1).unwrap();
    far.leave();
    let ended = near.poll_wait(&queue, BOUND).expect("the receive ends without a peer");
    assert!(matches!(ended.result, Err(Error::Failed(OperationError::Unreachable))), "{ended:?}");
    let error = near.receive(None, 1, 0, &mine.slice(..)).wait_for(BOUND).unwrap_err();
    assert!(matches!(error, Error::Failed(OperationError::Unreachable)), "{error:?}");
}

#[test]
fn a_condition_that_a_dead_peer_has_fulfilled_holds() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    far.store(mine.address(0), &7_u64.to_ne_bytes()).wait().unwrap();
    far.leave();
    forget(&near, far.id());
    let wait = |value| near.wait_until(&mine, 0, Condition::Equal, value, far.id()).wait_for(BOUND);
    assert_eq!(wait(7).unwrap(), 7);
    assert!(matches!(wait(8), Err(Error::PeerLost { maybe_done: false, .. })));
}

#[test]
fn whoever_is_named_and_does_not_exist_is_said_so() {
    let nodes = local("name: star\nshape: {star: {nodes: 2}}\n").into_nodes();
    let near = &nodes[0];
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let (switch, no_member) = (NodeId(2), NodeId(99));
    for node in [switch, no_member] {
        let error = near.wait_until_reached(&[NodeId(1), node], BOUND).unwrap_err();
        assert!(matches!(error, Error::NoSuchNode(named) if named == node), "{error:?}");
    }
    for node in [near.id(), switch, no_member] {
        let errors = [
            near.flush(Some(node)).wait_for(BOUND).unwrap_err(),
            near.fence(Some(node)).wait_for(BOUND).unwrap_err(),
            near.receive(Some(node), 1, 0, &mine.slice(..)).wait_for(BOUND).unwrap_err(),
            near.wait_until(&mine, 0, Condition::Equal, 1, node).wait_for(BOUND).unwrap_err(),
            near.send(node, 1, &mine.slice(..)).wait_for(BOUND).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::NoSuchNode(named) if named == node), "{error:?}");
        }
    }
}

#[test]
fn a_receive_that_was_dropped_takes_no_message() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = far.register(RegionOptions::new(1, KEY), vec![7_u8; 8]).unwrap();
    begin_and_drop(near.receive(None, 5, 0, &mine.slice(0..8)));
    far.send(near.id(), 5, &theirs.slice(..)).wait().unwrap();
    let received = near.receive(None, 5, 0, &mine.slice(8..16)).wait_for(BOUND).unwrap();
    assert_eq!((received.length, mine.get::<u64>(0).unwrap()), (8, 0));
    assert_eq!(mine.get::<u8>(8).unwrap(), 7);
}

#[test]
fn a_region_is_free_as_soon_as_its_waits_are_dropped() {
    let (near, far) = pair();
    let mine = near.register(RegionOptions::new(1, KEY), vec![0_u64; 8]).unwrap();
    begin_and_drop(near.wait_until(&mine, 0, Condition::Equal, 1, far.id()));
    begin_and_drop(near.receive(Some(far.id()), 1, 0, &mine.slice(..)));
    assert!(near.waiting_for().iter().all(|line| !line.starts_with("operation")), "{:?}", near.waiting_for());
    assert_eq!(mine.deregister::<u64>().unwrap().expect("ours").len(), 8);
}

#[test]
fn patience_ends_a_wait_and_says_whether_it_goes_on() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = far.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let patience = Duration::from_millis(2);
    let error = near.receive(None, 5, 0, &mine.slice(0..8)).wait_for(patience).unwrap_err();
    assert!(matches!(error, Error::TimedOut { peer: None, waited_ms: 2, goes_on: false }), "{error:?}");
    let wait = near.wait_until(&mine, 0, Condition::Equal, 1, far.id());
    let error = wait.wait_for(patience).unwrap_err();
    assert!(matches!(error, Error::TimedOut { goes_on: false, .. }), "{error:?}");
    assert_eq!(error.peer(), Some(far.id()));
    // A long message without a receiver. It has been offered and cannot be withdrawn.
    let long = near.allocate(RegionOptions::new(2, KEY), 1 << 16).unwrap();
    let error = near.send(far.id(), 6, &long.slice(..)).wait_for(patience).unwrap_err();
    assert!(matches!(error, Error::TimedOut { goes_on: true, .. }), "{error:?}");
    // A receive that was given up takes no later message.
    far.send(near.id(), 5, &theirs.slice(0..8)).wait().unwrap();
    assert_eq!(near.receive(None, 5, 0, &mine.slice(0..8)).wait_for(BOUND).unwrap().length, 8);
}
