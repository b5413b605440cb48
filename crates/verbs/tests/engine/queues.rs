//! Capacities, overflows, shared receive queues and notifications.

use std::sync::Arc;

use rackloom_verbs::engine::{
    CompletionQueue, Element, Engine, Events, Kind, Loopback, Receive, Service, State,
};
use rackloom_verbs::layout::attributes::{QpAttr, SrqAttr};
use rackloom_verbs::layout::constants::*;
use rustix::io::Errno;

use crate::support::{ALL_ACCESS, Device, SEND, drain, signalled, statuses};

#[test]
fn places_of_the_send_queue_are_free_after_a_poll_and_not_before() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let memory = device.memory(8, 0, ALL_ACCESS);
    let kind = Kind::Write { remote: memory.remote(0), immediate: None };
    let mut post = |id: u64, is_signalled| {
        let mut send = signalled(id, &[memory.part(0, 8)], kind);
        send.is_signalled = is_signalled;
        device.engine.post_send(a.number, send, 0)
    };
    for id in 0..7 {
        assert_eq!(post(id, false), Ok(()));
    }
    assert_eq!(post(7, true), Ok(()));
    assert_eq!(post(8, true), Err(Errno::NOMEM), "eight places are used");
    assert_eq!(statuses(&a.sends), [(7, 0)]);
    assert_eq!(post(9, true), Ok(()), "the completion has freed all of them");
}

#[test]
fn receives_beyond_the_capacity_are_refused() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    (0..8).for_each(|id| device.receive(&a, id, &[]));
    let more = Receive { id: 8, parts: Vec::new() };
    assert_eq!(device.engine.post_receive(a.number, more, 0), Err(Errno::NOMEM));
    let memory = device.memory(8, 0, ALL_ACCESS);
    let wide = Receive { id: 9, parts: vec![memory.part(0, 1); 5] };
    assert_eq!(device.engine.post_receive(a.number, wide, 0), Err(Errno::INVAL));
}

#[test]
fn a_completion_queue_that_overflows_ends_the_queue_pair() {
    let mut device = Device::new();
    let (sends, receives) = (device.queue(2), device.queue(8));
    sends.set_owner(77);
    let a = device.end_with(Service::Rc, None, sends, receives);
    let b = device.end(Service::Rc, None);
    device.connect(&a, &b);
    let memory = device.memory(8, 0, ALL_ACCESS);
    let kind = Kind::Write { remote: memory.remote(0), immediate: None };
    for id in 0..3 {
        device.send(&a, signalled(id, &[memory.part(0, 8)], kind));
    }
    assert_eq!(device.state(&a), State::Err);
    let event = device.events.next(|_| ()).expect("an event");
    assert_eq!((event.kind, event.element), (EVENT_CQ_ERR, Element::CompletionQueue(77)));
    assert_eq!(device.kinds(), [EVENT_QP_FATAL]);
    assert_eq!(statuses(&a.sends), [(0, 0), (1, 0)]);
    assert_eq!(a.sends.poll(1, |_, _| ()), Err(Errno::IO));
}

#[test]
fn a_completion_queue_is_resized_down_to_its_content() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    (0..3).for_each(|id| device.receive(&b, id, &[]));
    (0..3).for_each(|id| device.send(&a, signalled(id, &[], SEND)));
    assert_eq!(a.sends.resize(2), Err(Errno::INVAL));
    assert_eq!(a.sends.resize(3), Ok(()));
    assert_eq!(drain(&a.sends).len(), 3);
}

#[test]
fn queue_pairs_take_receives_of_a_shared_queue_in_their_order() {
    let mut device = Device::new();
    let shared = device.shared();
    let (a, b) = (device.end(Service::Rc, None), device.end(Service::Rc, Some(shared)));
    let (c, d) = (device.end(Service::Rc, None), device.end(Service::Rc, Some(shared)));
    device.connect(&a, &b);
    device.connect(&c, &d);
    let memory = device.memory(8, 5, ALL_ACCESS);
    for id in 0..3 {
        let receive = Receive { id, parts: vec![memory.part(4, 2)] };
        device.engine.post_shared(shared, receive, 0).expect("it is posted");
    }
    let limit = SrqAttr { srq_limit: 2, ..SrqAttr::default() };
    device.engine.modify_shared(shared, limit, SRQ_LIMIT).expect("a limit");
    device.send(&a, signalled(1, &[memory.part(0, 2)], SEND));
    assert_eq!(device.kinds(), [0; 0]);
    device.send(&c, signalled(2, &[memory.part(0, 2)], SEND));
    assert_eq!(device.kinds(), [EVENT_SRQ_LIMIT_REACHED], "one is left");
    assert_eq!(device.engine.query_shared(shared).expect("a queue").srq_limit, 0, "the limit reports once");
    assert_eq!((statuses(&b.receives), statuses(&d.receives)), (vec![(0, 0)], vec![(1, 0)]));
    assert_eq!(memory.bytes()[4..6], [5, 6]);
    assert_eq!(device.engine.destroy_shared(shared), Err(Errno::BUSY));
    device.step(b.number, &QpAttr::default(), State::Err, 0);
    assert_eq!(device.kinds(), [EVENT_QP_LAST_WQE_REACHED]);
    assert_eq!(statuses(&b.receives), [], "receives of others are not flushed");
    let own = Receive { id: 0, parts: Vec::new() };
    assert_eq!(device.engine.post_receive(d.number, own, 0), Err(Errno::INVAL));
}

#[test]
fn a_send_to_an_empty_shared_queue_waits() {
    let mut device = Device::new();
    let shared = device.shared();
    let (a, b) = (device.end(Service::Rc, None), device.end(Service::Rc, Some(shared)));
    device.connect(&a, &b);
    device.send(&a, signalled(1, &[], SEND));
    assert_eq!(statuses(&a.sends), []);
    device.engine.post_shared(shared, Receive { id: 3, parts: Vec::new() }, 0).expect("it is posted");
    assert_eq!((statuses(&a.sends), statuses(&b.receives)), (vec![(1, 0)], vec![(3, 0)]));
}

#[test]
fn an_armed_queue_sends_one_event_and_waits_for_solicited_completions_if_the_program_says_so() {
    let mut device = Device::new();
    let channel = Arc::new(Events::new().expect("a descriptor"));
    rustix::fs::fcntl_setfl(channel.descriptor(), rustix::fs::OFlags::NONBLOCK).expect("a flag");
    let queue = || Arc::new(CompletionQueue::new(16, Some(Arc::clone(&channel)), Arc::clone(&device.events)));
    let (sends, receives) = (queue(), queue());
    receives.set_owner(55);
    let a = device.end(Service::Rc, None);
    let b = device.end_with(Service::Rc, None, sends, receives);
    device.connect(&a, &b);
    (0..6).for_each(|id| device.receive(&b, id, &[]));
    let mut post = |is_solicited| {
        let mut send = signalled(0, &[], SEND);
        send.is_solicited = is_solicited;
        device.send(&a, send);
        channel.next(|_| ())
    };
    assert_eq!(post(true), Err(Errno::AGAIN), "not armed");
    b.receives.arm(false);
    assert_eq!(post(false), Ok(55));
    assert_eq!(post(false), Err(Errno::AGAIN), "one event for each time");
    b.receives.arm(true);
    assert_eq!(post(false), Err(Errno::AGAIN), "not solicited");
    assert_eq!(post(true), Ok(55));
    b.receives.arm(true);
    device.step(b.number, &QpAttr::default(), State::Err, 0);
    assert_eq!(channel.next(|_| ()), Ok(55), "an error counts as solicited");
}

#[test]
fn a_destroyed_queue_pair_leaves_no_completions_and_its_number_is_not_used_again_soon() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    device.receive(&b, 1, &[]);
    device.send(&a, signalled(2, &[], SEND));
    let numbers = [a.number, b.number];
    for number in numbers {
        device.engine.destroy_queue_pair(number).expect("a queue pair");
    }
    assert_eq!((statuses(&a.sends), statuses(&b.receives)), (vec![], vec![]));
    assert!(!a.sends.is_used());
    assert!(!numbers.contains(&device.end(Service::Rc, None).number));
    assert_eq!(device.engine.destroy_queue_pair(a.number), Err(Errno::INVAL));
}

#[test]
fn numbers_of_queue_pairs_start_where_the_seed_says_and_continue_after_the_largest_with_the_lowest() {
    let first = |seed| {
        let engine = Engine::new(Box::new(Loopback::new(0)), seed);
        Device::of(engine).end(Service::Rc, None).number
    };
    assert_eq!((first(0), first(1), first(0xff_ffef)), (0x10, 0x11, 0xff_ffff));
    assert_eq!(first(0xff_fff0), 0x10);
    let mut device = Device::of(Engine::new(Box::new(Loopback::new(0)), 0xff_ffef));
    let numbers = [(); 2].map(|()| device.end(Service::Ud, None).number);
    assert_eq!(numbers, [0xff_ffff, 0x10]);
}
