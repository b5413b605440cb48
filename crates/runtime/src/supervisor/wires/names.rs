//! Names of members' network namespaces for `ip netns` (`--netns-names`).
//!
//! A name keeps a namespace and its interfaces alive. It is removed as soon as the process of its member has
//! ended, so that neighbours detect the loss of the carrier. While the supervisor is stopped, only heartbeats
//! detect the death.
//!
//! A killed supervisor cannot remove names, and members are killed with it. Another process therefore holds
//! the other end of a silent pipe, and removes the names when the pipe closes.

use std::io::{Read, stdin};
use std::process::{Child, Stdio};
use std::time::Duration;

use rackloom::namespaces::{Names, sweep_names_after};
use rackloom_control::source::Source;
use rackloom_plan::{Plan, WireKind};

use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Longest time until the kernel has closed the files of a killed supervisor.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Names of a rack, and the process that removes them if this process is killed.
pub(crate) struct NamespaceNames {
    /// Present until the drop.
    names: Option<Names>,
    sweeper: Child,
}

impl Drop for NamespaceNames {
    fn drop(&mut self) {
        // The sweeper finds no names afterwards.
        drop(self.names.take());
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}

/// Waits for the end of standard input, then removes the names of the parent process. The supervisor's
/// sweeper process runs this function.
///
/// # Errors
/// A name cannot be removed.
pub fn sweep_names() -> Result<Exit, Failure> {
    let failed = |error| Failure::could_not_start("cannot remove names of network namespaces", error);
    let supervisor = std::os::unix::process::parent_id();
    // Any end of the read means that the supervisor has closed the pipe.
    let _ = stdin().read_to_end(&mut Vec::new());
    sweep_names_after(supervisor, CLOSE_TIMEOUT).map_err(failed)?;
    Ok(Exit::Pass)
}

/// Starts the sweeper. It has a process group of its own, so neither Ctrl-C nor a closed terminal reaches it.
fn sweeper(program: &Program) -> std::io::Result<Child> {
    let mut command = program.sweep_names();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()
}

/// Prepares names, if the request includes them. Call it in the namespace in which the rack was started.
pub(crate) fn begin(
    source: &Source,
    plan: &Plan,
    program: &Program,
) -> Result<Option<NamespaceNames>, Failure> {
    if !source.netns_names {
        return Ok(None);
    }
    if plan.settings.wire != WireKind::Packet {
        let what =
            format!("--netns-names: members on the {} wire have no namespaces", plan.settings.wire.name());
        return Err(Failure::bad_input(what).hint("use --wire packet, or leave --netns-names out"));
    }
    let names = Names::begin(&plan.name);
    let names = names.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    let sweeper = sweeper(program);
    let sweeper = sweeper
        .map_err(|error| Failure::could_not_start("cannot start the process that removes names", error))?;
    Ok(Some(NamespaceNames { names: Some(names), sweeper }))
}

/// Names the namespaces of all members whose processes run.
pub(crate) fn add_all(
    names: &mut Option<NamespaceNames>,
    plan: &Plan,
    pids: &[Option<u32>],
) -> Result<(), Failure> {
    let Some(NamespaceNames { names: Some(names), .. }) = names else { return Ok(()) };
    for (member, pid) in plan.members.iter().zip(pids) {
        let Some(pid) = *pid else { continue };
        names
            .give(&member.name, pid)
            .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    }
    Ok(())
}

/// Names the namespace of a member that has taken a seat. The caller makes an error a warning: the rack
/// continues without the name.
pub(crate) fn add(names: &mut Option<NamespaceNames>, member: &str, pid: u32) -> Result<(), String> {
    let Some(NamespaceNames { names: Some(names), .. }) = names else { return Ok(()) };
    names.give(member, pid).map_err(|error| error.to_string())
}

/// Removes the name of a member whose process has ended.
pub(crate) fn remove(names: &mut Option<NamespaceNames>, member: &str) {
    if let Some(NamespaceNames { names: Some(names), .. }) = names {
        names.take(member);
    }
}
