//! Tests of foreign frames on the segment of a packet port: they are counted, and the port still receives its own frames.
//!
//! A foreign station uses the neighbour's interface with a raw socket of its own. The port passes every frame of its EtherType that is neither cut
//! off nor tagged to the core, which checks addresses. The port discards all other frames.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant as WallInstant};

use rackloom_protocol::{CreditConfig, Instant};
use rustix::net::netdevice::name_to_index;

use super::Device;
use super::in_namespaces::{address, in_namespaces, lay};
use super::packet::received::Reception;
use super::packet::socket::{self, send_batch};
use super::packet::{self, PacketDevice, Settings};

const FRAME_BYTES_MAX: usize = 1514;
const SETTINGS: Settings = Settings {
    ether_type: 0x88b5,
    frame_bytes_max: FRAME_BYTES_MAX as u16,
    credits: CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 },
    reception: rackloom_plan::Reception::Auto,
};

struct Segment {
    port: PacketDevice,
    foreign: OwnedFd,
    number: u8,
}

impl Segment {
    fn new(number: u8, reception: Reception) -> Self {
        let [local, remote] = lay(number);
        let port = packet::open_with(&local, &SETTINGS, reception).unwrap();
        let foreign = socket::open().unwrap();
        socket::bind(&foreign, name_to_index(&foreign, &remote).unwrap(), 0).unwrap();
        Self { port, foreign, number }
    }

    /// Returns a frame to the port or to another address, with `rest` after the addresses.
    fn frame(&self, to_us: bool, rest: &[u8], length: usize) -> Vec<u8> {
        let mut frame = address(self.number, if to_us { 0 } else { 9 }).to_vec();
        frame.extend(address(self.number, 1));
        frame.extend_from_slice(rest);
        frame.resize(length.max(frame.len()), 0);
        frame
    }

    fn send(&self, frame: &[u8]) {
        assert_eq!(send_batch(&self.foreign, [frame].into_iter()).unwrap(), 1);
    }

    /// Returns every received frame up to a marker frame. This function sends the marker, and does not return it.
    fn received(&mut self) -> Vec<Vec<u8>> {
        let last = self.frame(true, &[0x88, 0xb5, 0xee], 60);
        self.send(&last);
        let deadline = WallInstant::now() + Duration::from_secs(5);
        let mut frames: Vec<Vec<u8>> = Vec::new();
        while frames.last() != Some(&last) {
            assert!(WallInstant::now() < deadline, "our own frame has not come: {frames:?}");
            if let Some(lease) = self.port.receive() {
                frames.push(self.port.leased(lease).to_vec());
                self.port.release(lease);
                self.port.flush(Instant::ZERO);
            }
        }
        frames.pop();
        frames
    }
}

fn foreign_frames_end_at_the_port(mut segment: Segment) {
    let foreign_frames: [(&str, &[u8]); 5] = [
        ("ARP", &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]),
        ("IPv6 neighbour discovery", &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]),
        ("TCP", &[0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]),
        ("another experiment", &[0x88, 0xb6, 1, 2, 3]),
        ("a length in place of a type", &[0x00, 0x2e, 1, 2, 3]),
    ];
    for (what, rest) in foreign_frames {
        for to_us in [true, false] {
            segment.send(&segment.frame(to_us, rest, 60));
            assert_eq!(segment.received(), Vec::<Vec<u8>>::new(), "{what}");
        }
    }
    assert_eq!(segment.port.counters().tagged, 0);
}

fn a_tag_of_a_vlan_is_counted(mut segment: Segment) {
    segment.send(&segment.frame(true, &[0x81, 0x00, 0x00, 0x07, 0x88, 0xb5, 1, 2, 3], 60));
    assert_eq!(segment.received(), Vec::<Vec<u8>>::new());
    assert_eq!(segment.port.counters().tagged, 1);
}

fn giants_are_counted_and_runts_go_to_the_core(mut segment: Segment) {
    for length in [FRAME_BYTES_MAX + 1, 4000, 9014] {
        segment.send(&segment.frame(true, &[0x88, 0xb5], length));
    }
    let runt = segment.frame(true, &[0x88, 0xb5], 14);
    segment.send(&runt);
    assert_eq!(segment.received(), [runt]);
    assert_eq!(segment.port.counters().receive_errors, 3);
}

fn frames_for_others_go_to_the_core(mut segment: Segment) {
    let foreign_frame = segment.frame(false, &[0x88, 0xb5, 1], 60);
    segment.send(&foreign_frame);
    assert_eq!(segment.received(), [foreign_frame], "which knows who we are on this link");
}

/// A station without credits sends more frames than fit. The lost frames are counted, and the port works as before.
fn a_flood_is_survived(mut segment: Segment) {
    const FLOOD: u64 = 100_000;
    let frame = segment.frame(true, &[0x88, 0xb5, 2], 1000);
    for _ in 0..FLOOD / 32 {
        assert_eq!(send_batch(&segment.foreign, std::iter::repeat_n(&frame[..], 32)).unwrap(), 32);
    }
    let mut came = 0;
    while let Some(lease) = segment.port.receive() {
        assert_eq!(segment.port.leased(lease), frame);
        segment.port.release(lease);
        segment.port.flush(Instant::ZERO);
        came += 1;
    }
    let dropped = segment.port.counters().kernel_drops;
    assert!(dropped > 0, "the flood was none");
    assert_eq!(came + dropped, FLOOD);
    assert_eq!(segment.received(), Vec::<Vec<u8>>::new());
}

fn all(reception: Reception) {
    foreign_frames_end_at_the_port(Segment::new(1, reception));
    a_tag_of_a_vlan_is_counted(Segment::new(2, reception));
    giants_are_counted_and_runts_go_to_the_core(Segment::new(3, reception));
    frames_for_others_go_to_the_core(Segment::new(4, reception));
    a_flood_is_survived(Segment::new(5, reception));
}

#[test]
fn foreign_frames_do_not_disturb_a_ring() {
    in_namespaces("wires::foreign_tests::foreign_frames_do_not_disturb_a_ring", || all(Reception::Ring));
}

#[test]
fn foreign_frames_do_not_disturb_batches() {
    in_namespaces("wires::foreign_tests::foreign_frames_do_not_disturb_batches", || {
        all(Reception::Batches { buffer_bytes: 425_984 });
    });
}
