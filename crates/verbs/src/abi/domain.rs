//! Protection domains and memory regions.

use core::ffi::{c_int, c_uint, c_void};

use rustix::io::Errno;

use super::context::context_object;
use super::guard::{at, call};
use super::process;
use crate::engine::Region;
use crate::layout::constants::ACCESS_ZERO_BASED;
use crate::layout::objects::Context;
use crate::layout::objects::{Mr, Pd};

/// Makes a protection domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    call!(object, {
        context_object(context)?;
        let handle = process::with(|engine, _| engine.make_domain())?;
        Ok(Box::into_raw(Box::new(Pd { context, handle })))
    })
}

/// Destroys a protection domain. `EBUSY` while it has objects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    call!(code, {
        let handle = at(pd)?.handle;
        process::with(|engine, _| engine.destroy_domain(handle))?;
        drop(Box::from_raw(pd));
        Ok(())
    })
}

/// Registers memory whose first byte has the address `virtual_base` in requests.
unsafe fn register(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    virtual_base: u64,
    access: u32,
) -> Result<*mut Mr, Errno> {
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    let domain = unsafe { at(pd) }?;
    let virtual_base = if access & ACCESS_ZERO_BASED != 0 { 0 } else { virtual_base };
    let region = Region { domain: domain.handle, base: addr as usize, virtual_base, length, access };
    let key = process::with(|engine, _| engine.register(region))?;
    let mr = Mr { context: domain.context, pd, addr, length, handle: key, lkey: key, rkey: key };
    Ok(Box::into_raw(Box::new(mr)))
}

/// Registers memory. Null and `EINVAL`, `EFAULT`, `EOPNOTSUPP` or `ENOMEM` on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr {
    call!(object, { register(pd, addr, length, addr as u64, access.cast_unsigned()) })
}

/// Registers memory with an address of its own in requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut Mr {
    call!(object, { register(pd, addr, length, iova, access.cast_unsigned()) })
}

/// Registers memory with an address of its own in requests, and with flags that the device may ignore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    call!(object, { register(pd, addr, length, iova, access) })
}

/// Deregisters memory. Operations that have not started fail afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    call!(code, {
        let key = at(mr)?.lkey;
        process::with(|engine, _| engine.deregister(key))?;
        drop(Box::from_raw(mr));
        Ok(())
    })
}
