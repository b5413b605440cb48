//! Tests of the sequence lock. `crates/models` compiles the lock itself with other atomics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::status_sequence::{read, write};

/// Number of tries of a reader.
const TRIES: u64 = 4;

fn words(values: [u64; 2]) -> [AtomicU64; 2] {
    values.map(AtomicU64::new)
}

fn read_all(sequence: &AtomicU64, words: &[AtomicU64; 2]) -> Option<Vec<u64>> {
    let mut values = vec![9];
    read(sequence, || words.iter(), &mut values).then_some(values)
}

#[test]
fn a_write_that_has_not_ended_is_not_read() {
    let (sequence, words) = (AtomicU64::new(0), words([1, 2]));
    assert_eq!(read_all(&sequence, &words), Some(vec![1, 2]));
    // The writer has died after one of two words.
    sequence.store(1, Ordering::Relaxed);
    words[0].store(3, Ordering::Relaxed);
    assert_eq!(read_all(&sequence, &words), None);
    write(&sequence, words.iter().zip([5, 6]));
    assert_eq!(read_all(&sequence, &words), Some(vec![5, 6]));
}

#[test]
fn words_that_change_during_each_read_are_not_read() {
    let (sequence, words) = (AtomicU64::new(0), words([1, 2]));
    let mut values = Vec::new();
    let during = || {
        write(&sequence, words.iter().zip([3, 4]));
        words.iter()
    };
    assert!(!read(&sequence, during, &mut values));
    assert_eq!(sequence.load(Ordering::Relaxed), 2 * TRIES, "the tries are bounded");
}

#[test]
fn a_sequence_wraps_around() {
    let (sequence, words) = (AtomicU64::new(u64::MAX - 1), words([1, 2]));
    write(&sequence, words.iter().zip([3, 4]));
    assert_eq!((sequence.load(Ordering::Relaxed), read_all(&sequence, &words)), (0, Some(vec![3, 4])));
}
