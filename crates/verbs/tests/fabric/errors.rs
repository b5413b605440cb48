//! Failures as verbs programs know them.

use rackloom_verbs::engine::{Kind, State, Status};
use rackloom_verbs::layout::attributes::QpAttr;
use rackloom_verbs::layout::constants::*;

use crate::rack::{ALL, Rack, successes};
use crate::support::{SEND, signalled};

#[test]
fn wrong_keys_bounds_and_rights_end_both_connections_and_change_nothing() {
    for case in 0..4 {
        let mut rack = Rack::two("");
        let (a, b) = rack.connected(0, 1);
        let source = rack.devices[0].memory(64, 1, ALL);
        let target = rack.devices[1].memory(64, 7, ALL);
        let read_only = rack.devices[1].memory(64, 7, ACCESS_REMOTE_READ);
        // A right access first, so that there is a grant.
        let write = |remote| Kind::Write { remote, immediate: None };
        rack.send(0, &a, signalled(1, &[source.part(0, 8)], write(target.remote(0))));
        successes(&rack.completions(&a.sends, 1));
        let before = [target.bytes(), read_only.bytes()];
        let mut remote = target.remote(60);
        match case {
            0 => {}
            1 => remote.key = remote.key.wrapping_add(1),
            2 => remote = read_only.remote(0),
            // Deregistered after the grant.
            _ => {
                rack.devices[1].engine.deregister(target.key).expect("it is registered");
                remote = target.remote(0);
            }
        }
        rack.send(0, &a, signalled(2, &[source.part(0, 8)], write(remote)));
        rack.send(0, &a, signalled(3, &[source.part(0, 8)], SEND));
        let found = rack.completions(&a.sends, 2);
        let statuses: Vec<_> = found.iter().map(|completion| completion.status).collect();
        assert_eq!(statuses, [Status::RemoteAccess as u32, Status::Flushed as u32], "case {case}");
        assert_eq!(rack.devices[0].state(&a), State::Err);
        assert_eq!([target.bytes(), read_only.bytes()], before, "case {case}");
        if case < 3 {
            rack.until("the responder is in error", |rack| {
                (rack.devices[1].state(&b) == State::Err).then_some(())
            });
            assert!(rack.devices[1].kinds().contains(&EVENT_QP_ACCESS_ERR), "case {case}");
        }
    }
}

#[test]
fn a_peer_that_is_lost_ends_the_connection_and_the_rest_is_flushed() {
    let mut rack = Rack::two("timers: {heartbeat_interval: 20ms}\n");
    let (a, b) = rack.connected(0, 1);
    let source = rack.devices[0].memory(64, 1, ALL);
    let target = rack.devices[1].memory(64, 7, ALL);
    rack.devices[1].receive(&b, 1, &[target.part(0, 64)]);
    rack.send(0, &a, signalled(1, &[source.part(0, 8)], SEND));
    successes(&rack.completions(&a.sends, 1));
    // No receive: the next send waits without limit, as the queue pair says. The death of the peer ends it.
    rack.send(0, &a, signalled(2, &[source.part(0, 8)], SEND));
    rack.send(0, &a, signalled(3, &[source.part(0, 8)], SEND));
    for _ in 0..50 {
        rack.poll();
    }
    let node = rack.nodes.remove(1);
    drop(rack.devices.remove(1));
    node.leave();
    let found = rack.completions(&a.sends, 2);
    let statuses: Vec<_> = found.iter().map(|completion| completion.status).collect();
    assert_eq!(statuses, [Status::RetryExceeded as u32, Status::Flushed as u32]);
    assert!(rack.devices[0].kinds().is_empty(), "no asynchronous event");
}

#[test]
fn a_connection_to_a_queue_pair_in_another_state_has_no_answer() {
    let mut rack = Rack::two("");
    let (a, b) = rack.connected(0, 1);
    let source = rack.devices[0].memory(64, 1, ALL);
    let target = rack.devices[1].memory(64, 7, ALL);
    let write = Kind::Write { remote: target.remote(0), immediate: None };
    rack.send(0, &a, signalled(1, &[source.part(0, 8)], write));
    successes(&rack.completions(&a.sends, 1));
    // The peer resets its queue pair: the grant ends.
    let reset = QpAttr { qp_state: State::Reset as u32, ..QpAttr::default() };
    rack.devices[1].engine.modify_queue_pair(b.number, &reset, QP_STATE, 0).expect("always");
    for _ in 0..1000 {
        rack.poll();
    }
    let before = target.bytes();
    rack.send(0, &a, signalled(2, &[source.part(8, 8)], write));
    let found = rack.completions(&a.sends, 1);
    assert_eq!(found[0].status, Status::RetryExceeded as u32);
    assert_eq!(target.bytes(), before);
}
