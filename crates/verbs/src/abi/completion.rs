//! Completion queues and completion channels.

use core::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::acknowledgements::Acknowledgements;
use super::context::context_object;
use super::guard::{at, call, put};
use super::process;
use crate::engine::{CompletionQueue, Element, Events, limits};
use crate::layout::objects::Context;
use crate::layout::objects::{CompChannel, Cq};
use crate::layout::work::Wc;

#[repr(C)]
struct ChannelObject {
    abi: CompChannel,
    events: Arc<Events<usize>>,
}

/// Completion queue. Extended queues of C have further fields behind the plain ones, which are zero here.
#[repr(C)]
pub(super) struct CqObject {
    abi: Cq,
    extended: [u64; 20],
    pub(super) queue: Arc<CompletionQueue>,
    channel_events: Acknowledgements,
    pub(super) async_events: Acknowledgements,
}

/// Returns the object of a completion queue.
///
/// # Safety
/// A pointer that is not null is a completion queue of this library.
pub(super) unsafe fn cq_object<'a>(cq: *mut Cq) -> Result<&'a CqObject, Errno> {
    // SAFETY: needed because the pointer comes from C. Each completion queue of this library is the begin of such an object.
    unsafe { at(cq.cast::<CqObject>()) }
}

/// Makes a completion channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut Context) -> *mut CompChannel {
    call!(object, {
        context_object(context)?;
        let events = Arc::new(Events::new()?);
        let abi = CompChannel { context, fd: events.descriptor().as_raw_fd(), refcnt: 0 };
        Ok(Box::into_raw(Box::new(ChannelObject { abi, events })).cast())
    })
}

/// Destroys a completion channel. `EBUSY` while a completion queue uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut CompChannel) -> c_int {
    call!(code, {
        let object = channel.cast::<ChannelObject>();
        if Arc::strong_count(&at(object)?.events) > 1 {
            return Err(Errno::BUSY);
        }
        drop(Box::from_raw(object));
        Ok(())
    })
}

fn capacity(cqe: c_int) -> Result<usize, Errno> {
    let cqe = u32::try_from(cqe).ok().filter(|cqe| (1..=limits::COMPLETIONS).contains(cqe));
    cqe.map(|cqe| cqe as usize).ok_or(Errno::INVAL)
}

/// Makes a completion queue for `cqe` completions. The only completion vector is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut Context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut CompChannel,
    vector: c_int,
) -> *mut Cq {
    call!(object, {
        let events = Arc::clone(&context_object(context)?.events);
        let capacity = capacity(cqe)?;
        if vector != 0 {
            return Err(Errno::INVAL);
        }
        let channel_events =
            (!channel.is_null()).then(|| Arc::clone(&(*channel.cast::<ChannelObject>()).events));
        if !channel.is_null() {
            (*channel).refcnt += 1;
        }
        let abi = Cq {
            context,
            channel,
            cq_context,
            handle: 0,
            cqe,
            mutex: [0; 5],
            cond: [0; 6],
            comp_events_completed: 0,
            async_events_completed: 0,
        };
        let object = Box::into_raw(Box::new(CqObject {
            abi,
            extended: [0; 20],
            queue: Arc::new(CompletionQueue::new(capacity, channel_events, events)),
            channel_events: Acknowledgements::default(),
            async_events: Acknowledgements::default(),
        }));
        (*object).queue.set_owner(object as usize);
        Ok(object.cast())
    })
}

/// Changes the capacity of a completion queue. `EINVAL` if more completions are in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resize_cq(cq: *mut Cq, cqe: c_int) -> c_int {
    call!(code, {
        cq_object(cq)?.queue.resize(capacity(cqe)?)?;
        (*cq).cqe = cqe;
        Ok(())
    })
}

/// Destroys a completion queue. `EBUSY` while a queue pair uses it. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut Cq) -> c_int {
    call!(code, {
        let object = cq_object(cq)?;
        if object.queue.is_used() {
            return Err(Errno::BUSY);
        }
        let owner = cq as usize;
        if let Some(channel) = object.queue.channel() {
            channel.remove(|event| *event == owner);
            (*object.abi.channel).refcnt -= 1;
        }
        let events = &context_object(object.abi.context)?.events;
        events.remove(|event| event.element == Element::CompletionQueue(owner));
        object.channel_events.wait();
        object.async_events.wait();
        drop(Box::from_raw(cq.cast::<CqObject>()));
        Ok(())
    })
}

/// Waits for an event of a channel. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut CompChannel,
    cq: *mut *mut Cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    call!(number, {
        let events = Arc::clone(&at(channel.cast::<ChannelObject>())?.events);
        if cq.is_null() || cq_context.is_null() {
            return Err(Errno::INVAL);
        }
        let deliver = |owner: &usize| {
            // Queued events are of queues that exist: they are removed before their queue is destroyed.
            if let Ok(object) = cq_object(*owner as *mut Cq) {
                object.channel_events.deliver();
            }
        };
        let owner = events.next(deliver)? as *mut Cq;
        put(cq, owner)?;
        put(cq_context, (*owner).cq_context)?;
        Ok(0)
    })
}

/// Acknowledges events of a completion queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut Cq, count: u32) {
    call!(nothing, {
        cq_object(cq)?.channel_events.acknowledge(count);
        Ok(())
    });
}

/// Takes up to `count` completions. Returns their number, or a negative value on an error.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut Cq, count: c_int, completions: *mut Wc) -> c_int {
    call!(number, {
        let object = cq_object(cq)?;
        let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
        if completions.is_null() && count > 0 {
            return Err(Errno::INVAL);
        }
        let take = || object.queue.poll(count, |index, completion| completions.add(index).write(completion));
        let mut taken = take()?;
        if taken == 0 && count > 0 && process::advance() {
            taken = take()?;
        }
        if taken > 0 {
            process::note_completions();
        }
        Ok(c_int::try_from(taken).unwrap_or(c_int::MAX))
    })
}

/// Sends an event with the next completion, or the next solicited one.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut Cq, solicited_only: c_int) -> c_int {
    call!(code, {
        cq_object(cq)?.queue.arm(solicited_only != 0);
        Ok(())
    })
}
