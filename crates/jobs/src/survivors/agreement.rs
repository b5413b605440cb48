//! Which ranks go on together: each survivor proposes the ranks that it can reach, and a group is formed when all of its members have
//! proposed the same.
//!
//! Proposals only lose members and are numbered. A rank that reads a higher number takes it over; a rank that reads that a member is
//! missing drops it, too, and drops every rank that has dropped it. So each change costs one number, there are no more changes
//! than members, and the two parts of a rack that has been cut each end with themselves. The agreement need not be uniform: if a rank dies in
//! the last moment, some ranks may have begun in a group that others have never formed. They notice that, because the others' numbers
//! go on, and agree again.
//!
//! Two groups with different members never share a room: a rank that has said a proposal cannot know whether another rank has formed it, so a
//! change of members after that takes the next room.
//!
//! Pure: no memory, no endpoint, no clock.

use crate::crew::pattern::fold;

/// What a rank does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It plays in the group of its proposal, or wants to.
    #[default]
    Member,
    /// It has its result, in the group that its words name, and takes part in no further one.
    Through,
    /// It has given up: it takes part in no group any more.
    Left,
}

impl Standing {
    const ALL: [Self; 3] = [Self::Member, Self::Through, Self::Left];
}

/// What a rank says; sets are bits by rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proposal {
    /// Its number. Zero: nothing was ever said.
    pub(super) number: u64,
    /// The ranks that are to go on; of a rank that is through, its group.
    pub(super) members: u64,
    /// Which of the rooms that were kept free for groups is used.
    pub(super) room: u64,
    pub(super) standing: Standing,
}

impl Proposal {
    /// The words of a slot: number, members, room and standing, and a check over them.
    pub(super) fn words(&self) -> [u64; 4] {
        let room = self.room << 8 | self.standing as u64;
        [self.number, self.members, room, check(self.number, self.members, room)]
    }

    /// Reads the words of a slot. Nothing was said if they do not belong together, because only some of them have come.
    pub(super) fn of(words: [u64; 4]) -> Self {
        let [number, members, room, sum] = words;
        let standing = Standing::ALL.into_iter().find(|standing| *standing as u64 == room & 0xff);
        match standing.filter(|_| sum == check(number, members, room)) {
            Some(standing) => Self { number, members, room: room >> 8, standing },
            None => Self::default(),
        }
    }

    /// The ranks that it goes on with.
    fn goes_on_with(&self) -> u64 {
        if self.standing == Standing::Member { self.members } else { 0 }
    }
}

/// Differs from zero, so that a slot in which nothing was ever written says nothing.
fn check(number: u64, members: u64, room: u64) -> u64 {
    fold(number, &[members, room]) | 1
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A member has not said the same yet.
    Waiting,
    /// The proposal is another one now, and must be said to its members.
    Changed,
    /// All members have said the same.
    Agreed,
}

/// One rank's part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement {
    own: u64,
    pub(super) proposal: Proposal,
    /// Another rank may have read the proposal.
    is_said: bool,
}

/// The bit of a rank.
pub(super) const fn bit(rank: u16) -> u64 {
    1 << rank
}

/// The ranks of a set.
pub(super) fn ranks(set: u64) -> impl Iterator<Item = u16> {
    (0..u64::BITS as u16).filter(move |rank| set & bit(*rank) != 0)
}

impl Agreement {
    pub(super) fn begin(own: u16, proposal: Proposal) -> Self {
        let members = proposal.members | bit(own);
        Self { own: bit(own), proposal: Proposal { members, ..proposal }, is_said: false }
    }

    /// The proposal is where others can read it.
    pub(super) fn said(&mut self) {
        self.is_said = true;
    }

    pub(super) const fn is_said(&self) -> bool {
        self.is_said
    }

    /// Takes part in no group any more. The group of the last one stays in what it says.
    pub(super) fn end(&mut self, standing: Standing, members: u64, room: u64) {
        self.proposal = Proposal { number: self.proposal.number + 1, members, room, standing };
    }

    /// See who can be reached and what the others have said last.
    pub(super) fn look(&mut self, reachable: u64, heard: impl Fn(u16) -> Proposal) -> Look {
        let before = self.proposal;
        let mut now = Proposal { members: before.members & (reachable | self.own), ..before };
        let mut is_unanimous = true;
        for rank in ranks(before.members & !self.own) {
            let said = heard(rank);
            if said.standing == Standing::Member && said.number < before.number {
                is_unanimous = false;
                continue;
            }
            now.number = now.number.max(said.number);
            if said.goes_on_with() & self.own == 0 {
                now.members &= !bit(rank);
                continue;
            }
            now.members &= said.members;
            now.room = now.room.max(said.room);
            is_unanimous &= said == before;
        }
        if now.members != before.members && self.is_said {
            now.room = now.room.max(before.room + 1);
        }
        if (now.members, now.room) != (before.members, before.room) {
            now.number += 1;
        }
        // A number that was only taken over names the same group in the same room.
        if now != before {
            self.is_said &= now.members == before.members && now.room == before.room;
        }
        self.proposal = now;
        match (now == before, is_unanimous) {
            (false, _) => Look::Changed,
            (true, true) => Look::Agreed,
            (true, false) => Look::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks that look one after the other; what one says the others hear at once. Each reaches those of its row.
    fn agreed(reach: &[u64]) -> Vec<Option<Proposal>> {
        let all = (1 << reach.len()) - 1;
        let begin = |own| {
            Agreement::begin(
                own,
                Proposal { number: 1, members: all, room: u64::from(own) + 1, ..Proposal::default() },
            )
        };
        let mut parts: Vec<_> = (0..reach.len() as u16).map(begin).collect();
        let mut agreed = vec![None; reach.len()];
        for _ in 0..4 * reach.len() {
            for own in 0..parts.len() {
                let heard: Vec<_> = parts.iter().map(|part| part.proposal).collect();
                let can_be_heard = |rank: u16| reach[own] & bit(rank) != 0;
                let heard = |rank: u16| {
                    if can_be_heard(rank) { heard[usize::from(rank)] } else { Proposal::default() }
                };
                let look = parts[own].look(reach[own], heard);
                agreed[own] = (look == Look::Agreed).then_some(parts[own].proposal);
            }
        }
        agreed
    }

    #[test]
    fn each_part_of_a_rack_that_was_cut_ends_with_itself() {
        let groups = agreed(&[0b0011, 0b0011, 0b1100, 0b1100]);
        let members: Vec<_> = groups.iter().map(|group| group.map(|group| group.members)).collect();
        assert_eq!(members, [Some(0b0011), Some(0b0011), Some(0b1100), Some(0b1100)]);
        assert_eq!(groups[0], groups[1], "number and room too");
        assert_eq!(groups[1].map(|group| group.room), Some(2), "the highest that anybody asks for");
    }

    #[test]
    fn a_loss_that_one_has_not_noticed_yet_is_learned_from_the_others() {
        let groups = agreed(&[0b0111, 0b1111, 0b0111, 0]);
        assert!(
            groups[..3].iter().all(|group| group.is_some_and(|group| group.members == 0b0111)),
            "{groups:?}"
        );
    }

    #[test]
    fn who_is_left_alone_agrees_with_itself() {
        assert_eq!(agreed(&[0b001, 0b010, 0b100]).map_members(), [Some(0b001), Some(0b010), Some(0b100)]);
    }

    #[test]
    fn who_is_through_is_left_out() {
        let mut own =
            Agreement::begin(0, Proposal { number: 4, members: 0b11, room: 1, ..Proposal::default() });
        let through =
            |_| Proposal { number: 4, members: 0b11, standing: Standing::Through, ..Proposal::default() };
        assert_eq!(own.look(0b11, through), Look::Changed);
        assert_eq!((own.look(0b11, through), own.proposal.members), (Look::Agreed, 0b01));
    }

    trait Members {
        fn map_members(&self) -> Vec<Option<u64>>;
    }

    impl Members for Vec<Option<Proposal>> {
        fn map_members(&self) -> Vec<Option<u64>> {
            self.iter().map(|group| group.map(|group| group.members)).collect()
        }
    }
}
