//! Conformance suite that every wire must pass: order, full devices, sizes, batches, leases, the neighbour's end, long runs.
//!
//! A wire that may lose frames when its receiver does not read (`lossless: false`) may lose frames in those tests only. The frames that arrive are
//! intact and in order. The packet wire runs in namespaces of its own.

use std::collections::VecDeque;
use std::time::{Duration, Instant as WallInstant};

use rackloom_plan::impair::{Direction, Judge};
use rackloom_plan::{LinkProfile, Reception as Wanted};
use rackloom_protocol::{Instant, NodeId, Plane};

use super::exchangeable_port::{ExchangeablePort, Idle};
use super::impaired::Impaired;
use super::in_namespaces::{in_namespaces, lay};
use super::links_under_test::{
    ETHER_TYPE, JUMBO, Link, PACKET, PORTABLE, TIGHT, bridge_link, packet_link, shared_memory_link, udp_link,
};
use super::packet::received::Reception;
use super::sealed::Sealed;
use super::tapped::Tapped;
use super::truesize::CONTROL_FRAMES_MAX;
use super::{Device, DeviceLease, FRAME_BYTES_MAX, packet};
use crate::seal::{EndNonce, LinkEnds, RackKey};

#[test]
fn shared_memory_conforms() {
    suite(&mut shared_memory_link);
}

#[test]
fn a_tapped_wire_conforms() {
    suite(&mut || {
        let link = shared_memory_link();
        Link { local: Box::new(Tapped::new(link.local, |_: &[u8]| {})), ..link }
    });
}

#[test]
fn an_impaired_wire_without_faults_conforms() {
    suite(&mut || impaired(shared_memory_link()));
}

#[test]
fn a_sealed_wire_conforms() {
    suite(&mut || sealed(shared_memory_link()));
}

#[test]
fn a_sealed_udp_wire_conforms() {
    suite(&mut || sealed(udp_link()));
}

/// Seals both ends of a link and completes their handshake.
fn sealed(link: Link) -> Link {
    let end = |device, mine: u16| {
        let (mine, theirs) = (NodeId(mine), NodeId(1 - mine));
        let ends = LinkEnds { edge: 0, mine, theirs, plane: Plane(0), ether_type: ETHER_TYPE, epoch: 1 };
        Sealed::new(device, RackKey::of_secret(&[1; 32]), ends, EndNonce::draw().unwrap())
    };
    let (mut local, mut remote) = (end(link.local, 0), end(link.remote, 1));
    let begun = WallInstant::now();
    while !local.is_agreed() || !remote.is_agreed() {
        let now = Instant(begun.elapsed().as_nanos() as u64);
        local.flush(now);
        remote.flush(now);
        assert!(
            local.receive().is_none() && remote.receive().is_none(),
            "greetings are not passed on as frames"
        );
    }
    Link { local: Box::new(local), remote: Box::new(remote), ..link }
}

#[test]
fn udp_conforms() {
    suite(&mut udp_link);
}

#[test]
fn an_impaired_udp_wire_without_faults_conforms() {
    suite(&mut || impaired(udp_link()));
}

#[test]
fn packet_conforms_with_a_ring() {
    in_namespaces("wires::conformance::packet_conforms_with_a_ring", || packet_suite(Reception::Ring));
}

#[test]
fn an_impaired_packet_wire_without_faults_conforms() {
    in_namespaces("wires::conformance::an_impaired_packet_wire_without_faults_conforms", || {
        let mut links = 0;
        suite(&mut || {
            links += 1;
            impaired(packet_link(links, Reception::Ring))
        });
    });
}

#[test]
fn packet_conforms_in_batches() {
    in_namespaces("wires::conformance::packet_conforms_in_batches", || packet_suite(TIGHT));
}

#[test]
fn packet_conforms_through_the_portable_channel() {
    in_namespaces("wires::conformance::packet_conforms_through_the_portable_channel", || {
        packet_suite(PORTABLE);
    });
}

#[test]
fn a_packet_port_receives_by_its_settings() {
    in_namespaces("wires::conformance::a_packet_port_receives_by_its_settings", || {
        let [local, _remote] = lay(1);
        for reception in Wanted::ALL.iter().copied() {
            let settings = packet::Settings { reception, ..PACKET };
            let device = packet::open(&local, &settings).unwrap();
            // The kernel of a test knows rings.
            let expected = if reception == Wanted::Auto { Wanted::Ring } else { reception };
            assert_eq!(device.reception(), expected);
        }
    });
}

#[test]
fn packet_conforms_across_a_bridge() {
    in_namespaces("wires::conformance::packet_conforms_across_a_bridge", || {
        let mut links = 0;
        suite(&mut || {
            links += 1;
            bridge_link(links)
        });
    });
}

/// Wraps the local end in an impaired device whose profile has no faults.
fn impaired(link: Link) -> Link {
    let judge = Judge::new(1, "n0--n1", Direction::Forward, &LinkProfile::default());
    Link { local: Box::new(Impaired::new(link.local, judge, None)), ..link }
}

fn packet_suite(reception: Reception) {
    let mut links = 0;
    suite(&mut || {
        links += 1;
        packet_link(links, reception)
    });
}

pub(super) fn suite(make: &mut dyn FnMut() -> Link) {
    frames_arrive_once_in_order_and_whole(make());
    every_size_passes(make());
    every_batch_passes(make());
    both_directions_are_apart(make());
    a_full_wire_recovers(make());
    what_credits_admit_waits_for_a_receiver_that_has_stopped(make);
    leases_come_back_in_any_order(make());
    one_old_lease_stops_nothing(make());
    a_long_run_wraps_cleanly(make());
    mistakes_of_the_caller_are_harmless(make());
    an_end_goes_in_the_middle_of_traffic(make());
    a_new_link_gets_no_frames_of_the_earlier_one(make(), make());
    the_end_of_the_neighbour_is_detected(make());
}

fn frames_arrive_once_in_order_and_whole(mut link: Link) {
    for number in 0..300 {
        send(&mut *link.local, number, 60 + number as usize % 400);
        link.local.flush(Instant::ZERO);
        expect(&mut *link.remote, number, 60 + number as usize % 400);
    }
    assert!(link.remote.receive().is_none(), "nothing was invented");
}

fn every_size_passes(mut link: Link) {
    for (number, length) in
        [14, 15, 59, 60, 61, 64, 1513, 1514, 4096, JUMBO - 1, JUMBO].into_iter().enumerate()
    {
        send(&mut *link.local, number as u32, length);
        link.local.flush(Instant::ZERO);
        expect(&mut *link.remote, number as u32, length);
    }
}

fn every_batch_passes(mut link: Link) {
    for batch in [1, 2, 31, 32, 33, 63, 64, 65, 129] {
        for number in 0..batch {
            send(&mut *link.local, number, 200);
        }
        link.local.flush(Instant::ZERO);
        for number in 0..batch {
            expect(&mut *link.remote, number, 200);
        }
    }
}

fn both_directions_are_apart(mut link: Link) {
    for number in 0..50 {
        send(&mut *link.local, number, 100);
        send(&mut *link.remote, 1000 + number, 120);
    }
    link.local.flush(Instant::ZERO);
    link.remote.flush(Instant::ZERO);
    for number in 0..50 {
        expect(&mut *link.remote, number, 100);
        expect(&mut *link.local, 1000 + number, 120);
    }
}

/// While the receiver does not read, the sender finds the device full or loses frames. Afterwards the link works as before.
fn a_full_wire_recovers(mut link: Link) {
    let mut sent = 0;
    while sent < 20_000 && link.local.slot().is_some() {
        send(&mut *link.local, sent, 1000);
        link.local.flush(Instant::ZERO);
        sent += 1;
    }
    assert!(sent > 10);
    let (mut expected, mut arrived) = (0, 0_u64);
    while let Some(lease) = receive_soon(&mut *link.remote, Duration::from_millis(100)) {
        let number = number_of(link.remote.leased(lease));
        assert!(number == expected || (!link.lossless && number > expected), "{number} after {expected}");
        assert_eq!(link.remote.leased(lease), frame(number, 1000));
        (expected, arrived) = (number + 1, arrived + 1);
        link.remote.release(lease);
        link.remote.flush(Instant::ZERO);
    }
    assert!(expected == sent || !link.lossless, "{expected} of {sent} arrived");
    let dropped = link.remote.counters().kernel_drops;
    assert_eq!(arrived + dropped, u64::from(sent), "what did not arrive is counted");
    assert!(!link.lossless || link.local.counters().full > 0, "the wire has an end");
    send(&mut *link.local, 77, 64);
    link.local.flush(Instant::ZERO);
    expect(&mut *link.remote, 77, 64);
}

/// While the receiver does not read, the sender sends the frames that the credits allow and the control frames that need no credits. All of them
/// arrive, because a wire without back-pressure has space for them. The sizes include those that the kernel rounds up most.
fn what_credits_admit_waits_for_a_receiver_that_has_stopped(make: &mut dyn FnMut() -> Link) {
    let Link { mut local, mut remote, credits, .. } = make();
    for length in [60, 110, 160, 300, 580, 1600, 3660, 4240, 7800, JUMBO] {
        let frames = credits.limit / credits.cost(length);
        let lengths = (0..frames).map(|_| length).chain((0..CONTROL_FRAMES_MAX).map(|_| 60));
        let lengths: Vec<_> = lengths.collect();
        for (number, length) in lengths.iter().enumerate() {
            if local.slot().is_none() {
                // Back-pressure is as good as space.
                local.flush(Instant::ZERO);
                return;
            }
            send(&mut *local, number as u32, *length);
            local.flush(Instant::ZERO);
        }
        for (number, length) in lengths.iter().enumerate() {
            expect(&mut *remote, number as u32, *length);
        }
        remote.carrier();
        assert_eq!(remote.counters().kernel_drops, 0, "frames of {length} bytes");
    }
}

fn leases_come_back_in_any_order(mut link: Link) {
    for round in 0..50 {
        let numbers: Vec<u32> = (0..40).map(|step| round * 40 + step).collect();
        for &number in &numbers {
            send(&mut *link.local, number, 300);
        }
        link.local.flush(Instant::ZERO);
        let mut leases: Vec<(u32, DeviceLease)> =
            numbers.iter().map(|&number| (number, receive(&mut *link.remote))).collect();
        // A stride that is coprime to 40 visits every lease, in an order unlike the order of arrival.
        for step in 0..leases.len() {
            let (number, lease) = leases[step * 17 % 40];
            assert_eq!(link.remote.leased(lease), frame(number, 300));
            link.remote.release(lease);
            leases[step * 17 % 40].0 = u32::MAX;
        }
        assert!(leases.iter().all(|(number, _)| *number == u32::MAX));
        link.remote.flush(Instant::ZERO);
    }
}

/// The core holds one frame while the link carries many times the device's capacity after it.
fn one_old_lease_stops_nothing(mut link: Link) {
    send(&mut *link.local, 9_999, 700);
    link.local.flush(Instant::ZERO);
    let old = receive(&mut *link.remote);
    for number in 0..1000 {
        send(&mut *link.local, number, 1000);
        link.local.flush(Instant::ZERO);
        expect(&mut *link.remote, number, 1000);
    }
    assert_eq!(link.remote.leased(old), frame(9_999, 700));
    link.remote.release(old);
}

fn a_long_run_wraps_cleanly(mut link: Link) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut on_the_way: VecDeque<(u32, usize)> = VecDeque::new();
    let mut leased: Vec<(u32, usize, DeviceLease)> = Vec::new();
    for number in 0..3000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = 60 + (random >> 33) as usize % 2000;
        send(&mut *link.local, number, length);
        on_the_way.push_back((number, length));
        link.local.flush(Instant::ZERO);
        while on_the_way.len() > (random >> 60) as usize % 8 {
            let (number, length) = on_the_way.pop_front().unwrap();
            leased.push((number, length, receive(&mut *link.remote)));
        }
        while leased.len() > (random >> 50) as usize % 12 {
            let (number, length, lease) = leased.swap_remove((random >> 40) as usize % leased.len());
            assert_eq!(link.remote.leased(lease), frame(number, length));
            link.remote.release(lease);
        }
        link.remote.flush(Instant::ZERO);
    }
}

fn mistakes_of_the_caller_are_harmless(mut link: Link) {
    let slot = link.local.slot().unwrap();
    assert!(slot.len() >= JUMBO);
    slot[..64].copy_from_slice(&frame(5, 64));
    assert_eq!(link.local.slot().unwrap()[..64], frame(5, 64), "a second request returns the same slot");
    link.local.commit(64, true);
    link.local.slot();
    link.local.commit(FRAME_BYTES_MAX + 1, true);
    link.local.flush(Instant::ZERO);
    let lease = receive(&mut *link.remote);
    assert_eq!(link.remote.leased(lease), frame(5, 64));
    link.remote.release(lease);
    link.remote.release(lease);
    link.remote.release(DeviceLease(123_456));
    assert!(link.remote.leased(lease).is_empty());
    assert!(link.remote.leased(DeviceLease(123_456)).is_empty());
    assert!(link.remote.receive().is_none());
    assert!(link.local.counters().send_errors > 0);
    send(&mut *link.local, 6, 64);
    link.local.flush(Instant::ZERO);
    expect(&mut *link.remote, 6, 64);
}

/// Closing a device while frames are queued, leased or committed does not invalidate the other device's leases.
fn an_end_goes_in_the_middle_of_traffic(link: Link) {
    let Link { mut local, mut remote, .. } = link;
    for number in 0..50 {
        send(&mut *local, number, 900);
        send(&mut *remote, number, 900);
    }
    local.flush(Instant::ZERO);
    remote.flush(Instant::ZERO);
    let lease = receive(&mut *local);
    receive(&mut *remote);
    send(&mut *remote, 50, 900);
    drop(remote);
    assert_eq!(local.leased(lease), frame(0, 900), "a lease outlives the neighbour");
    for number in 0..1000 {
        if local.slot().is_some() {
            send(&mut *local, number, 900);
        }
        local.flush(Instant::ZERO);
        if let Some(other) = local.receive() {
            local.release(other);
        }
    }
    local.release(lease);
    drop(local);
}

/// The neighbour ends with frames in flight, and a new neighbour arrives on a cable of its own.
fn a_new_link_gets_no_frames_of_the_earlier_one(old: Link, new: Link) {
    let (mut local, inserter) = ExchangeablePort::new(Some(old.local), Idle::silence().unwrap());
    for number in 0..20 {
        send(&mut local, number, 500);
    }
    local.flush(Instant::ZERO);
    drop(old.remote);
    inserter.insert(new.local);
    assert!(!local.carrier() && local.carrier(), "away for one look");
    let mut remote = new.remote;
    send(&mut local, 77, 500);
    local.flush(Instant::ZERO);
    expect(&mut *remote, 77, 500);
    assert!(remote.receive().is_none());
    send(&mut *remote, 78, 500);
    remote.flush(Instant::ZERO);
    expect(&mut local, 78, 500);
}

fn the_end_of_the_neighbour_is_detected(link: Link) {
    let Link { mut local, mut remote, sever, lossless, .. } = link;
    send(&mut *local, 1, 64);
    local.flush(Instant::ZERO);
    expect(&mut *remote, 1, 64);
    assert!(local.carrier() && remote.carrier());
    send(&mut *remote, 2, 64);
    remote.flush(Instant::ZERO);
    sever(remote);
    let deadline = WallInstant::now() + Duration::from_secs(5);
    while local.carrier() {
        assert!(WallInstant::now() < deadline, "the carrier outlives the neighbour");
        std::thread::yield_now();
    }
    if lossless {
        expect(&mut *local, 2, 64);
    }
    for _ in 0..200 {
        if local.slot().is_some() {
            local.commit(1000, true);
        }
        local.flush(Instant::ZERO);
    }
}

/// Returns a frame of the test EtherType whose bytes are computed from its number. The number is the last four bytes of the source address. The first
/// two bytes of that address are constant, and the address is unicast, so bridges accept it.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|at| (number as usize * 31 + at * 7) as u8).collect();
    frame[..8].fill(0x02);
    frame[8..12].copy_from_slice(&number.to_le_bytes());
    frame[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
    frame
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_le_bytes(frame[8..12].try_into().unwrap())
}

fn send(device: &mut dyn Device, number: u32, length: usize) {
    device.slot().expect("space")[..length].copy_from_slice(&frame(number, length));
    device.commit(length, true);
}

fn expect(device: &mut dyn Device, number: u32, length: usize) {
    let lease = receive(device);
    assert_eq!(number_of(device.leased(lease)), number);
    assert_eq!(device.leased(lease), frame(number, length));
    device.release(lease);
    device.flush(Instant::ZERO);
}

fn receive(device: &mut dyn Device) -> DeviceLease {
    receive_soon(device, Duration::from_secs(5)).expect("a frame")
}

fn receive_soon(device: &mut dyn Device, timeout: Duration) -> Option<DeviceLease> {
    let deadline = WallInstant::now() + timeout;
    loop {
        match device.receive() {
            None if WallInstant::now() < deadline => std::thread::yield_now(),
            found => return found,
        }
    }
}
