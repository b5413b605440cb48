//! Frames over a link of raw packet sockets, in batches, with the flow control that avoids losses.
//!
//! A packet socket has no back-pressure: the sender succeeds and the receiver's kernel drops. So the receiver reports its count of frames
//! from time to time, and the sender never has more in flight than fit. The kernel reports how many fit:
//! it charges a socket's buffer with the kernel memory of a frame, which is up to three times the frame. The caller makes interfaces
//! and namespaces; a [`Port`] must be opened in the namespace of its interface.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Instant;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::wait::wait_until;

/// Most frames of one system call.
const BATCH: usize = 32;
/// Length of the largest frame, in bytes.
const FRAME_BYTES_MAX: usize = 9014;
const HEADER_BYTES: usize = 14;
const FRAME_BYTES_MIN: usize = 64;
/// Requested receive buffer, in bytes. The kernel grants at most the system's limit.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// Share of the receive buffer that may be in flight: frames of one size do not all take the same memory.
const FILL_NUMERATOR: u64 = 3;
const FILL_DENOMINATOR: u64 = 4;
/// Lowest number of frames in flight. Less than a batch stalls; more than some batches do not help.
const IN_FLIGHT_MIN: u64 = 4;
const IN_FLIGHT_MAX: u64 = 256;
/// EtherType for experiments (IEEE 802, local experimental).
const ETHER_TYPE: u16 = 0x88b5;

/// One end of a link.
#[derive(Debug)]
pub struct Port {
    sender: OwnedFd,
    receiver: OwnedFd,
    buffers: Vec<[u8; FRAME_BYTES_MAX]>,
}

impl Port {
    /// Opens `interface` in the namespace of the calling thread.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(interface: &str) -> io::Result<Self> {
        let sender = open(interface, 0)?;
        let receiver = open(interface, ETHER_TYPE)?;
        set_socket_recv_buffer_size(&receiver, RECEIVE_BUFFER_BYTES)?;
        Ok(Self { sender, receiver, buffers: vec![[0; FRAME_BYTES_MAX]; BATCH] })
    }

    /// Sends `count` frames of `bytes` bytes to the other end, which must run [`Self::take`], until it reports all of them. Returns
    /// frames per second.
    ///
    /// # Errors
    /// The system's error, or a timeout if the other end stops answering.
    pub fn frames_per_s(&mut self, bytes: usize, count: u64) -> io::Result<f64> {
        let frame = frame(bytes);
        // The first frame requests the number that may be in flight.
        send(&self.sender, &frame, 1)?;
        let in_flight_max = self.receive_more_than(0)?.max(1);
        let (mut sent, mut taken) = (0, 0);
        let begun = Instant::now();
        while taken < count {
            let free = in_flight_max - (sent - taken);
            let batch = free.min(count - sent).min(BATCH as u64);
            if batch > 0 {
                sent += send(&self.sender, &frame, batch as usize)? as u64;
            }
            if free < in_flight_max / 2 || sent == count {
                taken = self.receive_more_than(taken)?;
            }
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64().max(1e-9))
    }

    /// Receives `count` frames from the other end, which runs [`Self::frames_per_s`].
    ///
    /// # Errors
    /// The system's error, or a timeout if the other end stops answering.
    pub fn take(&mut self, count: u64) -> io::Result<()> {
        let in_flight_max = self.frames_in_flight_max()?;
        self.await_one()?;
        self.report(in_flight_max)?;
        let spacing = in_flight_max / 4;
        let (mut taken, mut reported) = (0, 0);
        while taken < count {
            let before = taken;
            wait_until("receiver of frames", || {
                self.drain(|_| taken += 1);
                taken > before
            })?;
            if taken - reported >= spacing || taken == count {
                self.report(taken)?;
                reported = taken;
            }
        }
        Ok(())
    }

    /// Returns the number of frames like the waiting one that fit the receive buffer.
    fn frames_in_flight_max(&self) -> io::Result<u64> {
        let mut memory = Memory::default();
        wait_until("receiver of the first frame", || {
            memory = Memory::of(&self.receiver).unwrap_or_default();
            memory.held_bytes > 0
        })?;
        Ok(memory.frames_max())
    }

    /// Sends a number to the other end.
    fn report(&self, number: u64) -> io::Result<()> {
        let mut word = frame(FRAME_BYTES_MIN);
        word[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&number.to_le_bytes());
        // The kernel may be out of buffers for a moment.
        let mut result = Ok(0);
        wait_until("receiver of frames that reports", || {
            result = send(&self.sender, &word, 1);
            !matches!(result, Ok(0))
        })?;
        result.map(drop)
    }

    /// Waits until the other end reports a number above `known`, and returns the largest.
    fn receive_more_than(&mut self, known: u64) -> io::Result<u64> {
        let mut reported = known;
        wait_until("sender of frames", || {
            self.drain(|frame| reported = reported.max(number(frame)));
            reported > known
        })?;
        Ok(reported)
    }

    /// Returns the time of a round trip of a 64-byte frame, in nanoseconds, over `trips`; the other end must run [`Self::answer`].
    ///
    /// # Errors
    /// The system's error, or a timeout if the other end stops answering.
    pub fn round_trip_ns(&mut self, trips: u64) -> io::Result<f64> {
        let frame = frame(FRAME_BYTES_MIN);
        let begun = Instant::now();
        for _ in 0..trips {
            send(&self.sender, &frame, 1)?;
            self.await_one()?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / trips.max(1) as f64)
    }

    /// Sends a frame back for each of `trips` received ones.
    ///
    /// # Errors
    /// The system's error, or a timeout if the other end stops answering.
    pub fn answer(&mut self, trips: u64) -> io::Result<()> {
        let frame = frame(FRAME_BYTES_MIN);
        for _ in 0..trips {
            self.await_one()?;
            send(&self.sender, &frame, 1)?;
        }
        Ok(())
    }

    fn await_one(&mut self) -> io::Result<()> {
        wait_until("side of a round trip of frames", || {
            let mut has_come = false;
            self.drain(|_| has_come = true);
            has_come
        })
    }

    /// Passes the received frames to `each`, a batch at most.
    fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let mut headers = Headers::new();
        for buffer in &mut self.buffers {
            headers.push(buffer.as_mut_ptr(), buffer.len());
        }
        let messages = headers.link();
        let socket = self.receiver.as_raw_fd();
        // SAFETY: needed because receiving a batch has no safe form. `messages` has `BATCH` linked headers, each with one
        // vector that describes a whole buffer, exclusively borrowed through the call; `headers` does not move.
        let count =
            unsafe { libc::recvmmsg(socket, messages, BATCH as _, libc::MSG_DONTWAIT as _, ptr::null_mut()) };
        // An error counts as no frames: a caller that waits for frames times out.
        let count = usize::try_from(count).unwrap_or(0);
        for (message, buffer) in headers.messages.iter().zip(&self.buffers).take(count) {
            each(&buffer[..(message.msg_len as usize).min(FRAME_BYTES_MAX)]);
        }
    }
}

/// State of a receive buffer, as the kernel reports it.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Kernel memory of the frames in it, in bytes.
    held_bytes: u32,
    /// Limit of that memory, in bytes.
    limit_bytes: u32,
}

impl Memory {
    fn of(socket: &OwnedFd) -> io::Result<Self> {
        let mut words = [0_u32; libc::SK_MEMINFO_DROPS as usize + 1];
        let mut length = size_of_val(&words) as libc::socklen_t;
        // SAFETY: needed because this option has no safe form. The pointer and the length describe `words`, which the
        // kernel fills at most to that length.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                words.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let word = |index: libc::c_int| words[index as usize];
        Ok(Self { held_bytes: word(libc::SK_MEMINFO_RMEM_ALLOC), limit_bytes: word(libc::SK_MEMINFO_RCVBUF) })
    }

    /// Returns the number of frames like the contained one that may be in flight.
    fn frames_max(self) -> u64 {
        let frames = u64::from(self.limit_bytes) / u64::from(self.held_bytes.max(1));
        (frames * FILL_NUMERATOR / FILL_DENOMINATOR).clamp(IN_FLIGHT_MIN, IN_FLIGHT_MAX)
    }
}

/// Returns a frame of this length to the broadcast address, from a locally administered address.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX)];
    frame[..6].fill(0xff);
    frame[6] = 0x02;
    frame[12..HEADER_BYTES].copy_from_slice(&ETHER_TYPE.to_be_bytes());
    frame
}

/// Returns the number that a frame carries, or 0 if the frame is too short.
fn number(frame: &[u8]) -> u64 {
    let word = frame.get(HEADER_BYTES..HEADER_BYTES + 8);
    word.and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Sends a frame `count` times, a batch at most. Returns how many the kernel took.
fn send(socket: &OwnedFd, frame: &[u8], count: usize) -> io::Result<usize> {
    let mut headers = Headers::new();
    let count = count.min(BATCH);
    (0..count).for_each(|_| headers.push(frame.as_ptr().cast_mut(), frame.len()));
    let messages = headers.link();
    // SAFETY: needed because sending a batch has no safe form. `messages` has `count` linked headers, each with one vector
    // that describes `frame`, borrowed through the call; the kernel only reads it (`iovec` has no const form).
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages, count as _, libc::MSG_DONTWAIT as _) };
    match usize::try_from(sent) {
        Ok(sent) => Ok(sent),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(0),
            error => Err(error),
        },
    }
}

/// Opens a socket on an interface that receives one protocol, or none.
fn open(interface: &str, protocol: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    let index = netdevice::name_to_index(&socket, interface)?;
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = libc::c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: needed because this kind of address has no safe form. The pointer and the length describe `address`, which
    // the kernel only reads during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Headers of one batch: pointers that are only valid during one call.
struct Headers {
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
    count: usize,
}

impl Headers {
    fn new() -> Self {
        // SAFETY: needed because the types have no constructors. They consist of integers and pointers, for which zero is
        // valid and means "no address, no control data".
        unsafe { Self { vectors: zeroed(), messages: zeroed(), count: 0 } }
    }

    fn push(&mut self, base: *mut u8, length: usize) {
        self.vectors[self.count] = libc::iovec { iov_base: base.cast(), iov_len: length };
        self.count += 1;
    }

    /// Points the messages at their vectors. `self` must not move until the call is over.
    fn link(&mut self) -> *mut libc::mmsghdr {
        for (message, vector) in self.messages.iter_mut().zip(&mut self.vectors).take(self.count) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        self.messages.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_in_flight_follow_the_kernel_memory_of_a_frame() {
        let frames_max = |held_bytes| Memory { held_bytes, limit_bytes: 425_984 }.frames_max();
        assert_eq!([768, 8448, 16_640, 400_000].map(frames_max), [256, 37, 18, 4]);
    }

    #[test]
    fn the_kernel_reports_the_contents_of_a_buffer() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.send_to(&[1; 100], receiver.local_addr().unwrap()).unwrap();
        let memory = Memory::of(&OwnedFd::from(receiver)).unwrap();
        assert!(memory.held_bytes > 100 && memory.limit_bytes > memory.held_bytes, "{memory:?}");
    }

    #[test]
    fn a_short_frame_carries_no_number() {
        let mut reported = frame(64);
        reported[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&77_u64.to_le_bytes());
        assert_eq!((number(&reported), number(&reported[..20])), (77, 0));
    }
}
