//! Number of operations in flight that use each region of a node.
//!
//! These are plain numbers under the engine's lock. A shared handle per operation would cost two locked instructions. A region in use stays in
//! the node's memory ([`crate::fabric::memory::bytes::RegionMemory`]).

use rackloom_protocol::RegionId;

/// Counts by region. The operations of a node use few regions at a time.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Uses {
    counts: Vec<(RegionId, u32)>,
}

impl Uses {
    /// Counts one more operation that uses the region.
    #[inline]
    pub(in crate::fabric) fn begin(&mut self, region: Option<RegionId>) {
        let Some(region) = region else { return };
        match self.index(region) {
            Some(index) => self.counts[index].1 += 1,
            None => self.counts.push((region, 1)),
        }
    }

    /// Counts one operation less.
    #[inline]
    pub(in crate::fabric) fn end(&mut self, region: Option<RegionId>) {
        let Some(index) = region.and_then(|region| self.index(region)) else { return };
        let count = &mut self.counts[index].1;
        *count -= 1;
        if *count == 0 {
            self.counts.swap_remove(index);
        }
    }

    /// Returns `true` if an operation in flight uses the region.
    pub(in crate::fabric) fn of(&self, region: RegionId) -> bool {
        self.index(region).is_some()
    }

    fn index(&self, region: RegionId) -> Option<usize> {
        self.counts.iter().position(|(known, _)| *known == region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_used_until_the_last_operation_has_ended() {
        let (first, second) = (RegionId(1), RegionId(2));
        let mut uses = Uses::default();
        for region in [Some(first), Some(second), None, Some(first)] {
            uses.begin(region);
        }
        uses.end(Some(first));
        uses.end(None);
        assert!(uses.of(first) && uses.of(second));
        uses.end(Some(first));
        assert!(!uses.of(first) && uses.of(second));
    }
}
