//! Numbers of frames and of channels, by which the other files refer to them.

use rackloom_plan::impair::Direction;

/// Index of a frame in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(pub(crate) u32);

impl FrameId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of one direction of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelId(pub(crate) u32);

impl ChannelId {
    pub(crate) const fn new(edge: u16, direction: Direction) -> Self {
        Self(edge as u32 * 2 + matches!(direction, Direction::Backward) as u32)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn edge(self) -> u16 {
        (self.0 / 2) as u16
    }

    pub(crate) const fn direction(self) -> Direction {
        if self.0.is_multiple_of(2) { Direction::Forward } else { Direction::Backward }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_numbered_by_edge_and_direction() {
        for edge in [0, 1, 4_000] {
            for direction in [Direction::Forward, Direction::Backward] {
                let id = ChannelId::new(edge, direction);
                assert_eq!((id.edge(), id.direction()), (edge, direction));
            }
        }
    }
}
