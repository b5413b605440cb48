//! Boundary of every call: no panic leaves it, and errors have the form that verbs define for the call.

use core::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;

/// Runs a body. A panic, which only a bug can cause, becomes `EIO`.
fn caught<T>(body: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    // A body that panics leaves its objects behind locks.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Errno::IO));
    if let Err(error) = &result {
        set(*error);
    }
    result
}

/// Sets `errno` of the calling thread.
fn set(error: Errno) {
    // SAFETY: needed because no safe function sets errno. The C library returns a valid pointer to a variable of this thread.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
}

/// Runs a call that returns 0 or the error number.
pub(super) fn code(body: impl FnOnce() -> Result<(), Errno>) -> c_int {
    caught(body).map_or_else(Errno::raw_os_error, |()| 0)
}

/// Runs a call that returns an object, or null and `errno`.
pub(super) fn object<T>(body: impl FnOnce() -> Result<*mut T, Errno>) -> *mut T {
    caught(body).unwrap_or(core::ptr::null_mut())
}

/// Runs a call that returns a number, or -1 and `errno`.
pub(super) fn number(body: impl FnOnce() -> Result<c_int, Errno>) -> c_int {
    caught(body).unwrap_or(-1)
}

/// Runs a call without result.
pub(super) fn nothing(body: impl FnOnce() -> Result<(), Errno>) {
    let _ = caught(body);
}

/// Returns the structure at a pointer.
///
/// # Safety
/// A pointer that is not null points to such a structure, which nothing changes meanwhile.
pub(super) unsafe fn at<'a, T>(pointer: *const T) -> Result<&'a T, Errno> {
    // SAFETY: needed because the pointer comes from C. The caller promises that it is null or valid.
    unsafe { pointer.as_ref() }.ok_or(Errno::INVAL)
}

/// Writes a value to a pointer.
///
/// # Safety
/// A pointer that is not null points to memory for such a value.
pub(super) unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), Errno> {
    if pointer.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: needed because the pointer comes from C. It is not null, and the caller promises that it is valid then.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Runs the body of a call that has pointers among its arguments, with the form of its result.
macro_rules! call {
    ($form:ident, $body:block) => {
        $crate::abi::guard::$form(|| {
            // SAFETY: needed because pointers come from C. Each exported function is unsafe itself: its caller promises for every pointer what
            // the documentation of this crate says.
            unsafe { $body }
        })
    };
}
pub(super) use call;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_in_each_form() {
        assert_eq!(code(|| panic!("a bug")), libc::EIO);
        assert!(object::<u8>(|| panic!("a bug")).is_null());
        assert_eq!(number(|| panic!("a bug")), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EIO));
        nothing(|| panic!("a bug"));
    }
}
