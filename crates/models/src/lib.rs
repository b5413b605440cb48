//! Model checks of the ring in shared memory, the doorbell, the parking of a node, the biased lock and the sequence lock of a
//! status page.
//!
//! The files of `crates/node` that contain the rules are compiled here a second time. Their atomics and locks come from `loom`, which runs a
//! model in every order of its threads, up to a number of preemptions, and with every value that a relaxed load may return. What the kernel
//! does is modelled here: a futex is a lock and a condition variable (`wires/futex.rs`), a barrier that the kernel runs on other processors is a fence on both
//! sides (`barrier`).
//!
//! `docs/decisions/models.md` says what these models prove and what they do not. The environment variable `LOOM_MAX_PREEMPTIONS` replaces the
//! number of preemptions.

// The node uses functions that the models do not.
#![allow(dead_code)]

mod biased_lock_model;
mod fetch;
mod status_model;
mod wires;

#[path = "../../node/src/biased_lock.rs"]
mod biased_lock;
#[path = "../../node/src/seat/status_sequence.rs"]
mod status_sequence;

pub use biased_lock_model::owner_and_contenders_exclude_each_other;
pub use status_model::a_page_is_read_whole;
pub use wires::ring_model::{
    frames_arrive_in_order, no_wake_up_for_frames_is_lost, no_wake_up_for_space_is_lost,
};

/// The names that the files of the node expect.
mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;
}

/// The barriers of `membarrier`: a full fence on both sides.
///
/// The kernel's barrier lies before or after the owner's pair of store and load, or it interrupts the pair. In each case it orders at least
/// what a fence between them orders, as far as the other side can observe.
mod barrier {
    use loom::sync::atomic::{Ordering, fence};

    pub(crate) fn keep_order() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn receive_within() -> bool {
        true
    }

    pub(crate) fn send_within() -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

/// Runs a model in every order of its threads with at most this number of preemptions, or that of the environment variable.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let preemptions = loom::model::Builder::new().preemption_bound.unwrap_or(preemptions);
    check_exactly(preemptions, model);
}

/// Runs a model with at most this number of preemptions, without regard to the environment variable.
fn check_exactly(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
