//! One member in one process: a supervisor starts one for each GPU node and each switch.
//!
//! A seat learns who it is from the first line on its control socket, which is its standard input. From then on it has
//! one loop: frames and timers through the node's runtime, turns for the job, and now and then a look at the socket. It
//! never waits for the supervisor, which may be stopped, and ends when the socket does.

mod afterwards;
mod begin;
mod captured;
mod conduct;
mod incarnations;
mod leave;
mod memory;
mod observe;
mod serve;
mod sharing;
mod stop;
mod work;

use std::sync::Arc;

use rackloom::seat::answer::renumber;

use crate::channel::seat::{Channel, Heard};
use crate::machine::interruption::Interruption;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use rackloom_control::notice::Notice;
use rackloom_control::order::Joined;
use rackloom_control::order::{Order, Start};

/// Runs a seat until the end of the control socket, which is standard input. A failure after the start goes to the supervisor.
///
/// # Errors
/// Standard input is not a control socket, or its first line does not start a seat.
pub fn run() -> Result<Exit, Failure> {
    let mut channel = Channel::of_stdin("`rackloom run FILE`")?;
    let start = match channel.hear_first::<Order>() {
        Ok(Heard::Message(Order::Start(start))) => *start,
        Ok(Heard::Message(Order::Follow(joined))) => with_wires(*joined, &mut channel)
            .ok_or_else(|| Failure::new(Exit::CouldNotStart, "the seat came without some of its wires"))?,
        Ok(Heard::End) => return Ok(Exit::Pass),
        Ok(_) => return Err(Failure::new(Exit::CouldNotStart, "the supervisor's first line is not a start")),
        Err(error) => return Err(Failure::could_not_start("cannot read from the supervisor", error)),
    };
    Ok(take(start, channel, None))
}

/// The start under the numbers that the wires have here, which came along with the line.
fn with_wires(joined: Joined, channel: &mut Channel) -> Option<Start> {
    let Joined { descriptors, mut start } = joined;
    let wires = channel.take_descriptors(descriptors.len())?;
    start.grant = renumber(&start.grant, &descriptors, wires)?;
    Some(start)
}

/// Be this seat until its control socket ends, or until it is told to go, if anybody may tell it.
pub(crate) fn take(start: Start, mut channel: Channel, told: Option<Arc<Interruption>>) -> Exit {
    let what = match live(start, &mut channel, told) {
        Ok(()) => return Exit::Pass,
        Err(what) => what,
    };
    // The supervisor prints it, with the member's name; if it is gone, nobody needs to know any more.
    let _ = channel.say(&Notice::Failed { what });
    Exit::CouldNotStart
}

fn live(start: Start, channel: &mut Channel, told: Option<Arc<Interruption>>) -> Result<(), String> {
    let seat = begin::begin(start)?.leaving_when(told);
    let _prefix = tracing::error_span!("seat", name = seat.name()).entered();
    tracing::debug!("ready");
    channel.say(&Notice::Ready).map_err(|error| error.to_string())?;
    seat.serve(channel).map_err(|error| format!("control socket: {error}"))
}
