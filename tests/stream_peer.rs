//! Streams of a device that wait for an event of a peer, and the death of that peer's process.

mod support;

use std::process::Child;
use std::time::Duration;

use rackloom::fabric::*;
use rackloom_gpu::device::{EventId, StreamId};
use support::seats::{Rack, start};
use support::wires::has_gpu;
use support::within;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Variable that is set for the process of the peer.
const PEER: &str = "RACKLOOM_TEST_STREAM_PEER";
const BYTES: u64 = 4096;
const WORD: u64 = 8;

const fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, 7)
}

fn device(name: &str) -> DeviceChoice {
    match name {
        "cuda" => DeviceChoice::Cuda(0),
        _ => DeviceChoice::Fake(name.parse().expect("a seed")),
    }
}

/// Body of the peer's process. On its own it does nothing.
#[test]
fn body_of_a_peer_with_memory_on_a_device() {
    let Ok(seat) = std::env::var(PEER) else {
        // This is no skip: the other test starts this one in a process of its own.
        return;
    };
    let (rack, choice) = seat.split_once('=').expect("a device");
    let node = Node::join(rack, "n2").expect("the seat is vacant");
    let region = node.allocate_on_device(options(1), device(choice), BYTES).expect("memory");
    // The test kills this process. The wait has a bound for the case that the test has died.
    let never = node.wait_until(&region, BYTES - 8, Condition::AtLeast, 1, NodeId(1));
    let _ = never.wait_for(TIMEOUT);
}

/// Kills the process when the test ends.
struct Peer(Child);

impl Peer {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn stream(node: &Node) -> StreamId {
    node.with_device(|device| device.stream().expect("a stream")).expect("a device")
}

/// Records an event of the device behind all that is on the stream.
fn mark(node: &Node, stream: StreamId) -> EventId {
    node.with_device(|device| {
        let event = device.event().expect("an event");
        device.record(event, stream).expect("it is recorded");
        event
    })
    .expect("a device")
}

fn is_done(node: &Node, event: EventId) -> bool {
    node.with_device(|device| device.is_done(event).expect("the device works")).expect("a device")
}

#[test]
fn a_stream_that_waits_for_a_dead_peer_is_released_by_a_record_of_its_own_node() {
    let test = "a_stream_that_waits_for_a_dead_peer_is_released_by_a_record_of_its_own_node";
    for choice in ["1", "2"].into_iter().chain(has_gpu(test).then_some("cuda")) {
        let rack = Rack::up_with("servers: {box: [n0, n1, n2, n3]}\n", &["--vacant", "n1,n2"]);
        let node = Node::join(&rack.directory(), "n1").expect("the seat is vacant");
        let mut peer = Peer(start(&rack, PEER, "body_of_a_peer_with_memory_on_a_device", choice));
        let mine = node.allocate_on_device(options(1), device(choice), BYTES).expect("memory");
        node.wait_until_reached(&[NodeId(2)], TIMEOUT).expect("n2 is reached");
        let theirs = RemoteAddress { node: NodeId(2), region: RegionId(1), offset: 0, key: Key(7) };
        let view = within(TIMEOUT, "it is mapped", || node.map_peer(theirs, TIMEOUT).ok());
        // The peer would record both: one word is in memory of this node, the other one in its own memory.
        let (finished, is_ready) =
            (mine.stream_event(WORD).expect("a word"), view.stream_event(WORD).expect("a word"));
        let waiting = [stream(&node), stream(&node)];
        finished.wait(waiting[0], 1).expect("it is enqueued");
        is_ready.wait(waiting[1], 1).expect("it is enqueued");
        let ends = waiting.map(|stream| mark(&node, stream));
        peer.kill();
        within(TIMEOUT, "the death is known", || {
            matches!(view.stream_event(WORD), Err(Error::PeerLost { .. })).then_some(())
        });
        for _ in 0..100 {
            assert_eq!(
                ends.map(|end| is_done(&node, end)),
                [false; 2],
                "{choice}: nothing has recorded the number"
            );
        }
        let rescue = stream(&node);
        finished.record(rescue, 1).expect("its own memory");
        is_ready.record(rescue, 1).expect("the memory is open until the view is dropped");
        within(TIMEOUT, "the streams go on", || ends.iter().all(|end| is_done(&node, *end)).then_some(()));
        // The node is as good as before.
        mine.write(64, &[7_u64]).expect("it is writable");
        assert_eq!(mine.get::<u64>(64).expect("it is readable"), 7);
    }
}
