//! The seats of a rack by member. A part of a rack has some of them; the others are computed by other threads.

use std::ops::{Index, IndexMut};

use rackloom_protocol::NodeId;

use crate::seat::Seat;

/// Mark of a member whose seat is elsewhere.
const ELSEWHERE: u16 = u16::MAX;

/// Seats of the members that are computed here, in order of their numbers.
pub(crate) struct Seats {
    list: Vec<Seat>,
    /// Index in the list by member.
    index: Vec<u16>,
}

impl Seats {
    /// Creates the seats of a rack of `members` members. `list`: those of the members that are computed here.
    pub(crate) fn new(members: usize, list: Vec<Seat>) -> Self {
        let mut index = vec![ELSEWHERE; members];
        for (position, seat) in list.iter().enumerate() {
            index[seat.node.index()] = position as u16;
        }
        Self { list, index }
    }

    /// Returns the seat of a member, or `None` if it is elsewhere or there is no such member.
    pub(crate) fn get(&self, member: NodeId) -> Option<&Seat> {
        self.list.get(usize::from(*self.index.get(member.index())?))
    }

    /// Returns the seat of a member, or `None` if it is elsewhere or there is no such member.
    pub(crate) fn get_mut(&mut self, member: NodeId) -> Option<&mut Seat> {
        self.list.get_mut(usize::from(*self.index.get(member.index())?))
    }

    /// Returns all seats that are here, in order of the members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seat> {
        self.list.iter()
    }

    /// Returns all seats that are here, in order of the members.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Seat> {
        self.list.iter_mut()
    }

    /// Returns the number of members of the rack.
    pub(crate) const fn members(&self) -> usize {
        self.index.len()
    }
}

impl Index<NodeId> for Seats {
    type Output = Seat;

    /// # Panics
    /// If the member is elsewhere, which is an error of the engine: no event of such a member is queued here.
    #[inline]
    fn index(&self, member: NodeId) -> &Seat {
        &self.list[usize::from(self.index[member.index()])]
    }
}

impl IndexMut<NodeId> for Seats {
    #[inline]
    fn index_mut(&mut self, member: NodeId) -> &mut Seat {
        &mut self.list[usize::from(self.index[member.index()])]
    }
}
