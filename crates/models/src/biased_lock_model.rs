//! Model of the biased lock: at most one thread is inside, and no thread waits forever.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::biased_lock::BiasedLock;
use crate::check;

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

/// An owner that enters `visits` times and this many contenders that enter once are never inside together, and all of them come to an end.
///
/// # Panics
/// If they do not in some order of the threads.
pub fn owner_and_contenders_exclude_each_other(visits: usize, contenders: usize, preemptions: usize) {
    check(preemptions, move || {
        let lock = Arc::new(BiasedLock::new(Counter(UnsafeCell::new(0))));
        let mut token = lock.bias().expect("there is no owner yet");
        let contenders: Vec<_> = (0..contenders)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || lock.enter().increase())
            })
            .collect();
        for _ in 0..visits {
            lock.enter_as_owner(&mut token).increase();
        }
        for contender in contenders {
            contender.join().expect("no contender panics");
        }
        lock.end_bias(token);
        lock.enter().increase();
    });
}
