//! Refused accesses, and the flush that follows each error of a connection.

use rackloom_verbs::engine::{Kind, Region, Remote, State};
use rackloom_verbs::layout::attributes::QpAttr;
use rackloom_verbs::layout::constants::*;
use rustix::io::Errno;

use crate::support::{ALL_ACCESS, Device, SEND, signalled, statuses};

const LOCAL_LENGTH: u32 = 1;
const LOCAL_PROTECTION: u32 = 4;
const FLUSHED: u32 = 5;
const REMOTE_INVALID: u32 = 9;
const REMOTE_ACCESS: u32 = 10;
const REMOTE_OPERATION: u32 = 11;

/// Sends one operation to a region of 64 bytes with these rights, and returns its status and the asynchronous events.
fn status_of(access: u32, kind: impl Fn(Remote) -> Kind, change: impl Fn(&mut Remote)) -> (u32, Vec<u32>) {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let (local, target) = (device.memory(64, 1, ALL_ACCESS), device.memory(64, 100, access));
    let mut remote = target.remote(0);
    change(&mut remote);
    device.receive(&b, 8, &[]);
    device.send(&a, signalled(1, &[local.part(0, 8)], kind(remote)));
    device.engine.post_send(a.number, signalled(2, &[local.part(0, 8)], SEND), 0).expect("it is posted");
    let found = statuses(&a.sends);
    assert_eq!(found[1], (2, FLUSHED));
    assert_eq!(statuses(&b.receives), [(8, FLUSHED)], "the responder is in error, too");
    assert_eq!((device.state(&a), device.state(&b)), (State::Err, State::Err));
    assert_eq!(target.bytes()[..8], [100, 101, 102, 103, 104, 105, 106, 107], "no byte has changed");
    (found[0].1, device.kinds())
}

#[test]
fn each_operation_needs_its_right_at_the_region() {
    let write = |remote| Kind::Write { remote, immediate: None };
    let write_immediate = |remote| Kind::Write { remote, immediate: Some(1) };
    let read = |remote| Kind::Read { remote };
    let add = |remote| Kind::FetchAdd { remote, add: 1 };
    let refused = (REMOTE_ACCESS, vec![EVENT_QP_ACCESS_ERR]);
    let but = |right: u32| ALL_ACCESS & !right;
    assert_eq!(status_of(but(ACCESS_REMOTE_WRITE), write, |_| ()), refused);
    assert_eq!(status_of(but(ACCESS_REMOTE_WRITE), write_immediate, |_| ()), refused);
    assert_eq!(status_of(but(ACCESS_REMOTE_READ), read, |_| ()), refused);
    assert_eq!(status_of(but(ACCESS_REMOTE_ATOMIC), add, |_| ()), refused);
    assert_eq!(status_of(ALL_ACCESS, write, |remote| remote.address += 57), refused, "beyond the end");
    assert_eq!(status_of(ALL_ACCESS, write, |remote| remote.address -= 1), refused, "before the begin");
    assert_eq!(status_of(ALL_ACCESS, read, |remote| remote.key ^= 1), refused, "a wrong key");
}

#[test]
fn a_queue_pair_that_does_not_allow_an_operation_refuses_it_as_invalid() {
    for (flags, depth) in [(ACCESS_REMOTE_WRITE, 1), (ALL_ACCESS, 0)] {
        let mut device = Device::new();
        let (a, b) = (
            device.end(rackloom_verbs::engine::Service::Rc, None),
            device.end(rackloom_verbs::engine::Service::Rc, None),
        );
        let attributes = device.attributes(b.number);
        device.bring(a.number, &attributes, State::Rts);
        let limited =
            QpAttr { qp_access_flags: flags, max_dest_rd_atomic: depth, ..device.attributes(a.number) };
        device.bring(b.number, &limited, State::Rtr);
        let memory = device.memory(16, 0, ALL_ACCESS);
        let kind = Kind::Read { remote: memory.remote(0) };
        device.send(&a, signalled(1, &[memory.part(8, 8)], kind));
        assert_eq!(statuses(&a.sends), [(1, REMOTE_INVALID)]);
        assert_eq!(device.kinds(), [EVENT_COMM_EST, EVENT_QP_REQ_ERR]);
    }
}

#[test]
fn local_memory_must_be_registered_in_the_domain() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let memory = device.memory(8, 0, ALL_ACCESS);
    device.receive(&b, 7, &[memory.part(0, 8)]);
    device.engine.deregister(memory.key).expect("a region");
    device.send(&a, signalled(1, &[memory.part(0, 8)], SEND));
    assert_eq!(statuses(&a.sends), [(1, LOCAL_PROTECTION)]);
    assert_eq!(device.state(&b), State::Rts, "nothing has left");

    let (a, b) = device.connected();
    let source = device.memory(8, 0, 0);
    let read_only = device.memory(8, 0, ACCESS_REMOTE_READ);
    device.receive(&b, 7, &[read_only.part(0, 8)]);
    device.send(&a, signalled(1, &[source.part(0, 8)], SEND));
    assert_eq!(statuses(&a.sends), [(1, REMOTE_OPERATION)]);
    assert_eq!(statuses(&b.receives), [(7, LOCAL_PROTECTION)]);

    let (a, _b) = device.connected();
    device.send(&a, signalled(1, &[read_only.part(0, 8)], Kind::Read { remote: read_only.remote(0) }));
    assert_eq!(statuses(&a.sends), [(1, LOCAL_PROTECTION)], "a read writes local memory");
}

#[test]
fn a_message_that_is_longer_than_the_receive_fails_at_both_ends() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let memory = device.memory(16, 0, ALL_ACCESS);
    device.receive(&b, 7, &[memory.part(8, 7)]);
    device.send(&a, signalled(1, &[memory.part(0, 8)], SEND));
    assert_eq!(statuses(&a.sends), [(1, REMOTE_INVALID)]);
    assert_eq!(statuses(&b.receives), [(7, LOCAL_LENGTH)]);
}

#[test]
fn work_that_is_posted_in_error_is_flushed_and_reset_discards_completions() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    device.step(a.number, &QpAttr::default(), State::Err, 0);
    let mut send = signalled(1, &[], SEND);
    send.is_signalled = false;
    device.send(&a, send);
    device.receive(&a, 2, &[]);
    assert_eq!(statuses(&a.sends), [(1, FLUSHED)], "errors are always reported");
    assert_eq!(statuses(&a.receives), [(2, FLUSHED)]);
    device.receive(&a, 3, &[]);
    device.step(a.number, &QpAttr::default(), State::Reset, 0);
    assert_eq!(statuses(&a.receives), []);
}

#[test]
fn registrations_are_checked() {
    let mut device = Device::new();
    let bytes = [0_u8; 8];
    let base = bytes.as_ptr() as usize;
    let region = Region { domain: device.domain, base, virtual_base: 0, length: 8, access: 0 };
    let mut register = |region| device.engine.register(region).map(|_| ());
    assert_eq!(register(Region { length: 0, ..region }), Err(Errno::INVAL));
    assert_eq!(register(Region { base: 0, ..region }), Err(Errno::FAULT));
    assert_eq!(register(Region { access: ACCESS_REMOTE_WRITE, ..region }), Err(Errno::INVAL));
    assert_eq!(register(Region { domain: 99, ..region }), Err(Errno::INVAL));
    assert_eq!(register(region), Ok(()));
    assert_eq!(device.engine.destroy_domain(device.domain), Err(Errno::BUSY));
}
