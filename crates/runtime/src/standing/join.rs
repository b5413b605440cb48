//! Takes a vacant seat in this process (`rackloom seat --join RACK/SEAT`).
//!
//! This process runs endpoint, memory and event loop of the seat. The wires come as descriptors over the
//! rack's control socket, which is the control socket of the seat afterwards. The death of the process is the
//! death of the node. On SIGINT and SIGTERM the node leaves in order.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rackloom::ip::{self, Interface};
use rackloom::namespaces::{enter_network_namespace_beside, enter_user_namespace_of};
use rackloom::seat::answer;
use rackloom_control::order::Joined;
use rackloom_control::order::Start;
use rackloom_control::request::{Answer, Join, RackStatus, Request};
use rackloom_plan::WireKind;

use super::network::node_with_network;
use super::rack::StandingRack;
use crate::channel::seat::Channel;
use crate::machine::interruption::Interruption;
use crate::machine::processors;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::seat::program::Holder;
use crate::supervisor::wires::no_packet_wire;

/// Longest time for the rack to grant the seat.
const GRANT_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes the vacant seat `seat`, such as `ring-8/n2`, and runs its node until the rack ends or a signal
/// arrives. The calling process must have one thread.
///
/// # Errors
/// The rack or the seat does not exist, or the seat cannot be taken.
pub fn join(seat: &str) -> Result<Exit, Failure> {
    let Taken { start, channel, .. } = take_seat(seat, false)?;
    // The thread for signals starts after the namespace was entered, which needs a single thread.
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen for signals", error))?;
    Ok(crate::seat::take(start, channel, Holder { interruption: Some(interruption), ..Holder::default() }))
}

/// Seat that this process has taken.
pub(super) struct Taken {
    pub(super) start: Start,
    /// The seat's end of the control socket.
    pub(super) channel: Channel,
    /// Interface of the program on the seat, or the reason why it has none; `None` without a program.
    pub(super) interface: Option<Result<Interface, String>>,
}

/// Takes the vacant seat `seat`, such as `ring-8/n2`. `has_program`: this process serves a program. It then runs on the processors of the rack, and
/// has the interface of the program, in a rack with IP. The calling process must have one thread.
///
/// # Errors
/// Those of [`join`].
pub(super) fn take_seat(seat: &str, has_program: bool) -> Result<Taken, Failure> {
    let (rack, member) = seat.split_once('/').ok_or_else(|| {
        Failure::bad_input(format!("{seat:?} names no seat")).hint("RACK/SEAT, such as ring-8/n2")
    })?;
    let rack = StandingRack::named(rack)?;
    let status = rack.status()?;
    if has_program && let Err(error) = processors::share(status.pid) {
        tracing::warn!(%error, "the agent stays on the processors of its program");
    }
    let interface = enter_namespaces(&status, member, has_program)?;
    let stream = rack.into_stream();
    let request = Request::Join(Join { seat: member.to_owned() });
    let (joined, mut wires, rest) = receive(&stream, &request)
        .map_err(|error| Failure::could_not_start(format!("cannot take seat {seat}"), error))??;
    // The rack may have sent more lines with descriptors after its answer.
    let later = wires.split_off(wires.len().min(joined.descriptors.len()));
    let start = with_wires(joined, wires).ok_or_else(|| {
        Failure::new(Exit::CouldNotStart, format!("descriptors of the wires of seat {seat} are missing"))
    })?;
    let channel = stream
        .set_read_timeout(None)
        .and_then(|()| Channel::resume(stream, rest, later))
        .map_err(|error| Failure::could_not_start("cannot use the rack's socket", error))?;
    Ok(Taken { start, channel, interface })
}

/// Enters network namespaces: for the seat's cables, on the packet wire, and for the agent's end of the interface of a program.
fn enter_namespaces(
    status: &RackStatus,
    member: &str,
    has_program: bool,
) -> Result<Option<Result<Interface, String>>, Failure> {
    let interface = has_program.then(|| interface(status, member));
    let has_namespace = matches!(interface, Some(Ok(_)));
    if !has_namespace && status.wire == WireKind::Packet.name() {
        enter_network_namespace_beside(status.pid).map_err(|error| no_packet_wire(&error))?;
    }
    Ok(interface)
}

/// Creates the interface of the program on a seat.
fn interface(status: &RackStatus, member: &str) -> Result<Interface, String> {
    let node = node_with_network(status, member)?;
    enter_user_namespace_of(status.pid).and_then(|()| ip::create(node)).map_err(|error| error.to_string())
}

type Received = (Joined, Vec<OwnedFd>, Vec<u8>);

/// Requests the seat. Returns the answer, its descriptors, and the bytes after it.
fn receive(stream: &UnixStream, request: &Request) -> io::Result<Result<Received, Failure>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let answer::Answer { line, descriptors, rest } = answer::request(stream, &line, GRANT_TIMEOUT)?;
    Ok(match serde_json::from_slice(&line)? {
        Answer::Joined(joined) => Ok((*joined, descriptors, rest)),
        Answer::Error(refusal) => {
            Err(refusal.hint.into_iter().fold(Failure::bad_input(refusal.what), Failure::hint))
        }
        _ => Err(super::client::unexpected_answer("")),
    })
}

/// Returns the start order with the numbers of the descriptors in this process. Their owner is the code that
/// opens the grant.
fn with_wires(joined: Joined, wires: Vec<OwnedFd>) -> Option<Start> {
    let Joined { descriptors, mut start } = joined;
    start.grant = answer::renumber(&start.grant, &descriptors, wires)?;
    Some(start)
}
