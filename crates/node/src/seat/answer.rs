//! One request to a rack's control socket whose response may carry descriptors.
//!
//! The caller interprets the lines. Bytes after the response are returned unread: the connection on which a seat was taken becomes the seat's own.

use std::io::{self, Write};
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::descriptors;
use rackloom_control::grant::Grant;

/// Maximum length of a line, in bytes. A start request contains the whole rack file.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Response to a request.
///
/// `Send` and `Sync`: data, and descriptors that it owns.
#[derive(Debug)]
pub struct Answer {
    /// The line, with its newline.
    pub line: Vec<u8>,
    /// Descriptors received with the line, or with the bytes after it.
    pub descriptors: Vec<OwnedFd>,
    /// Bytes after the line.
    pub rest: Vec<u8>,
}

/// Sends one line and waits for one. `timeout` is the timeout for each piece of it.
///
/// # Errors
/// The error of the socket, or [`io::ErrorKind::UnexpectedEof`] if the line has no end.
pub fn request(mut stream: &UnixStream, request: &[u8], timeout: Duration) -> io::Result<Answer> {
    stream.set_write_timeout(Some(timeout))?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(request)?;
    let (mut line, mut came, mut chunk) = (Vec::new(), Vec::new(), [0; 16 << 10]);
    loop {
        let count = descriptors::receive(stream, &mut chunk, &mut came)?;
        let scanned = line.len();
        line.extend_from_slice(&chunk[..count]);
        if let Some(end) = line[scanned..].iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(scanned + end + 1);
            return Ok(Answer { line, descriptors: came, rest });
        }
        if count == 0 || line.len() > LINE_BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Returns the grant with the local numbers of its wires. The code that opens the grant then owns the descriptors. `names`: the numbers in the grant,
/// in the order of `wires`. `None` if some are missing.
#[must_use]
pub fn renumber(grant: &Grant, names: &[RawFd], wires: Vec<OwnedFd>) -> Option<Grant> {
    if names.len() != wires.len() {
        return None;
    }
    let wires: Vec<_> = wires.into_iter().map(IntoRawFd::into_raw_fd).collect();
    grant.renumbered(|there| names.iter().position(|name| *name == there).map(|index| wires[index]))
}
