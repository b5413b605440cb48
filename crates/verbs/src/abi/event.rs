//! Asynchronous events.

use core::ffi::c_int;
use std::sync::Arc;

use super::acknowledgements::Acknowledgements;
use super::completion::cq_object;
use super::context::context_object;
use super::guard::{at, call, put};
use super::queue_pair::QpObject;
use super::shared::SrqObject;
use crate::engine::Element;
use crate::layout::constants::*;
use crate::layout::objects::Context;
use crate::layout::objects::{AsyncEvent, Cq, EventElement, Qp, Srq};

/// Returns the acknowledgements of the object of an event, which exists as long as the event is not acknowledged.
unsafe fn acknowledgements<'a>(element: Element) -> Option<&'a Acknowledgements> {
    // SAFETY: needed because elements are pointers of C. They are objects of this library that are not destroyed: destruction removes queued
    // events and waits for delivered ones.
    unsafe {
        match element {
            Element::CompletionQueue(cq) => cq_object(cq as *mut Cq).ok().map(|object| &object.async_events),
            Element::QueuePair(qp) => at(qp as *const QpObject).ok().map(|object| &object.async_events),
            Element::Shared(srq) => at(srq as *const SrqObject).ok().map(|object| &object.async_events),
            Element::Port(_) => None,
        }
    }
}

/// Waits for an asynchronous event. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(context: *mut Context, event: *mut AsyncEvent) -> c_int {
    call!(number, {
        let events = Arc::clone(&context_object(context)?.events);
        let found = events.next(|event| {
            if let Some(acknowledgements) = acknowledgements(event.element) {
                acknowledgements.deliver();
            }
        })?;
        let element = match found.element {
            Element::CompletionQueue(cq) => EventElement { cq: cq as *mut Cq },
            Element::QueuePair(qp) => EventElement { qp: qp as *mut Qp },
            Element::Shared(srq) => EventElement { srq: srq as *mut Srq },
            Element::Port(port) => EventElement { port_num: c_int::from(port) },
        };
        put(event, AsyncEvent { element, event_type: found.kind })?;
        Ok(0)
    })
}

/// Acknowledges an asynchronous event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut AsyncEvent) {
    call!(nothing, {
        let event = at(event)?;
        let element = match event.event_type {
            EVENT_CQ_ERR => Element::CompletionQueue(event.element.cq as usize),
            EVENT_QP_FATAL..=EVENT_SQ_DRAINED | EVENT_QP_LAST_WQE_REACHED => {
                Element::QueuePair(event.element.qp as usize)
            }
            EVENT_SRQ_ERR | EVENT_SRQ_LIMIT_REACHED => Element::Shared(event.element.srq as usize),
            // Events of port and device have no object.
            _ => return Ok(()),
        };
        if let Some(acknowledgements) = acknowledgements(element) {
            acknowledgements.acknowledge(1);
        }
        Ok(())
    });
}
