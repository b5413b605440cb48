//! Objects of identifiers: the structure that the program sees, and the state behind it.

use core::ffi::c_void;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::device::{check_seat, common};
use super::{address, channel};
use crate::abi::acknowledgements::Acknowledgements;
use crate::abi::guard::at;
use crate::abi::process;
use crate::cm::{Child, Event};
use crate::engine::{Events, port_of};
use crate::layout::attributes::QpInitAttr;
use crate::layout::connection::{Addresses, CmId, EventChannel, PS_TCP, PS_UDP, Route};
use crate::layout::constants::{QPT_RC, QPT_UD};
use crate::layout::objects::Pd;

/// Queue pair that each request of a synchronous listener gets.
#[derive(Clone, Copy)]
pub(super) struct Template {
    pub(super) domain: *mut Pd,
    pub(super) attributes: QpInitAttr,
}

/// Identifier of a program.
#[repr(C)]
pub(super) struct IdObject {
    pub(super) abi: CmId,
    pub(super) number: u64,
    pub(super) events: Arc<Events<Event>>,
    /// The channel is the identifier's own, and calls wait for their events.
    pub(super) is_synchronous: bool,
    /// Events that the program has got and not acknowledged.
    pub(super) delivered: Acknowledgements,
    /// The completion queues belong to the identifier.
    pub(super) has_own_queues: bool,
    pub(super) template: Option<Template>,
    /// Private data of a request whose call gives none.
    pub(super) connect_data: Vec<u8>,
}

/// Identifiers of the program by their numbers, as addresses. It is locked after the queue of events, and nothing is locked while it is.
static IDS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

pub(super) fn ids() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    IDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the identifier with a number, or `None` if it is destroyed.
pub(super) fn with_number(number: u64) -> Option<*mut IdObject> {
    ids().get(&number).map(|id| *id as *mut IdObject)
}

/// Returns the object of an identifier.
///
/// # Safety
/// A pointer that is not null is an identifier of this library.
pub(super) unsafe fn id_object<'a>(id: *mut CmId) -> Result<&'a IdObject, Errno> {
    // SAFETY: needed because the pointer comes from C. Each identifier of this library is the begin of such an object.
    unsafe { at(id.cast::<IdObject>()) }
}

fn add(
    number: u64,
    events: Arc<Events<Event>>,
    channel: *mut EventChannel,
    context: *mut c_void,
    ps: u32,
) -> *mut IdObject {
    let addresses = Addresses {
        source: address::storage(false, None, 0),
        destination: address::storage(false, None, 0),
        infiniband: [0; 5],
    };
    let null = std::ptr::null_mut();
    let abi = CmId {
        verbs: std::ptr::null_mut(),
        channel,
        context,
        qp: std::ptr::null_mut(),
        route: Route { addresses, path_rec: null, num_paths: 0 },
        ps,
        port_num: 0,
        event: std::ptr::null_mut(),
        send_cq_channel: std::ptr::null_mut(),
        send_cq: std::ptr::null_mut(),
        recv_cq_channel: std::ptr::null_mut(),
        recv_cq: std::ptr::null_mut(),
        srq: std::ptr::null_mut(),
        pd: std::ptr::null_mut(),
        qp_type: if ps == PS_UDP { QPT_UD } else { QPT_RC },
    };
    let object = IdObject {
        abi,
        number,
        events,
        is_synchronous: false,
        delivered: Acknowledgements::default(),
        has_own_queues: false,
        template: None,
        connect_data: Vec::new(),
    };
    let object = Box::into_raw(Box::new(object));
    ids().insert(number, object as usize);
    object
}

/// Makes an identifier. Without a channel it is synchronous and has its own.
///
/// # Errors
/// `ENODEV` without a seat, `EOPNOTSUPP` for port spaces other than those of connections and datagrams.
///
/// # Safety
/// A channel that is not null is one of this library.
pub(super) unsafe fn make(
    channel: *mut EventChannel,
    context: *mut c_void,
    ps: u32,
) -> Result<*mut IdObject, Errno> {
    check_seat()?;
    if ps != PS_TCP {
        return Err(Errno::OPNOTSUPP);
    }
    let is_synchronous = channel.is_null();
    let channel = if is_synchronous { channel::make()? } else { channel };
    // SAFETY: needed because the pointer comes from C. It is a channel of this library.
    let events = unsafe { channel::events(channel) }?;
    common()?;
    let space = u16::try_from(ps).map_err(|_| Errno::INVAL)?;
    let number = process::with_connections(|connections, _, _| connections.make(Arc::clone(&events), space))?;
    let object = add(number, events, channel, context, ps);
    // SAFETY: needed to set a field of the new object, which nothing else has yet.
    unsafe { (*object).is_synchronous = is_synchronous };
    Ok(object)
}

/// Makes the object of a request's identifier. It has the channel of the listener.
///
/// # Safety
/// The listener is an identifier that is not destroyed.
pub(super) unsafe fn make_child(listener: *mut IdObject, child: &Child, own_node: u32) -> *mut IdObject {
    // SAFETY: needed because identifiers are shared with C. The caller promises that the listener exists; the child is new.
    unsafe {
        let (abi, events) = (&(*listener).abi, Arc::clone(&(*listener).events));
        let is_ipv6 = abi.route.addresses.source.0[..2] == (libc::AF_INET6 as u16).to_ne_bytes();
        let object = add(child.number, events, abi.channel, abi.context, abi.ps);
        let addresses = &mut (*object).abi.route.addresses;
        addresses.source = address::storage(is_ipv6, Some(own_node), child.own_port);
        addresses.destination = address::storage(is_ipv6, Some(child.node), child.port);
        bind_to_device(object, port_of(child.node));
        object
    }
}

/// Sets the context, the domain and the port of the device of an identifier that has an address.
///
/// # Safety
/// The pointer is an identifier that is not destroyed.
pub(super) unsafe fn bind_to_device(object: *mut IdObject, port: u8) {
    let Ok(common) = common() else { return };
    // SAFETY: needed because identifiers are shared with C; the caller's promise is the same.
    unsafe {
        let abi = &mut (*object).abi;
        (abi.verbs, abi.port_num) = (common.context(), port);
        if abi.pd.is_null() {
            abi.pd = common.domain();
        }
    }
}
