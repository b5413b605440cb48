//! Tests of leaving in order: operations that were begun have ended, and the other nodes report a departure instead of a loss.

#[path = "fabric/rig.rs"]
mod rig;

use std::time::Duration;

use rackloom::fabric::*;
use rig::{ended, local, pair};

const KEY: u64 = 0x5eed;
/// Longer than leaving takes, shorter than a hang.
const PATIENCE: Duration = Duration::from_secs(20);

fn assert_has_left(result: Result<impl std::fmt::Debug, Error>, who: NodeId) {
    assert!(matches!(result, Err(Error::PeerLeft { peer, .. }) if peer == who), "{result:?}");
}

#[test]
fn what_was_accepted_is_there_and_peers_hear_of_a_leave() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let theirs = far.allocate(RegionOptions::new(1, KEY), 8000).unwrap();
    let queue = Queue::with_capacity(4);
    far.receive(Some(near.id()), 1, 0, &theirs.slice(0..64)).submit(&queue, 1).unwrap();
    far.wait_until(&theirs, 0, Condition::Equal, u64::MAX, near.id()).submit(&queue, 2).unwrap();
    for place in 1..1000_u64 {
        near.store_posted(theirs.address(8 * place), &place.to_le_bytes()).wait().unwrap();
    }
    near.leave_in_order(PATIENCE).unwrap();
    for place in 1..1000_u64 {
        assert_eq!(theirs.get::<u64>(8 * place).unwrap(), place);
    }
    let mut contexts = [(); 2].map(|()| {
        let completion = ended(&far, &queue);
        assert_has_left(completion.result, near.id());
        completion.context
    });
    contexts.sort_unstable();
    assert_eq!(contexts, [1, 2]);
    assert_has_left(far.store(mine.address(0), &[1]).wait(), near.id());
    assert_has_left(far.load(mine.address(0), &theirs.slice(0..8)).wait(), near.id());
    assert_has_left(far.send(near.id(), 1, &theirs.slice(0..8)).wait(), near.id());
    assert!(matches!(near.leave_in_order(PATIENCE), Err(Error::Closed)), "only once");
}

#[test]
fn nobody_leaves_in_order_with_something_under_way() {
    let (near, far) = pair();
    let bytes = 1 << 20;
    let mine = near.allocate(RegionOptions::new(1, KEY), bytes).unwrap();
    let theirs = far.allocate(RegionOptions::new(1, KEY), bytes).unwrap();
    let queue = Queue::with_capacity(1);
    near.send(far.id(), 7, &mine.slice(..)).submit(&queue, 1).unwrap();
    let hasty = near.leave_in_order(Duration::from_millis(20));
    assert!(matches!(hasty, Err(Error::TimedOut { goes_on: true, .. })), "{hasty:?}");
    assert!(near.reaches(far.id()), "it has not left");
    let received = far.receive(Some(near.id()), 7, 0, &theirs.slice(..)).wait().unwrap();
    assert_eq!(received.length, bytes);
    near.leave_in_order(PATIENCE).unwrap();
    ended(&near, &queue).result.unwrap();
}

#[test]
fn a_posted_store_that_was_refused_is_told_before_leaving() {
    let (near, far) = pair();
    let theirs = far.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    near.store_posted(RemoteAddress { key: Key(1), ..theirs.address(0) }, &[1]).wait().unwrap();
    let refused = near.leave_in_order(PATIENCE);
    assert!(matches!(refused, Err(Error::Refused { peer, .. }) if peer == far.id()), "{refused:?}");
    near.leave_in_order(PATIENCE).unwrap();
}

#[test]
fn the_others_of_a_larger_rack_go_on_and_a_death_among_them_is_still_one() {
    let nodes = local("name: four\nshape: {ring: {nodes: 4}}\n").into_nodes();
    let regions: Vec<_> =
        nodes.iter().map(|node| node.allocate(RegionOptions::new(1, KEY), 64).unwrap()).collect();
    nodes[1].leave_in_order(PATIENCE).unwrap();
    nodes[0].wait_until_reached(&[NodeId(2), NodeId(3)], PATIENCE).unwrap();
    nodes[0].store(regions[2].address(0), &[5]).wait().unwrap();
    assert_has_left(nodes[2].store(regions[1].address(0), &[1]).wait(), NodeId(1));
    nodes[3].leave();
    let died = nodes[2].store(regions[3].address(0), &[1]).wait();
    assert!(matches!(died, Err(Error::PeerLost { peer: NodeId(3), .. })), "{died:?}");
}

#[test]
fn a_driver_is_told_that_a_peer_left_and_did_not_die() {
    let (near, far) = pair();
    let mine = near.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = far.drive().unwrap();
    near.leave_in_order(PATIENCE).unwrap();
    // The departure is known at once, or reported at the end.
    let told = driver.store(mine.address(0), &[1], 7).map(|_| {
        let mut completions = Vec::new();
        driver.poll_wait(&mut completions, PATIENCE);
        completions.remove(0).result
    });
    assert_has_left(told.and_then(|ended| ended), near.id());
}
