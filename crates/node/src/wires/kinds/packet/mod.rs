//! The packet wire: frames on a real interface, through plain packet sockets.
//!
//! The interface may be one end of a virtual pair in a namespace of the rack, or a real network card. The kernel filters by EtherType. The core
//! checks the destination address, because on a shared segment a socket also receives frames for other stations.
//!
//! There is no back-pressure from the remote side: frames that do not fit into its socket are lost. The core's credits prevent that. A device
//! therefore receives the credits, sizes its ring by them, and cannot be opened if the kernel's buffer is too small for them (`truesize`). A full
//! local queue makes the device full. The carrier is lost when the interface goes down, disappears (with the remote end's namespace, or to another
//! namespace), or gets an MTU too small for the frames. The kernel reports each of these at once (`LinkEvents`). The carrier returns with the
//! interface.
//!
//! Frames are sent in batches, up to 32 per system call. They are received through a ring that the kernel fills, without system calls. Where the
//! kernel has no memory for a ring, they are received in batches too. Where the kernel supports neither, they are received one by one through a
//! portable channel.

mod batches;
mod foreign;
mod outgoing;
mod portable;
pub(in crate::wires) mod received;
mod ring;
mod settings;
pub(in crate::wires) mod socket;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rackloom_plan::Reception as Wanted;
use rackloom_protocol::Instant;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use self::foreign::ForeignFrames;
use self::outgoing::Outgoing;
use self::received::{Filter, Received, Reception};
pub use self::settings::Settings;
use self::socket::{send_batch, take_kernel_drops};
use crate::hosts::filter;
use crate::namespaces::{LinkEvents, hardware_address, has_carrier, mtu, switch_off, switch_on_all};
use crate::wires::descriptors::adopt;
use crate::wires::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, WakeSource, truesize};

/// Delay before the next attempt after the kernel's queue was full, in nanoseconds.
const RETRY_NS: u64 = 200_000;
/// Bytes of a frame that an interface's MTU does not include.
const ETHERNET_HEADER_BYTES: usize = 14;
/// Receive buffer that a socket without a ring requests, in bytes. The kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// Hint for a packet socket that the kernel refuses.
const RIGHT: &str = "\nhint: packet sockets take the right CAP_NET_RAW; without it, use `--wire shared-memory` or `--wire udp`";

/// A port on an interface.
///
/// `Send`, not `Sync`: what it receives lies in a ring that one thread reads at a time.
#[derive(Debug)]
pub struct PacketDevice {
    interface: String,
    receiver: OwnedFd,
    sender: OwnedFd,
    received: Received,
    /// Receiver of frames that belong to no link of the interface, if this device counts them.
    foreign: Option<ForeignFrames>,
    outgoing: Outgoing,
    /// Time of the next attempt after the kernel's queue was full.
    retry_at: Instant,
    filter: Filter,
    ether_type: u16,
    /// Set if the interface may be switched off: no other link uses it, and it is in this namespace.
    is_own: bool,
    /// Notifications about the interfaces of this namespace, and their count at the last check.
    link_events: Option<(Arc<LinkEvents>, u64)>,
    /// Set if interface and sockets can carry our frames, as far as the device knows.
    is_fit: bool,
    /// Sum of the kernel's drop counts. The kernel reports each count once.
    kernel_drops: Cell<u64>,
    counters: DeviceCounters,
}

/// Returns the kernel memory of a port's receive ring, in bytes.
#[must_use]
pub fn ring_bytes(settings: &Settings) -> u64 {
    let frames = truesize::frames_max(&settings.credits);
    ring::ring_bytes(frames, usize::from(settings.frame_bytes_max)).0 as u64
}

/// Opens an interface of this network namespace.
///
/// # Errors
/// The error of the system: no such interface, no right to packet sockets, or too small a receive buffer for the link's credits.
pub fn open(interface: &str, settings: &Settings) -> io::Result<PacketDevice> {
    let frame_bytes_max = usize::from(settings.frame_bytes_max);
    if settings.ether_type < 0x0600 || frame_bytes_max > FRAME_BYTES_MAX {
        let what = format!(
            "EtherType {:#06x} with frames of {frame_bytes_max} bytes: not for a packet wire",
            settings.ether_type
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let context = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            io::Error::new(error.kind(), format!("interface {interface}: {error}{RIGHT}"))
        }
        kind => io::Error::new(kind, format!("interface {interface}: {error}")),
    };
    let opened = open_with(interface, settings, wanted(settings));
    let instead =
        opened.as_ref().err().filter(|_| settings.reception == Wanted::Auto).and_then(instead_of_a_ring);
    instead.map_or(opened, |instead| open_with(interface, settings, instead)).map_err(context)
}

/// Returns the reception that the rack file names. A ring, if it leaves the choice to the system.
const fn wanted(settings: &Settings) -> Reception {
    let buffer_bytes = RECEIVE_BUFFER_BYTES;
    match settings.reception {
        Wanted::Auto | Wanted::Ring => Reception::Ring,
        Wanted::Batches => Reception::Batches { buffer_bytes },
        Wanted::Portable => Reception::Portable { buffer_bytes },
    }
}

/// Returns the reception to try after a ring has failed: batches where memory is short, the portable channel where rings are unknown.
fn instead_of_a_ring(error: &io::Error) -> Option<Reception> {
    let buffer_bytes = RECEIVE_BUFFER_BYTES;
    match error.kind() {
        io::ErrorKind::OutOfMemory => Some(Reception::Batches { buffer_bytes }),
        _ if is_unknown_here(error) => Some(Reception::Portable { buffer_bytes }),
        _ => None,
    }
}

/// Returns whether the system does not support the request. For example, a system that only imitates packet sockets does not know rings.
fn is_unknown_here(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOPROTOOPT | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Addresses on an interface, where a segment joins more than two members.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Address of this member.
    pub(crate) mine: [u8; 6],
    /// Address of the neighbour at the other end of this link.
    pub(crate) theirs: [u8; 6],
    /// Addresses of all neighbours on the segment, if this link counts foreign frames. Exactly one of the interface's links counts them, so that each
    /// is counted once.
    pub(crate) neighbours: Option<Vec<[u8; 6]>>,
}

/// Opens an interface of this network namespace for one of its links.
pub(crate) fn open_on_segment(
    interface: &str,
    settings: &Settings,
    segment: &Segment,
) -> io::Result<PacketDevice> {
    let Segment { mine, theirs, neighbours } = segment;
    let opened = socket::open().and_then(|sender| {
        let receiver = socket::open()?;
        filter::attach(&receiver, &mut filter::frames_of(*mine, Some(*theirs)))?;
        let index = name_to_index(&sender, interface)?;
        let foreign = neighbours.as_ref();
        let foreign =
            foreign.map(|neighbours| ForeignFrames::open(index, settings.ether_type, *mine, neighbours));
        let foreign = foreign.transpose()?;
        let device = open_on(interface, settings, wanted(settings), [sender, receiver])?;
        Ok(PacketDevice { foreign, ..device })
    });
    opened.map_err(|error| io::Error::new(error.kind(), format!("interface {interface}: {error}")))
}

/// Opens an interface of another namespace, on sockets that this process inherited.
pub(crate) fn open_inherited(
    interface: &str,
    settings: &Settings,
    [sender, receiver, link_events]: [RawFd; 3],
) -> io::Result<PacketDevice> {
    let sockets = [adopt(sender)?, adopt(receiver)?];
    let link_events = Arc::new(LinkEvents::inherited(adopt(link_events)?));
    open_on(interface, settings, wanted(settings), sockets)
        .map(|device| device.with_link_events(&link_events))
        .map_err(|error| io::Error::new(error.kind(), format!("interface {interface}: {error}")))
}

pub(in crate::wires) fn open_with(
    interface: &str,
    settings: &Settings,
    reception: Reception,
) -> io::Result<PacketDevice> {
    let sockets = [socket::open()?, socket::open()?];
    let device = open_on(interface, settings, reception, sockets)?;
    Ok(PacketDevice { is_own: true, ..device })
}

fn open_on(
    interface: &str,
    settings: &Settings,
    reception: Reception,
    [sender, receiver]: [OwnedFd; 2],
) -> io::Result<PacketDevice> {
    let frame_bytes_max = usize::from(settings.frame_bytes_max);
    let index = name_to_index(&sender, interface)?;
    let received = Received::attach(reception, &receiver, interface, settings)?;
    socket::bind(&sender, index, 0)?;
    socket::bind(&receiver, index, settings.ether_type)?;
    let address = hardware_address(&sender, interface)?;
    Ok(PacketDevice {
        interface: interface.to_owned(),
        receiver,
        sender,
        received,
        foreign: None,
        outgoing: Outgoing::default(),
        retry_at: Instant::NEVER,
        filter: Filter { frame_bytes_max, address, too_long: 0, tagged: 0 },
        ether_type: settings.ether_type,
        is_own: false,
        link_events: None,
        is_fit: true,
        kernel_drops: Cell::default(),
        counters: DeviceCounters::default(),
    })
}

impl PacketDevice {
    /// Subscribes the device to notifications about interfaces.
    #[must_use]
    pub(crate) fn with_link_events(mut self, link_events: &Arc<LinkEvents>) -> Self {
        self.link_events = Some((Arc::clone(link_events), link_events.count()));
        self
    }

    /// Returns how the port receives.
    #[cfg(test)]
    pub(in crate::wires) fn reception(&self) -> Wanted {
        match self.received {
            Received::Ring(_) => Wanted::Ring,
            Received::Batches(_) => Wanted::Batches,
            Received::Portable(_) => Wanted::Portable,
        }
    }

    /// Checks the interface after a notification. The interface may have been removed and recreated with the same name, in which case the sockets
    /// must be bound again. Its MTU may have become too small for our frames, which counts as no carrier. Returns whether the interface is usable.
    fn refit(&mut self) -> io::Result<bool> {
        let bound = name_to_index(&self.sender, &self.interface).map_err(io::Error::from).and_then(|index| {
            socket::bind(&self.sender, index, 0)?;
            socket::bind(&self.receiver, index, self.ether_type)?;
            self.foreign.as_ref().map_or(Ok(()), |foreign| foreign.rebind(index, self.ether_type))
        });
        // Clears the pending errors of the sockets. A socket with a pending error is readable, so no thread could sleep on it.
        for socket in [&self.sender, &self.receiver] {
            let _ = rustix::net::sockopt::socket_error(socket);
        }
        bound?;
        Ok(mtu(&self.sender, &self.interface)? + ETHERNET_HEADER_BYTES >= self.filter.frame_bytes_max)
    }

    /// Passes the waiting frames to the kernel. Returns whether it accepted all of them.
    fn send(&mut self) -> bool {
        while self.outgoing.count() > 0 {
            let sent = match &mut self.received {
                Received::Portable(portable) => portable.send(self.outgoing.frames()),
                Received::Ring(_) | Received::Batches(_) => send_batch(&self.sender, self.outgoing.frames()),
            };
            match sent {
                Ok(sent) => self.outgoing.forget(sent),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => return false,
                    Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                        // Without an interface the waiting frames are lost.
                        self.counters.send_errors += self.outgoing.count() as u64;
                        self.outgoing.forget(usize::MAX);
                    }
                    _ => {
                        self.counters.send_errors += 1;
                        self.outgoing.forget(1);
                    }
                },
            }
        }
        true
    }
}

impl Device for PacketDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        let Self { received, receiver, filter, foreign, .. } = self;
        let lease = received.take(receiver, filter);
        lease.or_else(|| foreign.as_mut()?.take(|arrival, bytes| filter.admits(arrival, bytes)))
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        if let (Some(foreign), Some(own)) = (&self.foreign, ForeignFrames::own(lease)) {
            return foreign.bytes(own);
        }
        self.received.bytes(lease)
    }

    fn release(&mut self, lease: DeviceLease) {
        if let (Some(foreign), Some(own)) = (&mut self.foreign, ForeignFrames::own(lease)) {
            return foreign.release(own);
        }
        self.received.release(lease);
    }

    fn ready(&mut self) -> bool {
        self.received.ready(&self.receiver, &mut self.filter)
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.outgoing.is_full() && !self.send() {
            self.counters.full += 1;
            return None;
        }
        self.outgoing.slot()
    }

    fn commit(&mut self, length: usize, _doorbell: bool) {
        if !self.outgoing.is_full() && length <= self.filter.frame_bytes_max {
            self.outgoing.push(length);
        } else {
            self.counters.send_errors += 1;
        }
    }

    fn flush(&mut self, now: Instant) {
        self.retry_at = if self.send() { Instant::NEVER } else { now + RETRY_NS };
        self.received.settle();
    }

    fn next_due(&self) -> Instant {
        self.retry_at
    }

    fn carrier(&mut self) -> bool {
        // The carrier is polled every few milliseconds, which is often enough to count foreign frames.
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
        if let Some((link_events, seen)) = &mut self.link_events {
            let count = link_events.count();
            if count != std::mem::replace(seen, count) {
                self.is_fit = self.refit().unwrap_or(false);
            }
        }
        self.is_fit && has_carrier(&self.sender, &self.interface).unwrap_or(false)
    }

    fn plug(&mut self, is_plugged: bool) {
        if !self.is_own {
            return;
        }
        // Without the right to switch the interface off, the carrier is lost on this side only, as on other wires.
        let _ = match is_plugged {
            true => switch_on_all(std::slice::from_ref(&self.interface), Duration::ZERO),
            false => switch_off(&self.interface),
        };
    }

    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        self.link_events.as_ref().map(|(link_events, _)| link_events.descriptor())
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Descriptor(self.receiver.as_fd())
    }

    fn counters(&self) -> DeviceCounters {
        let Filter { too_long, tagged, .. } = self.filter;
        self.kernel_drops.set(self.kernel_drops.get() + take_kernel_drops(&self.receiver));
        let kernel_drops = self.kernel_drops.get();
        let foreign = self.foreign.as_ref().map_or(0, ForeignFrames::refused);
        DeviceCounters {
            receive_errors: too_long,
            tagged,
            foreign,
            copied_out: self.received.copied_out(),
            kernel_drops,
            ..self.counters
        }
    }
}
