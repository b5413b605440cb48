//! Identifiers: make, destroy, move to another channel, options.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use rustix::io::Errno;

use super::object::{IdObject, id_object, ids, make};
use super::{address, channel, event};
use crate::abi::guard::{call, put};
use crate::abi::process;
use crate::layout::connection::{CmId, EventChannel};

/// Makes an identifier. With a null channel its calls wait for their events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_id(
    channel: *mut EventChannel,
    id: *mut *mut CmId,
    context: *mut c_void,
    ps: u32,
) -> c_int {
    call!(number, {
        if id.is_null() {
            return Err(Errno::INVAL);
        }
        put(id, make(channel, context, ps)?.cast())?;
        Ok(0)
    })
}

/// Destroys an identifier. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_id(id: *mut CmId) -> c_int {
    call!(number, {
        let object = id_object(id)?;
        let number = object.number;
        process::with_connections(|connections, engine, now_ns| connections.destroy(number, now_ns, engine))?;
        object.events.remove(|event| event.id == number);
        event::acknowledge_last(id);
        object.delivered.wait();
        ids().remove(&number);
        let object = Box::from_raw(id.cast::<IdObject>());
        if object.is_synchronous {
            channel::destroy(object.abi.channel);
        }
        Ok(0)
    })
}

/// Moves an identifier and its events to another channel. With null it becomes synchronous.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_migrate_id(id: *mut CmId, channel: *mut EventChannel) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let becomes_synchronous = channel.is_null();
        let channel = if becomes_synchronous { channel::make()? } else { channel };
        let events = channel::events(channel)?;
        let object = id.cast::<IdObject>();
        let before = Arc::clone(&(*object).events);
        // Events arrive under the lock of the connections, so their order stays.
        process::with_connections(|connections, _, _| {
            connections.set_events(number, Arc::clone(&events))?;
            before.extract(|event| event.id == number).into_iter().for_each(|event| events.push(event));
            Ok::<_, Errno>(())
        })?;
        event::acknowledge_last(id);
        let (was_synchronous, old) = ((*object).is_synchronous, (*object).abi.channel);
        (*object).events = events;
        (*object).is_synchronous = becomes_synchronous;
        (*object).abi.channel = channel;
        if was_synchronous {
            channel::destroy(old);
        }
        Ok(0)
    })
}

const OPTION_ID: c_int = 0;
const ID_SERVICE: c_int = 0;
const ID_SHARED_PORT: c_int = 1;
const ID_ONE_FAMILY: c_int = 2;
const ID_TIMEOUT: c_int = 3;

/// Sets an option. The type of service and the timeout have no effect: the fabric repeats lost frames by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_set_option(
    id: *mut CmId,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: usize,
) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let needed = match (level, name) {
            (OPTION_ID, ID_SERVICE | ID_TIMEOUT) => 1,
            (OPTION_ID, ID_SHARED_PORT | ID_ONE_FAMILY) => size_of::<c_int>(),
            _ => return Err(Errno::NOSYS),
        };
        if value.is_null() || length != needed {
            return Err(Errno::INVAL);
        }
        if name == ID_SHARED_PORT {
            let is_shared = value.cast::<c_int>().read_unaligned() != 0;
            process::with_connections(|connections, _, _| connections.share_port(number, is_shared))?;
        }
        Ok(0)
    })
}

/// Returns the own port in the order of bytes of the network, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_src_port(id: *mut CmId) -> u16 {
    // SAFETY: needed because the pointer comes from C; it is null or an identifier.
    unsafe { id_object(id) }.map_or(0, |object| address::port_of(&object.abi.route.addresses.source))
}

/// Returns the port of the peer in the order of bytes of the network, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_dst_port(id: *mut CmId) -> u16 {
    // SAFETY: needed because the pointer comes from C; it is null or an identifier.
    unsafe { id_object(id) }.map_or(0, |object| address::port_of(&object.abi.route.addresses.destination))
}
