//! Queue that stores its first entry inline.
//!
//! Most queues of a stream have at most one entry at a time, and a large rack has millions of them. Such a queue
//! allocates nothing. Further entries are stored separately, in memory that the queue keeps.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Queue that stores its first entry inline.
#[derive(Clone, Debug)]
pub struct InlineQueue<T> {
    /// First entry; `None` if the queue is empty.
    first: Option<T>,
    others: Option<Box<Others<T>>>,
}

/// Entries after the first.
#[derive(Clone, Debug)]
struct Others<T>(VecDeque<T>);

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self { first: None, others: None }
    }
}

impl<T> InlineQueue<T> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.as_ref().map_or(0, |others| others.0.len())
    }

    /// Returns true if the queue has no entry.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the first entry.
    #[must_use]
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// Returns the last entry.
    #[must_use]
    #[inline]
    pub fn back(&self) -> Option<&T> {
        let last = self.others.as_ref().and_then(|others| others.0.back());
        last.or(self.first.as_ref())
    }

    /// Iterates over the entries, first to last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.first.iter().chain(self.others.iter().flat_map(|others| &others.0))
    }

    /// Iterates over the entries for changes, first to last.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(self.others.iter_mut().flat_map(|others| &mut others.0))
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push_back(&mut self, entry: T) {
        if self.first.is_none() {
            self.first = Some(entry);
        } else {
            self.others_mut().push_back(entry);
        }
    }

    /// Adds an entry before the one at `index`, or at the end.
    pub fn insert(&mut self, index: usize, entry: T) {
        match self.first.take() {
            None => self.first = Some(entry),
            Some(first) if index == 0 => {
                self.first = Some(entry);
                self.others_mut().push_front(first);
            }
            first => {
                self.first = first;
                let others = self.others_mut();
                others.insert((index - 1).min(others.len()), entry);
            }
        }
    }

    /// Removes and returns the first entry.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let next = self.others.as_mut().and_then(|others| others.0.pop_front());
        core::mem::replace(&mut self.first, next)
    }

    fn others_mut(&mut self) -> &mut VecDeque<T> {
        &mut self.others.get_or_insert_with(|| Box::new(Others(VecDeque::new()))).0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push,
        Pop,
        Insert(usize),
        Change,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Push),
            4 => Just(Step::Pop),
            1 => (0_usize..5).prop_map(Step::Insert),
            1 => Just(Step::Change)
        ]
    }

    proptest! {
        #[test]
        fn entries_are_those_of_a_usual_queue(steps in prop::collection::vec(step(), 0..100)) {
            let (mut queue, mut model) = (InlineQueue::default(), VecDeque::new());
            for (number, step) in (0_u32..).zip(steps) {
                match step {
                    Step::Push => {
                        queue.push_back(number);
                        model.push_back(number);
                    }
                    Step::Pop => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    Step::Insert(index) => {
                        queue.insert(index, number);
                        model.insert(index.min(model.len()), number);
                    }
                    Step::Change => {
                        queue.iter_mut().for_each(|entry| *entry += 1000);
                        model.iter_mut().for_each(|entry| *entry += 1000);
                    }
                }
                prop_assert_eq!(queue.iter().collect::<Vec<_>>(), model.iter().collect::<Vec<_>>());
                prop_assert_eq!(queue.iter().rev().collect::<Vec<_>>(), model.iter().rev().collect::<Vec<_>>());
                prop_assert_eq!((queue.front(), queue.back()), (model.front(), model.back()));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
