//! One question to a rack's control socket whose answer may bring descriptors along.
//!
//! The caller knows what the lines mean. What the rack says behind the answer is given back unread: a connection on which a
//! seat was taken goes on as the seat's own.

use std::io::{self, Write};
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::descriptors;
use super::grant::Grant;

/// A start names the whole rack file.
const LINE_BYTES_MAX: usize = 64 << 20;

/// What came in answer to a question.
///
/// `Send` and `Sync`: data, and descriptors that it owns.
#[derive(Debug)]
pub struct Answer {
    /// The line, with its end.
    pub line: Vec<u8>,
    /// Descriptors that came with it, or with what follows.
    pub descriptors: Vec<OwnedFd>,
    /// Bytes behind the line.
    pub rest: Vec<u8>,
}

/// Say one line and wait for one; at most `patience` between two pieces of it.
///
/// # Errors
/// What the socket says; [`io::ErrorKind::UnexpectedEof`] if the line has no end.
pub fn ask(mut stream: &UnixStream, question: &[u8], patience: Duration) -> io::Result<Answer> {
    stream.set_write_timeout(Some(patience))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(question)?;
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

/// The grant under the numbers that its wires have here; they belong to whoever opens it. `names`: the numbers under which
/// it names them, in their order. `None` if some are missing.
#[must_use]
pub fn renumber(grant: &Grant, names: &[RawFd], wires: Vec<OwnedFd>) -> Option<Grant> {
    if names.len() != wires.len() {
        return None;
    }
    let wires: Vec<_> = wires.into_iter().map(IntoRawFd::into_raw_fd).collect();
    grant.renumbered(|there| names.iter().position(|name| *name == there).map(|place| wires[place]))
}
