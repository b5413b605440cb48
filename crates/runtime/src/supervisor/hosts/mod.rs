//! Coordination of the supervisors of a rack's hosts: hosts that are missing, hosts with another rack file, and the common end.
//!
//! Each supervisor sends a short message to all others every tick, on every interface at which the rack leaves its host or, on the udp wire, to
//! the address of each host. No host is in charge, no frame waits for a message, and no member waits for one: members detect each other on
//! their links. Messages cover the rest: before the first link is up, they name hosts that are missing or have another file or version; while
//! links carry only short frames, they name the hosts between which the longest ones are lost; after the last operation, they keep a
//! host from taking the end of the run for a death.
//!
//! Reading order: [`message`] (bytes) · [`others`] (state machine) · [`peer_transport`] (transport) · this file (sockets and texts).

mod message;
mod others;
mod peer_transport;

use rackloom::seal::RackKey;
use rackloom_plan::Plan;

use self::message::{Difference, Identity, SEALED_VERSION, Stage, WORD_BYTES_MAX};
use self::others::Others;
use self::peer_transport::PeerTransport;
use super::rack::{Ending, Rack, Step, TICK_NS};
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Maximum number of messages per interface and tick: a flood must not block the supervisor. It is larger than a socket's queue, so that a poll
/// empties the queue.
const WORDS_PER_TICK_MAX: usize = 4096;

/// Coordination of this host with the others.
pub(super) struct Hosts {
    mine: usize,
    names: Vec<String>,
    /// Description of each host's address.
    ways: Vec<String>,
    identity: Identity,
    transport: PeerTransport,
    others: Others,
    /// Buffer for the longest frame.
    room: Vec<u8>,
    /// Longest wait for a silent host once all members here have finished.
    watchdog_ns: u64,
}

impl Hosts {
    /// Opens the sockets; `None` if one machine runs the whole rack. Must be called in the namespace where the rack was started, which
    /// reaches the other hosts.
    pub(super) fn open(plan: &Plan, here: &Here, incarnation: u64) -> Result<Option<Self>, Failure> {
        let Some(mine) = here.host else { return Ok(None) };
        let (transport, ways) = peer_transport::open(plan, mine)
            .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        let detection_ns = plan.timers.detection_ns();
        let names: Vec<_> = plan.hosts.iter().map(|host| host.name.clone()).collect();
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
            ways,
            identity,
            transport,
            others,
            room: vec![0; frame_bytes_max.max(WORD_BYTES_MAX)],
            watchdog_ns: plan.watchdog_ns,
        }))
    }

    /// Handles a tick: receives messages, sends the state of this host, and returns the steps for the rack here.
    pub(super) fn tick(&mut self, rack: &mut Rack) -> Vec<Step> {
        for socket in 0..self.transport.sockets() {
            for _ in 0..WORDS_PER_TICK_MAX {
                let Some(frame) = self.transport.hear(socket, &mut self.room) else { break };
                self.others.hear(self.identity.read(frame, self.names.len()));
            }
        }
        self.others.pass(TICK_NS, stage(rack));
        self.speak();
        if rack.is_opening()
            && let Some((speaker, difference)) = self.others.contradiction()
        {
            return rack.refuse(self.contradicted(speaker, difference));
        }
        if stage(rack) < Stage::Finished
            && let Some(host) = self.others.narrow()
        {
            return rack.refuse(self.too_narrow(host));
        }
        if self.others.alone_ns() >= self.watchdog_ns {
            return rack.stall();
        }
        rack.hold(self.others.is_held())
    }

    /// Sends the last message: this host has ended.
    pub(super) fn leave(&mut self, rack: &Rack) {
        self.others.pass(0, stage(rack));
        self.speak();
    }

    fn speak(&mut self) {
        let candidates = self.others.candidates().to_vec();
        let (news, frame_bytes) = self.others.speak();
        let frame = self.identity.write(self.mine, news, &candidates, frame_bytes);
        self.transport.say(&frame);
    }

    /// Returns a line per host that fell silent.
    pub(super) fn missed(&self) -> Vec<String> {
        let lost = self.others.lost().map(|host| format!("{} is not heard any more", self.name(host)));
        let gone = self.others.gone();
        let gone = gone.map(|host| format!("{} has ended before all hosts had finished", self.name(host)));
        lost.chain(gone).collect()
    }

    /// Returns a line per host that never sent a message.
    pub(super) fn awaited(&self) -> Vec<String> {
        let unheard = self.others.unheard();
        let why = match self.others.refused() {
            0 => String::new(),
            refused => format!(
                "; {refused} messages without a valid tag were refused: is the key file the same on every host?"
            ),
        };
        unheard.map(|host| format!("{} has not been heard{why}", self.name(host))).collect()
    }

    /// Returns a line about refused messages.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.others.refused();
        (refused > 0)
            .then(|| format!("{refused} messages between hosts were refused: no valid tag, or not new"))
    }

    fn name(&self, host: usize) -> String {
        format!("host {}{}", self.names[host], self.ways[host])
    }

    fn contradicted(&self, speaker: usize, difference: Difference) -> String {
        let unknown = format!("number {speaker}");
        let speaker = self.names.get(speaker).unwrap_or(&unknown);
        match difference {
            Difference::Epoch(epoch) => format!(
                "host {speaker} runs a rack of this name with another configuration: its epoch is {epoch:#06x}, ours {:#06x}; \
                 hint: give every host the same file and the same options, --host apart",
                self.identity.epoch
            ),
            Difference::Version(SEALED_VERSION) => format!(
                "host {speaker} authenticates its messages, and this host has no key; \
                 hint: give every host the same key file, by `security: {{key_file: PATH}}` or RACKLOOM_KEY_FILE"
            ),
            Difference::Version(version) => format!(
                "host {speaker} runs another version of rackloom: its supervisor speaks version {version}, ours version {}; \
                 hint: run the same release of rackloom on every host",
                self.identity.version()
            ),
        }
    }

    fn too_narrow(&self, host: usize) -> String {
        format!(
            "short frames of {} come through, and those of {} bytes, the longest of this rack, do not; \
             hint: raise the MTU of all switches and interfaces on the way, or lower `frame_bytes_max`",
            self.name(host),
            self.others.frame_bytes_max()
        )
    }
}

/// Returns the stage of the rack here, for the others.
fn stage(rack: &Rack) -> Stage {
    match &rack.ending {
        None if rack.has_finished() || rack.is_healing() => Stage::Finished,
        None => Stage::Working,
        Some(Ending::Complete) => Stage::AllFinished,
        Some(_) => Stage::Gone,
    }
}
