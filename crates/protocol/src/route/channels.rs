//! Virtual channels: the channel of a link on which a frame travels.
//!
//! Each channel of a link has a queue and credits of its own, so that a full one holds back no frame of the others.
//! Message classes are assigned to *lanes*. A lane may have several *levels*, to which a frame rises on its path: if
//! no frame waits for a lower level, no cycle of waiting can close (Dally and Seitz 1987). A channel is a lane at a
//! level.
//!
//! This file has no queues and no counters, see [`crate::link::accounts`] and [`crate::forwarding::egress`].

use alloc::vec::Vec;

use crate::ids::{Channel, Class};

/// Largest number of channels of a link: the limit of other credit-based flow control, and small enough for a byte.
pub const CHANNELS_MAX: usize = 32;

/// Event at which a frame rises to the next level of its lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rise {
    /// None: each lane has one level.
    #[default]
    Never,
    /// The frame leaves over a link that is a dateline.
    Dateline,
    /// The frame is forwarded.
    Hop,
}

/// Policy that chooses the next channel of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArbiterKind {
    /// The channel with the lowest number.
    #[default]
    Strict,
    /// Round robin, one frame at a time.
    RoundRobin,
    /// Round robin, with bytes in proportion to the weight of the lane.
    Weighted,
}

/// Channels of every link of a rack, and the lanes of message classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// The lane of each message class.
    pub lane_of: [u8; Class::COUNT],
    /// Number of levels of each lane.
    pub levels: u8,
    /// Event at which a frame rises to the next level.
    pub rise: Rise,
    /// Policy that chooses the next channel.
    pub arbiter: ArbiterKind,
    /// Weight of each lane, for all its levels; 1 beyond the end of the list.
    pub weights: Vec<u16>,
}

impl Default for ChannelConfig {
    /// Returns one channel for all classes.
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
    /// Returns a lane for each message class.
    #[must_use]
    pub fn by_class() -> Self {
        Self { lane_of: Class::ALL.map(|class| class as u8), ..Self::default() }
    }

    /// Number of lanes.
    #[must_use]
    pub fn lanes(&self) -> u8 {
        self.lane_of.iter().max().map_or(1, |most| most.saturating_add(1))
    }

    /// Number of channels of a link.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.lanes()) * usize::from(self.levels.max(1))
    }

    // W-34
    /// Returns the channel on which a frame of this class leaves its source.
    #[must_use]
    pub fn first(&self, class: Class, over_dateline: bool) -> Channel {
        let bottom = Channel(self.lane_of[class.index()]);
        if self.rise == Rise::Dateline && over_dateline { self.above(bottom) } else { bottom }
    }

    /// Returns the channel on which a frame that arrived on `channel` is forwarded.
    #[must_use]
    pub fn next(&self, channel: Channel, over_dateline: bool) -> Channel {
        match self.rise {
            Rise::Never => channel,
            Rise::Dateline if !over_dateline => channel,
            Rise::Dateline | Rise::Hop => self.above(channel),
        }
    }

    /// Returns the channel one level higher in the lane; the highest level stays.
    fn above(&self, channel: Channel) -> Channel {
        let above = channel.index() + usize::from(self.lanes());
        if above < self.count() { Channel(above as u8) } else { channel }
    }

    /// Returns the lane of a channel.
    #[must_use]
    pub fn lane(&self, channel: Channel) -> usize {
        channel.index() % usize::from(self.lanes())
    }

    /// Returns the weight of a channel.
    #[must_use]
    pub fn weight(&self, channel: Channel) -> u16 {
        self.weights.get(self.lane(channel)).copied().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(rise: Rise, levels: u8) -> ChannelConfig {
        ChannelConfig { rise, levels, ..ChannelConfig::by_class() }
    }

    #[test]
    fn a_frame_changes_channels_where_it_leaves_over_the_dateline_and_stays_there() {
        let channels = rising(Rise::Dateline, 2);
        assert_eq!(channels.count(), 8);
        let start = channels.first(Class::Bulk, false);
        assert_eq!((start, channels.first(Class::Bulk, true)), (Channel(2), Channel(6)));
        let path = [false, true, false, true].iter().scan(start, |channel, over_dateline| {
            *channel = channels.next(*channel, *over_dateline);
            Some(channel.0)
        });
        assert_eq!(path.collect::<Vec<_>>(), [2, 6, 6, 6]);
        assert_eq!(channels.lane(Channel(6)), 2);
    }

    #[test]
    fn by_hop_a_frame_rises_one_level_per_hop_up_to_the_highest() {
        let channels = rising(Rise::Hop, 3);
        let mut channel = channels.first(Class::Reply, true);
        let mut path = Vec::new();
        for _ in 0..4 {
            path.push(channel.0);
            channel = channels.next(channel, false);
        }
        assert_eq!(path, [1, 5, 9, 9]);
    }

    #[test]
    fn without_levels_a_frame_stays_on_its_lane() {
        let one = ChannelConfig::default();
        assert_eq!((one.count(), one.first(Class::BulkReply, true)), (1, Channel(0)));
        let four = ChannelConfig::by_class();
        assert_eq!((four.count(), four.next(Channel(3), true)), (4, Channel(3)));
    }
}
