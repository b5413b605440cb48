//! Blocking waits of threads. The first thread that waits drives the node, and the others park until it is done.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rackloom_protocol::Instant;

use super::core::Core;
use super::held::Held;
use super::node_engine::Engine;

/// Longest time that a thread parks while another one drives. A safety net: the thread is woken earlier.
const PARK: Duration = Duration::from_millis(10);

impl Engine {
    /// Drives the node, or waits for its driver, until `look` returns a result. `None` at `until`, or when the node has left. `register`
    /// stores a waker with the object that is waited for.
    pub(in crate::fabric) fn wait<T>(
        &self,
        until: Instant,
        look: impl FnMut(&mut Core) -> Option<T>,
        register: impl FnMut(&mut Core, &Waker),
    ) -> Option<T> {
        self.wait_from(self.hold(), until, look, register)
    }

    /// Waits like [`Engine::wait`], for a caller that has the lock.
    pub(in crate::fabric) fn wait_from<'e, T>(
        &'e self,
        mut held: Held<'e>,
        until: Instant,
        mut look: impl FnMut(&mut Core) -> Option<T>,
        mut register: impl FnMut(&mut Core, &Waker),
    ) -> Option<T> {
        let mut parked = None;
        loop {
            if let Some(found) = look(held.core()) {
                return Some(found);
            }
            if held.core().is_over(until) {
                return None;
            }
            if !held.core().has_driver {
                held.core().has_driver = true;
                let (mut held, found) = self.drive(held, until, &mut look);
                held.core().has_driver = false;
                return found;
            }
            // One waker for the whole wait: lists that hold it already recognise it, and do not store it twice.
            let waker = parked.get_or_insert_with(|| Waker::from(Arc::new(Parked(std::thread::current()))));
            register(held.core(), waker);
            held.core().standby.push(waker.clone());
            drop(held);
            std::thread::park_timeout(PARK);
            held = self.hold();
            held.core().standby.retain(|known| !known.will_wake(waker));
        }
    }

    fn drive<'e, T>(
        &'e self,
        mut held: Held<'e>,
        until: Instant,
        look: &mut impl FnMut(&mut Core) -> Option<T>,
    ) -> (Held<'e>, Option<T>) {
        loop {
            let progress = held.core().poll();
            let found = look(held.core());
            // The time of this poll is precise enough: the next poll follows soon.
            let is_over = held.core().member.as_ref().is_none_or(|member| member.last_poll() >= until);
            if found.is_some() || is_over {
                return (held, found);
            }
            if !held.core().table.to_wake.is_empty() || self.is_wanted() {
                held = held.yield_lock();
            } else if !progress && !self.stays_awake(held.core()) {
                held = held.sleep(until, true);
            }
        }
    }
}

/// A parked thread that a waker wakes.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
