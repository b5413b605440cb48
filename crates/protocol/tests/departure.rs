//! Departure of a member in order: all others receive it, at any distance, and do not count it as a death.

mod harness;

use std::cell::Cell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

const LEAVER: usize = 2;

/// A ring of five.
fn five() -> Fabric {
    Fabric::up(ring(5), &options(RetransmissionMode::Selective))
}

/// Returns the index of the leaver's event among a node's events, if there is one.
fn place_of(fabric: &Fabric, node: usize, wanted: Event) -> Option<usize> {
    fabric.events.iter().position(|(_, at, event)| *at == node && *event == wanted)
}

fn left(fabric: &Fabric, node: usize) -> Option<usize> {
    place_of(fabric, node, Event::NodeLeft { node: NodeId(LEAVER as u16) })
}

fn lost(fabric: &Fabric, node: usize) -> Option<usize> {
    place_of(fabric, node, Event::NodeLost { node: NodeId(LEAVER as u16) })
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
fn everybody_hears_at_once_that_a_member_leaves_and_then_that_it_is_lost() {
    let mut fabric = five();
    let begun = fabric.now;
    begin_departure(&mut fabric);
    fabric.run_until("the leaver is lost", |fabric| others().all(|node| lost(fabric, node).is_some()));
    assert!(fabric.now.since(begun) < TIMERS.heartbeat_interval_ns, "nobody waits for a heartbeat");
    for node in others() {
        assert!(left(&fabric, node) < lost(&fabric, node), "node {node} hears why before");
        assert!(left(&fabric, node).is_some());
    }
    fabric.run_for(TIMERS.heartbeat_interval_ns);
    assert!(fabric.endpoint(LEAVER).has_departed(), "the leaver knows that its neighbours know");
    for (from, to) in [(1, 3), (3, 1)] {
        assert!(fabric.endpoint(from).is_reachable(NodeId(to)), "the way around is found");
    }
}

// W-50
#[test]
fn a_death_is_no_leave() {
    let mut fabric = five();
    fabric.kill(LEAVER);
    fabric.run_until("the dead one is lost", |fabric| others().all(|node| lost(fabric, node).is_some()));
    assert_eq!(others().find_map(|node| left(&fabric, node)), None);
}

// W-50
#[test]
fn a_farewell_that_is_lost_on_the_way_is_heard_when_it_is_said_again() {
    let mut fabric = five();
    let is_deaf = Rc::new(Cell::new(true));
    let deaf = is_deaf.clone();
    let is_report = |frame: &[u8]| frame[layout::VERSION_KIND] & 15 == 5;
    fabric.filter = Box::new(move |_, _, _, bytes| !(deaf.get() && is_report(bytes)));
    begin_departure(&mut fabric);
    fabric.run_for(TIMERS.heartbeat_interval_ns / 2);
    assert!(!fabric.endpoint(LEAVER).has_departed());
    assert_eq!(others().find_map(|node| left(&fabric, node)), None);
    is_deaf.set(false);
    begin_departure(&mut fabric);
    fabric.run_until("the farewell is heard", |fabric| others().all(|node| left(fabric, node).is_some()));
}

// W-50
#[test]
fn what_others_have_in_flight_to_a_leaver_ends_and_a_later_life_is_met_as_any_other() {
    let mut fabric = five();
    fabric.run_for(1_000_000);
    begin_departure(&mut fabric);
    fabric.command(0, load(1, at(LEAVER as u16, 0), local(0, 8))).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::Unreachable));
    fabric.kill(LEAVER);
    fabric.restart(LEAVER, &options(RetransmissionMode::Selective));
    fabric.run_until("the new life is met", Fabric::everyone_reaches_everyone);
    fabric.run_for(1_000_000);
    fabric.command(0, store(2, at(LEAVER as u16, 0), &[7])).unwrap();
    assert_eq!(fabric.finish(2), Ok(0));
}

// W-50
#[test]
fn a_lasting_farewell_is_said_until_it_is_heard_and_not_for_ever() {
    for is_heard in [true, false] {
        let mut fabric = five();
        let said = Rc::new(Cell::new(0));
        let count = said.clone();
        let is_report = |frame: &[u8]| frame[layout::VERSION_KIND] & 15 == 5;
        fabric.filter = Box::new(move |_, edge, forward, bytes| {
            let is_leavers = [(LEAVER, true), (LEAVER - 1, false)].contains(&(usize::from(edge), forward));
            if is_leavers && is_report(bytes) {
                count.set(count.get() + 1);
            }
            is_heard || !is_report(bytes)
        });
        let mut departure = Departure::default();
        assert!(!departure.has_begun());
        let begun = fabric.now;
        let mut looks = 0;
        loop {
            let now = fabric.now;
            let Some(again) = departure.advance(now, fabric.endpoint(LEAVER)) else { break };
            assert!(again > now, "whoever waits until then does not wait in vain");
            fabric.run_for(again.since(now));
            looks += 1;
        }
        assert!(departure.has_begun());
        let lasted = fabric.now.since(begun);
        if is_heard {
            assert_eq!(looks, 1, "heard the first time");
            assert!(fabric.endpoint(LEAVER).has_departed());
        } else {
            assert!(said.get() >= 2 * looks && looks > 1, "{looks} times on two links, said {}", said.get());
            assert!(lasted <= 2 * TIMERS.heartbeat_interval_ns, "it ends by itself, after {lasted} ns");
        }
    }
}
