//! Model of a status page: a reader has the words of one write, or none.

use std::sync::Arc;

use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::{check, status_sequence};

/// Number of words, of which a torn read has different ones.
const WORDS: usize = 2;

struct Page {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A member writes twice while a supervisor reads. Each write gives all words one value.
pub fn a_page_is_read_whole(preemptions: usize) {
    check(preemptions, || {
        let words = [0; WORDS].map(AtomicU64::new);
        let page = Arc::new(Page { sequence: AtomicU64::new(0), words });
        let of_member = Arc::clone(&page);
        let member = thread::spawn(move || {
            for value in 1..=2 {
                let words = of_member.words.iter().map(|word| (word, value));
                status_sequence::write(&of_member.sequence, words);
            }
        });
        let mut values = Vec::new();
        if status_sequence::read(&page.sequence, || page.words.iter(), &mut values) {
            assert_eq!(values, [values[0]; WORDS], "words of two writes");
        }
        member.join().expect("the member does not panic");
        assert!(status_sequence::read(&page.sequence, || page.words.iter(), &mut values));
        assert_eq!(values, [2; WORDS], "the last write");
    });
}
