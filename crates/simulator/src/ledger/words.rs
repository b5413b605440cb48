//! Words that atomics and signals change as a whole: counts of requested, applied and completed changes.
//!
//! Every change counts the same, so two operations on one word need not be distinguished. A word must not change more
//! often than was requested and not undone, and not less often than completions reported.

use std::collections::{BTreeMap, VecDeque};

use rackloom_protocol::NodeId;

use super::entry::Word;

#[derive(Clone, Debug, Default)]
struct Changes {
    requested: u64,
    applied: u64,
    /// Number of changes whose operation succeeded.
    done: u64,
    /// Number of changes whose result says that nothing has changed.
    undone: u64,
    /// Signals that have not been seen yet, by initiator and number.
    signals: VecDeque<(NodeId, u64)>,
}

/// The changed words of a rack.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(BTreeMap<Word, Changes>);

impl Words {
    /// Adds a requested change; for a signal, with the operation whose data it follows.
    pub(super) fn request(&mut self, word: Word, signal: Option<(NodeId, u64)>) {
        let changes = self.0.entry(word).or_default();
        changes.requested += 1;
        changes.signals.extend(signal);
    }

    /// Adds an applied change. Returns false if it exceeds the requests.
    pub(super) fn apply(&mut self, word: Word) -> bool {
        let changes = self.0.entry(word).or_default();
        changes.applied += 1;
        changes.applied + changes.undone <= changes.requested
    }

    /// Takes a change that may be a signal. Returns true if one of the awaited signals had all of its data; `None` if
    /// none is awaited.
    pub(super) fn take_signal(
        &mut self,
        word: Word,
        is_whole: impl Fn((NodeId, u64)) -> bool,
    ) -> Option<bool> {
        let changes = self.0.get_mut(&word)?;
        if changes.signals.is_empty() {
            return None;
        }
        let signal_index = changes.signals.iter().position(|signal| is_whole(*signal));
        changes.signals.remove(signal_index.unwrap_or(0));
        Some(signal_index.is_some())
    }

    /// Adds the end of an operation on the word. Returns false if it contradicts the applied changes.
    pub(super) fn end(&mut self, word: Word, is_done: bool, is_unknown: bool, signal: (NodeId, u64)) -> bool {
        let changes = self.0.entry(word).or_default();
        if is_done {
            changes.done += 1;
        } else if !is_unknown {
            changes.undone += 1;
            changes.signals.retain(|other| *other != signal);
        }
        changes.done <= changes.applied && changes.applied + changes.undone <= changes.requested
    }

    /// Forgets the words of a node whose memory is new.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.retain(|(holder, ..), _| *holder != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::RegionId;

    const WORD: Word = (NodeId(0), RegionId(1), 8);
    const INITIATOR: (NodeId, u64) = (NodeId(1), 7);

    #[test]
    fn a_word_may_be_changed_as_often_as_requested() {
        let mut words = Words::default();
        words.request(WORD, None);
        words.request(WORD, None);
        assert!(words.apply(WORD) && words.end(WORD, true, false, INITIATOR));
        assert!(words.end(WORD, false, true, INITIATOR), "unknown: it may come");
        assert!(words.apply(WORD) && !words.apply(WORD), "twice, and no third time");
    }

    #[test]
    fn completions_must_agree_with_applied_changes() {
        let mut words = Words::default();
        words.request(WORD, None);
        assert!(!words.end(WORD, true, false, INITIATOR), "before it was applied");
        let mut words = Words::default();
        words.request(WORD, None);
        assert!(words.end(WORD, false, false, INITIATOR));
        assert!(!words.apply(WORD), "after its operation ended without a change");
    }

    #[test]
    fn a_signal_is_valid_if_any_awaited_signal_has_its_data() {
        let mut words = Words::default();
        words.request(WORD, Some((NodeId(1), 1)));
        words.request(WORD, Some((NodeId(2), 2)));
        assert_eq!(words.take_signal(WORD, |signal| signal.1 == 2), Some(true));
        assert_eq!(words.take_signal(WORD, |signal| signal.1 == 2), Some(false));
        assert_eq!(words.take_signal(WORD, |_| true), None);
    }
}
