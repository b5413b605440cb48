//! Calls before a connection: bind, listen, resolve.

use core::ffi::c_int;

use rustix::io::Errno;

use super::address::{self, Address, Place};
use super::event;
use super::object::{IdObject, bind_to_device, id_object};
use crate::abi::guard::call;
use crate::abi::process;
use crate::cm::Host;
use crate::engine::{node_of_port, port_of, seat_of};
use crate::layout::connection::CmId;

const NS_PER_MS: u64 = 1_000_000;

/// Returns the node of an own address, or `None` if it stands for any.
fn own_node_of(address: Address) -> Result<Option<u32>, Errno> {
    let own = process::with(|engine, _| engine.own_node());
    match address.place {
        Place::Any => Ok(None),
        Place::Own => Ok(Some(own)),
        Place::Node(node) if seat_of(node) == own => Ok(Some(node)),
        Place::Node(_) | Place::Unknown => Err(Errno::ADDRNOTAVAIL),
    }
}

/// Sets the own address of an identifier.
unsafe fn bind(object: *mut IdObject, address: Address) -> Result<(), Errno> {
    let node = own_node_of(address)?;
    // SAFETY: needed because identifiers are shared with C. The caller has checked the pointer.
    unsafe {
        let number = (*object).number;
        let port = process::with_connections(|connections, _, _| connections.bind(number, address.port))?;
        (*object).abi.route.addresses.source = address::storage(address.is_ipv6, node, port);
        if let Some(node) = node {
            bind_to_device(object, port_of(node));
        }
    }
    Ok(())
}

/// Sets the own address of an identifier. `EADDRNOTAVAIL` for an address that the seat does not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_bind_addr(id: *mut CmId, address: *mut libc::sockaddr) -> c_int {
    call!(number, {
        id_object(id)?;
        bind(id.cast(), address::read(address)?)?;
        Ok(0)
    })
}

/// Takes requests at the own port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_listen(id: *mut CmId, backlog: c_int) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let port = process::with_connections(|connections, _, _| connections.listen(number, backlog))?;
        let source = &mut (*id).route.addresses.source;
        source.0[2..4].copy_from_slice(&port.to_be_bytes());
        Ok(0)
    })
}

/// Looks for the seat with an address. The result is an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_resolve_addr(
    id: *mut CmId,
    source: *mut libc::sockaddr,
    destination: *mut libc::sockaddr,
    timeout_ms: c_int,
) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        let target = address::read(destination)?;
        let object = id.cast::<IdObject>();
        if !source.is_null() {
            bind(object, address::read(source)?)?;
        }
        let own = process::with(|engine, _| engine.own_node());
        let node = match target.place {
            Place::Any | Place::Own => own,
            Place::Node(node) => node,
            Place::Unknown => {
                process::with_connections(|connections, _, _| {
                    connections.refuse_address(number, Errno::HOSTUNREACH)
                })?;
                return event::complete(id);
            }
        };
        // An identifier that is bound to another port than the first one uses that port.
        let bound = (*object).abi.port_num.max(1);
        let node = if bound > 1 { node_of_port(seat_of(node), bound) } else { node };
        let timeout_ns = u64::try_from(timeout_ms).unwrap_or(0).saturating_mul(NS_PER_MS);
        (*id).route.addresses.destination = address::storage(target.is_ipv6, Some(node), target.port);
        bind_to_device(object, port_of(node));
        let peer = (node, target.port);
        // The event may be taken by another thread before this call returns.
        let port = process::with_connections(|connections, engine, now_ns| {
            let port = connections.resolve_address(number, peer, timeout_ns, now_ns, engine)?;
            // The program does not read them before the event, which it gets after this lock.
            (*id).route.addresses.source = address::storage(target.is_ipv6, Some(own), port);
            Ok::<_, Errno>(port)
        })?;
        debug_assert!(port != 0, "a bound identifier has a port");
        event::complete(id)
    })
}

/// Looks for the route to the peer. The result is an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_resolve_route(id: *mut CmId, _timeout_ms: c_int) -> c_int {
    call!(number, {
        let number = id_object(id)?.number;
        process::with_connections(|connections, _, _| connections.resolve_route(number))?;
        event::complete(id)
    })
}
