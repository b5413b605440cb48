//! One value per virtual channel of a link.
//!
//! Most racks have one channel, whose value is stored inline; further values are stored separately. A link that is
//! not divided among the channels of its rack has one value, which all channels share.

use alloc::vec::Vec;

use crate::ids::Channel;

/// One `T` for each channel of a link, or one that all of them share.
#[derive(Clone, Debug)]
pub struct PerChannel<T> {
    first: T,
    others: Vec<T>,
}

impl<T> PerChannel<T> {
    /// Returns the values of `count` channels, built by `make`.
    pub fn new(count: usize, mut make: impl FnMut(Channel) -> T) -> Self {
        let first = make(Channel(0));
        Self { first, others: (1..count).map(|channel| make(Channel(channel as u8))).collect() }
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the value of a channel, or the shared one.
    ///
    /// # Panics
    /// If there are several and not this one. Channel numbers from outside are checked where they arrive.
    #[inline]
    #[must_use]
    pub fn of(&self, channel: Channel) -> &T {
        if channel.0 == 0 || self.others.is_empty() { &self.first } else { &self.others[channel.index() - 1] }
    }

    /// Returns the value of a channel for changes, or the shared one.
    ///
    /// # Panics
    /// If there are several and not this one.
    #[inline]
    pub fn of_mut(&mut self, channel: Channel) -> &mut T {
        if channel.0 == 0 || self.others.is_empty() {
            &mut self.first
        } else {
            &mut self.others[channel.index() - 1]
        }
    }

    /// Iterates over all values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        core::iter::once(&self.first).chain(&self.others)
    }

    /// Iterates over all values for changes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        core::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// Returns the first channel whose value satisfies the condition.
    #[inline]
    pub fn position(&self, mut is_it: impl FnMut(Channel, &T) -> bool) -> Option<Channel> {
        if is_it(Channel(0), &self.first) {
            return Some(Channel(0));
        }
        if self.others.is_empty() {
            return None;
        }
        let mut others = (1..).map(Channel).zip(&self.others);
        others.find(|(channel, one)| is_it(*channel, one)).map(|(channel, _)| channel)
    }

    /// Returns the smallest `key` of all values.
    #[inline]
    pub fn least<K: Ord>(&self, key: impl Fn(&T) -> K) -> K {
        let first = key(&self.first);
        if self.others.is_empty() { first } else { self.others.iter().map(key).fold(first, Ord::min) }
    }

    /// Returns true if any value satisfies the condition.
    #[inline]
    pub fn any(&self, is_it: impl FnMut(Channel, &T) -> bool) -> bool {
        self.position(is_it).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_its_own() {
        let mut names = PerChannel::new(3, |channel| channel.0 * 10);
        *names.of_mut(Channel(1)) += 1;
        assert_eq!(names.iter().copied().collect::<Vec<_>>(), [0, 11, 20]);
        assert_eq!((names.count(), *names.of(Channel(2))), (3, 20));
        assert_eq!(names.position(|_, name| *name > 5), Some(Channel(1)));
        assert!(!names.any(|channel, name| channel.0 == 0 && *name > 0));
        assert_eq!(names.least(|name| 100 - *name), 80);
        let mut one = PerChannel::new(1, |_| 7);
        *one.of_mut(Channel(5)) += 1;
        assert_eq!((*one.of(Channel(0)), *one.of(Channel(3))), (8, 8), "one serves all channels");
        names.iter_mut().for_each(|name| *name = 0);
        assert!(names.iter().all(|name| *name == 0));
    }
}
