//! Descriptors that are sent over a Unix socket with the line that names them.
//!
//! The kernel attaches descriptors to bytes, at most `BATCH_MAX` to one message. The first bytes of a line therefore carry a batch each, and the rest
//! of the line carries none. The receiver reads until the line is complete and keeps the received descriptors. This file does not interpret them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Maximum number of descriptors that the kernel accepts in one message.
const BATCH_MAX: usize = 253;

/// Maximum number of descriptors that one line may carry. A seat of the largest rack needs fewer.
pub const DESCRIPTORS_MAX: usize = 16 * BATCH_MAX;

/// Returns the number of bytes of a line that carry descriptors.
#[must_use]
pub fn carrying_bytes(descriptors: usize) -> usize {
    descriptors.div_ceil(BATCH_MAX)
}

/// Sends byte `index` of a line with its batch. Does not wait: a full socket returns [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// The error of the socket, or [`io::ErrorKind::InvalidInput`] if the line has no such byte.
pub fn send_batch(
    socket: impl AsFd,
    line: &[u8],
    index: usize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let batch = descriptors.chunks(BATCH_MAX).nth(index).unwrap_or_default();
    let byte = line.get(index..=index).ok_or(io::ErrorKind::InvalidInput)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(batch)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(byte)], &mut ancillary, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// Reads some bytes and the descriptors that were sent with them. The descriptors are closed on exec. Returns the number of bytes; zero means the
/// end.
///
/// # Errors
/// The error of the socket, or [`io::ErrorKind::InvalidData`] if more descriptors arrived than any seat needs.
pub fn receive(socket: impl AsFd, bytes: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more descriptors than any seat needs"));
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn more_descriptors_than_one_message_takes_arrive_in_order_with_the_line() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let files: Vec<OwnedFd> =
            (0..BATCH_MAX + 7).map(|_| ours.as_fd().try_clone_to_owned().unwrap()).collect();
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let line = b"abc\n";
        let carrying = carrying_bytes(borrowed.len());
        assert_eq!(carrying, 2);
        for index in 0..carrying {
            send_batch(&ours, line, index, &borrowed).unwrap();
        }
        io::Write::write_all(&mut &ours, &line[carrying..]).unwrap();

        let (mut text, mut descriptors) = (Vec::new(), Vec::new());
        while !text.ends_with(b"\n") {
            let mut chunk = [0; 16];
            let count = receive(&theirs, &mut chunk, &mut descriptors).unwrap();
            text.extend_from_slice(&chunk[..count]);
        }
        assert_eq!(text, line);
        assert_eq!(descriptors.len(), files.len());
    }
}
