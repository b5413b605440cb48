//! Tests that a port notices every change of its interface at once, and that it works again after the interface has recovered.
//!
//! The tests do not wait for a time to pass: each change of the interface wakes the sleeping node.

use std::sync::Arc;
use std::time::Duration;

use rackloom_protocol::{CreditConfig, Instant, PortId};

use super::in_namespaces::{in_namespaces, lay};
use super::packet::{self, Settings};
use super::{Device, FRAME_BYTES_MAX, Ports};
use crate::clock::Clock;
use crate::namespaces::{LinkEvents, bring_up, remove, set_mtu, switch_off};
use crate::waiting::{SLEEP_NS_MAX, Traffic, WaitPolicy, wait};

const FRAME_BYTES: usize = 1514;
const SETTINGS: Settings = Settings {
    ether_type: 0x88b5,
    frame_bytes_max: FRAME_BYTES as u16,
    credits: CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 },
    reception: rackloom_plan::Reception::Auto,
};
const TIMEOUT: Duration = Duration::from_secs(10);

/// A node with one port, and the neighbour's device.
struct Bench {
    names: [String; 2],
    ports: Ports,
    clock: Clock,
    remote: packet::PacketDevice,
    number: u8,
}

impl Bench {
    fn new(number: u8) -> Self {
        let link_events = Arc::new(LinkEvents::listen().unwrap());
        let names = lay(number);
        let local = packet::open(&names[0], &SETTINGS).unwrap().with_link_events(&link_events);
        let remote = packet::open(&names[1], &SETTINGS).unwrap();
        let mut ports = Ports::new(vec![Box::new(local)], FRAME_BYTES_MAX as u16).unwrap();
        assert!(ports.carrier(PortId(0)));
        let mut bench = Self { names, ports, clock: Clock::begin(), remote, number };
        bench.carries();
        bench
    }

    /// Runs `act` on another thread and sleeps until a link notification has changed the carrier to `expected`.
    fn detects(&mut self, expected: bool, what: &str, act: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(act);
            let deadline = self.clock.now() + TIMEOUT.as_nanos() as u64;
            loop {
                let before = self.clock.now();
                assert!(before < deadline, "{what} was not felt");
                let ports = &mut self.ports;
                let policy = WaitPolicy::CROWDED;
                let is_seen =
                    wait(policy, &self.clock, ports, &Traffic::default(), Instant::NEVER, &mut || false);
                if is_seen && self.ports.carrier(PortId(0)) == expected {
                    let took_ns = self.clock.now().since(before);
                    assert!(took_ns < SLEEP_NS_MAX, "{what}: woken by the carrier and not by the clock");
                    break;
                }
            }
        });
    }

    /// Sends a frame from the neighbour's device to the port.
    fn carries(&mut self) {
        let mut frame = [7; FRAME_BYTES];
        frame[..6].copy_from_slice(&super::in_namespaces::address(self.number, 0));
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        self.remote.slot().unwrap()[..FRAME_BYTES].copy_from_slice(&frame);
        self.remote.commit(FRAME_BYTES, true);
        self.remote.flush(Instant::ZERO);
        let deadline = self.clock.now() + TIMEOUT.as_nanos() as u64;
        let lease = loop {
            match self.ports.receive(PortId(0)) {
                Some(lease) => break lease,
                None => assert!(self.clock.now() < deadline, "the frame has not come"),
            }
        };
        assert_eq!(rackloom_protocol::Wires::leased(&self.ports, lease), frame);
        rackloom_protocol::Wires::release(&mut self.ports, lease);
        self.ports.flush(Instant::ZERO);
    }
}

#[test]
fn an_interface_that_goes_down_and_comes_back_is_detected_at_once() {
    in_namespaces(
        "wires::carrier_tests::an_interface_that_goes_down_and_comes_back_is_detected_at_once",
        || {
            let mut bench = Bench::new(1);
            let names = bench.names.clone();
            bench.detects(false, "down", || switch_off(&names[0]).unwrap());
            bench.detects(true, "up", || bring_up(&names, TIMEOUT).unwrap());
            bench.carries();
        },
    );
}

#[test]
fn an_mtu_too_small_for_our_frames_is_no_carrier() {
    in_namespaces("wires::carrier_tests::an_mtu_too_small_for_our_frames_is_no_carrier", || {
        let mut bench = Bench::new(2);
        let local = bench.names[0].clone();
        bench.detects(false, "a smaller MTU", || set_mtu(&local, 1499).unwrap());
        bench.detects(true, "an MTU that is just enough", || set_mtu(&local, 1500).unwrap());
        bench.carries();
    });
}

#[test]
fn an_interface_that_goes_away_is_missed_and_one_of_its_name_is_taken() {
    in_namespaces(
        "wires::carrier_tests::an_interface_that_goes_away_is_missed_and_one_of_its_name_is_taken",
        || {
            let mut bench = Bench::new(3);
            let name = bench.names[0].clone();
            bench.detects(false, "the end of the interface", || remove(&name).unwrap());
            bench.detects(true, "the new interface", || {
                lay(3);
            });
            bench.remote = packet::open(&bench.names[1], &SETTINGS).unwrap();
            bench.carries();
        },
    );
}
