//! Work requests: lists of C become requests of the engine.

use core::ffi::c_int;

use rustix::io::Errno;

use super::address::AhObject;
use super::guard::{at, call};
use super::process;
use super::shared::shared_number;
use crate::engine::{Data, Kind, Receive, Remote, Send, limits};
use crate::layout::constants::*;
use crate::layout::objects::{Qp, Srq};
use crate::layout::work::{RecvWr, SendWr, Sge};

/// Adds a list of sends. On an error `bad` points to the first request that was not added.
pub(super) unsafe extern "C" fn post_send(qp: *mut Qp, list: *mut SendWr, bad: *mut *mut SendWr) -> c_int {
    call!(code, {
        let pair = at(qp)?;
        process::with(|engine, now_ns| {
            let mut next = list;
            while !next.is_null() {
                let posted =
                    send(pair.qp_type, &*next).and_then(|send| engine.post_send(pair.qp_num, send, now_ns));
                if let Err(error) = posted {
                    return Err(refused(error, next, bad));
                }
                next = (*next).next;
            }
            Ok(())
        })
    })
}

/// Names the request that was not added.
unsafe fn refused<T>(error: Errno, request: *mut T, bad: *mut *mut T) -> Errno {
    if !bad.is_null() {
        // SAFETY: needed because the pointer comes from C. It is not null, and the caller promises that it is valid then.
        unsafe { bad.write(request) };
    }
    error
}

/// Adds a list of receives of a queue pair. On an error `bad` points to the first request that was not added.
pub(super) unsafe extern "C" fn post_recv(qp: *mut Qp, list: *mut RecvWr, bad: *mut *mut RecvWr) -> c_int {
    call!(code, {
        let number = at(qp)?.qp_num;
        process::with(|engine, now_ns| {
            each(list, bad, |receive| engine.post_receive(number, receive, now_ns))
        })
    })
}

/// Adds a list of receives of a shared receive queue. On an error `bad` points to the first request that was not added.
pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut Srq,
    list: *mut RecvWr,
    bad: *mut *mut RecvWr,
) -> c_int {
    call!(code, {
        let number = shared_number(srq)?;
        process::with(|engine, now_ns| each(list, bad, |receive| engine.post_shared(number, receive, now_ns)))
    })
}

/// Posts each receive of a list.
unsafe fn each(
    list: *mut RecvWr,
    bad: *mut *mut RecvWr,
    mut post: impl FnMut(Receive) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut next = list;
    // SAFETY: needed because lists come from C. Each pointer is null or points to a request, as the caller promises.
    while let Some(request) = unsafe { next.as_ref() } {
        // SAFETY: as above; the request names its parts.
        let posted = unsafe { parts(request.sg_list, request.num_sge) }
            .and_then(|parts| post(Receive { id: request.wr_id, parts: parts.to_vec() }));
        if let Err(error) = posted {
            // SAFETY: as above.
            return Err(unsafe { refused(error, next, bad) });
        }
        next = request.next;
    }
    Ok(())
}

/// Returns the parts of memory of a request.
unsafe fn parts<'a>(list: *const Sge, count: c_int) -> Result<&'a [Sge], Errno> {
    let count = usize::try_from(count).ok().filter(|count| *count <= limits::PARTS as usize);
    match count.ok_or(Errno::INVAL)? {
        0 => Ok(&[]),
        _ if list.is_null() => Err(Errno::INVAL),
        // SAFETY: needed because the list comes from C. It is not null, and the caller promises that many parts.
        count => Ok(unsafe { core::slice::from_raw_parts(list, count) }),
    }
}

/// Copies inline data. Its parts need no registration.
unsafe fn inline(parts: &[Sge]) -> Result<Box<[u8]>, Errno> {
    let length: u64 = parts.iter().map(|part| u64::from(part.length)).sum();
    if length > limits::INLINE_BYTES.into() {
        return Err(Errno::INVAL);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    for part in parts.iter().filter(|part| part.length > 0) {
        let begin = part.addr as *const u8;
        if begin.is_null() {
            return Err(Errno::INVAL);
        }
        // SAFETY: needed because the address comes from C. It is not null, and the caller promises that many bytes.
        bytes.extend_from_slice(unsafe { core::slice::from_raw_parts(begin, part.length as usize) });
    }
    Ok(bytes.into())
}

/// Converts a send.
unsafe fn send(service: u32, request: &SendWr) -> Result<Send, Errno> {
    // SAFETY: needed because the request comes from C. It names its parts, and the opcode selects the member of the union that the program
    // has set; all members are plain numbers and pointers.
    unsafe {
        let parts = parts(request.sg_list, request.num_sge)?;
        let data = if request.send_flags & SEND_INLINE != 0 {
            Data::Inline(inline(parts)?)
        } else {
            Data::Parts(parts.to_vec())
        };
        Ok(Send {
            id: request.wr_id,
            is_signalled: request.send_flags & SEND_SIGNALED != 0,
            is_solicited: request.send_flags & SEND_SOLICITED != 0,
            is_fenced: request.send_flags & SEND_FENCE != 0,
            data,
            kind: if service == QPT_UD { datagram(request)? } else { connected(request)? },
            ready_ns: 0,
        })
    }
}

/// Returns the operation of a request of a datagram queue pair.
unsafe fn datagram(request: &SendWr) -> Result<Kind, Errno> {
    let immediate = match request.opcode {
        WR_SEND => None,
        WR_SEND_WITH_IMM => Some(request.imm_data),
        _ => return Err(Errno::INVAL),
    };
    // SAFETY: needed because the operands are a union. The opcode is that of a send, for which a datagram queue pair has this member, and the
    // address handle is null or one of this library.
    let (ud, address) = unsafe { (request.wr.ud, at(request.wr.ud.ah.cast::<AhObject>())?) };
    Ok(Kind::Datagram { route: address.route, queue_pair: ud.remote_qpn, key: ud.remote_qkey, immediate })
}

/// Returns the operation of a request of a connected queue pair.
unsafe fn connected(request: &SendWr) -> Result<Kind, Errno> {
    // SAFETY: needed because the operands are a union. Both members are plain numbers, and the opcode selects the one that the program has set.
    let (rdma, atomic) = unsafe { (request.wr.rdma, request.wr.atomic) };
    let remote = Remote { address: rdma.remote_addr, key: rdma.rkey };
    let value = Remote { address: atomic.remote_addr, key: atomic.rkey };
    Ok(match request.opcode {
        WR_SEND => Kind::Send { immediate: None },
        WR_SEND_WITH_IMM => Kind::Send { immediate: Some(request.imm_data) },
        WR_RDMA_WRITE => Kind::Write { remote, immediate: None },
        WR_RDMA_WRITE_WITH_IMM => Kind::Write { remote, immediate: Some(request.imm_data) },
        WR_RDMA_READ => Kind::Read { remote },
        WR_ATOMIC_FETCH_AND_ADD => Kind::FetchAdd { remote: value, add: atomic.compare_add },
        WR_ATOMIC_CMP_AND_SWP => {
            Kind::CompareSwap { remote: value, expected: atomic.compare_add, new: atomic.swap }
        }
        _ => return Err(Errno::OPNOTSUPP),
    })
}
