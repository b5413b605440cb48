//! Agent of a seat: the process that runs the node beside the program that holds the seat.
//!
//! The agent owns wires, heartbeats and memory of the node. It is started by [`super::launch`] before the launcher becomes the program. It is no
//! child of the program: a program may wait for all its children.

use std::os::fd::AsFd;
use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::super::join::{Taken, take_seat};
use crate::channel::seat::{Channel, Received};
use crate::machine::interruption::Interruption;
use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::seat::program::{Holder, SeatProgram};

/// Options from the launcher.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AgentOptions {
    /// Seat, such as `ring-8/n2`.
    pub(super) seat: String,
    /// Process that becomes the program.
    pub(super) program: u32,
    /// True if the node continues while the program is stopped.
    pub(super) holds: bool,
}

/// Outcome of the start, for the launcher.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AgentOutcome {
    /// The seat is taken, and the node starts.
    Taken {
        /// Reason why the program has no network interface. If absent, the descriptor of its network namespace is sent with the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        without_network: Option<String>,
    },
    /// The seat could not be taken.
    Failed { exit: Exit, what: String },
}

/// Runs the agent of a seat. The socket to its launcher is standard input. Without `is_detached`, starts the agent in another process and
/// returns. The calling process must have one thread.
///
/// # Errors
/// Standard input is no socket of a launcher, or the seat cannot be taken. The launcher receives the failure too.
pub fn agent(program: &Program, is_detached: bool) -> Result<Exit, Failure> {
    let mut launcher = Channel::of_stdin("`rackloom exec`")?;
    if !is_detached {
        let mut command = program.agent();
        command.arg("--detached").stdin(Stdio::inherit());
        command
            .spawn()
            .map_err(|error| Failure::could_not_start("cannot start the agent of the seat", error))?;
        return Ok(Exit::Pass);
    }
    let options = match launcher.wait_for_message::<AgentOptions>() {
        Ok(Received::Message(options)) => options,
        Ok(_) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::could_not_start("cannot read from the launcher", error)),
    };
    let taken = take_seat(&options.seat, true).and_then(|Taken { start, channel, interface }| {
        let failed = |error| Failure::could_not_start("cannot watch the program", error);
        let interruption = Interruption::listen().map_err(failed)?;
        let watched = SeatProgram::watch(options.program, options.holds, interruption.clone());
        let program = Some(watched.map_err(failed)?);
        Ok((start, channel, Holder { interruption: Some(interruption), program, interface: None }, interface))
    });
    match taken {
        Ok((start, channel, mut holder, interface)) => {
            // Fails if the launcher has ended. The end of its process ends the seat.
            let _ = match &interface {
                Some(Ok(interface)) => launcher.send_with(
                    &AgentOutcome::Taken { without_network: None },
                    &[interface.namespace.as_fd()],
                ),
                Some(Err(reason)) => {
                    launcher.send(&AgentOutcome::Taken { without_network: Some(reason.clone()) })
                }
                None => Ok(()),
            };
            drop(launcher);
            holder.interface = interface.and_then(Result::ok);
            Ok(crate::seat::take(start, channel, holder))
        }
        Err(failure) => {
            let _ = launcher.send(&AgentOutcome::Failed { exit: failure.exit, what: failure.to_string() });
            Err(failure)
        }
    }
}
