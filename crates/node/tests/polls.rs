//! Tests of a poll: it keeps its order, a carrier is lost only after the last frame, and a wait ends.

mod relay;

use rackloom::wires::shared_memory::{self, RING_BYTES_MIN, SharedMemoryDevice};
use rackloom::wires::{Device, Doorbell, Ports};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_protocol::{Command, Instant, Member};
use relay::Relay;

/// Returns a relay with a log between two neighbours. The test holds the neighbours' ends of the links.
fn relay_between() -> (Runtime<Relay>, SharedMemoryDevice, SharedMemoryDevice) {
    let (own, outside) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
    let (left, left_inner) = shared_memory::pair(RING_BYTES_MIN, &outside, &own).unwrap();
    let (right, right_inner) = shared_memory::pair(RING_BYTES_MIN, &outside, &own).unwrap();
    let ports = Ports::new(vec![Box::new(left_inner), Box::new(right_inner)], 9014).unwrap();
    let mut relay = Relay::new(2);
    relay.log = Some(Vec::new());
    (Runtime::new(relay, ports, HostMemory::default(), Clock::begin(), WaitPolicy::CROWDED), left, right)
}

fn send(device: &mut SharedMemoryDevice, length: usize) {
    device.slot().unwrap()[..length].fill(9);
    device.commit(length, true);
    device.flush(Instant::ZERO);
}

fn log(runtime: &mut Runtime<Relay>) -> Vec<String> {
    runtime.member_mut().log.replace(Vec::new()).unwrap()
}

#[test]
fn a_poll_handles_frames_by_port_then_commands_then_the_timeout_then_drains_once() {
    let (mut runtime, mut left, mut right) = relay_between();
    send(&mut right, 80);
    send(&mut left, 60);
    send(&mut left, 61);
    runtime.member_mut().timeout = Some(Instant(50));
    let flush = Command::Flush { operation: Default::default(), target: None };
    let command = |now, member: &mut Relay, _: &mut HostMemory| member.handle_command(now, flush).is_ok();
    let (progress, accepted) = runtime.poll_with(Instant(50), command, &mut |_| {});
    assert!(progress && accepted);
    let expected = [
        "frame of 60 at port0",
        "frame of 61 at port0",
        "frame of 80 at port1",
        "command",
        "timeout at 50",
        "transmit of 80 at port0",
        "transmit of 60 at port1",
        "transmit of 61 at port1",
    ];
    assert_eq!(log(&mut runtime), expected);
    let lease = left.receive().unwrap();
    assert_eq!(left.leased(lease), [9; 80]);
    assert!(!runtime.poll(Instant(51), &mut |_| {}), "nothing is left to do");
}

#[test]
fn the_lateness_of_a_timer_is_recorded_unless_the_device_is_full() {
    let (mut runtime, _left, _right) = relay_between();
    assert_eq!(runtime.timer_late_max_ns(), 0);
    let mut late_at_most = |due: u64, served: u64| {
        runtime.member_mut().timeout = Some(Instant(due));
        runtime.poll(Instant(served), &mut |_| {});
        runtime.timer_late_max_ns()
    };
    assert_eq!(late_at_most(50, 57), 7);
    assert_eq!(late_at_most(90, 93), 7, "the latest of all");
    assert_eq!(late_at_most(80, 200), 7, "due at an earlier poll without free space");
    assert_eq!(late_at_most(300, 300), 7);
    assert_eq!(late_at_most(400, 408), 8);
}

#[test]
fn a_timeout_is_reported_when_it_is_due() {
    let (mut runtime, _left, _right) = relay_between();
    runtime.member_mut().timeout = Some(Instant(100));
    runtime.poll(Instant(99), &mut |_| {});
    assert!(log(&mut runtime).is_empty());
    runtime.poll(Instant(100), &mut |_| {});
    assert_eq!(log(&mut runtime), ["timeout at 100"]);
}

#[test]
fn the_last_frames_of_a_neighbour_precede_the_loss_of_its_carrier() {
    let (mut runtime, mut left, _right) = relay_between();
    for _ in 0..100 {
        send(&mut left, 64);
    }
    drop(left);
    let mut seen = Vec::new();
    for poll in 0..4 {
        runtime.poll(Instant(poll * 1_000_000_000), &mut |_| {});
        seen.extend(log(&mut runtime).into_iter().filter(|line| !line.starts_with("transmit")));
    }
    assert_eq!(seen.iter().filter(|line| *line == "frame of 64 at port0").count(), 100);
    assert_eq!(seen.iter().filter(|line| line.starts_with("carrier")).count(), 1);
    assert_eq!(seen.last().unwrap(), "carrier of port0 down");
}

#[test]
fn a_wait_ends_with_the_members_own_timer() {
    let (mut runtime, _left, _right) = relay_between();
    let due = runtime.now() + 3_000_000;
    runtime.member_mut().timeout = Some(due);
    while runtime.now() < due {
        runtime.wait(Instant::NEVER);
    }
    runtime.poll(runtime.now(), &mut |_| {});
    assert_eq!(log(&mut runtime).len(), 1);
}

#[test]
fn a_wait_ends_with_a_frame() {
    let (mut runtime, mut left, _right) = relay_between();
    let clock = Clock::begin();
    let sender = std::thread::spawn(move || {
        send(&mut left, 64);
        left
    });
    while !runtime.poll(runtime.now(), &mut |_| {}) {
        runtime.wait(Instant::NEVER);
    }
    assert!(clock.now() < Instant(5_000_000_000));
    sender.join().unwrap();
}

#[test]
fn one_doorbell_serves_all_ports_or_the_ports_are_refused() {
    let (own, other) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
    let (_a, first) = shared_memory::pair(RING_BYTES_MIN, &other, &own).unwrap();
    let (_b, second) = shared_memory::pair(RING_BYTES_MIN, &own, &other).unwrap();
    assert!(Ports::new(vec![Box::new(first), Box::new(second)], 9014).is_err());
    assert!(Ports::new(Vec::new(), 9217).is_err());
}
