//! Events of a standing rack as they happen, on a connection of their own.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rackloom_control::request::{Answer, Nothing, Request};
use rackloom_jobs::report::EventRecord;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{StandingRack, client};
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Longest time until the rack confirms the subscription.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Event of a rack, for a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RackEvent {
    /// Something happened at a member.
    Happened(EventRecord),
    /// This number of events was lost, because they came faster than they were read.
    Missed(u64),
}

/// Subscription to the events of a rack.
#[derive(Debug)]
pub struct EventStream {
    stream: UnixStream,
    received: Vec<u8>,
}

impl EventStream {
    /// Subscribes to all events of the rack from now on.
    ///
    /// # Errors
    /// No rack of this name is up, or it does not answer.
    pub fn of(name: &str) -> Result<Self, Failure> {
        let lost = |error| Failure::new(Exit::Stalled, format!("rack {name} does not send events: {error}"));
        let stream = StandingRack::named(name)?.into_stream();
        let subscribe = || -> io::Result<Self> {
            client::send(&stream, &Request::Subscribe(Nothing {}), ANSWER_TIMEOUT)?;
            let mut events = Self { stream, received: Vec::new() };
            match events.next_answer(ANSWER_TIMEOUT)? {
                Some(Answer::Subscribed(_)) => Ok(events),
                Some(Answer::Error(refusal)) => Err(io::Error::other(refusal.what)),
                _ => Err(io::ErrorKind::TimedOut.into()),
            }
        };
        subscribe().map_err(lost)
    }

    /// Waits until something of the rack can be read. Returns false if the reader of `output` ends before that.
    ///
    /// # Errors
    /// The connection cannot be waited for.
    pub fn wait_beside(&self, output: impl AsFd) -> io::Result<bool> {
        if self.received.contains(&b'\n') {
            return Ok(true);
        }
        loop {
            // The end of a reader is an error of the output, for which every wait looks.
            let mut ends =
                [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(&output, PollFlags::empty())];
            match poll(&mut ends, None) {
                Ok(_) if !ends[1].revents().is_empty() => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the next event; `None` if there was none for `timeout`.
    ///
    /// # Errors
    /// The rack has ended, or sent something else.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<RackEvent>> {
        match self.next_answer(timeout)? {
            None => Ok(None),
            Some(Answer::Event(event)) => Ok(Some(RackEvent::Happened(event))),
            Some(Answer::Missed(count)) => Ok(Some(RackEvent::Missed(count))),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn next_answer(&mut self, timeout: Duration) -> io::Result<Option<Answer>> {
        self.stream.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.received.len() > LINE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut piece = [0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
