//! Datagrams in large pieces over the loopback interface: one call passes many of one length to the kernel (`UDP_SEGMENT`), and one
//! call receives them again (`UDP_GRO`).
//!
//! The receiver reports how many pieces it has received, which limits the pieces in flight, as with packet sockets. The bytes are not
//! examined.

use std::io;
use std::mem::size_of_val;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Instant;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::wait::wait_until;

/// Longest payload of one piece, in bytes.
const PIECE_BYTES_MAX: usize = 65_000;
/// Pieces in flight: as many as the default buffer of a socket holds.
const IN_FLIGHT: u64 = 4;
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Two connected sockets. Make them before the fork; each process uses its own.
#[derive(Debug)]
pub struct SuperFrames {
    initiator: UdpSocket,
    target: UdpSocket,
    segment_bytes: usize,
    /// Number of datagrams of one piece.
    segments: u64,
}

impl SuperFrames {
    /// Makes both sockets, for datagrams of this length.
    ///
    /// # Errors
    /// The system's error, or a length that no piece holds.
    pub fn new(segment_bytes: usize) -> io::Result<Self> {
        let segments = PIECE_BYTES_MAX / segment_bytes.max(1);
        if segments == 0 || segment_bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (initiator, target) = (open()?, open()?);
        initiator.connect(target.local_addr()?)?;
        target.connect(initiator.local_addr()?)?;
        initiator.set_nonblocking(true)?;
        target.set_nonblocking(true)?;
        set_option(&initiator, libc::UDP_SEGMENT, segment_bytes as libc::c_int)?;
        set_option(&target, libc::UDP_GRO, 1)?;
        set_socket_recv_buffer_size(&target, RECEIVE_BUFFER_BYTES)?;
        Ok(Self { initiator, target, segment_bytes, segments: segments as u64 })
    }

    /// Sends at least `count` datagrams to the target, until it reports all of them. Returns datagrams per second.
    ///
    /// # Errors
    /// The system's error, or a target that stopped answering.
    pub fn segments_per_s(&self, count: u64) -> io::Result<f64> {
        let piece = vec![0x5a; self.piece_bytes()];
        let pieces = count.div_ceil(self.segments);
        let (mut sent, mut taken) = (0, 0);
        let begun = Instant::now();
        while taken < pieces {
            if sent < pieces && sent - taken < IN_FLIGHT {
                match self.initiator.send(&piece) {
                    Ok(_) => sent += 1,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let known = taken;
            wait_until("sender of super-frames", || {
                let mut word = [0; 8];
                while self.initiator.recv(&mut word).is_ok() {
                    taken = taken.max(u64::from_le_bytes(word));
                }
                taken > known
            })?;
        }
        Ok((pieces * self.segments) as f64 / begun.elapsed().as_secs_f64().max(1e-9))
    }

    /// Receives the datagrams of [`Self::segments_per_s`].
    ///
    /// # Errors
    /// The system's error, or an initiator that stopped answering.
    pub fn take(&self, count: u64) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let piece_bytes = self.piece_bytes() as u64;
        let all = count.div_ceil(self.segments) * piece_bytes;
        let (mut bytes, mut reported) = (0, 0);
        while bytes < all {
            let before = bytes;
            wait_until("receiver of super-frames", || {
                while let Ok(length) = self.target.recv(&mut buffer) {
                    bytes += length as u64;
                }
                bytes > before
            })?;
            let pieces = bytes / piece_bytes;
            if pieces > reported {
                self.target.send(&pieces.to_le_bytes())?;
                reported = pieces;
            }
        }
        Ok(())
    }

    const fn piece_bytes(&self) -> usize {
        self.segment_bytes * self.segments as usize
    }
}

fn set_option(socket: &UdpSocket, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: needed because these options have no safe form. Pointer and length describe `value`, which the kernel only
    // reads during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            name,
            ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_datagrams_are_received_and_reported() {
        for segment_bytes in [1500, 4240] {
            all_is_taken(&SuperFrames::new(segment_bytes).unwrap());
        }
        assert!(SuperFrames::new(0).is_err() && SuperFrames::new(70_000).is_err());
    }

    fn all_is_taken(frames: &SuperFrames) {
        std::thread::scope(|scope| {
            let target = scope.spawn(|| frames.take(1000));
            assert!(frames.segments_per_s(1000).unwrap() > 0.0);
            target.join().unwrap().unwrap();
        });
    }
}
