//! One member in one process: what `rackloom run` starts for every GPU node and every switch.
//!
//! A seat learns who it is from the first line on its control socket, which is its standard input. From then on it has
//! one loop: frames and timers through the node's runtime, turns for the job, and now and then a look at the socket. It
//! never waits for the supervisor, which may be stopped, and ends when the socket does.

mod begin;
mod observe;
mod serve;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::net::sockopt;

use crate::control::{Channel, Heard, Notice, Order, Start};
use crate::exit::Exit;
use crate::failure::Failure;

/// Be a seat until the control socket ends.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let mut channel = control_socket()?;
    let start = match channel.hear_first::<Order>() {
        Ok(Heard::Message(Order::Start(start))) => start,
        Ok(Heard::End) => return Ok(ExitCode::SUCCESS),
        Ok(_) => return Err(Failure::new(Exit::CouldNotStart, "the supervisor's first line is not a start")),
        Err(error) => return Err(Failure::could_not_start("cannot read from the supervisor", error)),
    };
    let what = match live(*start, &mut channel) {
        Ok(()) => return Ok(ExitCode::SUCCESS),
        Err(what) => what,
    };
    // The supervisor prints it, with the member's name; if it is gone, nobody needs to know any more.
    let _ = channel.say(&Notice::Failed { what });
    Ok(Exit::CouldNotStart.into())
}

fn live(start: Start, channel: &mut Channel) -> Result<(), String> {
    let seat = begin::begin(start)?;
    let _prefix = tracing::info_span!("seat", name = seat.name()).entered();
    tracing::debug!("ready");
    channel.say(&Notice::Ready).map_err(|error| error.to_string())?;
    seat.serve(channel).map_err(|error| format!("control socket: {error}"))
}

/// Standard input, if it is a socket.
fn control_socket() -> Result<Channel, Failure> {
    let stdin = std::io::stdin();
    if sockopt::socket_type(stdin.as_fd()).is_err() {
        return Err(Failure::bad_input("a seat needs the supervisor's socket as its standard input")
            .hint("seats are started by `rackloom run FILE`"));
    }
    let open = || Channel::new(UnixStream::from(stdin.as_fd().try_clone_to_owned()?));
    open().map_err(|error| Failure::could_not_start("cannot use the supervisor's socket", error))
}
