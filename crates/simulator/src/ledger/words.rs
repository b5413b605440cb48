//! Words that atomics and signals change as a whole: counts of requested, applied and completed changes.
//!
//! Every change counts the same, so two operations on one word need not be distinguished. A word must not change more
//! often than was requested and not undone, and not less often than completions reported.

use std::collections::{BTreeMap, VecDeque};

use rackloom_protocol::NodeId;

use super::entry::Word;

#[derive(Clone, Debug, Default)]
struct Changes {
    asked: u64,
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
    pub(super) fn asked(&mut self, word: Word, signal: Option<(NodeId, u64)>) {
        let changes = self.0.entry(word).or_default();
        changes.asked += 1;
        changes.signals.extend(signal);
    }

    /// Adds an applied change. Returns false if it exceeds the requests.
    pub(super) fn applied(&mut self, word: Word) -> bool {
        let changes = self.0.entry(word).or_default();
        changes.applied += 1;
        changes.applied + changes.undone <= changes.asked
    }

    /// Takes a change that may be a signal. Returns true if one of the awaited signals had all of its data; `None` if none is awaited.
    pub(super) fn take_signal(
        &mut self,
        word: Word,
        is_whole: impl Fn((NodeId, u64)) -> bool,
    ) -> Option<bool> {
        let changes = self.0.get_mut(&word)?;
        if changes.signals.is_empty() {
            return None;
        }
        let place = changes.signals.iter().position(|signal| is_whole(*signal));
        changes.signals.remove(place.unwrap_or(0));
        Some(place.is_some())
    }

    /// Adds the end of an operation on the word. Returns false if it contradicts the applied changes.
    pub(super) fn ended(
        &mut self,
        word: Word,
        is_done: bool,
        is_unknown: bool,
        signal: (NodeId, u64),
    ) -> bool {
        let changes = self.0.entry(word).or_default();
        if is_done {
            changes.done += 1;
        } else if !is_unknown {
            changes.undone += 1;
            changes.signals.retain(|other| *other != signal);
        }
        changes.done <= changes.applied && changes.applied + changes.undone <= changes.asked
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
    const ASKER: (NodeId, u64) = (NodeId(1), 7);

    #[test]
    fn a_word_may_be_changed_as_often_as_was_asked_for() {
        let mut words = Words::default();
        words.asked(WORD, None);
        words.asked(WORD, None);
        assert!(words.applied(WORD) && words.ended(WORD, true, false, ASKER));
        assert!(words.ended(WORD, false, true, ASKER), "unknown: it may come");
        assert!(words.applied(WORD) && !words.applied(WORD), "twice, and no third time");
    }

    #[test]
    fn what_was_told_to_be_done_must_be_and_what_was_told_to_be_undone_must_not() {
        let mut words = Words::default();
        words.asked(WORD, None);
        assert!(!words.ended(WORD, true, false, ASKER), "before it was applied");
        let mut words = Words::default();
        words.asked(WORD, None);
        assert!(words.ended(WORD, false, false, ASKER));
        assert!(!words.applied(WORD), "after it was said not to happen");
    }

    #[test]
    fn a_signal_may_be_seen_if_any_that_is_awaited_has_its_data() {
        let mut words = Words::default();
        words.asked(WORD, Some((NodeId(1), 1)));
        words.asked(WORD, Some((NodeId(2), 2)));
        assert_eq!(words.take_signal(WORD, |signal| signal.1 == 2), Some(true));
        assert_eq!(words.take_signal(WORD, |signal| signal.1 == 2), Some(false));
        assert_eq!(words.take_signal(WORD, |_| true), None);
    }
}
