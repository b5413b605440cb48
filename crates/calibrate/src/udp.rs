//! Datagrams in large pieces: one call hands the kernel many of one length (`UDP_SEGMENT`), and one call takes them over again
//! (`UDP_GRO`), over the loopback interface.
//!
//! What is under way is limited by the far side's word, as with packet sockets: it tells how many pieces it has had. Nothing is
//! done with the bytes.

use std::io;
use std::mem::size_of_val;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Instant;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::patience::wait_until;

/// What the payload of one piece holds at most.
const PIECE_BYTES_MAX: usize = 65_000;
/// Pieces under way: what the buffer that everybody is granted holds.
const UNDER_WAY: u64 = 4;
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Two sockets that hear each other. Made before there are two processes; each uses its own.
#[derive(Debug)]
pub struct SuperFrames {
    near: UdpSocket,
    far: UdpSocket,
    segment_bytes: usize,
    /// Datagrams of one piece.
    segments: u64,
}

impl SuperFrames {
    /// Both sockets, for datagrams of this length.
    ///
    /// # Errors
    /// The system's; a length that no piece holds.
    pub fn new(segment_bytes: usize) -> io::Result<Self> {
        let segments = PIECE_BYTES_MAX / segment_bytes.max(1);
        if segments == 0 || segment_bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (open()?, open()?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        set_option(&near, libc::UDP_SEGMENT, segment_bytes as libc::c_int)?;
        set_option(&far, libc::UDP_GRO, 1)?;
        set_socket_recv_buffer_size(&far, RECEIVE_BUFFER_BYTES)?;
        Ok(Self { near, far, segment_bytes, segments: segments as u64 })
    }

    /// Datagrams per second: send at least `count` of them to the far side, until it has told that all are there.
    ///
    /// # Errors
    /// The system's, or that the far side fell silent.
    pub fn segments_per_s(&self, count: u64) -> io::Result<f64> {
        let piece = vec![0x5a; self.piece_bytes()];
        let pieces = count.div_ceil(self.segments);
        let (mut sent, mut taken) = (0, 0);
        let begun = Instant::now();
        while taken < pieces {
            if sent < pieces && sent - taken < UNDER_WAY {
                match self.near.send(&piece) {
                    Ok(_) => sent += 1,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let known = taken;
            wait_until("sender of super-frames", || {
                let mut word = [0; 8];
                while self.near.recv(&mut word).is_ok() {
                    taken = taken.max(u64::from_le_bytes(word));
                }
                taken > known
            })?;
        }
        Ok((pieces * self.segments) as f64 / begun.elapsed().as_secs_f64().max(1e-9))
    }

    /// Take what [`Self::segments_per_s`] sends.
    ///
    /// # Errors
    /// The system's, or that the near side fell silent.
    pub fn take(&self, count: u64) -> io::Result<()> {
        let mut room = vec![0; 1 << 16];
        let piece_bytes = self.piece_bytes() as u64;
        let all = count.div_ceil(self.segments) * piece_bytes;
        let (mut bytes, mut told) = (0, 0);
        while bytes < all {
            let before = bytes;
            wait_until("receiver of super-frames", || {
                while let Ok(length) = self.far.recv(&mut room) {
                    bytes += length as u64;
                }
                bytes > before
            })?;
            let pieces = bytes / piece_bytes;
            if pieces > told {
                self.far.send(&pieces.to_le_bytes())?;
                told = pieces;
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
    fn all_that_is_sent_is_taken_and_told() {
        for segment_bytes in [1500, 4240] {
            all_is_taken(&SuperFrames::new(segment_bytes).unwrap());
        }
        assert!(SuperFrames::new(0).is_err() && SuperFrames::new(70_000).is_err());
    }

    fn all_is_taken(frames: &SuperFrames) {
        std::thread::scope(|scope| {
            let far = scope.spawn(|| frames.take(1000));
            assert!(frames.segments_per_s(1000).unwrap() > 0.0);
            far.join().unwrap().unwrap();
        });
    }
}
