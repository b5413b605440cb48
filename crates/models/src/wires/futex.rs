//! A futex: the kernel compares the word and enqueues the thread under a lock, and wakes under the same lock. There are no timeouts, so a lost
//! wake-up is a deadlock, which `loom` reports.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

use super::doorbell_word::{self, ASLEEP};

/// A doorbell whose word is a futex of this model.
pub(crate) struct Doorbell {
    word: AtomicU32,
    bucket: Mutex<()>,
    sleepers: Condvar,
}

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(0), bucket: Mutex::new(()), sleepers: Condvar::new() }
    }

    pub(crate) fn ring(&self) {
        doorbell_word::ring(&self.word, |_| {
            let _bucket = self.bucket.lock().expect("no thread panics");
            self.sleepers.notify_all();
        });
    }

    pub(crate) fn park(&self, is_ready: impl FnOnce() -> bool) {
        doorbell_word::park(&self.word, is_ready, || {
            let bucket = self.bucket.lock().expect("no thread panics");
            if self.word.load(Ordering::SeqCst) == ASLEEP {
                drop(self.sleepers.wait(bucket).expect("no thread panics"));
            }
        });
    }
}
