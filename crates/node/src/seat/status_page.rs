//! Status page of a member: counters in shared memory that the supervisor reads without waking the member.
//!
//! The supervisor creates the page, and the process of the member inherits it. The supervisor notes each look in the page, and the member writes only
//! while there are looks, so a rack that is not watched pays nothing. This file does not interpret the words
//! ([`rackloom_control::status_words`]). Either side may write any words, so each checks what it reads.

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rackloom_protocol::Instant;

use super::status_sequence;
use crate::mapping::{Mapping, sealed_length, sealed_memfd, whole_pages};
use crate::window::Window;
use crate::wires::descriptors::adopt;

/// Time after a look during which the member writes.
const WANTED_NS: u64 = 3_000_000_000;
/// Words before those of the status: the sequence, and the time of the latest look.
const HEAD_WORDS: usize = 2;
const WORD_BYTES: usize = 8;

/// Status page of one member, mapped in this process.
///
/// `Send` and `Sync`. One thread of one process may write.
#[derive(Debug)]
pub struct StatusPage {
    pages: Mapping,
    words: usize,
}

impl StatusPage {
    /// Creates a page of `words` words. Returns it with its file, which the process of the member inherits.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(words: usize) -> io::Result<(Self, OwnedFd)> {
        let length = whole_pages(bytes_of(words) as u64).ok_or(io::ErrorKind::OutOfMemory)?;
        let file = sealed_memfd("rackloom-status", length)?;
        Ok((Self::map(&file, words)?, file))
    }

    /// Maps the page whose descriptor this process inherited, and closes the descriptor.
    ///
    /// # Errors
    /// The error of the system. Its kind is `InvalidData` if the file is too short or not sealed.
    pub fn from_fd(fd: RawFd, words: usize) -> io::Result<Self> {
        Self::map(&adopt(fd)?, words)
    }

    fn map(file: &OwnedFd, words: usize) -> io::Result<Self> {
        let bytes = bytes_of(words);
        if sealed_length(file.as_fd())? < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "status page is too short"));
        }
        Ok(Self { pages: Mapping::new(file.as_fd(), bytes)?, words })
    }

    /// Notes a look of the supervisor.
    pub fn note_look(&self, now: Instant) {
        // Zero is the time of no look.
        self.looked_at().into_iter().for_each(|word| word.store(now.0.max(1), Ordering::Relaxed));
    }

    /// Returns true if there was a look lately.
    #[must_use]
    pub fn is_wanted(&self, now: Instant) -> bool {
        let looked_at = self.looked_at().map_or(0, |word| word.load(Ordering::Relaxed));
        // A look may be a little later than `now`, which the member has read before.
        looked_at > 0 && now.0.saturating_sub(looked_at) < WANTED_NS
    }

    /// Writes the words. Does nothing if their number is not that of the page.
    pub fn write(&self, words: &[u64]) {
        if let Some(sequence) = self.sequence().filter(|_| words.len() == self.words) {
            status_sequence::write(sequence, self.content().zip(words.iter().copied()));
        }
    }

    /// Reads the words into `words`. Returns false, with any words, if the member was in the middle of a write for too long.
    #[must_use]
    pub fn read(&self, words: &mut Vec<u64>) -> bool {
        self.sequence().is_some_and(|sequence| status_sequence::read(sequence, || self.content(), words))
    }

    fn window(&self) -> Window<'_> {
        Window::new(&self.pages, self.pages.length())
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        self.window().word_64((index * WORD_BYTES) as u64)
    }

    fn sequence(&self) -> Option<&AtomicU64> {
        self.word(0)
    }

    fn looked_at(&self) -> Option<&AtomicU64> {
        self.word(1)
    }

    fn content(&self) -> impl Iterator<Item = &AtomicU64> {
        (HEAD_WORDS..HEAD_WORDS + self.words).filter_map(|index| self.word(index))
    }
}

const fn bytes_of(words: usize) -> usize {
    (HEAD_WORDS + words) * WORD_BYTES
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use super::*;

    /// Returns a page as the supervisor and the member see it.
    fn both(words: usize) -> (StatusPage, StatusPage) {
        let (page, file) = StatusPage::create(words).expect("a page");
        let members = StatusPage::from_fd(file.into_raw_fd(), words).expect("the inherited page");
        (page, members)
    }

    fn read(page: &StatusPage) -> Option<Vec<u64>> {
        let mut words = Vec::new();
        page.read(&mut words).then_some(words)
    }

    #[test]
    fn words_of_the_member_reach_the_supervisor() {
        let (page, member) = both(3);
        assert_eq!(read(&page), Some(vec![0; 3]), "a page that was never written");
        member.write(&[1, 2, 3]);
        assert_eq!(read(&page), Some(vec![1, 2, 3]));
        member.write(&[4, 5]);
        assert_eq!(read(&page), Some(vec![1, 2, 3]), "a number of words that the page does not have");
    }

    #[test]
    fn a_member_that_died_in_a_write_is_not_read() {
        let (page, member) = both(3);
        member.write(&[1, 2, 3]);
        member.sequence().expect("a word").fetch_add(1, Ordering::Relaxed);
        assert_eq!(read(&page), None);
    }

    #[test]
    fn a_page_is_wanted_for_a_time_after_each_look() {
        let (page, member) = both(1);
        let now = Instant(5_000_000_000);
        assert!(!member.is_wanted(now) && !member.is_wanted(Instant(0)), "without a look");
        page.note_look(now);
        assert!(member.is_wanted(Instant(now.0 - 1_000)), "a look after the reading of the clock");
        assert!(
            member.is_wanted(Instant(now.0 + WANTED_NS - 1)) && !member.is_wanted(Instant(now.0 + WANTED_NS))
        );
        page.note_look(Instant(0));
        assert!(member.is_wanted(Instant(0)));
    }

    #[test]
    fn a_file_that_is_too_short_or_can_shrink_is_no_page() {
        let (_, file) = StatusPage::create(3).expect("a page");
        let words = rustix::param::page_size() / WORD_BYTES;
        assert_eq!(
            StatusPage::from_fd(file.into_raw_fd(), words).map_err(|error| error.kind()).err(),
            Some(io::ErrorKind::InvalidData)
        );
        let file = rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        rustix::fs::ftruncate(&file, 4096).expect("its length");
        assert!(StatusPage::from_fd(file.into_raw_fd(), 3).is_err());
    }
}
