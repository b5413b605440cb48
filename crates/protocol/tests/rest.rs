//! Idle links: their heartbeats are rare, and a death is detected in the usual time.

mod harness;

use std::cell::Cell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::link::state::LinkState;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

const REST: u64 = 5;
const INTERVAL_NS: u64 = TIMERS.heartbeat_interval_ns;

fn restful() -> Options {
    let timers = LinkTimers { heartbeat_rest: REST as u32, ..TIMERS };
    Options { timers, ..options(RetransmissionMode::Selective) }
}

/// Returns a ring of four at rest.
fn at_rest() -> Fabric {
    let mut fabric = Fabric::up(ring(4), &restful());
    fabric.run_for(5 * REST * INTERVAL_NS);
    fabric
}

fn sent(fabric: &mut Fabric) -> Vec<u64> {
    (0..8).map(|end| fabric.counters(end / 2, (end % 2) as u16).frames_sent).collect()
}

fn is_heartbeat(frame: &[u8]) -> bool {
    frame[layout::VERSION_KIND] & 15 == 4
}

fn downs(fabric: &Fabric) -> usize {
    let is_down = |event: &Event| matches!(event, Event::LinkChanged { to: LinkState::Down, .. });
    fabric.events.iter().filter(|(_, _, event)| is_down(event)).count()
}

// W-31
#[test]
fn a_link_at_rest_carries_a_heartbeat_every_few_intervals() {
    let mut fabric = at_rest();
    let before = sent(&mut fabric);
    fabric.run_for(20 * REST * INTERVAL_NS);
    let after = sent(&mut fabric);
    let frames: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(frames, [20; 8]);
    assert_eq!(downs(&fabric), 0);
}

// W-31
#[test]
fn traffic_ends_the_rest() {
    let mut fabric = at_rest();
    let heartbeats = Rc::new(Cell::new(0));
    let counted = heartbeats.clone();
    fabric.filter = Box::new(move |_, edge, forward, bytes| {
        counted.set(counted.get() + u64::from(edge == 0 && forward && is_heartbeat(bytes)));
        true
    });
    let intervals = 4 * REST;
    for round in 0..intervals {
        fabric.command(0, store(100 + round, at(1, 0), &[7])).unwrap();
        fabric.run_for(INTERVAL_NS);
    }
    let heartbeats = heartbeats.get();
    assert!(heartbeats > intervals - REST, "{heartbeats} heartbeats in {intervals} intervals");
}

#[test]
fn a_member_that_dies_while_its_links_rest_is_reported_within_the_detection_time() {
    for phase in 0..7 {
        let mut fabric = at_rest();
        fabric.run_for(phase * INTERVAL_NS * 3 / 4 + 1234);
        fabric.kill(2);
        let killed = fabric.now;
        let bound_ns = restful().timers.detection_ns() + 3 * DELAY_NS;
        fabric.run_for(bound_ns);
        for node in [0, 1, 3] {
            let is_lost = |event: &Event| *event == Event::NodeLost { node: NodeId(2) };
            let lost = fabric.events.iter().find(|(_, at, event)| *at == node && is_lost(event));
            let noticed =
                lost.unwrap_or_else(|| panic!("node {node} has not noticed, phase {phase}")).0.since(killed);
            let misses = u64::from(TIMERS.heartbeat_miss_max);
            assert!(noticed > (misses - 1) * INTERVAL_NS, "node {node} after {noticed} ns");
        }
    }
}

// W-31
#[test]
fn a_heartbeat_that_is_lost_at_rest_is_requested() {
    let mut fabric = at_rest();
    let suspicions = |fabric: &Fabric| {
        let is_suspect = |event: &Event| matches!(event, Event::LinkChanged { to: LinkState::Suspect, .. });
        fabric.events.iter().filter(|(_, _, event)| is_suspect(event)).count()
    };
    assert_eq!(suspicions(&fabric), 0);
    let mut lost = 0;
    fabric.filter = Box::new(move |_, edge, forward, bytes| {
        let drops = edge == 0 && forward && is_heartbeat(bytes) && lost == 0;
        lost += u32::from(drops);
        !drops
    });
    fabric.run_for(3 * REST * INTERVAL_NS);
    assert_eq!(suspicions(&fabric), 1, "the receiver missed it");
    assert_eq!(downs(&fabric), 0);
    assert_eq!(fabric.endpoint(1).link_state(PortId(1)), LinkState::Up);
}
