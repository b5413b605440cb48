//! Partition of an array into consecutive parts. Sizes differ by at most one, and longer parts come first.
//!
//! This one rule fixes which elements belong to which rank in every collective, so results do not depend on the
//! algorithm. Parts may be empty.

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

#[cfg(test)]
mod tests {
    use super::*;

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
