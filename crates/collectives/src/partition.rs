//! Partition of an array into consecutive parts, one per rank.
//!
//! Parts are equal unless a request lists their lengths: sizes differ by at most one, and longer parts come first. A partition
//! fixes which elements belong to which rank in every collective, so results do not depend on the algorithm. Parts may be
//! empty.

use core::ops::Range;

/// Returns the range of part `index` of `elements` elements cut into `parts` parts.
///
/// ```
/// use rackloom_collectives::partition::part;
/// assert_eq!((0..4).map(|rank| part(10, 4, rank)).collect::<Vec<_>>(), [0..3, 3..6, 6..8, 8..10]);
/// ```
#[must_use]
pub fn part(elements: usize, parts: usize, index: usize) -> Range<usize> {
    debug_assert!(index < parts, "part {index} of {parts}");
    let (length, longer) = (elements / parts, elements % parts);
    let start = index * length + index.min(longer);
    start..start + length + usize::from(index < longer)
}

/// Returns part `index` of a range that is cut into `parts` parts.
pub(crate) fn part_of(range: &Range<usize>, parts: usize, index: usize) -> Range<usize> {
    let inner = part(range.len(), parts, index);
    range.start + inner.start..range.start + inner.end
}

/// Parts of a collective's array, by rank. In an all-to-all, blocks by pair of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    ranks: usize,
    elements: usize,
    lengths: Lengths,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lengths {
    /// Equal, as [`part`] cuts them.
    Equal,
    /// First element of each part, and the end of the last part.
    Listed(Vec<usize>),
    /// Blocks of an all-to-all.
    Blocks(Blocks),
}

/// Positions of blocks, by rank and then by its peer: for each rank the starts of its blocks, and the end of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Blocks {
    /// By sender and receiver, in the sender's input.
    sent: Vec<usize>,
    /// By receiver and sender, in the receiver's output.
    received: Vec<usize>,
}

impl Parts {
    /// Returns equal parts of an array of `elements` elements.
    #[must_use]
    pub const fn equal(ranks: usize, elements: usize) -> Self {
        Self { ranks, elements, lengths: Lengths::Equal }
    }

    /// Returns parts of these lengths, one per rank.
    #[must_use]
    pub fn listed(lengths: &[usize]) -> Self {
        let starts = ends(0, lengths.iter().copied());
        Self { ranks: lengths.len(), elements: lengths.iter().sum(), lengths: Lengths::Listed(starts) }
    }

    /// Returns the blocks of an all-to-all. `lengths` has a row per sender with a block per receiver.
    ///
    /// # Panics
    /// If there is not one block for each pair of ranks.
    #[must_use]
    pub fn blocks(ranks: usize, lengths: &[usize]) -> Self {
        assert_eq!(Some(lengths.len()), ranks.checked_mul(ranks), "an all-to-all has a block for each pair");
        let row = |from: usize| ends(0, (0..ranks).map(move |to| lengths[from * ranks + to]));
        let column = |to: usize| ends(0, (0..ranks).map(move |from| lengths[from * ranks + to]));
        let sent = (0..ranks).flat_map(row).collect();
        let received = (0..ranks).flat_map(column).collect();
        let elements = lengths.iter().sum();
        Self { ranks, elements, lengths: Lengths::Blocks(Blocks { sent, received }) }
    }

    /// Returns the number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the number of elements of the whole array. Of listed blocks, the sum over all pairs.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the part of a rank, as positions in the whole array. Blocks of an all-to-all have no such parts.
    ///
    /// # Panics
    /// If the parts are listed blocks.
    #[must_use]
    pub fn part(&self, rank: usize) -> Range<usize> {
        match &self.lengths {
            Lengths::Equal => part(self.elements, self.ranks, rank),
            Lengths::Listed(starts) => starts[rank]..starts[rank + 1],
            Lengths::Blocks(_) => panic!("an all-to-all has blocks and no parts"),
        }
    }

    /// Returns the block that `from` sends to `to` in an all-to-all, as positions in the input of `from`.
    #[must_use]
    pub fn sent_block(&self, from: usize, to: usize) -> Range<usize> {
        match &self.lengths {
            Lengths::Blocks(blocks) => block(&blocks.sent, self.ranks, from, to),
            _ => self.part(to),
        }
    }

    /// Returns the block that `to` receives from `from` in an all-to-all, as positions in the output of `to`.
    #[must_use]
    pub fn received_block(&self, from: usize, to: usize) -> Range<usize> {
        match &self.lengths {
            Lengths::Blocks(blocks) => block(&blocks.received, self.ranks, to, from),
            _ => {
                let length = self.part(to).len();
                from * length..(from + 1) * length
            }
        }
    }

    /// Returns the number of elements of a rank's input of an all-to-all.
    #[must_use]
    pub fn sent_elements(&self, from: usize) -> usize {
        match &self.lengths {
            Lengths::Blocks(_) => self.sent_block(from, self.ranks - 1).end,
            _ => self.elements,
        }
    }

    /// Returns the number of elements of a rank's output of an all-to-all.
    #[must_use]
    pub fn received_elements(&self, to: usize) -> usize {
        self.received_block(self.ranks - 1, to).end
    }

    /// Returns true if no part, or no block of an all-to-all, is empty.
    #[must_use]
    pub fn are_all_filled(&self) -> bool {
        let grows = |starts: &[usize]| starts.windows(2).all(|pair| pair[0] < pair[1]);
        match &self.lengths {
            Lengths::Equal => self.elements >= self.ranks,
            Lengths::Listed(starts) => grows(starts),
            Lengths::Blocks(blocks) => blocks.sent.chunks(self.ranks + 1).all(grows),
        }
    }

    /// Returns the rank whose part contains an element, if there is one.
    pub(crate) fn owner(&self, element: usize) -> Option<usize> {
        (0..self.ranks).find(|&rank| self.part(rank).contains(&element))
    }
}

/// Returns `start`, and the end of each part that follows it.
fn ends(start: usize, lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let ends = lengths.scan(start, |end, length| {
        *end += length;
        Some(*end)
    });
    core::iter::once(start).chain(ends).collect()
}

/// Returns the positions of the block of a rank and its peer in a table of [`Blocks`].
fn block(table: &[usize], ranks: usize, rank: usize, peer: usize) -> Range<usize> {
    let at = rank * (ranks + 1) + peer;
    table[at]..table[at + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_parts_follow_each_other() {
        let parts = Parts::listed(&[2, 0, 3]);
        assert_eq!((0..3).map(|rank| parts.part(rank)).collect::<Vec<_>>(), [0..2, 2..2, 2..5]);
        assert_eq!((parts.elements(), parts.owner(2), parts.owner(5)), (5, Some(2), None));
        assert!(!parts.are_all_filled() && Parts::listed(&[1, 4]).are_all_filled());
    }

    #[test]
    fn blocks_lie_by_receiver_at_the_sender_and_by_sender_at_the_receiver() {
        let blocks = Parts::blocks(2, &[1, 2, 3, 4]);
        assert_eq!((blocks.sent_block(0, 1), blocks.received_block(0, 1)), (1..3, 0..2));
        assert_eq!((blocks.sent_block(1, 0), blocks.received_block(1, 0)), (0..3, 1..4));
        assert_eq!((blocks.sent_elements(1), blocks.received_elements(1)), (7, 6));
        let equal = Parts::equal(2, 5);
        assert_eq!((equal.sent_block(1, 0), equal.received_block(1, 0)), (0..3, 3..6));
        assert_eq!((equal.sent_elements(1), equal.received_elements(1)), (5, 4));
    }

    #[test]
    fn parts_follow_each_other_and_differ_by_at_most_one() {
        for parts in 1..20 {
            for elements in 0..100 {
                let all: Vec<_> = (0..parts).map(|index| part(elements, parts, index)).collect();
                assert_eq!((all[0].start, all[parts - 1].end), (0, elements));
                assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert!(all.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
                assert!(all[0].len() - all[parts - 1].len() <= 1);
            }
        }
    }
}
