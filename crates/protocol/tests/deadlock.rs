//! Deadlock of a ring without its two forwarding rules, and progress with them.

mod harness;

use harness::*;
use rackloom_protocol::forwarding::waits::cycle;
use rackloom_protocol::*;

/// Returns a ring of eight nodes, each sending to the third node after it. All short paths lead in one
/// direction.
fn all_send(forwarding: ForwardingConfig, limit: u32) -> Fabric {
    let mut options = options(RetransmissionMode::Selective);
    options.credits.limit = limit;
    options.forwarding = forwarding;
    let mut fabric = Fabric::up(ring(8), &options);
    // Every byte of every source is set, so that a single delivered frame is detected.
    (0..8).for_each(|node| fabric.memory(node)[..400_000].fill(0xff));
    // All get their commands before any frame has arrived.
    for node in 0..8u16 {
        let target = at((node + 3) % 8, 500_000);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 400_000))).unwrap();
    }
    fabric
}

fn delivered(fabric: &mut Fabric) -> usize {
    (0..8).filter(|node| fabric.memory(*node)[500_000..900_000].iter().any(|byte| *byte != 0)).count()
}

#[test]
fn a_ring_without_a_bubble_and_with_own_frames_first_delivers_nothing() {
    let rules =
        ForwardingConfig { bubble: false, priority: ForwardingPriority::Own, ..ForwardingConfig::default() };
    // Buffers for one, two, four and sixteen of the largest frames.
    for frames in [1, 2, 4, 16] {
        let mut fabric = all_send(rules, 35 * frames);
        fabric.run_for(50_000_000);
        assert_eq!(delivered(&mut fabric), 0, "{frames} frames of buffer");
        let waits = fabric.waits();
        let cycle = cycle(&waits).expect("a circle of full buffers");
        assert_eq!(cycle.len(), 8, "{cycle:?}");
    }
}

// W-51
#[test]
fn no_frame_is_sent_back_over_its_ingress() {
    let mut options = options(RetransmissionMode::Selective);
    options.credits.limit = 35 * 4;
    let mut fabric = Fabric::up(ring(4), &options);
    fabric.memory(0)[..400_000].fill(7);
    let came_back = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = came_back.clone();
    // Over link 0, from n1 to n0.
    fabric.filter = Box::new(move |_, edge, forward, bytes| {
        let is_data = bytes[wire::layout::VERSION_KIND] & 15 == 1;
        let is_back = edge == 0 && !forward && is_data;
        if is_back && wire::layout::u16_at(bytes, wire::layout::SOURCE) == 0 {
            count.set(count.get() + 1);
        }
        true
    });
    fabric.command(0, put(1, at(2, 500_000), local(0, 400_000))).unwrap();
    fabric.run_for(5 * DELAY_NS);
    // The short path, in either direction, continues over one of these.
    let now = fabric.now;
    fabric.endpoint(1).administer_link(now, PortId(0), false);
    assert_eq!(fabric.finish(1), Ok(0));
    assert!(fabric.memory(2)[500_000..900_000].iter().all(|byte| *byte == 7));
    assert_eq!(came_back.get(), 0);
    let dropped: u64 = (0..2).map(|port| fabric.counters(1, port).dropped_for(DropReason::NoRoute)).sum();
    assert!(dropped > 0, "some were in flight");
}

#[test]
fn a_ring_with_a_bubble_delivers_everything() {
    for priority in [ForwardingPriority::Transit, ForwardingPriority::Own] {
        for frames in [2, 4, 16] {
            let mut fabric = all_send(
                ForwardingConfig { bubble: true, priority, ..ForwardingConfig::default() },
                35 * frames,
            );
            for id in 0..8 {
                assert_eq!(fabric.finish(id), Ok(0), "{priority:?} first, {frames} frames of buffer");
            }
            assert_eq!(cycle(&fabric.waits()), None);
        }
    }
}
