//! Channels: queues of events with a file descriptor.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::device::check_seat;
use crate::abi::guard::{at, call};
use crate::cm::Event;
use crate::engine::Events;
use crate::layout::connection::EventChannel;

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
/// # Safety
/// The pointer is null or a channel of this library.
pub(super) unsafe fn destroy(channel: *mut EventChannel) {
    if !channel.is_null() {
        // SAFETY: needed because the pointer comes from C. Each channel is such an object, and the caller uses it no longer.
        drop(unsafe { Box::from_raw(channel.cast::<ChannelObject>()) });
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
