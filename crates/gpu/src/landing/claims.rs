//! Which bytes the launch that is being collected touches.
//!
//! Ranges of one launch are moved at the same time, so what overlaps must go into the next launch. Ranges that follow one
//! another become one.

use std::collections::BTreeMap;

/// Ranges that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Start and end.
    ranges: BTreeMap<u64, u64>,
}

impl Claims {
    /// Claim a range. False: some of it is claimed already, and nothing changes.
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
        fn claims_are_a_row_of_bytes(steps in prop::collection::vec((0_u64..200, 1_u64..20), 1..60)) {
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
