//! Channels: queues of events with a file descriptor.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::device::check_seat;
use crate::abi::guard::{at, call};
use crate::cm::Event;
use crate::engine::Events;
use crate::layout::connection::EventChannel;

/// Number of destroyed channels whose memory and descriptor are kept.
const RETIRED_MAX: usize = 16;

#[repr(C)]
struct ChannelObject {
    abi: EventChannel,
    events: Arc<Events<Event>>,
}

/// Makes a channel.
///
/// # Errors
/// The system has no free file descriptor.
pub(super) fn make() -> Result<*mut EventChannel, Errno> {
    let events = Arc::new(Events::new()?);
    let abi = EventChannel { fd: events.descriptor().as_raw_fd() };
    Ok(Box::into_raw(Box::new(ChannelObject { abi, events })).cast())
}

/// Destroys a channel. Identifiers that have it keep its queue.
///
/// A thread of a program may still be about to wait for its events: the one of rping is at the end of the program. It waits like a thread that began
/// before, as long as the channel is one of the last [`RETIRED_MAX`] that were destroyed.
///
/// # Safety
/// The pointer is null or a channel of this library.
pub(super) unsafe fn destroy(channel: *mut EventChannel) {
    static RETIRED: Mutex<VecDeque<usize>> = Mutex::new(VecDeque::new());
    if channel.is_null() {
        return;
    }
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    retired.push_back(channel as usize);
    if retired.len() > RETIRED_MAX
        && let Some(oldest) = retired.pop_front()
    {
        // SAFETY: needed because the pointer comes from C. Each channel is such an object, and is destroyed once.
        drop(unsafe { Box::from_raw(oldest as *mut ChannelObject) });
    }
}

/// Returns the events of a channel.
///
/// # Safety
/// A pointer that is not null is a channel of this library.
pub(super) unsafe fn events(channel: *mut EventChannel) -> Result<Arc<Events<Event>>, Errno> {
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    unsafe { at(channel.cast::<ChannelObject>()) }.map(|object| Arc::clone(&object.events))
}

/// Makes a channel. Returns null and `ENODEV` if the process has no seat.
#[unsafe(no_mangle)]
pub extern "C" fn rdma_create_event_channel() -> *mut EventChannel {
    crate::abi::guard::object(|| {
        check_seat()?;
        make()
    })
}

/// Destroys a channel. Its identifiers are destroyed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut EventChannel) {
    call!(nothing, {
        destroy(channel);
        Ok(())
    });
}
