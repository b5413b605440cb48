//! Start of a program on a seat: an agent takes the seat for the calling process, which then becomes the program.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rackloom::ip::{ProgramNetwork, address_of};
use rackloom::seat::run_directory::run_directory;
use rackloom_control::request::RackStatus;
use rackloom_control::submitted::{
    ADDRESS_VARIABLE, RACK_VARIABLE, RANK_VARIABLE, RANKS_VARIABLE, SEAT_VARIABLE,
};

use super::super::StandingRack;
use super::super::network::{hosts, network_of};
use super::agent::{AgentOptions, AgentOutcome};
use super::choice::nodes;
use super::{device_files, libraries};
use crate::channel::seat::{Channel, Received};
use crate::machine::child::start_session;
use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Variables that programs need to use the device, unless the user has set them: NCCL would otherwise refuse a device without functions of its vendor
/// for transfers that kernels begin.
const CLIENT_VARIABLES: [(&str, &str); 1] = [("NCCL_GIN_TYPE", "2")];
/// Longest time for the node of the seat to be up: its links to members that are there carry data.
const UP_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time for the other links of the seat after the first one, while a fault may keep them down.
const OTHER_LINKS_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time for the node of a program that has ended to leave the seat.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time between two requests for its state.
const UP_INTERVAL: Duration = Duration::from_millis(10);

/// Returns the environment of a program on this seat. `has_device_files`: it finds the files of its RDMA device, by a library that is preloaded.
///
/// # Errors
/// The rack has no such GPU node, or a folder of the rack cannot be written.
pub fn environment(
    status: &RackStatus,
    seat: &str,
    has_device_files: bool,
) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let nodes = nodes(status);
    let rank = nodes.iter().position(|node| *node == seat).ok_or_else(|| {
        Failure::bad_input(format!("rack {} has no GPU node named {seat:?}", status.name))
            .hint(format!("it has {}", nodes.join(", ")))
    })?;
    let libraries = libraries::of_rack(&status.name).map_err(|error| {
        Failure::could_not_start("cannot make the folder with libraries for programs", error)
    })?;
    let mut variables = vec![
        (RACK_VARIABLE, status.name.clone().into()),
        (SEAT_VARIABLE, seat.into()),
        (RANK_VARIABLE, rank.to_string().into()),
        (RANKS_VARIABLE, nodes.len().to_string().into()),
    ];
    if network_of(status).is_ok() {
        // GPU nodes come first in the plan, so the rank is the number of the node.
        variables.push((ADDRESS_VARIABLE, address_of(rank as u16).to_string().into()));
    }
    variables.extend(
        CLIENT_VARIABLES
            .iter()
            .filter(|(name, _)| std::env::var_os(name).is_none())
            .map(|(name, value)| (*name, (*value).into())),
    );
    let Some(libraries) = libraries else { return Ok(variables) };
    variables.push((libraries::PATH_VARIABLE, libraries.search_path));
    if let Some(preloaded) = libraries.preloaded.filter(|_| has_device_files) {
        let folder =
            device_files::write(&run_directory().join(&status.name), status.device_ports.unwrap_or(1))
                .map_err(|error| {
                    Failure::could_not_start("cannot write the device files for programs", error)
                })?;
        variables.push((device_files::FOLDER_VARIABLE, folder.into()));
        variables.push((libraries::PRELOAD_VARIABLE, preloaded));
    }
    Ok(variables)
}

/// Options of a program on a seat.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeatOptions {
    /// True if the node continues while the process is stopped.
    pub holds: bool,
    /// True if the program is in the network of the seat, with the interface `rack0` alone, and not in that of the launching process.
    pub joins_network: bool,
    /// True if a preloaded library shows the program the files of its RDMA device.
    pub has_device_files: bool,
}

/// Seat that was taken for this process.
#[derive(Debug)]
pub struct TakenSeat {
    /// Environment of the program.
    pub environment: Vec<(&'static str, OsString)>,
    /// Network to enter with [`rackloom::ip::enter`]; with [`SeatOptions::joins_network`] alone.
    pub network: Option<ProgramNetwork>,
}

/// Takes the vacant seat for the calling process, which then becomes the program. The seat is free again when the process has ended. Waits until the
/// node is up.
///
/// # Errors
/// The rack has no such seat, the seat cannot be taken, the node does not come up, or the seat has no network where one is wanted.
pub fn take_for_this_process(
    rack: &StandingRack,
    seat: &str,
    options: SeatOptions,
    program: &Program,
) -> Result<TakenSeat, Failure> {
    let status = rack.status()?;
    let environment = environment(&status, seat, options.has_device_files)?;
    if options.joins_network {
        network_of(&status).map_err(|reason| without_network(seat, &reason))?;
    }
    let begun = Instant::now();
    // The node of an earlier program may still take its leave.
    let network = loop {
        match start_agent(rack.name(), seat, options.holds, program) {
            Ok(network) => break network,
            Err(failure) if begun.elapsed() > LEAVE_TIMEOUT || !is_held(&rack.status()?, seat) => {
                return Err(failure);
            }
            Err(_) => std::thread::sleep(UP_INTERVAL),
        }
    };
    let network = match network {
        Ok(namespace) if options.joins_network => Some(ProgramNetwork {
            supervisor: status.pid,
            namespace,
            host: seat.to_owned(),
            hosts: hosts(&nodes(&status)),
        }),
        Err(reason) if options.joins_network => return Err(without_network(seat, &reason)),
        _ => None,
    };
    let begun = Instant::now();
    let mut first_link = None;
    // Each request needs a connection of its own while other clients use theirs.
    loop {
        match links_up(&rack.status()?, seat)? {
            LinksUp::All => break,
            LinksUp::Some => {
                if first_link.get_or_insert_with(Instant::now).elapsed() > OTHER_LINKS_TIMEOUT {
                    break;
                }
            }
            LinksUp::None => {}
        }
        if begun.elapsed() > UP_TIMEOUT {
            let what = format!("the node of seat {seat} is not up after {} s", UP_TIMEOUT.as_secs());
            return Err(
                Failure::new(Exit::Stalled, what).hint("`rackloom status` shows which links are down")
            );
        }
        std::thread::sleep(UP_INTERVAL);
    }
    Ok(TakenSeat { environment, network })
}

fn without_network(seat: &str, reason: &str) -> Failure {
    Failure::new(Exit::CouldNotStart, format!("seat {seat} has no network: {reason}"))
        .hint("without `--net rack` the program uses the network of this host; verbs work all the same")
}

/// Returns true if a process holds the seat, or has held it.
fn is_held(status: &RackStatus, seat: &str) -> bool {
    status.members.iter().any(|member| member.name == seat && member.state != "vacant")
}

/// Links of a seat's node to members that run, by whether they carry data at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinksUp {
    /// The node is not up, or none of its links, or not all and no fault is in effect.
    None,
    /// Some of them, while a fault is in effect.
    Some,
    /// All of them.
    All,
}

/// Returns which links of the node of the seat are up.
fn links_up(status: &RackStatus, seat: &str) -> Result<LinksUp, Failure> {
    let member = |name: &str| status.members.iter().find(|member| member.name == name);
    let own = member(seat);
    match own.map_or("", |own| own.state.as_str()) {
        "up" | "working" => {}
        // It is up when all links have been.
        "starting" if !status.faults.is_empty() => {}
        "lost" => {
            let note = own.and_then(|own| own.note.as_deref()).unwrap_or("its process ended");
            return Err(Failure::new(Exit::CouldNotStart, format!("the node of seat {seat} ended: {note}"))
                .hint(format!("its log is {seat}.log in the rack's directory of logs")));
        }
        _ => return Ok(LinksUp::None),
    }
    let links = status.links.iter().filter(|link| link.from == seat);
    let is_down = |name: &str, link: u16| {
        member(name).is_some_and(|end| match end.state.as_str() {
            "vacant" | "lost" | "elsewhere" => false,
            _ => end.links_up.is_none() || end.links_down.contains(&link),
        })
    };
    // Without its other end, the own end of a link is down.
    let runs = |name: &str| member(name).is_some_and(|end| end.links_up.is_some());
    let links: Vec<_> = links
        .filter(|link| runs(&link.to) || is_down(&link.to, link.link))
        .map(|link| is_down(&link.to, link.link) || is_down(&link.from, link.link))
        .collect();
    let missing = links.iter().filter(|is_missing| **is_missing).count();
    Ok(if missing == 0 {
        LinksUp::All
    } else if missing < links.len() && !status.faults.is_empty() {
        LinksUp::Some
    } else {
        LinksUp::None
    })
}

/// Starts the agent, and waits for its outcome. Returns the network namespace of the seat, or the reason why it has none.
fn start_agent(
    rack: &str,
    seat: &str,
    holds: bool,
    program: &Program,
) -> Result<Result<OwnedFd, String>, Failure> {
    let failed = |error: io::Error| Failure::could_not_start("cannot start the agent of the seat", error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = program.agent();
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(log(rack, seat)).current_dir("/");
    start_session(&mut command);
    let mut starter = command.spawn().map_err(failed)?;
    // The command holds the other end until it is dropped.
    drop(command);
    // The starter ends at once; the agent is no child of this process.
    let started = starter.wait().map_err(failed)?;
    let mut channel = Channel::new(ours).map_err(failed)?;
    let options = AgentOptions { seat: format!("{rack}/{seat}"), program: std::process::id(), holds };
    channel.send(&options).map_err(failed)?;
    match channel.wait_for_message::<AgentOutcome>() {
        Ok(Received::Message(AgentOutcome::Taken { without_network: Some(reason) })) => Ok(Err(reason)),
        Ok(Received::Message(AgentOutcome::Taken { without_network: None })) => {
            let namespace = channel.take_descriptors(1).and_then(|mut descriptors| descriptors.pop());
            Ok(namespace.ok_or_else(|| "the agent of the seat sent no network namespace".to_owned()))
        }
        Ok(Received::Message(AgentOutcome::Failed { exit, what })) => Err(Failure::new(exit, what)),
        Ok(_) => Err(Failure::new(
            Exit::CouldNotStart,
            format!("the agent of the seat ended without a message (its starter: {started})"),
        )),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the log of the seat, if the rack keeps its logs in its run directory.
fn log(rack: &str, seat: &str) -> Stdio {
    let path = run_directory().join(rack).join("logs").join(format!("{seat}.log"));
    OpenOptions::new().append(true).create(true).open(path).map_or_else(|_| Stdio::null(), Stdio::from)
}
