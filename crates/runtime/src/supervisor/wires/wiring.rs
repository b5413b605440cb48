//! Choice of the wires of a rack.

use rackloom::namespaces::enter_supervisor_namespaces;
use rackloom_plan::{Plan, WireKind};

use super::contract::Wiring;
use super::packet::PacketWiring;
use super::shared_memory::SharedMemoryWiring;
use super::udp::UdpWiring;
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
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
    Ok(match plan.wire {
        WireKind::SharedMemory => Box::new(SharedMemoryWiring::new(plan)?),
        WireKind::Udp => Box::new(UdpWiring::new(plan, here)?),
        WireKind::Packet => {
            let wiring = PacketWiring::new(plan, here)?;
            enter_supervisor_namespaces()
                .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
            Box::new(wiring)
        }
    })
}
