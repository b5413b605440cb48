//! Process of one member. A supervisor starts one for each GPU node and each switch.
//!
//! The first line on the control socket, which is standard input, defines the seat. Afterwards the seat runs
//! one loop: frames and timers in the node's runtime, polls of the job, and polls of the socket. It never
//! waits for the supervisor, which may be stopped, and it ends when the socket is closed.

mod begin;
mod captured;
mod exit_status;
mod fault_notices;
mod gpu_use;
mod incarnations;
mod ip;
mod leave;
mod memory;
mod observe;
pub(crate) mod program;
mod publisher;
mod rest_check;
mod serve;
mod sharing;
mod stop;
mod work;

use rackloom::seat::answer::renumber;
use rackloom_control::notice::Notice;
use rackloom_control::order::Joined;
use rackloom_control::order::{Order, Start};

use crate::channel::seat::{Channel, Received};
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

use self::program::Holder;

/// Runs a seat until its control socket, which is standard input, is closed. The supervisor receives a notice
/// about a later failure.
///
/// # Errors
/// Standard input is not a control socket, or its first line does not start a seat.
pub fn run() -> Result<Exit, Failure> {
    let mut channel = Channel::of_stdin("`rackloom run FILE`")?;
    let start = match channel.wait_for_message::<Order>() {
        Ok(Received::Message(Order::Start(start))) => *start,
        Ok(Received::Message(Order::Follow(joined))) => {
            with_wires(*joined, &mut channel).ok_or_else(|| {
                Failure::new(Exit::CouldNotStart, "descriptors of the seat's wires are missing")
            })?
        }
        Ok(Received::End) => return Ok(Exit::Pass),
        Ok(_) => return Err(Failure::new(Exit::CouldNotStart, "the supervisor's first line is not a start")),
        Err(error) => return Err(Failure::could_not_start("cannot read from the supervisor", error)),
    };
    Ok(take(start, channel, Holder::default()))
}

/// Returns the start order with the numbers of the received descriptors.
fn with_wires(joined: Joined, channel: &mut Channel) -> Option<Start> {
    let Joined { descriptors, mut start } = joined;
    let wires = channel.take_descriptors(descriptors.len())?;
    start.grant = renumber(&start.grant, &descriptors, wires)?;
    Some(start)
}

/// Runs this seat until the end of its control socket, or until its holder ends it.
pub(crate) fn take(start: Start, mut channel: Channel, holder: Holder) -> Exit {
    let what = match run_seat(start, &mut channel, holder) {
        Ok(()) => return Exit::Pass,
        Err(what) => what,
    };
    // The supervisor reports it with the name of the member. The notice is lost if the supervisor has ended.
    let _ = channel.send(&Notice::Failed { what });
    Exit::CouldNotStart
}

fn run_seat(start: Start, channel: &mut Channel, holder: Holder) -> Result<(), String> {
    let Holder { interruption, program, interface } = holder;
    let seat = begin::begin(start, interface)?.held_by(interruption, program);
    let _prefix = tracing::error_span!("seat", name = seat.name()).entered();
    tracing::debug!("ready");
    channel.send(&Notice::Ready).map_err(|error| error.to_string())?;
    seat.serve(channel).map_err(|error| format!("control socket: {error}"))
}
