//! Context and protection domain that all identifiers of a process have in common.

use core::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use crate::abi::device::{ibv_free_device_list, ibv_get_device_list, ibv_open_device};
use crate::abi::domain::ibv_alloc_pd;
use crate::abi::guard::{call, put};
use crate::abi::process;
use crate::layout::objects::{Context, Pd};

/// Context and domain, as addresses.
#[derive(Clone, Copy)]
pub(super) struct Common {
    context: usize,
    domain: usize,
}

impl Common {
    pub(super) const fn context(self) -> *mut Context {
        self.context as *mut Context
    }

    pub(super) const fn domain(self) -> *mut Pd {
        self.domain as *mut Pd
    }
}

/// Returns the context and the domain. The first call opens the device; it stays open until the process ends.
///
/// # Errors
/// `ENODEV` if the process has no seat; those of opening the device.
pub(super) fn common() -> Result<Common, Errno> {
    static COMMON: Mutex<Option<Common>> = Mutex::new(None);
    let mut common = COMMON.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(common) = *common {
        return Ok(common);
    }
    check_seat()?;
    // SAFETY: needed to call exported functions. The list is used before it is freed, and has an element on a seat.
    let made = unsafe {
        let list = ibv_get_device_list(std::ptr::null_mut());
        if list.is_null() {
            return Err(Errno::NOMEM);
        }
        let context = ibv_open_device(*list);
        ibv_free_device_list(list);
        let domain = if context.is_null() { std::ptr::null_mut() } else { ibv_alloc_pd(context) };
        if domain.is_null() {
            return Err(Errno::NODEV);
        }
        Common { context: context as usize, domain: domain as usize }
    };
    *common = Some(made);
    Ok(made)
}

/// Checks that the process has a seat.
///
/// # Errors
/// `ENODEV` otherwise.
pub(super) fn check_seat() -> Result<(), Errno> {
    process::node().map(|_| ()).ok_or(Errno::NODEV)
}

/// Length of a list of contexts with its end.
const LIST: usize = 2;

/// Returns a list of contexts with null at its end: that of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut Context {
    call!(object, {
        let context = common()?.context();
        if !count.is_null() {
            put(count, 1)?;
        }
        let list: Box<[*mut Context; LIST]> = Box::new([context, std::ptr::null_mut()]);
        Ok(Box::into_raw(list).cast())
    })
}

/// Frees a list of contexts. The contexts stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_free_devices(list: *mut *mut Context) {
    call!(nothing, {
        if !list.is_null() {
            drop(Box::from_raw(list.cast::<[*mut Context; LIST]>()));
        }
        Ok(())
    });
}
