//! Coordination of the supervisors of a rack's hosts: hosts that are missing, hosts with another rack file,
//! and the common end.
//!
//! Each supervisor sends a short message to all others every tick, on every interface at which the rack
//! leaves its host or, on the udp wire, to the address of each host. All hosts are equal. Frames and members
//! never wait for a message: members detect each other on their links. Messages are used for the rest. Before
//! the first link is up, they name hosts that are missing or have another file or version. While links carry
//! only short frames, they name the hosts between which the longest ones are lost. After the last operation,
//! they prevent that a host takes the end of the run for a death.
//!
//! Reading order: [`message`] (bytes) · [`others`] (state machine) · [`peer_transport`] (transport) · this
//! file (sockets and texts).

mod message;
mod others;
mod peer_transport;

use std::collections::HashMap;

use rackloom::seal::RackKey;
use rackloom_plan::Plan;

use self::message::{Difference, Identity, MESSAGE_BYTES_MAX, SEALED_VERSION, Stage};
use self::others::Others;
use self::peer_transport::PeerTransport;
use super::rack::{Ending, Rack, Step, TICK_NS};
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Maximum number of messages per interface and tick: a flood must not block the supervisor. It is larger
/// than a socket's queue, so that a poll empties the queue.
const MESSAGES_PER_TICK_MAX: usize = 4096;

/// Coordination of this host with the others.
pub(super) struct Hosts {
    mine: usize,
    names: Vec<String>,
    /// Host of each member of the rack, by the member's name.
    host_of: HashMap<String, usize>,
    /// Description of each host's address.
    addresses: Vec<String>,
    identity: Identity,
    transport: PeerTransport,
    others: Others,
    /// Buffer for the longest frame.
    buffer: Vec<u8>,
    /// Longest wait for a silent host once all members of this host have finished.
    watchdog_ns: u64,
}

impl Hosts {
    /// Opens the sockets; `None` if one machine runs the whole rack. Call it in the namespace in which the
    /// rack was started: the other hosts are reached from there.
    pub(super) fn open(plan: &Plan, here: &Here, incarnation: u64) -> Result<Option<Self>, Failure> {
        let Some(mine) = here.host else { return Ok(None) };
        let (transport, addresses) = peer_transport::open(plan, mine)
            .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        let detection_ns = plan.timers.detection_ns();
        let names: Vec<_> = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let members = |host: usize| plan.hosts[host].nodes.iter().map(move |member| (host, *member));
        let members = (0..plan.hosts.len()).flat_map(members);
        let host_of =
            members.map(|(host, member)| (plan.members[member.index()].name.clone(), host)).collect();
        let frame_bytes_max = usize::from(plan.wire_bytes_max());
        let mut others = Others::new(mine, names.len(), incarnation, detection_ns, frame_bytes_max);
        let mut identity = Identity::of(plan);
        if let Some(path) = &plan.security.key_file {
            let key = RackKey::read(path).map_err(|error| Failure::bad_input(error.to_string()))?;
            (identity, others) = (identity.sealed(&key, names.len()), others.sealed());
        }
        Ok(Some(Self {
            mine,
            names,
            host_of,
            addresses,
            identity,
            transport,
            others,
            buffer: vec![0; frame_bytes_max.max(MESSAGE_BYTES_MAX)],
            watchdog_ns: plan.settings.watchdog_ns,
        }))
    }

    /// Handles a tick: receives messages, sends the state of this host, and returns the steps for this host's
    /// part of the rack.
    pub(super) fn tick(&mut self, rack: &mut Rack) -> Vec<Step> {
        for socket in 0..self.transport.sockets() {
            for _ in 0..MESSAGES_PER_TICK_MAX {
                let Some(frame) = self.transport.receive(socket, &mut self.buffer) else { break };
                self.others.handle_message(self.identity.read(frame, self.names.len()));
            }
        }
        let jobs = rack.seats.iter().filter_map(|seat| seat.report.as_ref()?.job.as_ref());
        for host in jobs.flat_map(|job| &job.lost_nodes).filter_map(|name| self.host_of.get(name)) {
            self.others.handle_lost_member(*host);
        }
        self.others.pass(TICK_NS, stage(rack));
        self.send();
        if rack.is_opening()
            && let Some((sender, difference)) = self.others.contradiction()
        {
            return rack.refuse(self.describe_difference(sender, difference));
        }
        if stage(rack) < Stage::Finished
            && let Some(host) = self.others.without_long_frames()
        {
            return rack.refuse(self.describe_lost_frames(host));
        }
        if self.others.alone_ns() >= self.watchdog_ns {
            return rack.stall();
        }
        rack.set_held(self.others.is_held())
    }

    /// Sends the last message: this host has ended.
    pub(super) fn leave(&mut self, rack: &Rack) {
        self.others.pass(0, stage(rack));
        self.send();
    }

    fn send(&mut self) {
        let candidates = self.others.candidates().to_vec();
        let (states, frame_bytes) = self.others.next_message();
        let frame = self.identity.write(self.mine, states, &candidates, frame_bytes);
        self.transport.send(&frame);
    }

    /// Returns a line for each host that fell silent or ended early.
    pub(super) fn missed(&self) -> Vec<String> {
        let lost = self.others.lost().map(|host| match self.others.has_sent(host) {
            true => format!("{} sends no messages any more", self.name(host)),
            false => format!("{} has sent no message, and members of it are lost", self.name(host)),
        });
        let gone = self.others.gone();
        let gone = gone.map(|host| format!("{} has ended before all hosts had finished", self.name(host)));
        lost.chain(gone).collect()
    }

    /// Returns a line for each host that never sent a message.
    pub(super) fn awaited(&self) -> Vec<String> {
        let silent = self.others.silent();
        let reason = match self.others.refused() {
            0 => String::new(),
            refused => format!(
                "; {refused} messages without a valid tag were refused: is the key file the same on every host?"
            ),
        };
        silent.map(|host| format!("{} has sent no message{reason}", self.name(host))).collect()
    }

    /// Returns a line about refused messages, if there are any.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.others.refused();
        (refused > 0)
            .then(|| format!("{refused} messages between hosts were refused: no valid tag, or not new"))
    }

    fn name(&self, host: usize) -> String {
        format!("host {}{}", self.names[host], self.addresses[host])
    }

    fn describe_difference(&self, sender: usize, difference: Difference) -> String {
        let unknown = format!("number {sender}");
        let sender = self.names.get(sender).unwrap_or(&unknown);
        match difference {
            Difference::Epoch(epoch) => format!(
                "host {sender} runs a rack of this name with another configuration: its epoch is {epoch:#06x}, ours {:#06x}; \
                 hint: give every host the same file and the same options except for --host",
                self.identity.epoch
            ),
            Difference::Version(SEALED_VERSION) => format!(
                "host {sender} authenticates its messages, and this host has no key; \
                 hint: give every host the same key file, by `security: {{key_file: PATH}}` or RACKLOOM_KEY_FILE"
            ),
            Difference::Version(version) => format!(
                "host {sender} runs another version of rackloom: its supervisor uses version {version}, ours version {}; \
                 hint: run the same release of rackloom on every host",
                self.identity.version()
            ),
        }
    }

    fn describe_lost_frames(&self, host: usize) -> String {
        format!(
            "short frames of {} arrive, and those of {} bytes, the longest of this rack, do not; \
             hint: raise the MTU of all switches and interfaces on the path, or lower `frame_bytes_max`",
            self.name(host),
            self.others.frame_bytes_max()
        )
    }
}

/// Returns the stage of this host's part of the rack.
fn stage(rack: &Rack) -> Stage {
    match &rack.ending {
        None if rack.has_finished() || rack.is_healing() => Stage::Finished,
        None => Stage::Working,
        Some(Ending::Complete) => Stage::AllFinished,
        Some(_) => Stage::Gone,
    }
}
