//! Agreement on the ranks that go on together: each survivor proposes the ranks that it can reach, and a group is
//! formed when all of its members have sent the same proposal.
//!
//! Proposals are numbered and only lose members. A rank that reads a higher number adopts it. A rank that reads that a
//! member is missing drops it, too. It also drops every rank that has dropped it. So each change costs one number, and
//! there are no more changes than members. When a rack is cut in two, each part ends with its own group. The agreement
//! need not be uniform: if a rank is lost in the last moment, some ranks may have begun in a group that others have
//! never formed. They detect this, because the others' numbers continue, and agree again.
//!
//! Two groups with different members never share a area, which is the memory set aside for one group. A rank that has
//! published a proposal cannot know whether another rank has formed it. So a change of members after that uses the next
//! area.
//!
//! This module is pure: no memory, no endpoint, no clock.

use crate::ranks::pattern::fold;

/// State of a rank with respect to groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// The rank plays in the group of its proposal, or proposes to.
    #[default]
    Member,
    /// The rank has its result in the group that its proposal names, and takes part in no further group.
    Through,
    /// The rank has given up and takes part in no group any more.
    Left,
}

impl Standing {
    const ALL: [Self; 3] = [Self::Member, Self::Through, Self::Left];
}

/// Proposal of a rank. Sets are bits by rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proposal {
    /// Number of the proposal. Zero: no proposal was ever published.
    pub(super) number: u64,
    /// Ranks that are to go on. For a rank that is through: its group.
    pub(super) members: u64,
    /// Area that the group uses, of those reserved for groups.
    pub(super) area: u64,
    pub(super) standing: Standing,
}

impl Proposal {
    /// Returns the words of a slot: number, members, area and standing, and a check over them.
    pub(super) fn words(&self) -> [u64; 4] {
        let area = self.area << 8 | self.standing as u64;
        [self.number, self.members, area, check(self.number, self.members, area)]
    }

    /// Reads the words of a slot. Returns the default, empty proposal if the check fails because only some of the words
    /// have arrived.
    pub(super) fn of(words: [u64; 4]) -> Self {
        let [number, members, area, sum] = words;
        let standing = Standing::ALL.into_iter().find(|standing| *standing as u64 == area & 0xff);
        match standing.filter(|_| sum == check(number, members, area)) {
            Some(standing) => Self { number, members, area: area >> 8, standing },
            None => Self::default(),
        }
    }

    /// Returns the ranks with which the proposing rank goes on.
    fn goes_on_with(&self) -> u64 {
        if self.standing == Standing::Member { self.members } else { 0 }
    }
}

/// Returns the check of a slot. It is never zero, so that a slot that was never written fails the check.
fn check(number: u64, members: u64, area: u64) -> u64 {
    fold(number, &[members, area]) | 1
}

/// Result of [`Agreement::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A member has not published the same proposal yet.
    Waiting,
    /// The proposal has changed and must be sent to its members.
    Changed,
    /// All members have published the same proposal.
    Agreed,
}

/// One rank's part in the agreement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement {
    own: u64,
    pub(super) proposal: Proposal,
    /// True if another rank may have read the proposal.
    is_published: bool,
}

/// Returns the bit of a rank.
pub(super) const fn bit(rank: u16) -> u64 {
    1 << rank
}

/// Returns the ranks of a set.
pub(super) fn ranks(set: u64) -> impl Iterator<Item = u16> {
    (0..u64::BITS as u16).filter(move |rank| set & bit(*rank) != 0)
}

impl Agreement {
    pub(super) fn begin(own: u16, proposal: Proposal) -> Self {
        let members = proposal.members | bit(own);
        Self { own: bit(own), proposal: Proposal { members, ..proposal }, is_published: false }
    }

    /// Records that others can read the proposal.
    pub(super) fn set_published(&mut self) {
        self.is_published = true;
    }

    pub(super) const fn is_published(&self) -> bool {
        self.is_published
    }

    /// Ends this rank's part: it takes part in no group any more. Its last group stays in the proposal.
    pub(super) fn end(&mut self, standing: Standing, members: u64, area: u64) {
        self.proposal = Proposal { number: self.proposal.number + 1, members, area, standing };
    }

    /// Updates the proposal from the reachable ranks and the latest proposals of the others.
    pub(super) fn look(&mut self, reachable: u64, latest: impl Fn(u16) -> Proposal) -> Look {
        let before = self.proposal;
        let mut now = Proposal { members: before.members & (reachable | self.own), ..before };
        let mut is_unanimous = true;
        for rank in ranks(before.members & !self.own) {
            let proposal = latest(rank);
            if proposal.standing == Standing::Member && proposal.number < before.number {
                is_unanimous = false;
                continue;
            }
            now.number = now.number.max(proposal.number);
            if proposal.goes_on_with() & self.own == 0 {
                now.members &= !bit(rank);
                continue;
            }
            now.members &= proposal.members;
            now.area = now.area.max(proposal.area);
            is_unanimous &= proposal == before;
        }
        if now.members != before.members && self.is_published {
            now.area = now.area.max(before.area + 1);
        }
        if (now.members, now.area) != (before.members, before.area) {
            now.number += 1;
        }
        // Adopting a number alone still names the same group in the same area.
        if now != before {
            self.is_published &= now.members == before.members && now.area == before.area;
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

    /// Runs ranks one after the other. Each proposal is visible to the others at once. Each rank reaches those of its
    /// row.
    fn agreed(reach: &[u64]) -> Vec<Option<Proposal>> {
        let all = (1 << reach.len()) - 1;
        let begin = |own| {
            Agreement::begin(
                own,
                Proposal { number: 1, members: all, area: u64::from(own) + 1, ..Proposal::default() },
            )
        };
        let mut parts: Vec<_> = (0..reach.len() as u16).map(begin).collect();
        let mut agreed = vec![None; reach.len()];
        for _ in 0..4 * reach.len() {
            for own in 0..parts.len() {
                let latest: Vec<_> = parts.iter().map(|part| part.proposal).collect();
                let is_reachable = |rank: u16| reach[own] & bit(rank) != 0;
                let latest = |rank: u16| {
                    if is_reachable(rank) { latest[usize::from(rank)] } else { Proposal::default() }
                };
                let look = parts[own].look(reach[own], latest);
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
        assert_eq!(groups[0], groups[1], "number and area too");
        assert_eq!(groups[1].map(|group| group.area), Some(2), "the highest requested number");
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
            Agreement::begin(0, Proposal { number: 4, members: 0b11, area: 1, ..Proposal::default() });
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
