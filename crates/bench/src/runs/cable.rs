//! Raw side of the packet wire: two processes with a namespace each, one cable, and only sockets of the
//! kernel.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rackloom::namespaces::{
    Cable, CableEnd, NamespaceError, bring_up, create_cables, enter_new_network_namespace,
    enter_supervisor_namespaces,
};
use rackloom_calibrate::Pair;
use rackloom_calibrate::packet::Port;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane};

use crate::measure_error::MeasureError;

const INITIATOR_INTERFACE: &str = "near";
const TARGET_INTERFACE: &str = "far";
/// Payload of the largest frame.
const MTU: u32 = 9000;
/// Longest wait for the other side.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measures frames per second, or without a frame size the nanoseconds of a round trip.
pub(crate) fn measure(pair: Pair, frame_bytes: Option<usize>, count: u64) -> Result<f64, MeasureError> {
    enter_supervisor_namespaces().map_err(forbidden)?;
    let (receive, send) = UnixStream::pair()?;
    receive.set_read_timeout(Some(TIMEOUT))?;
    let initiator = || {
        let mut port = open_initiator(&receive, Port::open)?;
        match frame_bytes {
            Some(bytes) => port.frames_per_s(bytes, count),
            None => port.round_trip_ns(count),
        }
    };
    let target = || {
        let mut port = open_target(&send, Port::open)?;
        match frame_bytes {
            Some(_) => port.take(count),
            None => port.answer(count),
        }
    };
    Ok(pair.run_processes(initiator, target)?)
}

/// Makes the cable and opens the initiator's port. The target sends its process id first, and a byte once it
/// is ready to receive.
pub(crate) fn open_initiator<P>(
    mut receive: &UnixStream,
    open: impl FnOnce(&str) -> io::Result<P>,
) -> io::Result<P> {
    let mut pid = [0; 4];
    receive.read_exact(&mut pid).map_err(silent)?;
    let end = |process, interface: &str, node| CableEnd {
        process,
        interface: interface.to_owned(),
        address: mac(NodeId(node), Plane(0)),
    };
    let ends =
        [end(std::process::id(), INITIATOR_INTERFACE, 0), end(u32::from_ne_bytes(pid), TARGET_INTERFACE, 1)];
    create_cables(&[Cable { ends, mtu: MTU }]).map_err(io::Error::other)?;
    bring_up(&[INITIATOR_INTERFACE.to_owned()], TIMEOUT)?;
    let port = open(INITIATOR_INTERFACE)?;
    receive.read_exact(&mut pid[..1]).map_err(silent)?;
    Ok(port)
}

pub(crate) fn open_target<P>(
    mut send: &UnixStream,
    open: impl FnOnce(&str) -> io::Result<P>,
) -> io::Result<P> {
    enter_new_network_namespace()?;
    send.write_all(&std::process::id().to_ne_bytes())?;
    bring_up(&[TARGET_INTERFACE.to_owned()], TIMEOUT)?;
    let port = open(TARGET_INTERFACE)?;
    send.write_all(&[1])?;
    Ok(port)
}

fn silent(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the target side of the cable did not start: {error}"))
}

pub(crate) fn forbidden(error: NamespaceError) -> MeasureError {
    match error {
        NamespaceError::Forbidden { .. } => {
            MeasureError::NotHere(format!("the packet wire is not available: {error}"))
        }
        other => MeasureError::Failed(other.to_string()),
    }
}
