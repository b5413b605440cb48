//! Address handles of datagrams.

use core::ffi::c_int;

use rustix::io::Errno;

use super::context::context_object;
use super::guard::{at, call, put};
use super::process;
use crate::engine::check_route;
use crate::layout::Gid;
use crate::layout::attributes::{AhAttr, GlobalRoute};
use crate::layout::constants::WC_GRH;
use crate::layout::objects::Context;
use crate::layout::objects::{Ah, Pd};
use crate::layout::work::Wc;

/// Address handle.
#[repr(C)]
pub(super) struct AhObject {
    abi: Ah,
    pub(super) route: AhAttr,
    pub(super) domain: u32,
}

/// Makes an address handle. `EINVAL` for a route that is not global, or with a port or a local address that does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah(pd: *mut Pd, attributes: *mut AhAttr) -> *mut Ah {
    call!(object, { create(pd, *at(attributes)?) })
}

unsafe fn create(pd: *mut Pd, route: AhAttr) -> Result<*mut Ah, Errno> {
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    let domain = unsafe { at(pd) }?;
    process::with(|engine, _| {
        check_route(&route, engine.addresses(route.port_num))?;
        engine.use_domain(domain.handle)
    })?;
    let abi = Ah { context: domain.context, pd, handle: 0 };
    Ok(Box::into_raw(Box::new(AhObject { abi, route, domain: domain.handle })).cast())
}

/// Destroys an address handle. Datagrams that were posted with it keep its route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_ah(ah: *mut Ah) -> c_int {
    call!(code, {
        let domain = at(ah.cast::<AhObject>())?.domain;
        process::with(|engine, _| engine.release_domain(domain));
        drop(Box::from_raw(ah.cast::<AhObject>()));
        Ok(())
    })
}

/// Header in front of a datagram.
pub type Header = [u8; 40];

/// Returns the sender's and the receiver's address of a header: those of IPv6, or those of an IPv4 header in the last 20 bytes.
fn ends(header: &Header) -> (Gid, Gid) {
    let gid = |at: usize| Gid::try_from(&header[at..at + 16]).expect("16 bytes");
    let mapped = |at: usize| {
        let mut gid = [0; 16];
        gid[10..12].copy_from_slice(&[0xff, 0xff]);
        gid[12..].copy_from_slice(&header[at..at + 4]);
        gid
    };
    if header[0] >> 4 == 6 { (gid(8), gid(24)) } else { (mapped(32), mapped(36)) }
}

/// Sets attributes so that a handle leads to the sender of a datagram. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_init_ah_from_wc(
    context: *mut Context,
    port: u8,
    completion: *mut Wc,
    header: *mut Header,
    attributes: *mut AhAttr,
) -> c_int {
    call!(number, {
        context_object(context)?;
        put(attributes, reply(port, at(completion)?, at(header)?)?)?;
        Ok(0)
    })
}

/// Returns the route to the sender of a datagram.
fn reply(port: u8, completion: &Wc, header: &Header) -> Result<AhAttr, Errno> {
    if completion.wc_flags & WC_GRH == 0 {
        return Err(Errno::INVAL);
    }
    let (sender, receiver) = ends(header);
    let index = process::with(|engine, _| engine.addresses(port).iter().position(|own| *own == receiver));
    let index = index.and_then(|index| u8::try_from(index).ok()).ok_or(Errno::INVAL)?;
    let grh = GlobalRoute { dgid: sender, sgid_index: index, hop_limit: 64, ..GlobalRoute::default() };
    Ok(AhAttr { grh, is_global: 1, port_num: port, ..AhAttr::default() })
}

/// Makes a handle that leads to the sender of a datagram.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah_from_wc(
    pd: *mut Pd,
    completion: *mut Wc,
    header: *mut Header,
    port: u8,
) -> *mut Ah {
    call!(object, { create(pd, reply(port, at(completion)?, at(header)?)?) })
}
