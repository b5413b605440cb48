//! Client of a control socket: one request, one answer, with a timeout.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rackloom_control::request::{Answer, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Maximum length of an answer, in bytes. It holds a report of the largest rack.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Sends a request and returns the answer. `timeout` limits each read and write.
pub(super) fn request(
    stream: &UnixStream,
    rack: &str,
    request: &Request,
    timeout: Duration,
) -> Result<Answer, Failure> {
    let exchange = || -> io::Result<Answer> {
        send(stream, request, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        let mut answer = Vec::new();
        BufReader::new(stream).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut answer)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&answer)?)
    };
    match exchange() {
        Ok(Answer::Error(refusal)) => {
            let failure = Failure::new(Exit::BadInput, format!("rack {rack}: {}", refusal.what));
            Err(refusal.hint.into_iter().fold(failure, Failure::hint))
        }
        Ok(answer) => Ok(answer),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let what = format!("rack {rack} does not answer");
            Err(Failure::new(Exit::Stalled, what).hint("its supervisor may be stopped or overloaded"))
        }
        Err(error) => {
            Err(Failure::new(Exit::Stalled, format!("rack {rack} ended without an answer: {error}")))
        }
    }
}

/// Sends a request. `timeout` limits each write.
pub(super) fn send(mut stream: &UnixStream, request: &Request, timeout: Duration) -> io::Result<()> {
    stream.set_write_timeout(Some(timeout))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Returns a handle of the process at the other end; `None` if the kernel does not name it.
pub(super) fn peer(stream: &UnixStream) -> Option<OwnedFd> {
    let pid = socket_peercred(stream).ok()?.pid;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Waits for the end of a process, at most `timeout`.
pub(super) fn wait_for_end(process: &OwnedFd, timeout: Duration) {
    let mut interest = [PollFd::new(process, PollFlags::IN)];
    let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: 0 };
    // The end of the process, the timeout and a signal have equal consequences.
    let _ = poll(&mut interest, Some(&timeout));
}

/// Returns the failure for an answer that does not belong to the request.
pub(super) fn unexpected_answer(rack: &str) -> Failure {
    Failure::new(Exit::Stalled, format!("rack {rack} sent an unexpected answer"))
        .hint("its supervisor may be of another version")
}
