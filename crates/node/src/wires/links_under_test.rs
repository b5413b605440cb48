//! The links that the conformance suite runs on: one of each wire, with the smallest buffers that it accepts.

use rackloom_protocol::CreditConfig;

use super::in_namespaces::{bridge_port, lay, lay_at_bridge};
use super::packet::received::Reception;
use super::shared_memory::{self, RING_BYTES_MIN};
use super::{Device, Doorbell, packet, udp};
use crate::namespaces::switch_off;
use crate::seal::TRAILER_BYTES;

pub(super) const ETHER_TYPE: u16 = 0x88b5;
/// Frame size for an MTU of 9000 bytes, with the Ethernet header.
pub(super) const JUMBO: usize = 9014;
/// Default credits of a rack file on a wire with kernel buffers.
const CREDITS: CreditConfig = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 };
const UDP_CREDITS: CreditConfig = CreditConfig { limit: 480, ..CREDITS };
/// Settings of a port of a packet wire, with the system's choice of reception.
pub(super) const PACKET: packet::Settings = packet::Settings {
    ether_type: ETHER_TYPE,
    frame_bytes_max: JUMBO as u16,
    credits: CREDITS,
    reception: rackloom_plan::Reception::Auto,
};
/// Socket buffer that an unprivileged user gets on a system with default settings, in bytes.
const BUFFER_BYTES: usize = 425_984;
/// Reception of a packet wire without a ring, with the default socket buffer.
pub(super) const TIGHT: Reception = Reception::Batches { buffer_bytes: BUFFER_BYTES };
/// Reception of a packet wire through the portable channel, with the default socket buffer.
pub(super) const PORTABLE: Reception = Reception::Portable { buffer_bytes: BUFFER_BYTES };

/// Two devices joined by a link.
pub(super) struct Link {
    pub(super) local: Box<dyn Device>,
    pub(super) remote: Box<dyn Device>,
    /// Set if a receiver that does not read makes the sender wait instead of losing frames.
    pub(super) lossless: bool,
    /// Credits of the sender: what it may have in flight.
    pub(super) credits: CreditConfig,
    /// Ends the neighbour, or disables its interface.
    pub(super) sever: fn(Box<dyn Device>),
}

pub(super) fn shared_memory_link() -> Link {
    let (local, remote) =
        shared_memory::pair(RING_BYTES_MIN, &Doorbell::create().unwrap(), &Doorbell::create().unwrap())
            .unwrap();
    Link {
        local: Box::new(local),
        remote: Box::new(remote),
        lossless: true,
        credits: CREDITS,
        sever: |remote| drop(remote),
    }
}

/// Returns a UDP link with the default socket buffer.
pub(super) fn udp_link() -> Link {
    let (local, remote) = udp::create().unwrap();
    let frame_bytes_max = (JUMBO + TRAILER_BYTES) as u16;
    let settings = udp::Settings { frame_bytes_max, credits: UDP_CREDITS };
    let [local, remote] =
        [local, remote].map(|end| Box::new(end.open_with(&settings, BUFFER_BYTES).unwrap()));
    Link { local, remote, lossless: false, credits: UDP_CREDITS, sever: |remote| drop(remote) }
}

pub(super) fn packet_link(number: u8, reception: Reception) -> Link {
    let [local, remote] =
        lay(number).map(|name| Box::new(packet::open_with(&name, &PACKET, reception).unwrap()));
    let sever = |_remote: Box<dyn Device>| switch_all_off(|number| format!("remote{number}"));
    Link { local, remote, lossless: false, credits: CREDITS, sever }
}

/// Returns a link whose ends are joined by a bridge. The local end's interface does not show the state of the remote end, but it shows the state of
/// the bridge's port.
pub(super) fn bridge_link(number: u8) -> Link {
    let [local, remote] = lay_at_bridge(number).map(|name| Box::new(packet::open(&name, &PACKET).unwrap()));
    let sever = |_remote: Box<dyn Device>| switch_all_off(|number| bridge_port("local", number));
    Link { local, remote, lossless: false, credits: CREDITS, sever }
}

/// Switches the interfaces of all links of a test off. The severed link is among them.
fn switch_all_off(interface: impl Fn(u8) -> String) {
    for number in 1..=u8::MAX {
        let _ = switch_off(&interface(number));
    }
}
