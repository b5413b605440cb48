//! Events: get, acknowledge, and their texts.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use rustix::io::Errno;

use super::object::{IdObject, id_object, make_child, with_number};
use super::{channel, device};
use crate::abi::guard::{at, call, put};
use crate::abi::process;
use crate::cm::{Event, Host, Kind, Side};
use crate::engine::port_of;
use crate::layout::attributes::AhAttr;
use crate::layout::connection::{CmEvent, CmId, ConnParam, EventChannel, EventParam, UdParam};

/// Event of a program, with its private data.
#[repr(C)]
struct EventObject {
    abi: CmEvent,
    /// Identifier whose destruction waits for the acknowledgement.
    counted: *mut IdObject,
    data: Vec<u8>,
}

/// Returns the parameters of a connection, as its recipient sees them: depths are those of the peer, so each is the bound of the other one here.
fn parameters(event: &Event, data: &[u8]) -> EventParam {
    let has_side = matches!(event.kind, Kind::ConnectRequest | Kind::ConnectResponse | Kind::Established);
    let side = if has_side { event.side } else { Side::default() };
    let private_data = if data.is_empty() { std::ptr::null() } else { data.as_ptr().cast::<c_void>() };
    // All bytes of the union are set, so that programs read no memory without a value.
    let none = AhAttr::default();
    let ud = UdParam { private_data, private_data_len: 0, ah_attr: none, qp_num: 0, qkey: 0 };
    let mut param = EventParam { ud };
    param.conn = ConnParam {
        private_data,
        private_data_len: u8::try_from(data.len()).unwrap_or(u8::MAX),
        responder_resources: side.initiator_depth,
        initiator_depth: side.responder_resources,
        flow_control: side.flow_control,
        retry_count: event.retry_count,
        rnr_retry_count: side.rnr_retry_count,
        srq: side.has_shared,
        qp_num: side.queue_pair,
    };
    param
}

/// Takes the next event of a channel.
///
/// # Errors
/// Those of [`crate::engine::Events::next`].
///
/// # Safety
/// A pointer that is not null is a channel of this library.
pub(super) unsafe fn next(channel: *mut EventChannel) -> Result<*mut CmEvent, Errno> {
    device::common()?;
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    let events = unsafe { channel::events(channel) }?;
    let own_node = process::with(|engine, _| engine.own_node());
    loop {
        let found = Cell::new(None);
        // A destroyed identifier has no queued events, so the objects exist until their events are acknowledged. The event of a request comes before
        // those of its identifier, which must exist when another thread gets them.
        let event = events.next(|event| {
            let Some(owner) = with_number(event.id) else { return };
            // SAFETY: needed because identifiers are shared with C. A queued event is of an identifier that is not destroyed.
            unsafe {
                (*owner).delivered.deliver();
                let child = event.child.map(|child| make_child(owner, &child, own_node));
                found.set(Some((owner, child)));
            }
        })?;
        let Some((owner, child)) = found.get() else { continue };
        if let Some(child) = event.child {
            process::with_connections(|connections, _, _| connections.note_request(child.number));
        }
        // SAFETY: as above; the event is counted, so the identifier exists.
        unsafe {
            update_port(owner);
            update_queue_pair(owner);
        }
        let data = event.data.clone();
        let null = std::ptr::null_mut();
        let abi = CmEvent {
            id: child.unwrap_or(owner).cast(),
            listen_id: if child.is_some() { owner.cast() } else { null },
            event: event.kind as u32,
            status: event.status,
            param: parameters(&event, &data),
        };
        return Ok(Box::into_raw(Box::new(EventObject { abi, counted: owner, data })).cast());
    }
}

/// Writes the port over which the peer is reached to the structure of the program.
///
/// # Safety
/// The pointer is an identifier that is not destroyed.
unsafe fn update_port(id: *mut IdObject) {
    // SAFETY: needed because identifiers are shared with C; the caller's promise is the same.
    unsafe {
        let number = (*id).number;
        if (*id).abi.port_num > 0
            && let Ok(link) = process::with_connections(|connections, _, _| connections.link(number))
            && port_of(link.node) > 1
        {
            (*id).abi.port_num = port_of(link.node);
        }
    }
}

/// Writes the state of a queue pair, which follows its connection, to the structure of the program.
///
/// # Safety
/// The pointer is an identifier that is not destroyed.
unsafe fn update_queue_pair(id: *mut IdObject) {
    // SAFETY: needed because identifiers are shared with C. A queue pair that is not null is not destroyed.
    unsafe {
        if let Some(qp) = (*id).abi.qp.as_mut() {
            let number = qp.qp_num;
            if let Ok(found) = process::with(|engine, _| engine.query_queue_pair(number)) {
                qp.state = found.qp_state;
            }
        }
    }
}

/// Acknowledges an event and frees it.
///
/// # Safety
/// The pointer is an event of this library that is not acknowledged.
unsafe fn acknowledge(event: *mut CmEvent) {
    // SAFETY: needed because the pointer comes from C. Each event is such an object, and its identifier waits for it.
    unsafe {
        let object = Box::from_raw(event.cast::<EventObject>());
        debug_assert!(object.data.len() <= usize::from(u8::MAX), "private data are bounded");
        (*object.counted).delivered.acknowledge(1);
    }
}

/// Acknowledges the last event of a synchronous identifier.
///
/// # Safety
/// The pointer is an identifier that is not destroyed.
pub(super) unsafe fn acknowledge_last(id: *mut CmId) {
    // SAFETY: needed because identifiers are shared with C; the caller's promise is the same.
    unsafe {
        let event = std::mem::replace(&mut (*id).event, std::ptr::null_mut());
        if !event.is_null() {
            acknowledge(event);
        }
    }
}

/// Waits for the event of a call on a synchronous identifier. Others have no wait.
///
/// # Errors
/// `ECONNREFUSED` for a rejection, else the status of the event.
///
/// # Safety
/// The pointer is an identifier that is not destroyed.
pub(super) unsafe fn complete(id: *mut CmId) -> Result<c_int, Errno> {
    // SAFETY: needed because identifiers are shared with C; the caller's promise is the same.
    unsafe {
        if !id_object(id)?.is_synchronous {
            return Ok(0);
        }
        acknowledge_last(id);
        let event = next((*id).channel)?;
        (*id).event = event;
        let (kind, status) = ((*event).event, (*event).status);
        match status {
            0 => Ok(0),
            _ if kind == Kind::Rejected as u32 => Err(Errno::CONNREFUSED),
            status => Err(Errno::from_raw_os_error(status.abs())),
        }
    }
}

/// Waits for an event of a channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_cm_event(channel: *mut EventChannel, event: *mut *mut CmEvent) -> c_int {
    call!(number, {
        if event.is_null() {
            return Err(Errno::INVAL);
        }
        put(event, next(channel)?)?;
        Ok(0)
    })
}

/// Acknowledges an event and frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_ack_cm_event(event: *mut CmEvent) -> c_int {
    call!(number, {
        at(event)?;
        acknowledge(event);
        Ok(0)
    })
}

/// Returns the name of a kind of event.
#[unsafe(no_mangle)]
pub extern "C" fn rdma_event_str(event: c_uint) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    NAMES.get(event as usize).copied().unwrap_or(c"UNKNOWN EVENT").as_ptr()
}
