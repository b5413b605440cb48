//! The udp wire: the same Ethernet frames as the payload of datagrams (IPv4).
//!
//! For systems that give a user neither namespaces nor packet sockets: there both ends are sockets of the loopback interface.
//! And for hosts with routers between them: there each host opens its end at an address that the rack file names. Either way
//! sockets are connected to each other, so the kernel takes datagrams from the neighbour's address alone and every stranger
//! is turned away below us.
//!
//! What is fast about it is that a crossing can be large: frames of one length that wait together leave as one buffer, which
//! the kernel cuts into datagrams at its far end or not at all (`udp_outgoing`), and arrive as one (`udp_received`).
//!
//! Datagrams have no back-pressure; credits prevent losses as on the packet wire (`truesize`). A pair of sockets that nobody
//! writes to goes along as the carrier: when a process ends, the kernel closes its end, and the neighbour sees that. A
//! refused datagram says the same, and between hosts only that does.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rackloom_protocol::{CreditConfig, Instant};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::socket::{has_peer, set_receive_buffer};
use super::udp_outgoing::Outgoing;
use super::udp_received::Received;
use super::udp_routed::{Doorman, HEADERS_BYTES, path_mtu, routed};
use super::udp_socket::{BATCH, connected_pair, drops, join_received, send_batch};
use super::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, WakeSource, adopt, truesize};

/// When the kernel was full, how soon to try again.
const RETRY_NS: u64 = 200_000;
/// What a socket asks for; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
/// What waits leaves when it is so much, half of the largest piece, and does not wait for the turn's end: credits admit hardly more
/// than one largest piece, and a sender that fills it stands still until the neighbour has worked through all of it.
const PIECE_BYTES: usize = 32 << 10;
/// Beyond this the kernel cuts nothing: it then takes datagrams one by one.
const RUN_FRAMES_MAX: usize = 64;
/// Refusals that one attempt to send passes over where they are ignored: each is reported once, and a flood of them must end.
const REFUSALS_MAX: usize = 8;

/// One end of a link, not opened yet.
///
/// `Send` and `Sync`: descriptors that it owns.
#[derive(Debug)]
pub struct End {
    socket: OwnedFd,
    beside: Beside,
}

/// What goes along with the socket.
#[derive(Debug)]
enum Beside {
    /// Within one machine: ends with the neighbour's process.
    Carrier(OwnedFd),
    /// Between machines: hears, on the same port, what strangers send.
    Doorman(Doorman),
}

/// Where a link between machines begins and ends.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Here.
    pub mine: SocketAddrV4,
    /// There.
    pub theirs: SocketAddrV4,
}

/// What a port must know of its link.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Longest frame; what is longer is not received.
    pub frame_bytes_max: u16,
    /// What the neighbour may have under way.
    pub credits: CreditConfig,
}

/// A new link over the loopback interface.
///
/// # Errors
/// The system's.
pub fn create() -> io::Result<(End, End)> {
    let (a, b) = connected_pair()?;
    let (a_carrier, b_carrier) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let end = |socket, carrier| End { socket, beside: Beside::Carrier(carrier) };
    Ok((end(a, a_carrier), end(b, b_carrier)))
}

/// One end of a link to another machine. Both machines open theirs, in any order.
///
/// # Errors
/// The system's.
pub fn create_routed(route: &Route) -> io::Result<End> {
    let (socket, doorman) = routed(route.mine, route.theirs)?;
    Ok(End { socket, beside: Beside::Doorman(doorman) })
}

impl End {
    /// The descriptors, still owned by this end: to be inherited by the process that will open it.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 2] {
        let beside = match &self.beside {
            Beside::Carrier(carrier) => carrier.as_raw_fd(),
            Beside::Doorman(doorman) => doorman.descriptor().as_raw_fd(),
        };
        [self.socket.as_raw_fd(), beside]
    }

    /// Take over the descriptors that this process was started with, in the order of [`End::fds`].
    ///
    /// # Errors
    /// The system's.
    pub fn from_fds([socket, carrier]: [RawFd; 2]) -> io::Result<Self> {
        Ok(Self { socket: adopt(socket)?, beside: Beside::Carrier(adopt(carrier)?) })
    }

    /// The same, of a link to another machine.
    ///
    /// # Errors
    /// The system's.
    pub fn routed_from_fds([socket, doorman]: [RawFd; 2]) -> io::Result<Self> {
        let doorman = Doorman::inherited(adopt(doorman)?);
        Ok(Self { socket: adopt(socket)?, beside: Beside::Doorman(doorman) })
    }

    /// Longest frame that crosses to the other end in one packet, as far as this machine knows the way.
    ///
    /// # Errors
    /// The system's.
    pub fn frame_bytes_carried(&self) -> io::Result<usize> {
        Ok(path_mtu(&self.socket)?.saturating_sub(HEADERS_BYTES))
    }

    /// Make a device of it.
    ///
    /// # Errors
    /// The system's; too small a receive buffer for the link's credits.
    pub fn open(self, settings: &Settings) -> io::Result<UdpDevice> {
        self.open_with(settings, RECEIVE_BUFFER_BYTES)
    }

    pub(super) fn open_with(self, settings: &Settings, buffer_bytes: usize) -> io::Result<UdpDevice> {
        let frame_bytes_max = usize::from(settings.frame_bytes_max).min(FRAME_BYTES_MAX);
        let granted_bytes = set_receive_buffer(&self.socket, buffer_bytes)?;
        // While a reader has not emptied the queue, the kernel keeps a quarter back of what has been read.
        truesize::check(granted_bytes / 4 * 3, &settings.credits, frame_bytes_max)?;
        // A kernel that cannot join hands over one by one.
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
            believes_refusals: true,
            is_heard: false,
            retry_at: Instant::NEVER,
            counters: DeviceCounters::default(),
        })
    }
}

/// A port on a datagram socket.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct UdpDevice {
    socket: OwnedFd,
    beside: Beside,
    frame_bytes_max: usize,
    received: Received,
    outgoing: Outgoing,
    /// Frames that may go as one: several, or one where the kernel does not cut.
    run_frames_max: usize,
    /// Nobody holds the neighbour's socket any more.
    is_refused: bool,
    /// Both ends were there when this was asked last.
    has_neighbour: bool,
    /// Whether a refused datagram says that the neighbour is gone.
    believes_refusals: bool,
    /// Something has come from the neighbour since it was last refused.
    is_heard: bool,
    /// When to try again after the kernel was full.
    retry_at: Instant,
    counters: DeviceCounters,
}

impl UdpDevice {
    /// Ignore refused datagrams of a link between machines: any sender on the network between them can forge the ICMP message.
    #[must_use]
    pub const fn without_refusals(mut self) -> Self {
        self.believes_refusals = matches!(self.beside, Beside::Carrier(_));
        self
    }

    /// Whether the neighbour is there. A refusal before it was ever heard only says that it is late.
    fn is_answered(&mut self) -> bool {
        self.is_refused |= std::mem::take(&mut self.received.is_refused);
        self.is_refused &= self.believes_refusals;
        if self.is_refused {
            let was_heard = std::mem::replace(&mut self.is_heard, false);
            self.has_neighbour = self.has_neighbour && !was_heard;
            self.is_refused = false;
        } else if self.is_heard {
            self.has_neighbour = true;
        }
        self.has_neighbour
    }

    /// Hand the kernel what waits. Returns whether it could take everything.
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
                    Some(Errno::CONNREFUSED) if !self.believes_refusals => {
                        refusals += 1;
                        if refusals > REFUSALS_MAX {
                            return false;
                        }
                    }
                    Some(Errno::CONNREFUSED) => {
                        // It concerns an earlier datagram, and it is said once.
                        self.is_refused = true;
                        self.counters.send_errors += self.outgoing.count() as u64;
                        self.outgoing.forget(usize::MAX);
                    }
                    _ if self.run_frames_max > 1 && first_frames(1).sum::<usize>() > 1 => {
                        // This kernel or this interface does not cut; one by one it is.
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
        self.is_heard = true;
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
        self.outgoing.room()
    }

    fn commit(&mut self, length: usize, _doorbell: bool) {
        if !self.outgoing.is_full() && length > 0 && length <= self.frame_bytes_max {
            self.outgoing.push(length);
            // The neighbour begins with this piece while the next one is made; what the kernel cannot take waits for the flush.
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
        if let Beside::Carrier(carrier) = &self.beside {
            self.has_neighbour = self.has_neighbour && !self.is_refused && has_peer(carrier);
            return self.has_neighbour;
        }
        self.is_answered()
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Descriptor(self.socket.as_fd())
    }

    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        // Once the neighbour is gone it stays readable, and nobody could sleep.
        match &self.beside {
            Beside::Carrier(carrier) => self.has_neighbour.then(|| carrier.as_fd()),
            Beside::Doorman(_) => None,
        }
    }

    fn counters(&self) -> DeviceCounters {
        let Received { evacuated, too_long, .. } = self.received;
        let strangers = match &self.beside {
            Beside::Carrier(_) => 0,
            Beside::Doorman(doorman) => doorman.turned_away(),
        };
        DeviceCounters {
            strangers,
            kernel_drops: drops(&self.socket),
            receive_errors: too_long,
            evacuated,
            ..self.counters
        }
    }
}
