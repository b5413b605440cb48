//! Bytes that the open launch touches.
//!
//! Ranges of one launch are moved at the same time, so a range that overlaps goes into the next launch. Adjacent ranges become one.

use std::collections::BTreeMap;

/// Set of ranges that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// End of each range, by its start.
    ranges: BTreeMap<u64, u64>,
}

impl Claims {
    /// Claims a range. Returns false and changes nothing if some of it is claimed already.
    pub(super) fn claim(&mut self, start: u64, bytes: u64) -> bool {
        let end = start.saturating_add(bytes);
        let before = self.ranges.range(..end).next_back().map(|(start, end)| (*start, *end));
        match before {
            Some((_, known_end)) if known_end > start => return false,
            Some((known, known_end)) if known_end == start => {
                self.ranges.insert(known, end);
            }
            _ => {
                self.ranges.insert(start, end);
            }
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn claims_equal_a_list_of_bytes(steps in prop::collection::vec((0_u64..200, 1_u64..20), 1..60)) {
            let mut claims = Claims::default();
            let mut row = [false; 256];
            for (start, bytes) in steps {
                let part = &mut row[start as usize..(start + bytes) as usize];
                prop_assert_eq!(claims.claim(start, bytes), !part.contains(&true));
                if !part.contains(&true) {
                    part.fill(true);
                }
            }
        }
    }
}
