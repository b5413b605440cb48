//! A memory barrier for two that is paid by the one who rarely needs it.
//!
//! Two processes that announce something to each other and then look need a full barrier each, between saying and looking:
//! it costs more than a copy of a cache line. If one of them does so a million times a second and the other once a day,
//! the rare one can make the kernel run a barrier on every processor on which the frequent one is running; where it is
//! not running, the change of threads was one. The frequent one then only keeps the compiler from turning its order round.
//!
//! The same holds for two threads of one process; then the rare one need not disturb the processes of others.
//!
//! The kernel calls this `membarrier`, and may not have it or not grant it. Then each pays for itself.

use std::sync::atomic::{Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// What stands between saying and looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// A barrier of one's own.
    Own,
    /// The rare side's, sent to both.
    Sent,
}

/// The frequent side's part of a barrier that is sent.
#[inline(always)]
pub(crate) fn keep_order() {
    compiler_fence(Ordering::SeqCst);
}

/// Whether this process can send barriers.
pub(crate) fn can_be_sent() -> bool {
    membarrier_query().contains_command(MembarrierCommand::GlobalExpedited)
}

/// From now on this process receives barriers. Returns whether it does; asking again is harmless.
pub(crate) fn receive() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// A barrier here and on every processor that runs a process which receives them. Returns whether it was had.
pub(crate) fn send() -> bool {
    fence(Ordering::SeqCst);
    membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}

/// The same among the threads of this process: from now on they receive barriers. Returns whether they do.
pub(crate) fn receive_within() -> bool {
    let needed = MembarrierCommand::PrivateExpedited;
    membarrier_query().contains_command(needed)
        && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// A barrier here and on every processor that runs a thread of this process. Returns whether it was had.
pub(crate) fn send_within() -> bool {
    fence(Ordering::SeqCst);
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}
