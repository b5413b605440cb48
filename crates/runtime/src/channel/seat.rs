//! A seat's end of the control socket: lines in, lines out, and never a wait.
//!
//! The supervisor may be stopped for any time; its socket buffer then fills up. What does not fit is kept here and
//! offered again later, so that a node goes on serving its neighbours. The outgoing buffer is bounded: when it is full,
//! progress lines, which say nothing that the next one does not say again, are not queued.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rackloom::seat::descriptors;
use rustix::net::sockopt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::outcome::failure::Failure;

/// A longer line from the supervisor is a mistake; its rack file fits well within.
const LINE_BYTES_MAX: usize = 64 << 20;
/// From here on, lines that can be missed are.
const BACKLOG_BYTES_MAX: usize = 256 << 10;

/// One end of the control socket.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    incoming: Vec<u8>,
    scanned: usize,
    outgoing: Vec<u8>,
    /// What came along with lines and has not been asked for.
    descriptors: VecDeque<OwnedFd>,
    ended: bool,
}

/// What an attempt to read found.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard<T> {
    /// A whole line.
    Message(T),
    /// Nothing yet.
    Nothing,
    /// The other end is gone.
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

    /// Standard input, if it is a socket. `starter`: who makes it one.
    pub(crate) fn of_stdin(starter: &str) -> Result<Self, Failure> {
        let stdin = io::stdin();
        if sockopt::socket_type(stdin.as_fd()).is_err() {
            return Err(Failure::bad_input("this command needs a socket as its standard input")
                .hint(format!("it is started by {starter}")));
        }
        let open = || Self::new(UnixStream::from(stdin.as_fd().try_clone_to_owned()?));
        open().map_err(|error| Failure::could_not_start("cannot use the socket on standard input", error))
    }

    /// Takes a socket of which the first bytes have been read already, with what came along.
    pub(crate) fn resume(stream: UnixStream, read: Vec<u8>, came: Vec<OwnedFd>) -> io::Result<Self> {
        Ok(Self { incoming: read, descriptors: came.into(), ..Self::new(stream)? })
    }

    /// The same socket once more.
    pub(crate) fn duplicate(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// The next message, if a whole one has come.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Heard<T>> {
        self.fill()?;
        let found = self.incoming[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(position) = found else {
            self.scanned = self.incoming.len();
            if self.incoming.len() > LINE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a control line without an end"));
            }
            return Ok(if self.ended { Heard::End } else { Heard::Nothing });
        };
        let line: Vec<u8> = self.incoming.drain(..=self.scanned + position).collect();
        self.scanned = 0;
        serde_json::from_slice(&line).map(Heard::Message).map_err(Into::into)
    }

    /// Like [`Self::hear`], but sleeps until a whole line has come or the other end is gone.
    pub(crate) fn hear_first<T: DeserializeOwned>(&mut self) -> io::Result<Heard<T>> {
        loop {
            match self.hear()? {
                Heard::Nothing => wait_readable(self.stream.as_fd())?,
                heard => return Ok(heard),
            }
        }
    }

    /// The descriptors that came along with the line just heard, if it says how many; `None` if some are missing.
    pub(crate) fn take_descriptors(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.descriptors.len()).then(|| self.descriptors.drain(..count).collect())
    }

    /// Queue a line and offer what is queued to the socket.
    pub(crate) fn say(&mut self, message: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.outgoing, message)?;
        self.outgoing.push(b'\n');
        self.flush()
    }

    /// Like [`Self::say`], but only if the supervisor keeps up.
    pub(crate) fn say_if_heard(&mut self, message: &impl Serialize) -> io::Result<()> {
        if self.outgoing.len() < BACKLOG_BYTES_MAX { self.say(message) } else { self.flush() }
    }

    /// Offer what is queued to the socket.
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

    /// Whether everything said has reached the socket.
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
    fn a_line_in_pieces_is_one_message() {
        let (mut channel, mut other) = pair();
        other.write_all(b"[1,").unwrap();
        assert_eq!(channel.hear::<Vec<u8>>().unwrap(), Heard::Nothing);
        other.write_all(b"2]\n[3]\n[").unwrap();
        assert_eq!(channel.hear().unwrap(), Heard::Message(vec![1_u8, 2]));
        assert_eq!(channel.hear().unwrap(), Heard::Message(vec![3_u8]));
        assert_eq!(channel.hear::<Vec<u8>>().unwrap(), Heard::Nothing);
        drop(other);
        assert_eq!(channel.hear::<Vec<u8>>().unwrap(), Heard::End);
    }

    #[test]
    fn a_line_that_is_no_message_is_an_error_and_not_a_panic() {
        let (mut channel, mut other) = pair();
        other.write_all(b"}{\n").unwrap();
        assert!(channel.hear::<Vec<u8>>().is_err());
    }

    #[test]
    fn a_supervisor_that_does_not_read_blocks_nobody_and_misses_nothing_that_counts() {
        let (mut channel, mut other) = pair();
        let long = "x".repeat(1000);
        for _ in 0..3_000 {
            channel.say_if_heard(&long).unwrap();
        }
        assert!(channel.outgoing.len() < BACKLOG_BYTES_MAX + 2_000, "the backlog is bounded");
        channel.say(&"the report").unwrap();
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
