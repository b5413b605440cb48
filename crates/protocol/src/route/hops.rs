//! The next hops towards one member: mostly one or two, so they lie where the table lies.
//!
//! A rack of a thousand members has a thousand of these at each of them; a pointer and an allocation for each would be most of what
//! an idle member takes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::PortId;

/// A port, and the link that it leads to.
pub(super) type Hop = (PortId, u16);

/// As many as fit without an allocation.
const FEW: usize = 3;

/// Hops in order of their ports.
#[derive(Debug)]
pub(super) enum Hops {
    Few {
        count: u8,
        hops: [Hop; FEW],
    },
    // Boxed, so that the usual few take sixteen bytes and not thirty-two.
    #[allow(clippy::box_collection, reason = "three words here would double the size of all")]
    Many(Box<Vec<Hop>>),
}

impl Default for Hops {
    fn default() -> Self {
        Self::Few { count: 0, hops: [(PortId(0), 0); FEW] }
    }
}

impl Hops {
    #[inline]
    pub(super) fn as_slice(&self) -> &[Hop] {
        match self {
            Self::Few { count, hops } => &hops[..usize::from(*count)],
            Self::Many(hops) => hops,
        }
    }

    /// Add a hop. False: it was there.
    pub(super) fn insert(&mut self, hop: Hop) -> bool {
        let Err(place) = self.as_slice().binary_search(&hop) else { return false };
        match self {
            Self::Few { count, hops } if usize::from(*count) < FEW => {
                let end = usize::from(*count);
                hops.copy_within(place..end, place + 1);
                hops[place] = hop;
                *count += 1;
            }
            Self::Few { hops, .. } => {
                let mut many = hops.to_vec();
                many.insert(place, hop);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(hops) => hops.insert(place, hop),
        }
        true
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_or_many_they_are_in_order_and_there_once() {
        let mut hops = Hops::default();
        let mut expected = Vec::new();
        for port in [7, 3, 9, 3, 5, 1, 7, 8, 2] {
            let hop = (PortId(port), 100 - port);
            assert_eq!(hops.insert(hop), !expected.contains(&hop), "{port}");
            if !expected.contains(&hop) {
                expected.push(hop);
                expected.sort_unstable();
            }
            assert_eq!(hops.as_slice(), expected);
        }
        hops.clear();
        assert!(hops.as_slice().is_empty());
    }

    #[test]
    fn few_take_sixteen_bytes() {
        assert_eq!(size_of::<Hops>(), 16);
    }
}
