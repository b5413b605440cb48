//! Departure of a member in order: all others receive it, at any distance, and do not count it as a death.

mod harness;

use std::cell::Cell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

const LEAVER: usize = 2;

/// Returns a ring of five nodes.
fn five() -> Fabric {
    Fabric::up(ring(5), &options(RetransmissionMode::Selective))
}

/// Returns the index of the leaver's event among a node's events, if there is one.
fn index_of(fabric: &Fabric, node: usize, wanted: Event) -> Option<usize> {
    fabric.events.iter().position(|(_, at, event)| *at == node && *event == wanted)
}

fn left(fabric: &Fabric, node: usize) -> Option<usize> {
    index_of(fabric, node, Event::NodeLeft { node: NodeId(LEAVER as u16) })
}

fn lost(fabric: &Fabric, node: usize) -> Option<usize> {
    index_of(fabric, node, Event::NodeLost { node: NodeId(LEAVER as u16) })
}

fn others() -> impl Iterator<Item = usize> {
    (0..5).filter(|node| *node != LEAVER)
}

fn begin_departure(fabric: &mut Fabric) {
    let now = fabric.now;
    fabric.endpoint(LEAVER).begin_departure(now);
}

// W-50
#[test]
fn a_departure_is_reported_to_all_members_at_once_and_before_the_loss() {
    let mut fabric = five();
    let begun = fabric.now;
    begin_departure(&mut fabric);
    fabric.run_until("the leaver is lost", |fabric| others().all(|node| lost(fabric, node).is_some()));
    assert!(fabric.now.since(begun) < TIMERS.heartbeat_interval_ns, "no member waits for a heartbeat");
    for node in others() {
        assert!(left(&fabric, node) < lost(&fabric, node), "node {node} gets the reason first");
        assert!(left(&fabric, node).is_some());
    }
    fabric.run_for(TIMERS.heartbeat_interval_ns);
    assert!(fabric.endpoint(LEAVER).has_departed(), "all neighbours have acknowledged");
    for (from, to) in [(1, 3), (3, 1)] {
        assert!(fabric.endpoint(from).is_reachable(NodeId(to)), "the other path is found");
    }
}

// W-50
#[test]
fn a_death_is_not_reported_as_a_departure() {
    let mut fabric = five();
    fabric.kill(LEAVER);
    fabric.run_until("the dead member is lost", |fabric| others().all(|node| lost(fabric, node).is_some()));
    assert_eq!(others().find_map(|node| left(&fabric, node)), None);
}

// W-50
#[test]
fn a_lost_departure_is_received_when_it_is_repeated() {
    let mut fabric = five();
    let drops_reports = Rc::new(Cell::new(true));
    let filter_reports = drops_reports.clone();
    let is_report = |frame: &[u8]| frame[layout::VERSION_KIND] & 15 == 5;
    fabric.filter = Box::new(move |_, _, _, bytes| !(filter_reports.get() && is_report(bytes)));
    begin_departure(&mut fabric);
    fabric.run_for(TIMERS.heartbeat_interval_ns / 2);
    assert!(!fabric.endpoint(LEAVER).has_departed());
    assert_eq!(others().find_map(|node| left(&fabric, node)), None);
    drops_reports.set(false);
    begin_departure(&mut fabric);
    fabric.run_until("the departure is received", |fabric| others().all(|node| left(fabric, node).is_some()));
}

// W-50
#[test]
fn operations_in_flight_to_a_leaver_end_and_its_next_incarnation_is_reached() {
    let mut fabric = five();
    fabric.run_for(1_000_000);
    begin_departure(&mut fabric);
    fabric.command(0, load(1, at(LEAVER as u16, 0), local(0, 8))).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::Unreachable));
    fabric.kill(LEAVER);
    fabric.restart(LEAVER, &options(RetransmissionMode::Selective));
    fabric.run_until("the next incarnation is reached", Fabric::all_nodes_reach_each_other);
    fabric.run_for(1_000_000);
    fabric.command(0, store(2, at(LEAVER as u16, 0), &[7])).unwrap();
    assert_eq!(fabric.finish(2), Ok(0));
}

// W-50
#[test]
fn a_departure_is_repeated_until_it_is_acknowledged_or_the_time_is_over() {
    for is_acknowledged in [true, false] {
        let mut fabric = five();
        let sent = Rc::new(Cell::new(0));
        let count = sent.clone();
        let is_report = |frame: &[u8]| frame[layout::VERSION_KIND] & 15 == 5;
        fabric.filter = Box::new(move |_, edge, forward, bytes| {
            let is_leavers = [(LEAVER, true), (LEAVER - 1, false)].contains(&(usize::from(edge), forward));
            if is_leavers && is_report(bytes) {
                count.set(count.get() + 1);
            }
            is_acknowledged || !is_report(bytes)
        });
        let mut departure = Departure::default();
        assert!(!departure.has_begun());
        let begun = fabric.now;
        let mut polls = 0;
        loop {
            let now = fabric.now;
            let Some(again) = departure.advance(now, fabric.endpoint(LEAVER)) else { break };
            assert!(again > now, "the next step is in the future");
            fabric.run_for(again.since(now));
            polls += 1;
        }
        assert!(departure.has_begun());
        let lasted = fabric.now.since(begun);
        if is_acknowledged {
            assert_eq!(polls, 1, "acknowledged at once");
            assert!(fabric.endpoint(LEAVER).has_departed());
        } else {
            assert!(sent.get() >= 2 * polls && polls > 1, "{polls} times on two links, sent {}", sent.get());
            assert!(lasted <= 2 * TIMERS.heartbeat_interval_ns, "it ends by itself, after {lasted} ns");
        }
    }
}
