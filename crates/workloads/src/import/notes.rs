//! Notes on parts of a file that were left out or changed, counted by kind.

/// Notes in the order of their first mention.
#[derive(Debug, Default)]
pub(super) struct Notes {
    counts: Vec<(&'static str, u64)>,
}

impl Notes {
    /// Counts one more part of a kind. The text describes it in the plural, such as `priorities that are left out`.
    pub(super) fn count(&mut self, text: &'static str) {
        match self.counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((text, 1)),
        }
    }

    /// Returns one line per kind, with the number of its parts.
    pub(super) fn finish(self) -> Vec<String> {
        self.counts.into_iter().map(|(text, count)| format!("{text}: {count}")).collect()
    }
}
