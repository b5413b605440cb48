//! One member in one process: a supervisor starts one for each GPU node and each switch.
//!
//! The first line on the control socket, which is standard input, defines the seat. Afterwards the seat has one loop: frames and timers in the
//! node's runtime, polls of the job, and polls of the socket. It never waits for the supervisor, which may be stopped, and it ends with the
//! socket.

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
use rackloom_control::notice::Notice;
use rackloom_control::order::Joined;
use rackloom_control::order::{Order, Start};

use crate::channel::seat::{Channel, Heard};
use crate::machine::interruption::Interruption;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

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

/// Returns the start order with the numbers of the received descriptors.
fn with_wires(joined: Joined, channel: &mut Channel) -> Option<Start> {
    let Joined { descriptors, mut start } = joined;
    let wires = channel.take_descriptors(descriptors.len())?;
    start.grant = renumber(&start.grant, &descriptors, wires)?;
    Some(start)
}

/// Runs this seat until the end of its control socket, or until an interruption.
pub(crate) fn take(start: Start, mut channel: Channel, told: Option<Arc<Interruption>>) -> Exit {
    let what = match live(start, &mut channel, told) {
        Ok(()) => return Exit::Pass,
        Err(what) => what,
    };
    // The supervisor reports it with the name of the member, unless the supervisor has ended.
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
