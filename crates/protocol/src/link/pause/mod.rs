//! Priority flow control (PFC-like): a receiver that runs out of room asks its neighbour to pause, channel by channel.
//!
//! It takes the place of credits on a link: nothing is counted beforehand, the sender sends until it is told to stop. `room`
//! is the receiving end of a channel, `gate` the sending end, `state` the table of its states. Only data is paused.
//! Control frames, and acknowledgements of the transport, leave at all times, so a pause and its end always get through.
//!
//! It promises less than credits do: what is under way when the word is said needs headroom, a word that is lost is said
//! again only later, and paused links can wait for each other in a circle. A watchdog breaks that, by loss.

mod gate;
mod room;
pub mod state;

use crate::config::PauseConfig;
use crate::ids::Channel;
use crate::link::counters::PauseCounters;
use crate::per_channel::PerChannel;
use crate::time::Instant;
use gate::{Gate, Shift};
use room::Room;
use state::{PauseState, PauseStimulus};

/// Both directions' ends of one link.
#[derive(Debug)]
pub struct Pauses {
    /// What the plan says.
    pub config: PauseConfig,
    rooms: PerChannel<Room>,
    gates: PerChannel<Gate>,
}

/// What becomes of a channel's data, if that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which channel.
    pub channel: Channel,
    /// How it stands now.
    pub state: PauseState,
}

impl Pauses {
    /// A link on which nobody has said anything.
    #[must_use]
    pub fn new(config: PauseConfig, channel_count: usize) -> Self {
        Self {
            config,
            rooms: PerChannel::new(channel_count, |_| Room::EMPTY),
            gates: PerChannel::new(channel_count, |_| Gate::OPEN),
        }
    }

    // ---- the receiving end -----------------------------------------------------------------------------------------

    // W-72
    /// Whether a frame of so many bytes finds room on a channel whose neighbour is paused above `xoff_bytes`.
    #[must_use]
    pub fn has_room(&self, channel: Channel, bytes: usize, xoff_bytes: u64) -> bool {
        self.rooms.of(channel).beyond_with(bytes, xoff_bytes) <= self.config.headroom_bytes.into()
    }

    /// Bytes of a channel that are held below xoff.
    #[must_use]
    pub fn below_bytes(&self, channel: Channel) -> u64 {
        self.rooms.of(channel).below_bytes()
    }

    /// A frame is kept for a while.
    pub fn hold(&mut self, channel: Channel, bytes: usize, xoff_bytes: u64, counters: &mut PauseCounters) {
        let room = self.rooms.of_mut(channel);
        room.hold(bytes, xoff_bytes);
        counters.held_bytes_max = counters.held_bytes_max.max(room.held_bytes());
    }

    /// A kept frame has left.
    pub fn unhold(&mut self, channel: Channel, bytes: usize, xon_bytes: u64) {
        let room = self.rooms.of_mut(channel);
        room.unhold(bytes);
        room.relent(xon_bytes);
    }

    /// There is more room than before: whoever holds no more than this may be let go on. Returns whether anybody is.
    pub fn relent(&mut self, xon_bytes: u64) -> bool {
        self.rooms.iter_mut().for_each(|room| room.relent(xon_bytes));
        self.rooms.any(|_, room| room.is_due(Instant::ZERO))
    }

    /// Whether the neighbour is asked to pause a channel.
    #[must_use]
    pub fn is_asking(&self, channel: Channel) -> bool {
        self.rooms.of(channel).is_asking()
    }

    /// Whether the neighbour must be told something.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.rooms.any(|_, room| room.is_due(now))
    }

    // W-71
    /// The next word to the neighbour: of which channel, and for how many quanta it should pause.
    pub fn speak(&mut self, now: Instant, counters: &mut PauseCounters) -> Option<(Channel, u16)> {
        let channel = self.rooms.position(|_, room| room.is_due(now))?;
        let pause_ns = self.config.pause_ns(self.config.quanta);
        if self.rooms.of_mut(channel).speak(now, pause_ns) {
            counters.tx_pause += 1;
            Some((channel, self.config.quanta))
        } else {
            counters.tx_resume += 1;
            Some((channel, 0))
        }
    }

    // ---- the sending end -------------------------------------------------------------------------------------------

    /// How a channel stands.
    #[must_use]
    pub fn state(&self, channel: Channel) -> PauseState {
        self.gates.of(channel).state()
    }

    // W-70
    /// The neighbour's word came in.
    pub fn hear(
        &mut self,
        now: Instant,
        channel: Channel,
        quanta: u16,
        counters: &mut PauseCounters,
    ) -> Option<Turn> {
        *(if quanta == 0 { &mut counters.rx_resume } else { &mut counters.rx_pause }) += 1;
        let shift = self.gates.of_mut(channel).hear(now, quanta, &self.config);
        note(channel, shift, counters)
    }

    // W-73
    /// Time has passed: a channel that changes by it. Ask until none does.
    pub fn hear_time(
        &mut self,
        now: Instant,
        data_waits: impl Fn(Channel) -> bool,
        counters: &mut PauseCounters,
    ) -> Option<Turn> {
        let Self { config, gates, .. } = self;
        let channel = gates.position(|_, gate| now >= gate.deadline())?;
        let shift = gates.of_mut(channel).hear_time(now, data_waits(channel), config);
        note(channel, shift, counters)
    }

    /// The link no longer carries data: nobody is paused any more.
    pub fn stop(&mut self, now: Instant, counters: &mut PauseCounters) {
        self.rooms.iter_mut().for_each(Room::forget);
        for gate in self.gates.iter_mut() {
            let shift = gate.meet(now, PauseStimulus::LinkLost, &self.config);
            counters.paused_ns += shift.map_or(0, |shift| shift.paused_ns);
        }
    }

    /// When it must be asked next.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.rooms.least(Room::deadline).min(self.gates.least(Gate::deadline))
    }
}

fn note(channel: Channel, shift: Option<Shift>, counters: &mut PauseCounters) -> Option<Turn> {
    let Shift { to, paused_ns } = shift?;
    counters.paused_ns += paused_ns;
    if to == PauseState::Defiant {
        counters.watchdog += 1;
    }
    Some(Turn { channel, state: to })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
