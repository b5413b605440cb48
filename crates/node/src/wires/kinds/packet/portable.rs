//! The packet wire through the datalink channel of `pnet`. It needs only a packet socket that can be read and written, and makes a system call per
//! frame.
//!
//! It serves systems whose packet sockets support neither rings nor batches. A call per frame is slower, and a receiver gets only the bytes of a
//! frame. It cannot detect that a frame had a VLAN tag. The core refuses such a frame if its addresses or checks are wrong. The tag itself is not
//! counted.

use std::fmt;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::time::Duration;

use pnet_datalink::{Channel, ChannelType, Config, DataLinkReceiver, DataLinkSender, channel, interfaces};
use rustix::io::Errno;

use super::socket::{Arrival, BATCH};
use crate::wires::{DeviceLease, FRAME_BYTES_MAX};

/// Number of received frames that the core may hold before the socket is no longer read.
const LEASES_MAX: usize = 4096;

/// Both directions of a channel, and the frames received over it.
pub(super) struct Portable {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
    /// Frames by lease.
    frames: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
    /// A frame that has been read and not taken.
    next: Option<u32>,
}

impl fmt::Debug for Portable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Portable").field("frames", &self.frames.len()).finish_non_exhaustive()
    }
}

impl Portable {
    /// Creates a channel from an unbound packet socket, on the interface of this name.
    pub(super) fn attach(socket: &OwnedFd, interface: &str, ether_type: u16) -> io::Result<Self> {
        let found = interfaces().into_iter().find(|found| found.name == interface);
        let found = found.ok_or_else(|| io::Error::from(Errno::NODEV))?;
        let config = Config {
            // A raw socket stays raw. This selects the only EtherType that it receives.
            channel_type: ChannelType::Layer3(ether_type),
            socket_fd: Some(socket.try_clone()?.into_raw_fd()),
            read_timeout: Some(Duration::ZERO),
            write_timeout: Some(Duration::ZERO),
            read_buffer_size: FRAME_BYTES_MAX,
            write_buffer_size: FRAME_BYTES_MAX,
            promiscuous: false,
            ..Config::default()
        };
        let Channel::Ethernet(sender, receiver) = channel(&found, config)? else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let (frames, free, spare, next) = Default::default();
        Ok(Self { sender, receiver, frames, free, spare, next })
    }

    /// Sends these frames in order. Returns the number that the kernel accepted. An error concerns the first frame.
    pub(super) fn send<'b>(&mut self, frames: impl Iterator<Item = &'b [u8]>) -> io::Result<usize> {
        let mut sent = 0;
        for frame in frames {
            match self.sender.send_to(frame, None) {
                Some(Ok(())) => sent += 1,
                // The next call reports the error of this frame.
                _ if sent > 0 => break,
                Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Errno::AGAIN.into());
                }
                Some(Err(error)) => return Err(error),
                None => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(sent)
    }

    /// Returns whether a frame has been received.
    pub(super) fn ready(&mut self, wanted: impl FnMut(Arrival, &[u8]) -> bool) -> bool {
        if self.next.is_none() {
            self.next = self.read(wanted);
        }
        self.next.is_some()
    }

    /// Takes the next wanted frame.
    pub(super) fn take(&mut self, wanted: impl FnMut(Arrival, &[u8]) -> bool) -> Option<DeviceLease> {
        self.ready(wanted).then(|| self.next.take())?.map(DeviceLease)
    }

    /// Returns the bytes of a lease, or an empty slice if there is no such lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        self.frames.get(lease.0 as usize).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Releases a lease. Does nothing if the lease does not exist.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        if let Some(buffer) = self.frames.get_mut(lease.0 as usize).and_then(Option::take) {
            self.spare.push(buffer);
            self.free.push(lease.0);
        }
    }

    /// Reads frames until one is wanted. An error means an empty socket, or a lost carrier that the carrier's next poll detects.
    fn read(&mut self, mut wanted: impl FnMut(Arrival, &[u8]) -> bool) -> Option<u32> {
        if self.frames.len() - self.free.len() >= LEASES_MAX {
            return None;
        }
        for _ in 0..BATCH {
            let bytes = self.receiver.next().ok()?;
            // A frame that fills the buffer may have been cut. It is longer than any valid frame in either case.
            let arrival = Arrival { length: bytes.len(), is_whole: true, for_others: false };
            if wanted(arrival, bytes) {
                let mut frame = self.spare.pop().unwrap_or_default();
                frame.clear();
                frame.extend_from_slice(bytes);
                return Some(self.keep(frame));
            }
        }
        None
    }

    fn keep(&mut self, frame: Vec<u8>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.frames.push(None);
            (self.frames.len() - 1) as u32
        });
        self.frames[slot as usize] = Some(frame);
        slot
    }
}
