//! Names of members' network namespaces, for people with `ip netns` (`--netns-names`).
//!
//! A name keeps a namespace alive, and its interfaces with it. So it goes as soon as the process of its member has ended, and
//! neighbours that live on the carrier then notice; while the supervisor is stopped, heartbeats have to do.

use rackloom::namespaces::Names;
use rackloom_plan::{Plan, WireKind};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::source::Source;

/// Be ready to give names, if they are asked for. To be called where the rack was started.
pub(super) fn begin(source: &Source, plan: &Plan) -> Result<Option<Names>, Failure> {
    if !source.netns_names {
        return Ok(None);
    }
    if plan.wire != WireKind::Packet {
        let what = format!("--netns-names: members on the {} wire have no namespaces", plan.wire.name());
        return Err(Failure::bad_input(what).hint("say --wire packet, or leave --netns-names out"));
    }
    let names = Names::begin(&plan.name);
    names.map(Some).map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))
}

/// Name everybody who is there.
pub(super) fn give_all(names: &mut Option<Names>, plan: &Plan, pids: &[Option<u32>]) -> Result<(), Failure> {
    let Some(names) = names else { return Ok(()) };
    for (member, pid) in plan.members.iter().zip(pids) {
        let Some(pid) = *pid else { continue };
        names
            .give(&member.name, pid)
            .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    }
    Ok(())
}

/// Name somebody who has taken a seat. A rack that is up goes on without.
pub(super) fn give_later(names: &mut Option<Names>, member: &str, pid: u32) {
    if let Some(names) = names
        && let Err(error) = names.give(member, pid)
    {
        // Standard error of a rack that stays is its log.
        eprintln!("{error}");
    }
}

/// A member's process has ended.
pub(super) fn take(names: &mut Option<Names>, member: &str) {
    if let Some(names) = names {
        names.take(member);
    }
}
