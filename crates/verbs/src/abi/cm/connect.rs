//! Connections: request, accept, reject, end.

use core::ffi::{c_int, c_uint, c_void};

use rustix::io::Errno;

use super::event;
use super::object::id_object;
use crate::abi::guard::{at, call, put};
use crate::abi::process;
use crate::cm::{
    ACCEPT_DATA_BYTES, Link, REJECT_DATA_BYTES, REQUEST_DATA_BYTES, Settings, Side, State as IdState,
    attributes,
};
use crate::engine::{State, limits};
use crate::layout::attributes::QpAttr;
use crate::layout::connection::{CmId, ConnParam, READS_MAX};
use crate::layout::constants::EVENT_COMM_EST;

/// Largest number of retries.
const RETRIES_MAX: u8 = 7;

/// Reads private data.
///
/// # Safety
/// A pointer that is not null points to so many bytes.
unsafe fn private_data(data: *const c_void, length: u8, bytes_max: usize) -> Result<Vec<u8>, Errno> {
    let length = usize::from(length);
    if length == 0 {
        return Ok(Vec::new());
    }
    if data.is_null() || length > bytes_max {
        return Err(Errno::INVAL);
    }
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec())
}

/// Returns a number of reads: as many as possible, or that of the program, which the device must have.
fn reads(wanted: u8, possible: u8) -> Result<u8, Errno> {
    match wanted {
        READS_MAX => Ok(possible),
        wanted if wanted <= limits::READS => Ok(wanted),
        _ => Err(Errno::INVAL),
    }
}

/// Reads the parameters of a connection. `possible`: largest numbers of reads.
///
/// # Safety
/// Pointers are those of C.
unsafe fn settings(
    id: *mut CmId,
    parameters: *const ConnParam,
    possible: Side,
    bytes_max: usize,
) -> Result<Settings, Errno> {
    // SAFETY: needed because pointers come from C. A queue pair that is not null is not destroyed.
    unsafe {
        let own = (*id).qp.as_ref();
        let Some(given) = parameters.as_ref() else {
            let has_shared = own.is_some_and(|qp| !qp.srq.is_null());
            let side = Side { rnr_retry_count: RETRIES_MAX, has_shared: has_shared.into(), ..possible };
            return Ok(Settings { side, retry_count: RETRIES_MAX, data: Vec::new() });
        };
        let side = Side {
            queue_pair: own.map_or(given.qp_num & 0xff_ffff, |qp| qp.qp_num),
            first_message: 0,
            responder_resources: reads(given.responder_resources, possible.responder_resources)?,
            initiator_depth: reads(given.initiator_depth, possible.initiator_depth)?,
            flow_control: given.flow_control,
            rnr_retry_count: given.rnr_retry_count.min(RETRIES_MAX),
            has_shared: own.map_or(given.srq, |qp| (!qp.srq.is_null()).into()),
        };
        let data = private_data(given.private_data, given.private_data_len, bytes_max)?;
        Ok(Settings { side, retry_count: given.retry_count.min(RETRIES_MAX), data })
    }
}

/// Requests a connection. The result is an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_connect(id: *mut CmId, parameters: *mut ConnParam) -> c_int {
    call!(number, {
        let object = id_object(id)?;
        let number = object.number;
        let all =
            Side { responder_resources: limits::READS, initiator_depth: limits::READS, ..Side::default() };
        let mut settings = settings(id, parameters, all, REQUEST_DATA_BYTES)?;
        if settings.data.is_empty() {
            settings.data.clone_from(&object.connect_data);
        }
        process::with_connections(|connections, engine, now_ns| {
            connections.connect(number, settings, now_ns, engine)
        })?;
        event::complete(id)
    })
}

/// Returns the largest numbers of reads that fit a request.
fn possible(link: &Link) -> Side {
    Side {
        responder_resources: link.peer.initiator_depth.min(limits::READS),
        initiator_depth: link.peer.responder_resources.min(limits::READS),
        ..Side::default()
    }
}

/// Accepts a request. An event says that the peer is ready.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_accept(id: *mut CmId, parameters: *mut ConnParam) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let link = process::with_connections(|connections, _, _| connections.link(number))?;
        let settings = settings(id, parameters, possible(&link), ACCEPT_DATA_BYTES)?;
        process::with_connections(|connections, engine, now_ns| {
            connections.accept(number, settings, now_ns, engine)
        })?;
        event::complete(id)
    })
}

unsafe fn reject(id: *mut CmId, data: *const c_void, length: u8) -> Result<c_int, Errno> {
    // SAFETY: needed because pointers come from C; the callers are exported functions with the same promise.
    let (number, data) = unsafe { (id_object(id)?.number, private_data(data, length, REJECT_DATA_BYTES)?) };
    process::with_connections(|connections, engine, now_ns| {
        connections.reject(number, data, now_ns, engine)
    })?;
    Ok(0)
}

/// Rejects a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_reject(id: *mut CmId, data: *const c_void, length: u8) -> c_int {
    call!(number, { reject(id, data, length) })
}

/// Rejects a request. The reason is that of [`rdma_reject`]: there are no extended options that could not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_reject_ece(id: *mut CmId, data: *const c_void, length: u8) -> c_int {
    call!(number, { reject(id, data, length) })
}

/// Ends the handshake of an identifier without a queue pair of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_establish(id: *mut CmId) -> c_int {
    call!(number, {
        let object = id_object(id)?;
        if !object.abi.qp.is_null() {
            return Err(Errno::INVAL);
        }
        let number = object.number;
        process::with_connections(|connections, engine, now_ns| {
            connections.establish(number, now_ns, engine)
        })?;
        Ok(0)
    })
}

/// Notes that a message has arrived at a queue pair, so its peer is ready.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_notify(id: *mut CmId, event: c_uint) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        if event != EVENT_COMM_EST {
            return Err(Errno::INVAL);
        }
        process::with_connections(|connections, _, _| connections.note_established(number));
        Ok(0)
    })
}

/// Ends a connection. Work requests of its queue pair are flushed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_disconnect(id: *mut CmId) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let follows = process::with_connections(|connections, engine, now_ns| {
            connections.disconnect(number, now_ns, engine)
        })?;
        if let Some(qp) = (*id).qp.as_mut() {
            qp.state = State::Err as u32;
        }
        if follows { event::complete(id) } else { Ok(0) }
    })
}

/// Gets the attributes of the step of a queue pair to the state that `attributes` has, and their mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_init_qp_attr(id: *mut CmId, values: *mut QpAttr, mask: *mut c_int) -> c_int {
    call!(number, {
        let (number, wanted) = (id_object(id)?.number, at(values)?.qp_state);
        let (mut link, id_state) = process::with_connections(|connections, _, _| {
            Ok::<_, Errno>((connections.link(number)?, connections.state(number)?))
        })?;
        if id_state == IdState::Requested {
            // The program decides about the depths when it accepts.
            let Side { responder_resources, initiator_depth, .. } = possible(&link);
            link.own = Side { responder_resources, initiator_depth, ..link.own };
        }
        let state = State::from_value(wanted).ok_or(Errno::INVAL)?;
        let is_known = !matches!(state, State::Rtr | State::Rts) || link.peer != Side::default();
        let (found, found_mask) = attributes(state, &link).filter(|_| is_known).ok_or(Errno::INVAL)?;
        put(values, found)?;
        put(mask, found_mask.cast_signed())?;
        Ok(0)
    })
}
