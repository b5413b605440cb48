//! Functions of the C library that this library stands before.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Function of the next library that has its name.
pub(crate) struct Next {
    /// With a zero byte at its end.
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Returns the function. `None` if the C library does not have it; `errno` says so.
    pub(crate) fn find(&self) -> Option<*mut c_void> {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            // SAFETY: needed to find the function behind this one. The name ends with a zero byte.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast()) };
            self.address.store(address, Ordering::Relaxed);
        }
        if address.is_null() {
            // SAFETY: needed to set the error number of this thread, which always has one.
            unsafe { *libc::__errno_location() = libc::ENOSYS };
            return None;
        }
        Some(address)
    }
}
