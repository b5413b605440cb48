//! Many short queues in one vector: events of each nanosecond, or pending events of each member.
//!
//! A queue of its own for each of thousands would be an allocation each, most of them empty. Here an entry is its value and the number of
//! the next one, a queue is the numbers of its first and its last, and entries that are free are chained as well.

/// End of a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    value: T,
    next: u32,
}

/// First and last entry of a list; the last of an empty one has no meaning.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// A number of lists, each first in, first out.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    lists: Box<[List]>,
    entries: Vec<Entry<T>>,
    free: u32,
}

impl<T: Copy> Lists<T> {
    /// Creates `count` empty lists.
    pub(crate) fn new(count: usize) -> Self {
        let lists = vec![List { first: NONE, last: NONE }; count].into_boxed_slice();
        Self { lists, entries: Vec::new(), free: NONE }
    }

    /// Appends a value to a list. Returns true if it is the only one there.
    #[inline]
    pub(crate) fn push(&mut self, list: usize, value: T) -> bool {
        let entry = Entry { value, next: NONE };
        let number = match self.entries.get_mut(self.free as usize) {
            Some(free) => {
                let next_free = free.next;
                *free = entry;
                std::mem::replace(&mut self.free, next_free)
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let List { first, last } = &mut self.lists[list];
        let is_only = *first == NONE;
        if is_only {
            *first = number;
        } else {
            self.entries[*last as usize].next = number;
        }
        *last = number;
        is_only
    }

    /// Returns the first value of a list.
    #[inline]
    pub(crate) fn first(&self, list: usize) -> Option<&T> {
        self.entries.get(self.lists[list].first as usize).map(|entry| &entry.value)
    }

    /// Iterates over the values of a list, first to last.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = &T> + Clone {
        let entry = |number: u32| self.entries.get(number as usize);
        let next = move |last: &&Entry<T>| entry(last.next);
        std::iter::successors(entry(self.lists[list].first), next).map(|entry| &entry.value)
    }

    /// Removes and returns the first value of a list.
    #[inline]
    pub(crate) fn pop(&mut self, list: usize) -> Option<T> {
        let first = &mut self.lists[list].first;
        let entry = self.entries.get_mut(*first as usize)?;
        let rest = std::mem::replace(&mut entry.next, self.free);
        self.free = std::mem::replace(first, rest);
        Some(entry.value)
    }

    /// Gives up unused entries, if there are more than `kept` and most of them are free.
    pub(crate) fn trim(&mut self, kept: usize) {
        if self.entries.len() <= kept || self.entries.len() / 8 <= self.used() {
            return;
        }
        let mut old = std::mem::replace(self, Self::new(self.lists.len()));
        for list in 0..old.lists.len() {
            while let Some(value) = old.pop(list) {
                self.push(list, value);
            }
        }
    }

    fn used(&self) -> usize {
        (0..self.lists.len()).map(|list| self.iter(list).count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_first_in_first_out_and_all_share_their_entries() {
        let mut lists = Lists::new(3);
        assert!(lists.first(0).is_none() && lists.pop(2).is_none());
        assert!(lists.push(0, 10) && !lists.push(0, 11) && lists.push(2, 20) && !lists.push(0, 12));
        assert_eq!(lists.first(0), Some(&10));
        assert!(lists.iter(0).eq(&[10, 11, 12]) && lists.iter(1).next().is_none() && lists.iter(2).eq(&[20]));
        assert_eq!((lists.pop(0), lists.pop(0)), (Some(10), Some(11)));
        assert!(!lists.push(2, 21) && !lists.push(0, 13) && lists.push(1, 30));
        assert_eq!(lists.entries.len(), 5, "the entries of two were reused");
        let rest = |list| std::iter::from_fn(|| lists.pop(list)).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(rest), [vec![12, 13], vec![30], vec![20, 21]]);
    }

    #[test]
    fn few_remaining_values_need_little_memory() {
        let mut lists = Lists::new(2);
        for value in 0..1_000 {
            lists.push(value % 2, value);
        }
        (0..450).for_each(|_| assert!(lists.pop(0).is_some() && lists.pop(1).is_some()));
        lists.trim(1_000);
        assert_eq!(lists.entries.len(), 1_000, "so many may stay");
        lists.trim(10);
        assert_eq!(lists.entries.len(), 100);
        assert!(std::iter::from_fn(|| lists.pop(1)).eq((901..1_000).step_by(2)));
        assert!(std::iter::from_fn(|| lists.pop(0)).eq((900..1_000).step_by(2)));
    }

    #[test]
    fn an_entry_adds_half_a_word_to_its_value() {
        assert_eq!(size_of::<Entry<[u32; 7]>>(), 32);
    }
}
