//! Shared receive queues.

use core::ffi::c_int;
use std::sync::Arc;

use rustix::io::Errno;

use super::acknowledgements::Acknowledgements;
use super::context::context_object;
use super::guard::{at, call, put};
use super::process;
use crate::engine::{Element, NewShared};
use crate::layout::attributes::{SrqAttr, SrqInitAttr};
use crate::layout::objects::{Pd, Srq};

/// Shared receive queue.
#[repr(C)]
pub(super) struct SrqObject {
    abi: Srq,
    pub(super) async_events: Acknowledgements,
}

/// Returns the number of a shared receive queue.
///
/// # Safety
/// A pointer that is not null is a shared receive queue of this library.
pub(super) unsafe fn shared_number(srq: *mut Srq) -> Result<u32, Errno> {
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    unsafe { at(srq) }.map(|srq| srq.handle)
}

/// Makes a shared receive queue. `EINVAL` for capacities beyond the limits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut Pd, init: *mut SrqInitAttr) -> *mut Srq {
    call!(object, {
        let (domain, wanted) = (at(pd)?, *at(init)?);
        let events = Arc::clone(&context_object(domain.context)?.events);
        let new = NewShared { domain: domain.handle, attributes: wanted.attr, events };
        let (number, granted) = process::with(|engine, _| {
            let number = engine.make_shared(new)?;
            Ok::<_, Errno>((number, engine.query_shared(number)?))
        })?;
        (*init).attr = granted;
        let abi = Srq {
            context: domain.context,
            srq_context: wanted.srq_context,
            pd,
            handle: number,
            mutex: [0; 5],
            cond: [0; 6],
            events_completed: 0,
        };
        let object = Box::into_raw(Box::new(SrqObject { abi, async_events: Acknowledgements::default() }));
        process::with(|engine, _| engine.set_shared_owner(number, object as usize));
        Ok(object.cast())
    })
}

/// Changes the limit. `EOPNOTSUPP` for another capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_srq(srq: *mut Srq, attributes: *mut SrqAttr, mask: c_int) -> c_int {
    call!(code, {
        let (number, attributes) = (shared_number(srq)?, *at(attributes)?);
        process::with(|engine, _| engine.modify_shared(number, attributes, mask.cast_unsigned()))
    })
}

/// Gets the attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_srq(srq: *mut Srq, attributes: *mut SrqAttr) -> c_int {
    call!(code, {
        let number = shared_number(srq)?;
        put(attributes, process::with(|engine, _| engine.query_shared(number))?)
    })
}

/// Destroys a shared receive queue. `EBUSY` while a queue pair uses it. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut Srq) -> c_int {
    call!(code, {
        let object = at(srq.cast::<SrqObject>())?;
        process::with(|engine, _| engine.destroy_shared(object.abi.handle))?;
        let events = &context_object(object.abi.context)?.events;
        events.remove(|event| event.element == Element::Shared(srq as usize));
        object.async_events.wait();
        drop(Box::from_raw(srq.cast::<SrqObject>()));
        Ok(())
    })
}
