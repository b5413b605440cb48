//! Virtual channels: on which of a link's channels a frame travels.
//!
//! A link is several links in one: each channel has a queue and credits of its own, so that a full one holds back nothing in
//! the others. Message classes are put on *lanes*, and a lane may have several *levels*, which a frame climbs on its way: where
//! nobody waits for a lower level, no circle of waiting closes (Dally and Seitz 1987). A channel is a lane at a level.
//!
//! Nothing here queues or counts; that is for [`crate::link::accounts`] and [`crate::switch::egress`].

use alloc::vec::Vec;

use crate::ids::{Channel, Class};

/// Channels of a link at most: as many as credit-based flow control knows elsewhere, and few enough for a byte.
pub const CHANNELS_MAX: usize = 32;

/// What makes a frame climb to the next level of its lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rise {
    /// Nothing: each lane has one level.
    #[default]
    Never,
    /// It leaves over a link that is a dateline.
    Dateline,
    /// It is passed on.
    Hop,
}

/// Which channel of several that have something to send goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArbiterKind {
    /// The one with the lowest number.
    #[default]
    Strict,
    /// Each in its turn, a frame at a time.
    RoundRobin,
    /// Each in its turn, as many bytes at a time as its weight says.
    Weighted,
}

/// The channels of every link of a rack, and who travels on which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// The lane of each message class.
    pub lane_of: [u8; Class::COUNT],
    /// Levels of each lane.
    pub levels: u8,
    /// What makes a frame climb.
    pub rise: Rise,
    /// Which channel goes next.
    pub arbiter: ArbiterKind,
    /// Weight of each lane, of all its levels alike; one where the list ends.
    pub weights: Vec<u16>,
}

impl Default for ChannelConfig {
    /// One channel for everything.
    fn default() -> Self {
        Self {
            lane_of: [0; Class::COUNT],
            levels: 1,
            rise: Rise::Never,
            arbiter: ArbiterKind::Strict,
            weights: Vec::new(),
        }
    }
}

impl ChannelConfig {
    /// A lane for each message class.
    #[must_use]
    pub fn by_class() -> Self {
        Self { lane_of: Class::ALL.map(|class| class as u8), ..Self::default() }
    }

    /// How many lanes there are.
    #[must_use]
    pub fn lanes(&self) -> u8 {
        self.lane_of.iter().max().map_or(1, |most| most.saturating_add(1))
    }

    /// How many channels a link has.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.lanes()) * usize::from(self.levels.max(1))
    }

    // W-34
    /// The channel on which a frame of this class leaves its source.
    #[must_use]
    pub fn first(&self, class: Class, over_dateline: bool) -> Channel {
        let bottom = Channel(self.lane_of[class.index()]);
        if self.rise == Rise::Dateline && over_dateline { self.above(bottom) } else { bottom }
    }

    /// The channel on which a frame that came in on `channel` is passed on.
    #[must_use]
    pub fn next(&self, channel: Channel, over_dateline: bool) -> Channel {
        match self.rise {
            Rise::Never => channel,
            Rise::Dateline if !over_dateline => channel,
            Rise::Dateline | Rise::Hop => self.above(channel),
        }
    }

    /// The same lane one level higher; the highest has none above it.
    fn above(&self, channel: Channel) -> Channel {
        let above = channel.index() + usize::from(self.lanes());
        if above < self.count() { Channel(above as u8) } else { channel }
    }

    /// The lane of a channel.
    #[must_use]
    pub fn lane(&self, channel: Channel) -> usize {
        channel.index() % usize::from(self.lanes())
    }

    /// The weight of a channel.
    #[must_use]
    pub fn weight(&self, channel: Channel) -> u16 {
        self.weights.get(self.lane(channel)).copied().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climbing(rise: Rise, levels: u8) -> ChannelConfig {
        ChannelConfig { rise, levels, ..ChannelConfig::by_class() }
    }

    #[test]
    fn a_frame_changes_channels_where_it_leaves_over_the_dateline_and_stays_there() {
        let channels = climbing(Rise::Dateline, 2);
        assert_eq!(channels.count(), 8);
        let start = channels.first(Class::Bulk, false);
        assert_eq!((start, channels.first(Class::Bulk, true)), (Channel(2), Channel(6)));
        let way = [false, true, false, true].iter().scan(start, |channel, over_dateline| {
            *channel = channels.next(*channel, *over_dateline);
            Some(channel.0)
        });
        assert_eq!(way.collect::<Vec<_>>(), [2, 6, 6, 6]);
        assert_eq!(channels.lane(Channel(6)), 2);
    }

    #[test]
    fn by_hop_a_frame_climbs_wherever_it_is_passed_on_up_to_the_top() {
        let channels = climbing(Rise::Hop, 3);
        let mut channel = channels.first(Class::Reply, true);
        let mut way = Vec::new();
        for _ in 0..4 {
            way.push(channel.0);
            channel = channels.next(channel, false);
        }
        assert_eq!(way, [1, 5, 9, 9]);
    }

    #[test]
    fn without_levels_a_frame_stays_on_its_lane() {
        let one = ChannelConfig::default();
        assert_eq!((one.count(), one.first(Class::BulkReply, true)), (1, Channel(0)));
        let four = ChannelConfig::by_class();
        assert_eq!((four.count(), four.next(Channel(3), true)), (4, Channel(3)));
    }
}
