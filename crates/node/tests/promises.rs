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
fn detect_loss(node: &Node, gone: NodeId) {
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
fn posted_stores_to_a_dead_node_fail_a_flush_that_names_it() {
    for target in [None, Some(NodeId(1))] {
        let (initiator, owner) = pair();
        let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
        owner.leave();
        // The core accepts the operation, unless the loss has been detected already.
        let posted = initiator.store_posted(theirs.address(0), &[1]).wait();
        detect_loss(&initiator, owner.id());
        let error = initiator.flush(target).wait_for(BOUND).err();
        match (&posted, target, error) {
            (Ok(()), _, Some(Error::PeerLost { peer, maybe_done: true })) => assert_eq!(peer, owner.id()),
            (Err(_), Some(_), Some(Error::PeerLost { peer, .. })) => assert_eq!(peer, owner.id()),
            (Err(_), None, None) => {}
            (_, _, error) => panic!("{posted:?}, then {error:?}"),
        }
    }
}

#[test]
fn a_refused_posted_store_names_the_peer() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let wrong = RemoteAddress { key: Key(1), ..theirs.address(0) };
    initiator.store_posted(wrong, &[1]).wait().unwrap();
    let error = initiator.flush(None).wait_for(BOUND).unwrap_err();
    assert!(matches!(error, Error::Refused { reason: OperationError::EarlierFailure, .. }), "{error:?}");
    assert_eq!(error.peer(), Some(owner.id()));
    initiator.flush(None).wait_for(BOUND).unwrap();
}

#[test]
fn receives_from_any_node_end_with_the_last_peer() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(1);
    initiator.receive(None, 1, 0, &mine.slice(..)).submit(&queue, 1).unwrap();
    owner.leave();
    let ended = initiator.poll_wait(&queue, BOUND).expect("the receive ends without a peer");
    assert!(matches!(ended.result, Err(Error::Failed(OperationError::Unreachable))), "{ended:?}");
    let error = initiator.receive(None, 1, 0, &mine.slice(..)).wait_for(BOUND).unwrap_err();
    assert!(matches!(error, Error::Failed(OperationError::Unreachable)), "{error:?}");
}

#[test]
fn a_condition_that_a_peer_met_before_its_death_holds() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    owner.store(mine.address(0), &7_u64.to_ne_bytes()).wait().unwrap();
    owner.leave();
    detect_loss(&initiator, owner.id());
    let wait = |value| initiator.wait_until(&mine, 0, Condition::Equal, value, owner.id()).wait_for(BOUND);
    assert_eq!(wait(7).unwrap(), 7);
    assert!(matches!(wait(8), Err(Error::PeerLost { maybe_done: false, .. })));
}

#[test]
fn an_unknown_node_is_an_error_that_names_it() {
    let nodes = local("name: star\nshape: {star: {nodes: 2}}\n").into_nodes();
    let initiator = &nodes[0];
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let (switch, no_member) = (NodeId(2), NodeId(99));
    for node in [switch, no_member] {
        let error = initiator.wait_until_reached(&[NodeId(1), node], BOUND).unwrap_err();
        assert!(matches!(error, Error::NoSuchNode(named) if named == node), "{error:?}");
    }
    for node in [initiator.id(), switch, no_member] {
        let errors = [
            initiator.flush(Some(node)).wait_for(BOUND).unwrap_err(),
            initiator.fence(Some(node)).wait_for(BOUND).unwrap_err(),
            initiator.receive(Some(node), 1, 0, &mine.slice(..)).wait_for(BOUND).unwrap_err(),
            initiator.wait_until(&mine, 0, Condition::Equal, 1, node).wait_for(BOUND).unwrap_err(),
            initiator.send(node, 1, &mine.slice(..)).wait_for(BOUND).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::NoSuchNode(named) if named == node), "{error:?}");
        }
    }
}

#[test]
fn a_receive_that_was_dropped_takes_no_message() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = owner.register(RegionOptions::new(1, KEY), vec![7_u8; 8]).unwrap();
    begin_and_drop(initiator.receive(None, 5, 0, &mine.slice(0..8)));
    owner.send(initiator.id(), 5, &theirs.slice(..)).wait().unwrap();
    let received = initiator.receive(None, 5, 0, &mine.slice(8..16)).wait_for(BOUND).unwrap();
    assert_eq!((received.length, mine.get::<u64>(0).unwrap()), (8, 0));
    assert_eq!(mine.get::<u8>(8).unwrap(), 7);
}

#[test]
fn a_region_is_free_as_soon_as_its_waits_are_dropped() {
    let (initiator, owner) = pair();
    let mine = initiator.register(RegionOptions::new(1, KEY), vec![0_u64; 8]).unwrap();
    begin_and_drop(initiator.wait_until(&mine, 0, Condition::Equal, 1, owner.id()));
    begin_and_drop(initiator.receive(Some(owner.id()), 1, 0, &mine.slice(..)));
    assert!(
        initiator.waiting_for().iter().all(|line| !line.starts_with("operation")),
        "{:?}",
        initiator.waiting_for()
    );
    assert_eq!(mine.deregister::<u64>().unwrap().expect("owned memory").len(), 8);
}

#[test]
fn a_timeout_ends_a_wait_and_states_if_the_operation_continues() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let timeout = Duration::from_millis(2);
    let error = initiator.receive(None, 5, 0, &mine.slice(0..8)).wait_for(timeout).unwrap_err();
    assert!(matches!(error, Error::TimedOut { peer: None, waited_ms: 2, continues: false }), "{error:?}");
    let wait = initiator.wait_until(&mine, 0, Condition::Equal, 1, owner.id());
    let error = wait.wait_for(timeout).unwrap_err();
    assert!(matches!(error, Error::TimedOut { continues: false, .. }), "{error:?}");
    assert_eq!(error.peer(), Some(owner.id()));
    // A long message without a receiver. It has been offered and cannot be withdrawn.
    let long = initiator.allocate(RegionOptions::new(2, KEY), 1 << 16).unwrap();
    let error = initiator.send(owner.id(), 6, &long.slice(..)).wait_for(timeout).unwrap_err();
    assert!(matches!(error, Error::TimedOut { continues: true, .. }), "{error:?}");
    // A receive that was given up takes no later message.
    owner.send(initiator.id(), 5, &theirs.slice(0..8)).wait().unwrap();
    assert_eq!(initiator.receive(None, 5, 0, &mine.slice(0..8)).wait_for(BOUND).unwrap().length, 8);
}
