//! Calls in states that do not allow them, and values out of range.

use rackloom_verbs::engine::{Kind, Receive, Service, State};
use rackloom_verbs::layout::attributes::QpAttr;
use rackloom_verbs::layout::constants::*;
use rustix::io::Errno;

use crate::support::{ALL_ACCESS, Device, SEND, signalled, statuses};

#[test]
fn work_is_refused_in_the_states_before_it() {
    let mut device = Device::new();
    let end = device.end(Service::Rc, None);
    let attributes = device.attributes(end.number);
    let receive = || Receive { id: 1, parts: Vec::new() };
    assert_eq!(device.engine.post_receive(end.number, receive(), 0), Err(Errno::INVAL), "in reset");
    device.step(end.number, &attributes, State::Init, QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS);
    assert_eq!(device.engine.post_receive(end.number, receive(), 0), Ok(()));
    let send = || signalled(1, &[], SEND);
    assert_eq!(device.engine.post_send(end.number, send(), 0), Err(Errno::INVAL), "in init");
    let mask = QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER;
    device.step(end.number, &attributes, State::Rtr, mask);
    assert_eq!(device.engine.post_send(end.number, send(), 0), Err(Errno::INVAL), "ready to receive");
}

#[test]
fn values_out_of_range_are_refused_and_change_nothing() {
    let mut device = Device::new();
    let end = device.end(Service::Rc, None);
    let good = QpAttr { qp_state: State::Init as u32, ..device.attributes(end.number) };
    let mask = QP_STATE | QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS;
    for bad in [
        QpAttr { port_num: 2, ..good },
        QpAttr { pkey_index: 1, ..good },
        QpAttr { qp_state: 7, ..good },
        QpAttr { qp_state: State::Rtr as u32, ..good },
    ] {
        let found = device.engine.modify_queue_pair(end.number, &bad, mask, 0);
        assert_eq!(found, Err(Errno::INVAL), "{bad:?}");
        assert_eq!(device.engine.query_queue_pair(end.number).expect("it exists").port_num, 0);
    }
    device.bring(end.number, &good, State::Init);
    let good = QpAttr { qp_state: State::Rtr as u32, ..good };
    let mask =
        QP_STATE | QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER;
    let mut local = good;
    local.ah_attr.is_global = 0;
    let mut index = good;
    index.ah_attr.grh.sgid_index = 2;
    for bad in [
        local,
        index,
        QpAttr { path_mtu: 6, ..good },
        QpAttr { dest_qp_num: 1 << 24, ..good },
        QpAttr { min_rnr_timer: 32, ..good },
        QpAttr { max_dest_rd_atomic: 17, ..good },
    ] {
        let found = device.engine.modify_queue_pair(end.number, &bad, mask, 0);
        assert_eq!(found, Err(Errno::INVAL), "{bad:?}");
    }
    assert_eq!(device.state(&end), State::Init);
}

#[test]
fn a_query_returns_what_was_set() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let found = device.engine.query_queue_pair(a.number).expect("it exists");
    let expected = QpAttr {
        qp_state: State::Rts as u32,
        cur_qp_state: State::Rts as u32,
        cap: found.cap,
        qkey: 0,
        ..device.attributes(b.number)
    };
    assert_eq!(found, expected);
    assert_eq!(found.cap.max_inline_data, 64);
}

#[test]
fn a_drained_send_queue_keeps_new_sends_until_it_runs_again() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    device.receive(&b, 1, &[]);
    device.receive(&b, 2, &[]);
    device.send(&a, signalled(1, &[], SEND));
    let notify = QpAttr { en_sqd_async_notify: 1, ..QpAttr::default() };
    device.step(a.number, &notify, State::Sqd, QP_EN_SQD_ASYNC_NOTIFY);
    assert_eq!(device.kinds(), [EVENT_SQ_DRAINED]);
    device.send(&a, signalled(2, &[], SEND));
    assert_eq!(statuses(&a.sends), [(1, 0)]);
    device.step(a.number, &notify, State::Rts, 0);
    assert_eq!(statuses(&a.sends), [(2, 0)]);
}

#[test]
fn the_state_that_the_program_expects_must_be_the_state() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let wrong = QpAttr { qp_state: State::Rts as u32, cur_qp_state: State::Rtr as u32, ..QpAttr::default() };
    let found = device.engine.modify_queue_pair(a.number, &wrong, QP_STATE | QP_CUR_STATE, 0);
    assert_eq!(found, Err(Errno::INVAL));
    let right = QpAttr { cur_qp_state: State::Rts as u32, ..wrong };
    assert_eq!(device.engine.modify_queue_pair(a.number, &right, QP_STATE | QP_CUR_STATE, 0), Ok(State::Rts));
}

#[test]
fn reads_without_depth_are_refused() {
    let mut device = Device::new();
    let (a, b) = (device.end(Service::Rc, None), device.end(Service::Rc, None));
    let attributes = QpAttr { max_rd_atomic: 0, ..device.attributes(b.number) };
    device.bring(a.number, &attributes, State::Rts);
    let memory = device.memory(8, 0, ALL_ACCESS);
    let read = signalled(1, &[memory.part(0, 8)], Kind::Read { remote: memory.remote(0) });
    assert_eq!(device.engine.post_send(a.number, read, 0), Err(Errno::INVAL));
}
