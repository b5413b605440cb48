//! Completion queues.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Node, Queue};

use crate::codes::{CompletionRecord, ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::Out;

/// Handle of a completion queue.
pub type QueueHandle = u64;

/// Largest capacity that is reserved at once.
const CAPACITY_MAX: u64 = 1 << 24;

/// Makes a completion queue with space for `capacity` completions. It grows if more wait. Operations of several nodes may complete in one queue.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_create(capacity: u64, queue: *mut QueueHandle) -> ErrorCode {
    with_pointers!({
        let queue = Out::new(queue)?;
        if capacity > CAPACITY_MAX {
            return Err(Failure::argument(format!(
                "a queue has space for at most {CAPACITY_MAX} completions"
            )));
        }
        queue.set(handles::add(Queue::with_capacity(capacity as usize))?);
        Ok(())
    })
}

/// Frees the handle of a queue. Operations that complete in it continue.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_queue_free(queue: QueueHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Queue>>(queue))
}

fn empty() -> Failure {
    Failure::new(ErrorCode::Empty, "no completion waits")
}

/// Takes the oldest completion. Does not poll a node. The call succeeds for an operation that has failed: `completion->error` says so.
///
/// Errors: EMPTY.
/// Threads: any. Each completion is taken once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_pop(
    queue: QueueHandle,
    completion: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let completion = Out::new(completion)?;
        completion.set(handles::get::<Arc<Queue>>(queue)?.pop().ok_or_else(empty)?.into());
        Ok(())
    })
}

/// Takes the oldest completion. If there is none, polls the node once and looks again. Never sleeps.
///
/// Errors: EMPTY.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_poll(
    queue: QueueHandle,
    node: NodeHandle,
    completion: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let completion = Out::new(completion)?;
        let (queue, node) = (handles::get::<Arc<Queue>>(queue)?, handles::get::<Node>(node)?);
        completion.set(node.poll(&queue).ok_or_else(empty)?.into());
        Ok(())
    })
}

/// Takes the oldest completion. While there is none, drives the node and sleeps, at most for `timeout_ns`.
///
/// Errors: EMPTY at the deadline.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_next(
    queue: QueueHandle,
    node: NodeHandle,
    timeout_ns: u64,
    completion: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let completion = Out::new(completion)?;
        let (queue, node) = (handles::get::<Arc<Queue>>(queue)?, handles::get::<Node>(node)?);
        completion.set(node.poll_wait(&queue, Duration::from_nanos(timeout_ns)).ok_or_else(empty)?.into());
        Ok(())
    })
}

/// Returns a file descriptor that is readable while a completion waits, for `poll` and `epoll`. Do not read or close it: take completions with
/// `rackloom_queue_pop` until there is none. It is valid until the queue is freed.
///
/// Errors: SYSTEM if the process may have no more descriptors.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_descriptor(queue: QueueHandle, descriptor: *mut i32) -> ErrorCode {
    with_pointers!({
        let descriptor = Out::new(descriptor)?;
        let queue = handles::get::<Arc<Queue>>(queue)?;
        let refused = |error: std::io::Error| Failure::new(ErrorCode::System, error.to_string());
        descriptor.set(queue.descriptor().map_err(refused)?.as_raw_fd());
        Ok(())
    })
}

/// Writes the number of completions that wait, and of operations that succeeded and failed since the queue was made. Each pointer may be null.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_queue_counts(
    queue: QueueHandle,
    waiting: *mut u64,
    succeeded: *mut u64,
    failed: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let queue = handles::get::<Arc<Queue>>(queue)?;
        let counts =
            [(waiting, queue.len() as u64), (succeeded, queue.succeeded()), (failed, queue.failed())];
        for (place, count) in counts {
            if let Some(place) = Out::optional(place)? {
                place.set(count);
            }
        }
        Ok(())
    })
}
