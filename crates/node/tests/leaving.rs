//! Tests of leaving in order: operations that were begun have ended, and the other nodes report a departure instead of a loss.

#[path = "fabric/rig.rs"]
mod rig;

use std::time::Duration;

use rackloom::fabric::*;
use rig::{ended, local, pair};

const KEY: u64 = 0x5eed;
/// Longer than leaving takes, shorter than a hang.
const TIMEOUT: Duration = Duration::from_secs(20);

fn assert_has_left(result: Result<impl std::fmt::Debug, Error>, expected: NodeId) {
    assert!(matches!(result, Err(Error::PeerLeft { peer, .. }) if peer == expected), "{result:?}");
}

#[test]
fn accepted_operations_complete_and_peers_report_a_departure() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 8000).unwrap();
    let queue = Queue::with_capacity(4);
    owner.receive(Some(initiator.id()), 1, 0, &theirs.slice(0..64)).submit(&queue, 1).unwrap();
    owner.wait_until(&theirs, 0, Condition::Equal, u64::MAX, initiator.id()).submit(&queue, 2).unwrap();
    for number in 1..1000_u64 {
        initiator.store_posted(theirs.address(8 * number), &number.to_le_bytes()).wait().unwrap();
    }
    initiator.leave_in_order(TIMEOUT).unwrap();
    for number in 1..1000_u64 {
        assert_eq!(theirs.get::<u64>(8 * number).unwrap(), number);
    }
    let mut contexts = [(); 2].map(|()| {
        let completion = ended(&owner, &queue);
        assert_has_left(completion.result, initiator.id());
        completion.context
    });
    contexts.sort_unstable();
    assert_eq!(contexts, [1, 2]);
    assert_has_left(owner.store(mine.address(0), &[1]).wait(), initiator.id());
    assert_has_left(owner.load(mine.address(0), &theirs.slice(0..8)).wait(), initiator.id());
    assert_has_left(owner.send(initiator.id(), 1, &theirs.slice(0..8)).wait(), initiator.id());
    assert!(matches!(initiator.leave_in_order(TIMEOUT), Err(Error::Closed)), "only once");
}

#[test]
fn a_node_with_operations_in_flight_does_not_leave_in_order() {
    let (initiator, owner) = pair();
    let bytes = 1 << 20;
    let mine = initiator.allocate(RegionOptions::new(1, KEY), bytes).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), bytes).unwrap();
    let queue = Queue::with_capacity(1);
    initiator.send(owner.id(), 7, &mine.slice(..)).submit(&queue, 1).unwrap();
    let early = initiator.leave_in_order(Duration::from_millis(20));
    assert!(matches!(early, Err(Error::TimedOut { continues: true, .. })), "{early:?}");
    assert!(initiator.reaches(owner.id()), "it has not left");
    let received = owner.receive(Some(initiator.id()), 7, 0, &theirs.slice(..)).wait().unwrap();
    assert_eq!(received.length, bytes);
    initiator.leave_in_order(TIMEOUT).unwrap();
    ended(&initiator, &queue).result.unwrap();
}

#[test]
fn a_refused_posted_store_is_reported_before_the_departure() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    initiator.store_posted(RemoteAddress { key: Key(1), ..theirs.address(0) }, &[1]).wait().unwrap();
    let refused = initiator.leave_in_order(TIMEOUT);
    assert!(matches!(refused, Err(Error::Refused { peer, .. }) if peer == owner.id()), "{refused:?}");
    initiator.leave_in_order(TIMEOUT).unwrap();
}

#[test]
fn the_rest_of_a_rack_continues_after_a_departure_and_detects_a_death() {
    let nodes = local("name: four\nshape: {ring: {nodes: 4}}\n").into_nodes();
    let regions: Vec<_> =
        nodes.iter().map(|node| node.allocate(RegionOptions::new(1, KEY), 64).unwrap()).collect();
    nodes[1].leave_in_order(TIMEOUT).unwrap();
    nodes[0].wait_until_reached(&[NodeId(2), NodeId(3)], TIMEOUT).unwrap();
    nodes[0].store(regions[2].address(0), &[5]).wait().unwrap();
    assert_has_left(nodes[2].store(regions[1].address(0), &[1]).wait(), NodeId(1));
    nodes[3].leave();
    let died = nodes[2].store(regions[3].address(0), &[1]).wait();
    assert!(matches!(died, Err(Error::PeerLost { peer: NodeId(3), .. })), "{died:?}");
}

#[test]
fn a_driver_reports_a_departed_peer_as_departed() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = owner.drive().unwrap();
    initiator.leave_in_order(TIMEOUT).unwrap();
    // The departure is known at once, or reported at the end.
    let ended = driver.store(mine.address(0), &[1], 7).map(|_| {
        let mut completions = Vec::new();
        driver.poll_wait(&mut completions, TIMEOUT);
        completions.remove(0).result
    });
    assert_has_left(ended.and_then(|result| result), initiator.id());
}
