//! Receivers that are not ready, and peers that do not answer.

use rackloom_verbs::engine::{Service, State};
use rackloom_verbs::layout::attributes::QpAttr;
use rackloom_verbs::layout::constants::*;

use crate::support::{ALL_ACCESS, Device, End, SEND, signalled, statuses};

const NO_ANSWER: u32 = 12;
const NOT_READY: u32 = 13;

/// Returns two connected queue pairs, of which the first has other attributes.
fn connected(device: &mut Device, change: impl Fn(QpAttr) -> QpAttr) -> (End, End) {
    let (a, b) = (device.end(Service::Rc, None), device.end(Service::Rc, None));
    let attributes = change(device.attributes(b.number));
    device.bring(a.number, &attributes, State::Rts);
    let attributes = device.attributes(a.number);
    device.bring(b.number, &attributes, State::Rts);
    (a, b)
}

#[test]
fn without_retries_a_receiver_that_is_not_ready_is_an_error_at_once() {
    let mut device = Device::new();
    let (a, _b) = connected(&mut device, |attributes| QpAttr { rnr_retry: 0, ..attributes });
    device.send(&a, signalled(1, &[], SEND));
    assert_eq!(statuses(&a.sends), [(1, NOT_READY)]);
    assert_eq!(device.engine.next_deadline_ns(), None);
}

#[test]
fn a_receiver_that_is_not_ready_is_retried_after_its_wait() {
    let mut device = Device::new();
    let (a, _b) = connected(&mut device, |attributes| attributes);
    device.send(&a, signalled(1, &[], SEND));
    device.send(&a, signalled(2, &[], SEND));
    assert_eq!(device.engine.next_deadline_ns(), Some(10_000), "the wait of the receiver");
    device.engine.expire(9_999);
    assert_eq!(statuses(&a.sends), []);
    device.engine.expire(10_000);
    assert_eq!(statuses(&a.sends), [(1, NOT_READY), (2, 5)]);
    assert_eq!(device.engine.next_deadline_ns(), None);
}

#[test]
fn a_send_that_waits_is_done_when_the_receive_is_posted_and_attempts_before_the_deadline_cost_no_retry() {
    let mut device = Device::new();
    let (a, b) = connected(&mut device, |attributes| attributes);
    let (c, d) = device.connected();
    let memory = device.memory(16, 3, ALL_ACCESS);
    device.send(&a, signalled(1, &[memory.part(0, 8)], SEND));
    for id in 0..4 {
        // Receives of others wake the send without success.
        device.receive(&d, id, &[]);
    }
    device.send(&c, signalled(9, &[], SEND));
    assert_eq!(statuses(&c.sends), [(9, 0)], "a queue pair that waits stalls no other");
    assert_eq!(statuses(&a.sends), []);
    device.receive(&b, 2, &[memory.part(8, 8)]);
    assert_eq!(statuses(&a.sends), [(1, 0)]);
    assert_eq!(memory.bytes()[8..], [3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn seven_retries_are_no_limit() {
    let mut device = Device::new();
    let (a, b) = connected(&mut device, |attributes| QpAttr { rnr_retry: 7, ..attributes });
    device.send(&a, signalled(1, &[], SEND));
    for attempt in 1..=100 {
        device.engine.expire(attempt * 10_000);
    }
    assert_eq!(statuses(&a.sends), []);
    device.receive(&b, 2, &[]);
    assert_eq!(statuses(&a.sends), [(1, 0)]);
}

#[test]
fn a_peer_that_does_not_answer_is_an_error_after_all_timeouts() {
    let mut device = Device::new();
    let (a, b) = connected(&mut device, |attributes| attributes);
    device.engine.destroy_queue_pair(b.number).expect("a queue pair");
    device.send(&a, signalled(1, &[], SEND));
    device.send(&a, signalled(2, &[], SEND));
    // One attempt and one retry, 8192 ns each.
    device.engine.expire(8_191);
    device.engine.expire(8_192);
    assert_eq!(device.engine.next_deadline_ns(), Some(16_384));
    assert_eq!(statuses(&a.sends), []);
    device.engine.expire(16_384);
    assert_eq!(statuses(&a.sends), [(1, NO_ANSWER), (2, 5)]);
    assert_eq!(device.kinds(), [0; 0], "no asynchronous event");
}

#[test]
fn a_peer_that_becomes_ready_gets_the_send_that_waits_for_it() {
    let mut device = Device::new();
    let (a, b) = (device.end(Service::Rc, None), device.end(Service::Rc, None));
    let attributes = device.attributes(b.number);
    device.bring(a.number, &attributes, State::Rts);
    let attributes = device.attributes(a.number);
    device.step(b.number, &attributes, State::Init, QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS);
    device.receive(&b, 7, &[]);
    device.send(&a, signalled(1, &[], SEND));
    assert_eq!(statuses(&a.sends), []);
    let mask = QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER;
    device.step(b.number, &attributes, State::Rtr, mask);
    assert_eq!(statuses(&a.sends), [(1, 0)]);
    assert_eq!(device.kinds(), [EVENT_COMM_EST]);
}

#[test]
fn a_queue_pair_that_is_connected_with_another_one_does_not_answer() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let c = device.end(Service::Rc, None);
    let attributes = QpAttr { timeout: 0, ..device.attributes(b.number) };
    device.bring(c.number, &attributes, State::Rts);
    device.receive(&b, 1, &[]);
    device.send(&c, signalled(1, &[], SEND));
    assert_eq!((statuses(&c.sends), statuses(&b.receives)), (vec![], vec![]));
    assert_eq!(device.engine.next_deadline_ns(), None, "a timeout of 0 never ends");
    device.send(&a, signalled(2, &[], SEND));
    assert_eq!(statuses(&b.receives), [(1, 0)]);
}

#[test]
fn an_address_of_no_node_has_no_answer() {
    let mut device = Device::new();
    let (a, b) = connected(&mut device, |mut attributes| {
        attributes.ah_attr.grh.dgid[15] ^= 0x40;
        QpAttr { retry_cnt: 0, ..attributes }
    });
    device.receive(&b, 1, &[]);
    device.send(&a, signalled(1, &[], SEND));
    device.engine.expire(8_192);
    assert_eq!((statuses(&a.sends), statuses(&b.receives)), (vec![(1, NO_ANSWER)], vec![]));
}
