//! The UDP wire: Ethernet frames as the payload of datagrams (IPv4).
//!
//! It serves systems that give a user neither namespaces nor packet sockets. There both ends are sockets of the loopback interface. It also serves
//! hosts with routers between them. There each host opens its end at an address that the rack file names. In both cases the sockets are connected to
//! each other, so the kernel accepts datagrams from the neighbour's address only and discards all others.
//!
//! The wire is fast because one system call can carry many frames. Frames of one length that wait together are sent as one buffer. The kernel cuts it
//! into datagrams at the end of its send path, or not at all (`outgoing`), and they are received as one buffer (`received`).
//!
//! Datagrams have no back-pressure; credits prevent losses as on the packet wire (`truesize`). Within one host, a pair of sockets that carry no data
//! serves as the carrier: when a process ends, the kernel closes its socket, and the neighbour detects that. A refused datagram has the same meaning.
//! Between hosts it is the only such signal.

mod outgoing;
mod received;
mod routed;
mod socket;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rackloom_protocol::{CreditConfig, Instant};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use self::outgoing::Outgoing;
use self::received::Received;
use self::routed::{ForeignDatagrams, HEADERS_BYTES, path_mtu, routed};
use self::socket::{BATCH, connected_pair, drops, join_received, send_batch};
use crate::wires::descriptors::adopt;
use crate::wires::socket::{has_peer, set_receive_buffer};
use crate::wires::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, WakeSource, truesize};

/// Delay before the next attempt after the kernel's buffer was full, in nanoseconds.
const RETRY_NS: u64 = 200_000;
/// Receive buffer that a socket requests, in bytes. The kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
/// Number of waiting bytes that are sent before the end of the poll: half of the largest piece. Credits admit little more than one largest piece, and
/// a sender that fills it would stop until the neighbour has processed all of it.
const PIECE_BYTES: usize = 32 << 10;
/// Maximum number of frames that the kernel cuts from one buffer.
const RUN_FRAMES_MAX: usize = 64;
/// Number of refusals that one attempt to send skips where refusals are ignored. Each refusal is reported once, and a flood of them must not block
/// the sender.
const REFUSALS_MAX: usize = 8;

/// One end of a link, not opened yet.
///
/// `Send` and `Sync`: descriptors that it owns.
#[derive(Debug)]
pub struct End {
    socket: OwnedFd,
    beside: Companion,
}

/// Second descriptor of an end.
#[derive(Debug)]
enum Companion {
    /// Within one machine: the carrier, which closes with the neighbour's process.
    Carrier(OwnedFd),
    /// Between machines: the socket that receives foreign datagrams on the same port.
    ForeignDatagrams(ForeignDatagrams),
}

/// Addresses of a link between machines.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address of this end.
    pub mine: SocketAddrV4,
    /// Address of the remote end.
    pub theirs: SocketAddrV4,
}

/// Settings of a port, from its link.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Length of the longest frame, in bytes. Longer frames are not received.
    pub frame_bytes_max: u16,
    /// Credits of the neighbour: what it may have in flight.
    pub credits: CreditConfig,
}

/// Creates a link over the loopback interface.
///
/// # Errors
/// The error of the system.
pub fn create() -> io::Result<(End, End)> {
    let (a, b) = connected_pair()?;
    let (a_carrier, b_carrier) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let end = |socket, carrier| End { socket, beside: Companion::Carrier(carrier) };
    Ok((end(a, a_carrier), end(b, b_carrier)))
}

/// Creates one end of a link to another machine. Both machines create theirs, in any order.
///
/// # Errors
/// The error of the system.
pub fn create_routed(route: &Route) -> io::Result<End> {
    let (socket, foreign) = routed(route.mine, route.theirs)?;
    Ok(End { socket, beside: Companion::ForeignDatagrams(foreign) })
}

impl End {
    /// Returns the descriptors, for the process that will inherit and open them. This end keeps ownership.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 2] {
        let beside = match &self.beside {
            Companion::Carrier(carrier) => carrier.as_raw_fd(),
            Companion::ForeignDatagrams(foreign) => foreign.descriptor().as_raw_fd(),
        };
        [self.socket.as_raw_fd(), beside]
    }

    /// Takes over inherited descriptors of a link within one machine, in the order of [`End::fds`].
    ///
    /// # Errors
    /// The error of the system.
    pub fn from_fds([socket, carrier]: [RawFd; 2]) -> io::Result<Self> {
        Ok(Self { socket: adopt(socket)?, beside: Companion::Carrier(adopt(carrier)?) })
    }

    /// Takes over inherited descriptors of a link to another machine, in the order of [`End::fds`].
    ///
    /// # Errors
    /// The error of the system.
    pub fn routed_from_fds([socket, foreign]: [RawFd; 2]) -> io::Result<Self> {
        let foreign = ForeignDatagrams::inherited(adopt(foreign)?);
        Ok(Self { socket: adopt(socket)?, beside: Companion::ForeignDatagrams(foreign) })
    }

    /// Returns the length in bytes of the longest frame that reaches the other end in one packet, as far as this machine knows the path.
    ///
    /// # Errors
    /// The error of the system.
    pub fn frame_bytes_carried(&self) -> io::Result<usize> {
        Ok(path_mtu(&self.socket)?.saturating_sub(HEADERS_BYTES))
    }

    /// Opens the end as a device.
    ///
    /// # Errors
    /// The error of the system, or too small a receive buffer for the link's credits.
    pub fn open(self, settings: &Settings) -> io::Result<UdpDevice> {
        self.open_with(settings, RECEIVE_BUFFER_BYTES)
    }

    pub(in crate::wires) fn open_with(
        self,
        settings: &Settings,
        buffer_bytes: usize,
    ) -> io::Result<UdpDevice> {
        let frame_bytes_max = usize::from(settings.frame_bytes_max).min(FRAME_BYTES_MAX);
        let granted_bytes = set_receive_buffer(&self.socket, buffer_bytes)?;
        // Until a reader has emptied the queue, the kernel withholds up to a quarter of the buffer for data that has been read already.
        truesize::check(granted_bytes / 4 * 3, &settings.credits, frame_bytes_max)?;
        // A kernel that cannot join datagrams delivers them one by one.
        let _ = join_received(&self.socket);
        Ok(UdpDevice {
            socket: self.socket,
            beside: self.beside,
            frame_bytes_max,
            received: Received::default(),
            outgoing: Outgoing::default(),
            run_frames_max: RUN_FRAMES_MAX,
            is_refused: false,
            has_neighbour: true,
            refusals: Refusals::Accepted,
            has_received: false,
            retry_at: Instant::NEVER,
            counters: DeviceCounters::default(),
        })
    }
}

/// Treatment of refused datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusals {
    /// A refused datagram means that the neighbour is absent.
    Accepted,
    /// Refusals are ignored, because other senders can forge them.
    Ignored,
}

/// A port on a datagram socket.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct UdpDevice {
    socket: OwnedFd,
    beside: Companion,
    frame_bytes_max: usize,
    received: Received,
    outgoing: Outgoing,
    /// Number of frames that may be sent as one buffer: several, or one where the kernel does not cut.
    run_frames_max: usize,
    /// Set if the neighbour's socket has been closed.
    is_refused: bool,
    /// Result of the last check whether the neighbour is present.
    has_neighbour: bool,
    refusals: Refusals,
    /// Set if a frame has been received from the neighbour since the last refusal.
    has_received: bool,
    /// Time of the next attempt after the kernel's buffer was full.
    retry_at: Instant,
    counters: DeviceCounters,
}

impl UdpDevice {
    /// Ignores refused datagrams of a link between machines, because any sender on the network between them can forge the ICMP message.
    #[must_use]
    pub const fn ignoring_refusals(mut self) -> Self {
        if !matches!(self.beside, Companion::Carrier(_)) {
            self.refusals = Refusals::Ignored;
        }
        self
    }

    /// Returns whether the neighbour is present. A refusal before the first received frame only means that the neighbour has not started yet.
    fn is_answered(&mut self) -> bool {
        self.is_refused |= std::mem::take(&mut self.received.is_refused);
        self.is_refused &= self.refusals == Refusals::Accepted;
        if self.is_refused {
            let had_received = std::mem::replace(&mut self.has_received, false);
            self.has_neighbour = self.has_neighbour && !had_received;
            self.is_refused = false;
        } else if self.has_received {
            self.has_neighbour = true;
        }
        self.has_neighbour
    }

    /// Passes the waiting frames to the kernel. Returns whether it accepted all of them.
    fn send(&mut self) -> bool {
        let mut refusals = 0;
        while self.outgoing.count() > 0 {
            let runs = self.outgoing.runs(self.run_frames_max).take(BATCH);
            let messages = runs.map(|run| {
                let piece_bytes = u16::try_from(run.frame_bytes).ok().filter(|_| run.frames > 1);
                (self.outgoing.bytes(&run), piece_bytes)
            });
            let sent = send_batch(&self.socket, messages);
            let first_frames =
                |runs| self.outgoing.runs(self.run_frames_max).take(runs).map(|run| run.frames);
            match sent {
                Ok(runs) => {
                    let frames = first_frames(runs).sum();
                    self.outgoing.forget(frames);
                }
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => return false,
                    Some(Errno::CONNREFUSED) if self.refusals == Refusals::Ignored => {
                        refusals += 1;
                        if refusals > REFUSALS_MAX {
                            return false;
                        }
                    }
                    Some(Errno::CONNREFUSED) => {
                        // The error concerns an earlier datagram, and the kernel reports it once.
                        self.is_refused = true;
                        self.counters.send_errors += self.outgoing.count() as u64;
                        self.outgoing.forget(usize::MAX);
                    }
                    _ if self.run_frames_max > 1 && first_frames(1).sum::<usize>() > 1 => {
                        // This kernel or this interface does not cut buffers. From now on frames are sent one by one.
                        self.run_frames_max = 1;
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

impl Device for UdpDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        let lease = self.received.take(&self.socket, self.frame_bytes_max)?;
        self.has_received = true;
        // A refusal that was noted before this frame concerns a datagram that arrived before the neighbour had opened its socket. A neighbour that has
        // ended refuses the next datagram as well.
        self.is_refused = false;
        self.received.is_refused = false;
        Some(lease)
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        self.received.bytes(lease)
    }

    fn release(&mut self, lease: DeviceLease) {
        self.received.release(lease);
    }

    fn ready(&mut self) -> bool {
        self.received.ready(&self.socket, self.frame_bytes_max)
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.outgoing.is_full() && !self.send() {
            self.counters.full += 1;
            return None;
        }
        self.outgoing.slot()
    }

    fn commit(&mut self, length: usize, _doorbell: bool) {
        if !self.outgoing.is_full() && length > 0 && length <= self.frame_bytes_max {
            self.outgoing.push(length);
            // The neighbour starts with this piece while the next one is made. Frames that the kernel cannot accept wait for the flush.
            if self.outgoing.waiting_bytes() >= PIECE_BYTES {
                let _ = self.send();
            }
        } else {
            self.counters.send_errors += 1;
        }
    }

    fn flush(&mut self, now: Instant) {
        self.retry_at = if self.send() { Instant::NEVER } else { now + RETRY_NS };
    }

    fn next_due(&self) -> Instant {
        self.retry_at
    }

    fn carrier(&mut self) -> bool {
        if let Companion::Carrier(carrier) = &self.beside {
            self.has_neighbour = self.has_neighbour && !self.is_refused && has_peer(carrier);
            return self.has_neighbour;
        }
        self.is_answered()
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Descriptor(self.socket.as_fd())
    }

    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        // After the neighbour has ended, the carrier stays readable, and no thread could sleep on it.
        match &self.beside {
            Companion::Carrier(carrier) => self.has_neighbour.then(|| carrier.as_fd()),
            Companion::ForeignDatagrams(_) => None,
        }
    }

    fn counters(&self) -> DeviceCounters {
        let Received { copied_out, too_long, .. } = self.received;
        let foreign = match &self.beside {
            Companion::Carrier(_) => 0,
            Companion::ForeignDatagrams(foreign) => foreign.refused(),
        };
        DeviceCounters {
            foreign,
            kernel_drops: drops(&self.socket),
            receive_errors: too_long,
            copied_out,
            ..self.counters
        }
    }
}
