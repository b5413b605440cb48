//! Queue pairs and shared receive queues that belong to an identifier.

use core::ffi::{c_int, c_void};

use rustix::io::Errno;

use super::object::{IdObject, id_object};
use crate::abi::completion::{
    ibv_create_comp_channel, ibv_create_cq, ibv_destroy_comp_channel, ibv_destroy_cq,
};
use crate::abi::guard::{at, call};
use crate::abi::process;
use crate::abi::queue_pair::{ibv_create_qp, ibv_destroy_qp};
use crate::abi::shared::{ibv_create_srq, ibv_destroy_srq};
use crate::cm::{Link, attributes};
use crate::engine::State;
use crate::layout::attributes::{QpInitAttr, SrqInitAttr};
use crate::layout::connection::CmId;
use crate::layout::objects::{CompChannel, Cq, Pd};

/// Returns the error of an exported function that has returned null.
fn last_error() -> Errno {
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Errno::from_raw_os_error(error)
}

/// Makes a completion queue with a channel.
unsafe fn make_queue(id: *mut CmId, work: u32) -> Result<(*mut CompChannel, *mut Cq), Errno> {
    // SAFETY: needed to call exported functions. The context is that of the identifier.
    unsafe {
        let channel = ibv_create_comp_channel((*id).verbs);
        if channel.is_null() {
            return Err(last_error());
        }
        let capacity = c_int::try_from(work.max(1)).unwrap_or(c_int::MAX);
        let queue = ibv_create_cq((*id).verbs, capacity, id.cast::<c_void>(), channel, 0);
        if queue.is_null() {
            let error = last_error();
            ibv_destroy_comp_channel(channel);
            return Err(error);
        }
        Ok((channel, queue))
    }
}

/// Makes the completion queues that the program does not give.
unsafe fn make_queues(id: *mut CmId, init: &mut QpInitAttr) -> Result<(), Errno> {
    // SAFETY: needed because identifiers are shared with C. The caller has checked the pointer.
    unsafe {
        if init.recv_cq.is_null() {
            if (*id).recv_cq.is_null() {
                ((*id).recv_cq_channel, (*id).recv_cq) = make_queue(id, init.cap.max_recv_wr)?;
                (*id.cast::<IdObject>()).has_own_queues = true;
            }
            init.recv_cq = (*id).recv_cq;
        }
        if init.send_cq.is_null() {
            if (*id).send_cq.is_null() {
                ((*id).send_cq_channel, (*id).send_cq) = make_queue(id, init.cap.max_send_wr)?;
                (*id.cast::<IdObject>()).has_own_queues = true;
            }
            init.send_cq = (*id).send_cq;
        }
    }
    Ok(())
}

/// Destroys the completion queues that belong to an identifier.
unsafe fn destroy_queues(id: *mut CmId) {
    // SAFETY: needed because identifiers are shared with C. The queues were made by this file.
    unsafe {
        if !std::mem::take(&mut (*id.cast::<IdObject>()).has_own_queues) {
            return;
        }
        for (queue, channel) in [
            (&raw mut (*id).send_cq, &raw mut (*id).send_cq_channel),
            (&raw mut (*id).recv_cq, &raw mut (*id).recv_cq_channel),
        ] {
            let (queue, channel) =
                (queue.replace(std::ptr::null_mut()), channel.replace(std::ptr::null_mut()));
            if !queue.is_null() && !channel.is_null() {
                ibv_destroy_cq(queue);
                ibv_destroy_comp_channel(channel);
            }
        }
    }
}

/// Makes the queue pair of an identifier, in the state in which receives may be posted.
///
/// # Errors
/// `EINVAL` for an identifier that has one or has no device, or for a domain of another context.
///
/// # Safety
/// Pointers are null or of this library.
pub(super) unsafe fn make(id: *mut CmId, domain: *mut Pd, init: *mut QpInitAttr) -> Result<(), Errno> {
    // SAFETY: needed because pointers come from C; the caller's promise is the same.
    unsafe {
        let number = id_object(id)?.number;
        at(init)?;
        let domain = if domain.is_null() { (*id).pd } else { domain };
        let is_bound = !(*id).verbs.is_null() && (*id).qp.is_null();
        if !is_bound || at(domain)?.context != (*id).verbs {
            return Err(Errno::INVAL);
        }
        let mut wanted = *init;
        if wanted.srq.is_null() {
            wanted.srq = (*id).srq;
        }
        make_queues(id, &mut wanted)?;
        let qp = ibv_create_qp(domain, &raw mut wanted);
        if qp.is_null() {
            let error = last_error();
            destroy_queues(id);
            return Err(error);
        }
        (*init).cap = wanted.cap;
        let queue_pair = (*qp).qp_num;
        let (values, mask) = attributes(State::Init, &Link::default()).ok_or(Errno::INVAL)?;
        let made = process::with_connections(|connections, engine, now_ns| {
            engine.modify_queue_pair(queue_pair, &values, mask, now_ns)?;
            connections.set_queue_pair(number, Some(queue_pair))
        });
        if let Err(error) = made {
            ibv_destroy_qp(qp);
            destroy_queues(id);
            return Err(error);
        }
        (*qp).state = State::Init as u32;
        ((*id).qp, (*id).pd) = (qp, domain);
        ((*id).send_cq, (*id).recv_cq) = (wanted.send_cq, wanted.recv_cq);
        Ok(())
    }
}

/// Destroys the queue pair of an identifier.
///
/// # Safety
/// A pointer that is not null is an identifier of this library.
pub(super) unsafe fn destroy(id: *mut CmId) -> Result<(), Errno> {
    // SAFETY: needed because pointers come from C; the caller's promise is the same.
    unsafe {
        let number = id_object(id)?.number;
        let qp = std::mem::replace(&mut (*id).qp, std::ptr::null_mut());
        if !qp.is_null() {
            process::with_connections(|connections, _, _| connections.set_queue_pair(number, None))?;
            ibv_destroy_qp(qp);
        }
        destroy_queues(id);
        Ok(())
    }
}

/// Makes the queue pair of an identifier. Without a domain it gets that of the identifier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_qp(id: *mut CmId, domain: *mut Pd, init: *mut QpInitAttr) -> c_int {
    call!(number, {
        make(id, domain, init)?;
        Ok(0)
    })
}

/// `struct ibv_qp_init_attr_ex`, as far as it is read here.
#[repr(C)]
pub struct QpInitAttrEx {
    /// Fields of the plain structure, whose last four bytes are the mask of the others.
    plain: QpInitAttr,
    domain: *mut Pd,
}

/// Bit of the mask: the structure has a domain.
const HAS_DOMAIN: u32 = 1;

/// Makes the queue pair of an identifier. `EOPNOTSUPP` for extended attributes other than the domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_qp_ex(id: *mut CmId, init: *mut QpInitAttrEx) -> c_int {
    call!(number, {
        let given = at(init)?;
        let mask = init.cast::<u8>().add(60).cast::<u32>().read();
        if mask & !HAS_DOMAIN != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let domain = if mask & HAS_DOMAIN == 0 { std::ptr::null_mut() } else { given.domain };
        make(id, domain, &raw mut (*init).plain)?;
        Ok(0)
    })
}

/// Destroys the queue pair of an identifier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_qp(id: *mut CmId) {
    call!(nothing, { destroy(id) });
}

/// Makes the shared receive queue of an identifier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_srq(id: *mut CmId, domain: *mut Pd, init: *mut SrqInitAttr) -> c_int {
    call!(number, {
        id_object(id)?;
        let domain = if domain.is_null() { (*id).pd } else { domain };
        if !(*id).srq.is_null() || at(domain)?.context != (*id).verbs {
            return Err(Errno::INVAL);
        }
        let srq = ibv_create_srq(domain, init);
        if srq.is_null() {
            return Err(last_error());
        }
        ((*id).srq, (*id).pd) = (srq, domain);
        Ok(0)
    })
}

/// Destroys the shared receive queue of an identifier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_srq(id: *mut CmId) {
    call!(nothing, {
        id_object(id)?;
        let srq = std::mem::replace(&mut (*id).srq, std::ptr::null_mut());
        if !srq.is_null() {
            ibv_destroy_srq(srq);
        }
        Ok(())
    });
}
