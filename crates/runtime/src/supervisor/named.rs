//! Names of members' network namespaces for `ip netns` (`--netns-names`).
//!
//! A name keeps a namespace and its interfaces alive. It is removed as soon as the process of its member has ended, so that neighbours detect
//! the loss of the carrier. While the supervisor is stopped, only heartbeats detect it.
//!
//! A killed supervisor cannot remove names, and members are killed with it. A process beside it therefore holds the other end of a silent pipe,
//! and removes the names when the pipe ends.

use std::io::{Read, stdin};
use std::process::{Child, Stdio};
use std::time::Duration;

use rackloom::namespaces::{Names, sweep_names_after};
use rackloom_control::source::Source;
use rackloom_plan::{Plan, WireKind};

use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Longest time until the files of a killed supervisor are closed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names of a rack, and the process that removes them if this process is killed.
pub(super) struct Named {
    /// There until the end.
    names: Option<Names>,
    sweeper: Child,
}

impl Drop for Named {
    fn drop(&mut self) {
        // The sweeper finds no names then.
        drop(self.names.take());
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}

/// Waits for the end of standard input, then removes the names of the parent process. Runs in the process beside the supervisor.
///
/// # Errors
/// A name cannot be removed.
pub fn sweep_names() -> Result<Exit, Failure> {
    let failed = |error| Failure::could_not_start("cannot take names of network namespaces away", error);
    let supervisor = std::os::unix::process::parent_id();
    // Any end of the wait means that the supervisor has closed the pipe.
    let _ = stdin().read_to_end(&mut Vec::new());
    sweep_names_after(supervisor, PATIENCE).map_err(failed)?;
    Ok(Exit::Pass)
}

/// Starts it. It has a process group of its own, so neither Ctrl-C nor a closed terminal reaches it.
fn sweeper(program: &Program) -> std::io::Result<Child> {
    let mut command = program.sweep_names();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()
}

/// Prepares names, if the request includes them. Must be called in the namespace where the rack was started.
pub(super) fn begin(source: &Source, plan: &Plan, program: &Program) -> Result<Option<Named>, Failure> {
    if !source.netns_names {
        return Ok(None);
    }
    if plan.wire != WireKind::Packet {
        let what = format!("--netns-names: members on the {} wire have no namespaces", plan.wire.name());
        return Err(Failure::bad_input(what).hint("say --wire packet, or leave --netns-names out"));
    }
    let names = Names::begin(&plan.name);
    let names = names.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    let sweeper = sweeper(program);
    let sweeper =
        sweeper.map_err(|error| Failure::could_not_start("cannot start a process beside this one", error))?;
    Ok(Some(Named { names: Some(names), sweeper }))
}

/// Names all members whose processes run.
pub(super) fn give_all(names: &mut Option<Named>, plan: &Plan, pids: &[Option<u32>]) -> Result<(), Failure> {
    let Some(Named { names: Some(names), .. }) = names else { return Ok(()) };
    for (member, pid) in plan.members.iter().zip(pids) {
        let Some(pid) = *pid else { continue };
        names
            .give(&member.name, pid)
            .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    }
    Ok(())
}

/// Names a member that has taken a seat. A rack that is up goes on without the name; the error is a warning.
pub(super) fn give_later(names: &mut Option<Named>, member: &str, pid: u32) -> Result<(), String> {
    let Some(Named { names: Some(names), .. }) = names else { return Ok(()) };
    names.give(member, pid).map_err(|error| error.to_string())
}

/// A member's process has ended.
pub(super) fn take(names: &mut Option<Named>, member: &str) {
    if let Some(Named { names: Some(names), .. }) = names {
        names.take(member);
    }
}
