//! The raw side of the packet wire: two processes, a namespace each, one cable, and nothing of ours between the sockets.

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

use super::obstacle::Obstacle;

const NEAR: &str = "near";
const FAR: &str = "far";
/// Payload of the largest frame.
const MTU: u32 = 9000;
/// Longest wait for the other side to be ready.
const PATIENCE: Duration = Duration::from_secs(10);

/// Frames per second, or nanoseconds of a round trip where no frame size is given.
pub(super) fn measure(pair: Pair, frame_bytes: Option<usize>, count: u64) -> Result<f64, Obstacle> {
    enter_supervisor_namespaces().map_err(forbidden)?;
    let (hear, tell) = UnixStream::pair()?;
    hear.set_read_timeout(Some(PATIENCE))?;
    let near = || {
        let mut port = plug_in_near(&hear, Port::open)?;
        match frame_bytes {
            Some(bytes) => port.frames_per_s(bytes, count),
            None => port.round_trip_ns(count),
        }
    };
    let far = || {
        let mut port = plug_in_far(&tell, Port::open)?;
        match frame_bytes {
            Some(_) => port.take(count),
            None => port.answer(count),
        }
    };
    Ok(pair.run_processes(near, far)?)
}

/// The far side says where it is, and then that it hears.
pub(super) fn plug_in_near<P>(
    mut hear: &UnixStream,
    open: impl FnOnce(&str) -> io::Result<P>,
) -> io::Result<P> {
    let mut word = [0; 4];
    hear.read_exact(&mut word).map_err(silent)?;
    let end = |process, interface: &str, node| CableEnd {
        process,
        interface: interface.to_owned(),
        address: mac(NodeId(node), Plane(0)),
    };
    let ends = [end(std::process::id(), NEAR, 0), end(u32::from_ne_bytes(word), FAR, 1)];
    create_cables(&[Cable { ends, mtu: MTU }]).map_err(io::Error::other)?;
    bring_up(&[NEAR.to_owned()], PATIENCE)?;
    let port = open(NEAR)?;
    hear.read_exact(&mut word[..1]).map_err(silent)?;
    Ok(port)
}

pub(super) fn plug_in_far<P>(
    mut tell: &UnixStream,
    open: impl FnOnce(&str) -> io::Result<P>,
) -> io::Result<P> {
    enter_new_network_namespace()?;
    tell.write_all(&std::process::id().to_ne_bytes())?;
    bring_up(&[FAR.to_owned()], PATIENCE)?;
    let port = open(FAR)?;
    tell.write_all(&[1])?;
    Ok(port)
}

fn silent(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the far side of the cable did not come: {error}"))
}

pub(super) fn forbidden(error: NamespaceError) -> Obstacle {
    match error {
        NamespaceError::Forbidden { step, cause } => {
            Obstacle::NotHere(format!("the packet wire needs {step}, which this system forbids: {cause}"))
        }
        other => Obstacle::Failed(other.to_string()),
    }
}
