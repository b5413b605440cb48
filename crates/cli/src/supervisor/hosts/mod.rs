//! The supervisors of a rack's hosts among themselves: who is there, whether all run the same file, when all have finished.
//!
//! Each says a short word to all others every tick, on every interface at which the rack leaves its host or, on the udp
//! wire, to each one's address, and hears theirs. No host is in charge, no word is on the path of a frame, and a member never waits for one: what members need
//! of each other they learn from their links. Words serve the two moments that links cannot: before the first link is up, to
//! say who is missing or runs another file; and after the last operation, so that nobody takes the end of the run for a
//! death.
//!
//! Reading order: [`word`] (the bytes) · [`others`] (what follows from them) · [`voice`] (how they travel) · this file (sockets and sentences).

mod others;
mod voice;
mod word;

use rackloom_plan::Plan;

use self::others::Others;
use self::voice::Voice;
use self::word::{Identity, Stage, WORD_BYTES_MAX};
use super::rack::{Ending, Rack, Step, TICK_NS};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::here::Here;

/// Words heard per interface and tick at most: a flood must not keep the supervisor from its own rack.
const WORDS_PER_TICK_MAX: usize = 256;

/// This host among the others.
pub(super) struct Hosts {
    mine: usize,
    names: Vec<String>,
    /// By host: how it is reached, in words.
    ways: Vec<String>,
    identity: Identity,
    voice: Voice,
    others: Others,
    /// So long a host that was never heard is waited for once everybody here is done.
    watchdog_ns: u64,
}

impl Hosts {
    /// Open the sockets; nothing if one machine runs the whole rack. To be called where the rack was started: other hosts are
    /// reached from there alone.
    pub(super) fn open(plan: &Plan, here: &Here, life: u64) -> Result<Option<Self>, Failure> {
        let Some(mine) = here.host else { return Ok(None) };
        let (voice, ways) =
            voice::open(plan, mine).map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        let detection_ns = plan.timers.heartbeat_interval_ns * u64::from(plan.timers.heartbeat_miss_max);
        let names: Vec<_> = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let others = Others::new(mine, names.len(), life, detection_ns);
        Ok(Some(Self {
            mine,
            names,
            ways,
            identity: Identity::of(plan),
            voice,
            others,
            watchdog_ns: plan.watchdog_ns,
        }))
    }

    /// A tick has passed: hear the others, say how far we are, and what follows for the rack here.
    pub(super) fn tick(&mut self, rack: &mut Rack) -> Vec<Step> {
        let mut room = [0; WORD_BYTES_MAX];
        for socket in 0..self.voice.sockets() {
            for _ in 0..WORDS_PER_TICK_MAX {
                let Some(frame) = self.voice.hear(socket, &mut room) else { break };
                self.others.hear(self.identity.read(frame, self.names.len()));
            }
        }
        self.others.pass(TICK_NS, stage(rack));
        self.speak();
        if rack.is_opening()
            && let Some((speaker, epoch)) = self.others.contradiction()
        {
            return rack.refuse(self.contradicted(speaker, epoch));
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
        let frame = self.identity.write(self.mine, self.others.speak());
        self.voice.say(&frame);
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
        unheard.map(|host| format!("{} has not been heard", self.name(host))).collect()
    }

    fn name(&self, host: usize) -> String {
        format!("host {}{}", self.names[host], self.ways[host])
    }

    fn contradicted(&self, speaker: usize, epoch: u16) -> String {
        let unknown = format!("number {speaker}");
        let speaker = self.names.get(speaker).unwrap_or(&unknown);
        let ours = self.identity.epoch;
        format!(
            "host {speaker} runs a rack of this name with another configuration: its epoch is {epoch:#06x}, ours {ours:#06x}; \
             hint: give every host the same file and the same options, --host apart"
        )
    }
}

/// How far the rack here is, as the others should see it.
fn stage(rack: &Rack) -> Stage {
    match &rack.ending {
        None if rack.has_finished() => Stage::Finished,
        None => Stage::Working,
        Some(Ending::Complete) => Stage::AllFinished,
        Some(_) => Stage::Gone,
    }
}
