//! A seat's end of the control socket. It never blocks the seat.
//!
//! The supervisor may be stopped for any time, and its socket buffer is then full. Bytes without free space wait in
//! a buffer here, so the seat continues to serve its neighbours. The buffer is bounded: when it is full,
//! progress notices are dropped, because the next notice replaces them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rackloom::seat::descriptors;
use rustix::net::sockopt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::outcome::failure::Failure;

/// Maximum length of a line from the supervisor, in bytes. A start order holds the rack file.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Number of waiting bytes above which progress notices are dropped.
const BACKLOG_BYTES_MAX: usize = 256 << 10;

/// A seat's end of the control socket. Calls do not wait unless they send so.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    incoming: Vec<u8>,
    scanned: usize,
    outgoing: Vec<u8>,
    /// Received descriptors that have not been taken.
    descriptors: VecDeque<OwnedFd>,
    ended: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq)]
pub(crate) enum Received<T> {
    /// A complete line.
    Message(T),
    /// No complete line yet.
    Nothing,
    /// The other end is closed.
    End,
}

impl Channel {
    /// Takes the socket and makes it non-blocking.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            incoming: Vec::new(),
            scanned: 0,
            outgoing: Vec::new(),
            descriptors: VecDeque::new(),
            ended: false,
        })
    }

    /// Returns the channel on standard input.
    ///
    /// # Errors
    /// Standard input is not a socket. The error names `starter`, the command that provides the socket.
    pub(crate) fn of_stdin(starter: &str) -> Result<Self, Failure> {
        let stdin = io::stdin();
        if sockopt::socket_type(stdin.as_fd()).is_err() {
            return Err(Failure::bad_input("this command needs a socket as its standard input")
                .hint(format!("it is started by {starter}")));
        }
        let open = || Self::new(UnixStream::from(stdin.as_fd().try_clone_to_owned()?));
        open().map_err(|error| Failure::could_not_start("cannot use the socket on standard input", error))
    }

    /// Takes a socket from which some bytes and descriptors have already been read.
    pub(crate) fn resume(stream: UnixStream, read: Vec<u8>, came: Vec<OwnedFd>) -> io::Result<Self> {
        Ok(Self { incoming: read, descriptors: came.into(), ..Self::new(stream)? })
    }

    /// Returns a second descriptor of the socket.
    pub(crate) fn duplicate(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Reads the next message, without waiting.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Received<T>> {
        self.fill()?;
        let found = self.incoming[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(position) = found else {
            self.scanned = self.incoming.len();
            if self.incoming.len() > LINE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a control line without an end"));
            }
            return Ok(if self.ended { Received::End } else { Received::Nothing });
        };
        let line: Vec<u8> = self.incoming.drain(..=self.scanned + position).collect();
        self.scanned = 0;
        serde_json::from_slice(&line).map(Received::Message).map_err(Into::into)
    }

    /// Reads the next message. Waits until it is complete or the other end is closed.
    pub(crate) fn wait_for_message<T: DeserializeOwned>(&mut self) -> io::Result<Received<T>> {
        loop {
            match self.receive()? {
                Received::Nothing => wait_readable(self.stream.as_fd())?,
                received => return Ok(received),
            }
        }
    }

    /// Takes the first `count` received descriptors, or returns `None` if there are fewer.
    pub(crate) fn take_descriptors(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.descriptors.len()).then(|| self.descriptors.drain(..count).collect())
    }

    /// Queues a line and sends as much of the queue as the socket takes.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.outgoing, message)?;
        self.outgoing.push(b'\n');
        self.flush()
    }

    /// Sends a line with descriptors, over a socket that has taken everything before.
    pub(crate) fn send_with(&mut self, message: &impl Serialize, sent: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        descriptors::send_batch(&self.stream, &line, 0, sent)?;
        self.outgoing.extend_from_slice(&line[1..]);
        self.flush()
    }

    /// Queues a line, unless [`BACKLOG_BYTES_MAX`] bytes already wait. The line is dropped then.
    pub(crate) fn try_send(&mut self, message: &impl Serialize) -> io::Result<()> {
        if self.outgoing.len() < BACKLOG_BYTES_MAX { self.send(message) } else { self.flush() }
    }

    /// Sends as much of the queue as the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.outgoing.len() && !self.ended {
            match self.stream.write(&self.outgoing[sent..]) {
                Ok(0) => self.ended = true,
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => self.ended = true,
                Err(error) => return Err(error),
            }
        }
        self.outgoing.drain(..sent);
        Ok(())
    }

    /// Returns whether the socket has taken the whole queue.
    #[cfg(test)]
    pub(crate) fn is_flushed(&self) -> bool {
        self.outgoing.is_empty() || self.ended
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        while !self.ended && self.incoming.len() <= LINE_BYTES_MAX {
            let mut came = Vec::new();
            let read = descriptors::receive(&self.stream, &mut chunk, &mut came);
            self.descriptors.extend(came);
            match read {
                Ok(0) => self.ended = true,
                Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => self.ended = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

fn wait_readable(socket: BorrowedFd<'_>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut interest = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut interest, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        (Channel::new(ours).expect("a channel"), theirs)
    }

    #[test]
    fn a_line_received_in_pieces_is_one_message() {
        let (mut channel, mut other) = pair();
        other.write_all(b"[1,").unwrap();
        assert_eq!(channel.receive::<Vec<u8>>().unwrap(), Received::Nothing);
        other.write_all(b"2]\n[3]\n[").unwrap();
        assert_eq!(channel.receive().unwrap(), Received::Message(vec![1_u8, 2]));
        assert_eq!(channel.receive().unwrap(), Received::Message(vec![3_u8]));
        assert_eq!(channel.receive::<Vec<u8>>().unwrap(), Received::Nothing);
        drop(other);
        assert_eq!(channel.receive::<Vec<u8>>().unwrap(), Received::End);
    }

    #[test]
    fn a_line_that_is_no_message_is_an_error() {
        let (mut channel, mut other) = pair();
        other.write_all(b"}{\n").unwrap();
        assert!(channel.receive::<Vec<u8>>().is_err());
    }

    #[test]
    fn a_supervisor_that_does_not_read_misses_only_progress() {
        let (mut channel, mut other) = pair();
        let long = "x".repeat(1000);
        for _ in 0..3_000 {
            channel.try_send(&long).unwrap();
        }
        assert!(channel.outgoing.len() < BACKLOG_BYTES_MAX + 2_000, "the backlog is bounded");
        channel.send(&"the report").unwrap();
        assert!(!channel.is_flushed());

        other.set_nonblocking(true).unwrap();
        let mut text = Vec::new();
        while !channel.is_flushed() {
            let _ = other.read_to_end(&mut text);
            channel.flush().unwrap();
        }
        let _ = other.read_to_end(&mut text);
        assert!(String::from_utf8(text).unwrap().ends_with("\"the report\"\n"));
    }
}
