//! The supervisors of a rack's hosts among themselves: who is there, whether all run the same file, when all have finished.
//!
//! Each says a short word to all others every tick, on every interface at which the rack leaves its host or, on the udp
//! wire, to each one's address, and hears theirs. No host is in charge, no word is on the path of a frame, and a member never waits for one: what members need
//! of each other they learn from their links. Words serve the moments that links cannot: before the first link is up, to
//! say who is missing or runs another file or version; while they carry nothing but short frames, to say between whom the
//! longest ones are lost; and after the last operation, so that nobody takes the end of the run for a death.
//!
//! Reading order: [`word`] (the bytes) · [`others`] (what follows from them) · [`transport`] (how they travel) · this file (sockets and sentences).

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

/// Words heard per interface and tick at most: a flood must not keep the supervisor from its own rack. More than a socket
/// keeps, so that what is left there after a look is what has come since.
const WORDS_PER_TICK_MAX: usize = 4096;

/// This host among the others.
pub(super) struct Hosts {
    mine: usize,
    names: Vec<String>,
    /// By host: how it is reached, in words.
    ways: Vec<String>,
    identity: Identity,
    transport: PeerTransport,
    others: Others,
    /// Room for the longest frame that may come.
    room: Vec<u8>,
    /// So long a host that was never heard is waited for once everybody here is done.
    watchdog_ns: u64,
}

impl Hosts {
    /// Open the sockets; nothing if one machine runs the whole rack. To be called where the rack was started: other hosts are
    /// reached from there alone.
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

    /// A tick has passed: hear the others, say how far we are, and what follows for the rack here.
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

    /// The last word: it tells the others that nobody is left to ask.
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

    /// Hosts that are not there any more, in words.
    pub(super) fn missed(&self) -> Vec<String> {
        let lost = self.others.lost().map(|host| format!("{} is not heard any more", self.name(host)));
        let gone = self.others.gone();
        let gone = gone.map(|host| format!("{} has ended before all hosts had finished", self.name(host)));
        lost.chain(gone).collect()
    }

    /// Hosts that were never there, in words.
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

    /// Messages between hosts that were refused, in words.
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

/// How far the rack here is, as the others should see it.
fn stage(rack: &Rack) -> Stage {
    match &rack.ending {
        None if rack.has_finished() || rack.is_healing() => Stage::Finished,
        None => Stage::Working,
        Some(Ending::Complete) => Stage::AllFinished,
        Some(_) => Stage::Gone,
    }
}
