//! A timer for futures: wakes a future after a while, even though nothing has happened.
//!
//! A thread that waits wakes now and then by itself. A future does not, and its event may never happen. So it leaves a waker with an
//! activity of the node, which wakes it once and ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use rackloom_protocol::Instant;

use super::super::error::Error;
use crate::fabric::engine::activity::Activity;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::table::{Entry, Sink};

/// Waker to be woken. `None` if there is none.
#[derive(Debug, Default)]
pub(super) struct WakeTimer {
    waker: Arc<Mutex<Option<Waker>>>,
}

/// The activity that wakes it.
struct Ticking {
    waker: Arc<Mutex<Option<Waker>>>,
    at: Instant,
}

impl WakeTimer {
    /// Wakes `waker` in about `after_ns`, or earlier if a reminder is set already.
    pub(super) fn set(&self, core: &mut Core, waker: &Waker, after_ns: u64) {
        let Ok(at) = core.member().map(|member| member.now() + after_ns) else { return };
        let is_ticking = replace(&self.waker, Some(waker.clone())).is_some();
        if !is_ticking {
            let entry = Entry { sink: Sink::Discard, ..Entry::default() };
            let operation = core.table.open(entry);
            core.begin(operation, Box::new(Ticking { waker: Arc::clone(&self.waker), at }));
        }
    }
}

impl Drop for WakeTimer {
    fn drop(&mut self) {
        replace(&self.waker, None);
    }
}

impl Activity<Core> for Ticking {
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        let now = core.member().map(|member| member.last_poll());
        if now.is_ok_and(|now| now < self.at) {
            return None;
        }
        core.table.to_wake.extend(replace(&self.waker, None));
        Some(Ok(()))
    }
}

fn replace(waker: &Mutex<Option<Waker>>, new: Option<Waker>) -> Option<Waker> {
    // A panic cannot have left half a waker: the value is replaced as a whole.
    std::mem::replace(&mut *waker.lock().unwrap_or_else(PoisonError::into_inner), new)
}
