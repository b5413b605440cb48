//! Model of the biased lock: at most one thread is inside, and no thread waits forever.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::check;
use crate::favoured::Favoured;

/// A number that `loom` reports if two threads use it at one time.
struct Counter(UnsafeCell<u32>);

// SAFETY: sound because `loom` panics if two threads use the cell at one time. Needed because the cell is not `Send` by itself.
unsafe impl Send for Counter {}

impl Counter {
    fn increase(&self) {
        // SAFETY: sound as `Send` above. Needed because the cell is reached through a shared reference.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }
}

/// A favourite that enters `visits` times and this many intruders that enter once are never inside together, and all of them come to an end.
///
/// # Panics
/// If they do not in some order of the threads.
pub fn favourite_and_intruders_exclude_each_other(visits: usize, intruders: usize, preemptions: usize) {
    check(preemptions, move || {
        let lock = Arc::new(Favoured::new(Counter(UnsafeCell::new(0))));
        let mut favour = lock.appoint().expect("there is no favourite yet");
        let intruders: Vec<_> = (0..intruders)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || lock.enter().increase())
            })
            .collect();
        for _ in 0..visits {
            lock.enter_favoured(&mut favour).increase();
        }
        for intruder in intruders {
            intruder.join().expect("no intruder panics");
        }
        lock.dismiss(favour);
        lock.enter().increase();
    });
}
