//! Wires between the members of this host: what each member is given when it starts, and what a process gets that takes a seat later.
//!
//! Rings and datagram sockets are made before the first process and inherited. Interfaces are made after the last process, because each end is
//! created in the namespace of the process that uses it. The supervisor closes the ends of a seat as soon as its process has inherited them: a
//! neighbour detects a death because the socket of the dead process has no other owner.
//!
//! No ends are kept for later processes: a link to a vacant seat has no cable. A process that takes a seat gets new cables, and its neighbours get
//! the other ends.

mod bridges;
pub(crate) mod contract;
mod interfaces;
mod joints;
pub(crate) mod names;
mod packet;
mod shared_memory;
mod udp;
mod unavailable;

use rackloom::namespaces::enter_supervisor_namespaces;
use rackloom_plan::{Plan, WireKind};

use self::contract::Wiring;
use self::packet::PacketWiring;
use self::shared_memory::SharedMemoryWiring;
use self::udp::UdpWiring;
pub(crate) use self::unavailable::no_packet_wire;
use crate::machine::here::Here;
use crate::outcome::failure::Failure;

/// Raises the limit of open descriptors to its maximum: the supervisor of a large rack needs many.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Small racks do not need it. Large ones fail later with the kernel's error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Makes the wires that need no process. For the packet wire this must precede the first thread.
pub(crate) fn prepare(plan: &Plan, here: &Here) -> Result<Box<dyn Wiring>, Failure> {
    raise_descriptor_limit();
    Ok(match plan.settings.wire {
        WireKind::SharedMemory => Box::new(SharedMemoryWiring::new(plan)?),
        WireKind::Udp => Box::new(UdpWiring::new(plan, here)?),
        WireKind::Packet => {
            let wiring = PacketWiring::new(plan, here)?;
            enter_supervisor_namespaces().map_err(|error| no_packet_wire(&error))?;
            Box::new(wiring)
        }
    })
}
