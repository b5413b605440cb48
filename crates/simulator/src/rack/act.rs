//! Effects of actions on a running rack.

use rackloom_plan::impair::Direction;
use rackloom_protocol::{NodeId, PortId};

use super::Simulation;
use super::actions::Action;
use crate::ids::ChannelId;
use crate::link::Channel;
use crate::seat::{Activity, Due};
use crate::trace::FrameOutcome;

impl Simulation {
    pub(super) fn act(&mut self, action: Action, due: &mut Vec<Due>) {
        match action {
            Action::Kill { member } => self.kill(member),
            Action::Pause { member } => self.pause(member),
            Action::Resume { member } => self.resume(member, due),
            Action::Restart { member } => self.restart(member),
            Action::Cut { edge, direction } => self.each_channel(edge, direction, |channel| {
                channel.link_faults.cut = true;
                channel.incarnation += 1;
            }),
            Action::Restore { edge, direction } => self.each_channel(edge, direction, |channel| {
                (channel.link_faults.cut, channel.link_faults.drop_all) = (false, false);
            }),
            Action::DropAll { edge, direction } => {
                self.each_channel(edge, direction, |channel| channel.link_faults.drop_all = true);
            }
            Action::DropDataFrame { edge, direction, number } => {
                self.each_channel(edge, Some(direction), |channel| {
                    channel.link_faults.drop_data_frame = number
                });
            }
            Action::Carrier { member, port, up } => self.carrier(member, port, up, due),
        }
    }

    fn kill(&mut self, member: NodeId) {
        let Some(seat) = self.seats.get_mut(member) else { return };
        if seat.is_awaited() {
            self.awaited -= 1;
        }
        seat.activity = Activity::Dead;
        if let Some(owner) = self.owners.as_ref().and_then(|owners| owners.get(member.index())) {
            owner.die();
        }
        let parked = std::mem::take(&mut seat.parked);
        seat.leases.take_all().for_each(|frame| self.fabric.frames.release(frame));
        for channel in &seat.outgoing {
            self.fabric.forget_kept(*channel, 0);
        }
        self.lose_frames(&parked, FrameOutcome::ReceiverDead);
    }

    fn pause(&mut self, member: NodeId) {
        let Some(seat) = self.seats.get_mut(member) else { return };
        if seat.activity == Activity::Alive {
            seat.activity = Activity::Paused;
        }
    }

    fn resume(&mut self, member: NodeId, due: &mut Vec<Due>) {
        let Some(seat) = self.seats.get_mut(member) else { return };
        if seat.activity != Activity::Paused {
            return;
        }
        seat.activity = Activity::Alive;
        due.append(&mut seat.parked);
        due.push(Due { member, frame: None, number: 0 });
    }

    fn carrier(&mut self, member: NodeId, port: PortId, up: bool, due: &mut Vec<Due>) {
        let now = self.now;
        let Some(seat) = self.seats.get_mut(member) else { return };
        if port.index() < seat.body.member().port_count() && seat.activity != Activity::Dead {
            seat.body.member_mut().handle_carrier(now, port, up);
            due.push(Due { member, frame: None, number: 0 });
        }
    }

    fn each_channel(&mut self, edge: u16, direction: Option<Direction>, change: impl Fn(&mut Channel)) {
        for link_direction in [Direction::Forward, Direction::Backward] {
            if direction.is_none_or(|chosen| chosen == link_direction)
                && let Some(channel) = self.fabric.channel_mut(ChannelId::new(edge, link_direction))
            {
                change(channel);
            }
        }
    }
}
