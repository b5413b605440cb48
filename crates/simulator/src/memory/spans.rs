//! The referenced part of each region of a memory, as one range.
//!
//! Checked at every write, so the check must be quick. It may report a reference where there is none, and never
//! misses one. A range grows with each reference and begins anew when none is left.

use rackloom_protocol::RegionId;

/// Referenced range of one region.
#[derive(Debug)]
struct Span {
    region: RegionId,
    count: u32,
    begin: u64,
    end: u64,
}

/// The ranges of one memory.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
}

impl Spans {
    /// Adds a reference to these bytes.
    pub(crate) fn add(&mut self, region: RegionId, begin: u64, end: u64) {
        match self.spans.iter_mut().find(|span| span.region == region) {
            Some(span) if span.count == 0 => *span = Span { region, count: 1, begin, end },
            Some(span) => {
                (span.begin, span.end) = (span.begin.min(begin), span.end.max(end));
                span.count += 1;
            }
            None => self.spans.push(Span { region, count: 1, begin, end }),
        }
    }

    /// Extends an existing reference to these bytes.
    pub(crate) fn widen(&mut self, region: RegionId, begin: u64, end: u64) {
        if let Some(span) = self.spans.iter_mut().find(|span| span.region == region) {
            (span.begin, span.end) = (span.begin.min(begin), span.end.max(end));
        }
    }

    /// Removes a reference to the region.
    pub(crate) fn remove(&mut self, region: RegionId) {
        if let Some(span) = self.spans.iter_mut().find(|span| span.region == region) {
            span.count -= 1;
        }
    }

    /// Returns true if one of these bytes may be referenced.
    #[inline]
    pub(crate) fn reaches(&self, region: RegionId, begin: u64, end: u64) -> bool {
        self.spans
            .iter()
            .any(|span| span.region == region && span.count > 0 && begin < span.end && span.begin < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_covers_all_references_until_none_is_left() {
        let (one, other) = (RegionId(1), RegionId(2));
        let mut spans = Spans::default();
        assert!(!spans.reaches(one, 0, u64::MAX));
        spans.add(one, 10, 20);
        spans.add(one, 40, 50);
        assert!(spans.reaches(one, 19, 20) && spans.reaches(one, 45, 60) && !spans.reaches(other, 0, 100));
        assert!(!spans.reaches(one, 0, 10) && !spans.reaches(one, 50, 60), "up to its ends and no further");
        spans.remove(one);
        assert!(spans.reaches(one, 10, 11), "one reference is left, and it is not known which");
        spans.widen(one, 50, 60);
        assert!(spans.reaches(one, 59, 60));
        spans.remove(one);
        assert!(!spans.reaches(one, 0, 100));
        spans.add(one, 90, 91);
        assert!(!spans.reaches(one, 10, 20), "it begins anew");
    }
}
