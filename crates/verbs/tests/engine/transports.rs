//! A transport whose outcomes follow later.

use std::sync::{Arc, Mutex};

use rackloom_verbs::engine::{Carried, Loopback, Outcome, Request, State, Target, Ticket};
use rackloom_verbs::layout::attributes::QpAttr;

use crate::around::Around;
use crate::support::{Device, SEND, signalled, statuses};

/// Returns a device whose transport keeps the tickets of its requests and delivers nothing.
fn device() -> (Device, Arc<Mutex<Vec<Ticket>>>) {
    let tickets: Arc<Mutex<Vec<Ticket>>> = Arc::default();
    let kept = Arc::clone(&tickets);
    let later = Around::new(move |_: &mut Loopback, request: Request, _: &mut dyn Target| {
        kept.lock().expect("no panic").push(request.ticket);
        Carried::Pending
    });
    (Device::with(Box::new(later)), tickets)
}

#[test]
fn sends_complete_in_order_with_the_outcomes() {
    let (mut device, tickets) = device();
    let (a, _b) = device.connected();
    (1..=3).for_each(|id| device.send(&a, signalled(id, &[], SEND)));
    let ticket = |index: usize| tickets.lock().expect("no panic")[index];
    assert_eq!(tickets.lock().expect("no panic").len(), 3, "sends are at the transport together");
    device.engine.finish(ticket(0), Outcome::Done, 0);
    device.engine.finish(ticket(0), Outcome::Done, 0);
    assert_eq!(statuses(&a.sends), [(1, 0)], "the second outcome of a ticket is ignored");
    device.engine.finish(ticket(1), Outcome::AccessDenied, 0);
    assert_eq!(statuses(&a.sends), [(2, 10), (3, 5)]);
    assert_eq!(device.state(&a), State::Err);
}

#[test]
fn an_outcome_after_a_reset_is_ignored() {
    let (mut device, tickets) = device();
    let (a, _b) = device.connected();
    device.send(&a, signalled(1, &[], SEND));
    device.step(a.number, &QpAttr::default(), State::Reset, 0);
    let ticket = tickets.lock().expect("no panic")[0];
    device.engine.finish(ticket, Outcome::Done, 0);
    assert_eq!(statuses(&a.sends), []);
    assert_eq!(device.state(&a), State::Reset);
}
