//! Buffer space for frames in transit, and pauses when it runs out.
//!
//! Connects the rules of [`crate::link::pause`] with frames, headers and counters. On a link with credits a held
//! frame only takes its credits.

use super::forwarder::Forwarder;
use crate::event::{DropReason, Event};
use crate::ids::{Channel, PortId};
use crate::link::pause::state::PauseState;
use crate::link::pause::{GateChange, Pauses};
use crate::time::Instant;
use crate::transmit::Transmit;
use crate::wire::control::{PAUSE_BYTES, pause_quanta};
use crate::wire::frame::{Frame, FrameKind};
use crate::wire::layout::{FABRIC, put_u16};

impl Forwarder {
    // ---- buffer space
    // ----------------------------------------------------------------------------------------------

    /// Returns true if a data frame that arrived here can be held. With credits this always holds.
    pub(super) fn has_space(&self, port: PortId, channel: Channel, bytes: usize) -> bool {
        let pause = self.links[port.index()].pause.as_ref();
        pause.is_none_or(|pause| pause.has_space(channel, bytes, self.xoff_bytes(pause, channel)))
    }

    /// Returns the number of bytes that a channel may hold before its neighbour is paused.
    fn xoff_bytes(&self, pause: &Pauses, channel: Channel) -> u64 {
        self.shared.map_or(pause.config.xoff_bytes.into(), |shared| {
            shared.xoff_bytes(shared.share_of(pause.below_bytes(channel)))
        })
    }

    /// Holds a data frame that arrived here.
    pub(super) fn hold(&mut self, port: PortId, channel: Channel, cost: u32, bytes: usize) {
        let link = &mut self.links[port.index()];
        link.credits_mut(channel).hold(cost);
        if let Some(mut pause) = link.pause.take() {
            let xoff_bytes = self.xoff_bytes(&pause, channel);
            let before = pause.below_bytes(channel);
            pause.hold(channel, bytes, xoff_bytes, &mut self.counters[port.index()].pause);
            if let Some(shared) = &mut self.shared {
                shared.change(before, pause.below_bytes(channel));
            }
            self.links[port.index()].pause = Some(pause);
        }
    }

    /// Releases the space of a frame that has left. Its credits may have been reset meanwhile, its space not.
    pub(super) fn end_hold(&mut self, port: PortId, channel: Channel, cost: u32, bytes: usize) {
        let link = &mut self.links[port.index()];
        link.credits_mut(channel).end_hold(cost);
        let Some(pause) = &mut link.pause else { return };
        let before = pause.below_bytes(channel);
        let Some(shared) = &mut self.shared else {
            return pause.end_hold(channel, bytes, pause.config.xon_bytes.into());
        };
        pause.end_hold(channel, bytes, shared.xon_bytes(&pause.config));
        shared.change(before, pause.below_bytes(channel));
        // More space is free for all channels.
        for (port, link) in self.links.iter_mut().enumerate() {
            if let Some(pause) = &mut link.pause
                && pause.resume_below(shared.xon_bytes(&pause.config))
            {
                self.ready.insert(PortId(port as u16));
            }
        }
    }

    // ---- pause messages
    // --------------------------------------------------------------------------------------------

    /// Handles a pause or resume of a neighbour. Ignored if the link has no pauses or carries no data.
    pub(super) fn take_pause(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()].pause);
        if !link.state().carries_data() {
            return Err(DropReason::LinkDown);
        }
        let Some(pause) = &mut link.pause else { return Err(DropReason::Malformed) };
        let quanta = pause_quanta(frame.body()).ok_or(DropReason::Malformed)?;
        if let Some(change) = pause.receive(now, frame.link.channel, quanta, counters) {
            self.follow(port, change);
        }
        Ok(())
    }

    pub(super) fn handle_pause_timeout(&mut self, now: Instant, port: PortId) {
        loop {
            let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()].pause);
            let accounts = &link.accounts;
            let Some(pause) = &mut link.pause else { return };
            let Some(change) = pause.handle_time(now, |channel| accounts.is_stalled(channel), counters)
            else {
                return;
            };
            self.follow(port, change);
        }
    }

    // W-70
    fn follow(&mut self, port: PortId, GateChange { channel, state }: GateChange) {
        self.links[port.index()].credits_mut(channel).bar(!state.sends());
        self.ready.insert(port);
        if state == PauseState::Overridden {
            self.push_event(Event::PauseDefied { port, channel });
        }
    }

    /// Ends all pauses of a link that carries no data any more.
    pub(super) fn end_pauses(&mut self, now: Instant, port: PortId) {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()].pause);
        let Some(pause) = &mut link.pause else { return };
        pause.stop(now, counters);
        for channel in (0..link.accounts.count() as u8).map(Channel) {
            link.credits_mut(channel).bar(false);
        }
    }

    /// Returns the next pause or resume to a neighbour.
    pub(super) fn transmit_pause(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let counters = &mut self.counters[port.index()].pause;
        let pause = self.links[port.index()].pause.as_mut()?;
        let (channel, quanta) = pause.next_message(now, counters)?;
        put_u16(out, FABRIC, quanta);
        Some(self.finish_control(port, channel, out, FrameKind::Pause, PAUSE_BYTES, true))
    }
}
