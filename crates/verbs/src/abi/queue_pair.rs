//! Queue pairs: make, modify, query, destroy.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use rustix::io::Errno;

use super::acknowledgements::Acknowledgements;
use super::completion::cq_object;
use super::context::context_object;
use super::guard::{at, call, put};
use super::process;
use super::shared::shared_number;
use crate::engine::{Element, NewQueuePair, Service, State};
use crate::layout::attributes::{QpAttr, QpInitAttr};
use crate::layout::constants::*;
use crate::layout::objects::{Pd, Qp};

/// Queue pair, and the attributes with which it was made.
#[repr(C)]
pub(super) struct QpObject {
    abi: Qp,
    init: QpInitAttr,
    pub(super) async_events: Acknowledgements,
}

/// Makes a queue pair. `EOPNOTSUPP` for other services than RC and UD, `EINVAL` for capacities beyond the limits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut Pd, init: *mut QpInitAttr) -> *mut Qp {
    call!(object, {
        let (domain, wanted) = (at(pd)?, *at(init)?);
        let service = match wanted.qp_type {
            QPT_RC => Service::Rc,
            QPT_UD => Service::Ud,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let new = NewQueuePair {
            domain: domain.handle,
            service,
            send_completions: Arc::clone(&cq_object(wanted.send_cq)?.queue),
            receive_completions: Arc::clone(&cq_object(wanted.recv_cq)?.queue),
            shared: if wanted.srq.is_null() { None } else { Some(shared_number(wanted.srq)?) },
            capacity: wanted.cap,
            signals_all: wanted.sq_sig_all != 0,
            events: Arc::clone(&context_object(domain.context)?.events),
        };
        let (number, capacity) = process::with(|engine, _| engine.make_queue_pair(new))?;
        (*init).cap = capacity;
        let abi = Qp {
            context: domain.context,
            qp_context: wanted.qp_context,
            pd,
            send_cq: wanted.send_cq,
            recv_cq: wanted.recv_cq,
            srq: wanted.srq,
            handle: number,
            qp_num: number,
            state: State::Reset as u32,
            qp_type: wanted.qp_type,
            mutex: [0; 5],
            cond: [0; 6],
            events_completed: 0,
        };
        let init = QpInitAttr { cap: capacity, ..wanted };
        let object =
            Box::into_raw(Box::new(QpObject { abi, init, async_events: Acknowledgements::default() }));
        process::with(|engine, _| engine.set_queue_pair_owner(number, object as usize));
        Ok(object.cast())
    })
}

/// Changes attributes and state. `EINVAL` for what the state rules do not allow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(qp: *mut Qp, attributes: *mut QpAttr, mask: c_int) -> c_int {
    call!(code, {
        let (number, attributes) = (at(qp)?.qp_num, *at(attributes)?);
        let mask = mask.cast_unsigned();
        let state =
            process::with(|engine, now_ns| engine.modify_queue_pair(number, &attributes, mask, now_ns))?;
        (*qp).state = state as u32;
        Ok(())
    })
}

/// Gets all attributes, for any mask, and those with which the queue pair was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    qp: *mut Qp,
    attributes: *mut QpAttr,
    _mask: c_int,
    init: *mut QpInitAttr,
) -> c_int {
    call!(code, {
        let object = at(qp.cast::<QpObject>())?;
        let (number, made) = (object.abi.qp_num, object.init);
        let found = process::with(|engine, _| engine.query_queue_pair(number))?;
        put(attributes, found)?;
        put(init, made)?;
        (*qp).state = found.qp_state;
        Ok(())
    })
}

/// Destroys a queue pair. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut Qp) -> c_int {
    call!(code, {
        let object = at(qp.cast::<QpObject>())?;
        process::with(|engine, _| engine.destroy_queue_pair(object.abi.qp_num))?;
        let events = &context_object(object.abi.context)?.events;
        events.remove(|event| event.element == Element::QueuePair(qp as usize));
        object.async_events.wait();
        drop(Box::from_raw(qp.cast::<QpObject>()));
        Ok(())
    })
}

/// Returns null: no queue pair is made with the extended functions of sends.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_qp_to_qp_ex(_qp: *mut Qp) -> *mut c_void {
    core::ptr::null_mut()
}
