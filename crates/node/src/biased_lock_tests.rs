//! Tests of the biased lock. They are not in its file, because `crates/models` compiles that file too.

use std::thread;

use crate::biased_lock::*;

const VISITS: u64 = 20_000;

/// Two numbers that are equal while no thread is inside.
type Words = [u64; 2];

fn visit(words: &mut Words) {
    assert_eq!(words[0], words[1], "two threads were inside");
    words[0] += 1;
    std::hint::black_box(&mut *words);
    words[1] += 1;
}

/// Reports a test as skipped on standard error, past the output capture of the test runner.
fn report_missing_barriers() {
    let line = b"SKIPPED (1): this kernel sends no barriers to the threads of a process\n";
    std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
}

#[test]
fn owner_and_contenders_are_never_inside_together() {
    let lock = BiasedLock::new([0; 2]);
    let Some(mut token) = lock.bias() else {
        report_missing_barriers();
        return;
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..VISITS {
                    visit(&mut lock.enter());
                    if let Some(mut inside) = lock.try_enter() {
                        visit(&mut inside);
                        visit(&mut inside);
                    } else {
                        visit(&mut lock.enter());
                        visit(&mut lock.enter());
                    }
                }
            });
        }
        for _ in 0..25 * VISITS {
            visit(&mut lock.enter_as_owner(&mut token));
            visit(&mut lock.enter_as_owner(&mut token));
        }
    });
    lock.end_bias(token);
    assert_eq!(*lock.enter(), [56 * VISITS; 2]);
}

#[test]
fn a_lock_has_one_owner_and_its_token_does_not_open_another_lock() {
    let (first, second) = (BiasedLock::new(1), BiasedLock::new(2));
    let Some(mut token) = first.bias() else {
        report_missing_barriers();
        return;
    };
    assert!(first.bias().is_none() && second.bias().is_some());
    *first.enter_as_owner(&mut token) += 10;
    assert_eq!(*first.enter(), 11);
    let wrong = thread::scope(|scope| scope.spawn(|| *second.enter_as_owner(&mut token)).join());
    assert!(wrong.is_err());
    first.end_bias(token);
    assert!(first.bias().is_some());
}

#[test]
fn try_enter_fails_while_there_is_an_owner() {
    let lock = BiasedLock::new(0);
    let Some(token) = lock.bias() else {
        report_missing_barriers();
        return;
    };
    assert!(lock.try_enter().is_none());
    lock.end_bias(token);
    assert!(lock.try_enter().is_some());
}

#[test]
fn an_owner_outside_the_lock_does_not_delay_contenders() {
    let lock = BiasedLock::new(0);
    let _token = lock.bias();
    thread::scope(|scope| scope.spawn(|| *lock.enter() += 1).join().unwrap());
    assert_eq!(*lock.enter(), 1);
}
