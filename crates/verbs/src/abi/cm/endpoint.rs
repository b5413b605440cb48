//! Synchronous endpoints: an identifier with its addresses and its queue pair in one call.

use core::ffi::c_int;

use rustix::io::Errno;

use super::event;
use super::identifier::{rdma_destroy_id, rdma_migrate_id};
use super::object::{IdObject, Template, id_object, make};
use super::queue_pair::{self, rdma_destroy_srq};
use super::resolve::{rdma_bind_addr, rdma_resolve_addr, rdma_resolve_route};
use crate::abi::guard::{at, call, put};
use crate::cm::{Kind, REQUEST_DATA_BYTES};
use crate::layout::attributes::QpInitAttr;
use crate::layout::connection::{AddrInfo, CmId, RAI_PASSIVE};
use crate::layout::objects::Pd;

/// Time for the search of the peer's seat.
const RESOLVE_MS: c_int = 2000;

/// Converts the result of an exported function.
fn checked(result: c_int) -> Result<(), Errno> {
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

/// Sets addresses and queue pair of a new endpoint.
unsafe fn prepare(
    id: *mut CmId,
    info: &AddrInfo,
    domain: *mut Pd,
    init: *mut QpInitAttr,
) -> Result<(), Errno> {
    // SAFETY: needed because pointers come from C; the caller is an exported function with the same promise.
    unsafe {
        let object = id.cast::<IdObject>();
        if let Some(attributes) = init.as_mut() {
            // Programs leave the service to the addresses.
            attributes.qp_type = (*id).qp_type;
        }
        if info.ai_flags & RAI_PASSIVE != 0 {
            checked(rdma_bind_addr(id, info.ai_src_addr))?;
            if let Some(attributes) = init.as_ref() {
                (*object).template = Some(Template { domain, attributes: *attributes });
            }
            return Ok(());
        }
        checked(rdma_resolve_addr(id, info.ai_src_addr, info.ai_dst_addr, RESOLVE_MS))?;
        checked(rdma_resolve_route(id, RESOLVE_MS))?;
        if !init.is_null() {
            queue_pair::make(id, domain, init)?;
        }
        if info.ai_connect_len > 0 && !info.ai_connect.is_null() {
            if info.ai_connect_len > REQUEST_DATA_BYTES {
                return Err(Errno::INVAL);
            }
            let data = std::slice::from_raw_parts(info.ai_connect.cast::<u8>(), info.ai_connect_len);
            (*object).connect_data = data.to_vec();
        }
        Ok(())
    }
}

/// Makes a synchronous endpoint: a listener that is bound, or an identifier with a route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_ep(
    id: *mut *mut CmId,
    info: *mut AddrInfo,
    domain: *mut Pd,
    init: *mut QpInitAttr,
) -> c_int {
    call!(number, {
        let info = at(info)?;
        if id.is_null() {
            return Err(Errno::INVAL);
        }
        let ps = u32::try_from(info.ai_port_space).map_err(|_| Errno::INVAL)?;
        let made: *mut CmId = make(std::ptr::null_mut(), std::ptr::null_mut(), ps)?.cast();
        if let Err(error) = prepare(made, info, domain, init) {
            rdma_destroy_ep(made);
            return Err(error);
        }
        put(id, made)?;
        Ok(0)
    })
}

/// Destroys an endpoint with its queue pair and its shared receive queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_ep(id: *mut CmId) {
    call!(nothing, {
        queue_pair::destroy(id)?;
        rdma_destroy_srq(id);
        checked(rdma_destroy_id(id))
    });
}

/// Waits for a request at a synchronous listener. Its identifier gets a queue pair if the listener was made with attributes of one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_request(listener: *mut CmId, id: *mut *mut CmId) -> c_int {
    call!(number, {
        let object = id_object(listener)?;
        if !object.is_synchronous || id.is_null() {
            return Err(Errno::INVAL);
        }
        let template = object.template;
        event::acknowledge_last(listener);
        let found = event::next((*listener).channel)?;
        if (*found).event != Kind::ConnectRequest as u32 {
            (*listener).event = found;
            return Err(Errno::INVAL);
        }
        let child = (*found).id;
        let made = checked(rdma_migrate_id(child, std::ptr::null_mut())).and_then(|()| match template {
            Some(Template { domain, mut attributes }) => queue_pair::make(child, domain, &raw mut attributes),
            None => Ok(()),
        });
        if let Err(error) = made {
            (*listener).event = found;
            rdma_destroy_ep(child);
            return Err(error);
        }
        // The private data of the request are read from it.
        (*child).event = found;
        put(id, child)?;
        Ok(0)
    })
}
