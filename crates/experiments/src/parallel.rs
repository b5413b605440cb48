//! Many independent runs on several threads.
//!
//! Each thread takes the next item until none is left, or until the work is over for another reason, such as an interruption or a deadline.
//! Runs share nothing, so the threads share only the items and the receiver of results.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Performs `work` for each item on up to `threads` threads, until none is left or `is_over` returns true.
///
/// `done` gets each result and the number of its item, one at a time and in the order in which they end: it shows the progress, and collects.
/// `is_over` is called before each item. Work that has begun is not ended.
pub fn for_each<T: Send, R: Send>(
    items: impl Iterator<Item = T> + Send,
    threads: usize,
    is_over: impl Fn() -> bool + Sync,
    work: impl Fn(T) -> R + Sync,
    done: impl FnMut(usize, R) + Send,
) {
    let threads = items.size_hint().1.map_or(threads, |count| threads.min(count));
    let (items, done) = (Mutex::new(items.enumerate()), Mutex::new(done));
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, item)) = if is_over() { None } else { next() } {
                    let result = work(item);
                    // A thread that panicked ends the scope; its results are not read.
                    (done.lock().unwrap_or_else(PoisonError::into_inner))(index, result);
                }
            });
        }
    });
}

/// Performs `work` for each item as [`for_each`] does, and returns the results in the order of the items. Items that were not begun have
/// `None`. `progress` gets each result when it is there.
pub fn map_until<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    is_over: impl Fn() -> bool + Sync,
    work: impl Fn(&T) -> R + Sync,
    mut progress: impl FnMut(&R) + Send,
) -> Vec<Option<R>> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for_each(items.iter(), threads, is_over, work, |index, result| {
        progress(&result);
        results[index] = Some(result);
    });
    results
}

/// Performs `work` for each item, as many at a time as there are processors.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_until(items, processors(), || false, work, |_| {}).into_iter().flatten().collect()
}

/// Number of pieces of work that run at once unless an option says otherwise: one per processor of this machine.
#[must_use]
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let squares = map(&items, |item| item * item);
        assert!(squares.iter().zip(&items).all(|(square, item)| *square == item * item));
        assert_eq!(squares.len(), 1000);
        assert!(map(&[] as &[u8], |item| *item).is_empty());
    }

    #[test]
    fn no_item_begins_when_the_work_is_over_and_each_result_is_seen_once() {
        let (items, finished): (Vec<u64>, _) = ((0..100).collect(), AtomicUsize::new(0));
        let mut seen = Vec::new();
        let is_over = || finished.load(Ordering::Relaxed) >= 10;
        let work = |item: &u64| {
            finished.fetch_add(1, Ordering::Relaxed);
            item + 1
        };
        let results = map_until(&items, 1, is_over, work, |result| seen.push(*result));
        assert_eq!(seen, (1..=10).collect::<Vec<u64>>());
        assert_eq!(results.iter().flatten().count(), 10);
        assert!(results[10..].iter().all(Option::is_none));
    }
}
