//! Shared library that is preloaded into programs on a seat of a rack. It leads paths below `/dev/infiniband`, `/sys/class/infiniband` and
//! `/sys/class/infiniband_verbs` into the folder that `RACKLOOM_DEVICE_FILES` names. Programs that look for their RDMA device outside the verbs library,
//! such as those of UCX, find it there.
//!
//! Each function here has the name and the arguments of one of the C library, leads its path and calls that one. Paths relative to a folder need no
//! function: the folder was opened in the right place. The library has no state but addresses, allocates nothing after its first call, and calls no
//! function of the standard library, because it runs inside allocators and signal handlers of programs.
#![no_main]

mod next;
mod path;

use core::ffi::{c_char, c_int, c_uint, c_void};

use next::Next;

type Mode = libc::mode_t;
/// Type of pointers whose targets this library does not look at.
type Opaque = *mut c_void;

/// Defines functions that lead their path. `before` stands before the path. A function that the C library lacks returns `fails`.
macro_rules! led {
    ($($name:ident(($($before:ident: $before_type:ty)?) path $(, $after:ident: $after_type:ty)*) -> $result:ty, $fails:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                $($before: $before_type,)? path: *const c_char $(, $after: $after_type)*
            ) -> $result {
                static NEXT: Next = Next::new(concat!(stringify!($name), "\0"));
                type Function = unsafe extern "C" fn($($before_type,)? *const c_char $(, $after_type)*) -> $result;
                let Some(next) = NEXT.find() else { return $fails };
                // SAFETY: needed to pass the call on. The next function of this name has these arguments, and the caller gave them for it. A path is
                // null or a string of C.
                unsafe {
                    let next = core::mem::transmute::<*mut c_void, Function>(next);
                    path::lead(path, |path| next($($before,)? path $(, $after)*))
                }
            }
        )*
    };
}

// The last argument of `open` and of its kin is optional in C. On the systems of this library an optional argument travels as any other, and one that
// is absent is a value that the next function does not read.
led! {
    open(() path, flags: c_int, mode: Mode) -> c_int, -1;
    open64(() path, flags: c_int, mode: Mode) -> c_int, -1;
    __open_2(() path, flags: c_int) -> c_int, -1;
    __open64_2(() path, flags: c_int) -> c_int, -1;
    openat((folder: c_int) path, flags: c_int, mode: Mode) -> c_int, -1;
    openat64((folder: c_int) path, flags: c_int, mode: Mode) -> c_int, -1;
    __openat_2((folder: c_int) path, flags: c_int) -> c_int, -1;
    __openat64_2((folder: c_int) path, flags: c_int) -> c_int, -1;
    fopen(() path, mode: *const c_char) -> Opaque, core::ptr::null_mut();
    fopen64(() path, mode: *const c_char) -> Opaque, core::ptr::null_mut();
    opendir(() path) -> Opaque, core::ptr::null_mut();
    scandir(() path, list: Opaque, filter: Opaque, order: Opaque) -> c_int, -1;
    scandir64(() path, list: Opaque, filter: Opaque, order: Opaque) -> c_int, -1;
    chdir(() path) -> c_int, -1;
    stat(() path, to: Opaque) -> c_int, -1;
    stat64(() path, to: Opaque) -> c_int, -1;
    lstat(() path, to: Opaque) -> c_int, -1;
    lstat64(() path, to: Opaque) -> c_int, -1;
    fstatat((folder: c_int) path, to: Opaque, flags: c_int) -> c_int, -1;
    fstatat64((folder: c_int) path, to: Opaque, flags: c_int) -> c_int, -1;
    statx((folder: c_int) path, flags: c_int, mask: c_uint, to: Opaque) -> c_int, -1;
    __xstat((version: c_int) path, to: Opaque) -> c_int, -1;
    __xstat64((version: c_int) path, to: Opaque) -> c_int, -1;
    __lxstat((version: c_int) path, to: Opaque) -> c_int, -1;
    __lxstat64((version: c_int) path, to: Opaque) -> c_int, -1;
    access(() path, mode: c_int) -> c_int, -1;
    eaccess(() path, mode: c_int) -> c_int, -1;
    euidaccess(() path, mode: c_int) -> c_int, -1;
    faccessat((folder: c_int) path, mode: c_int, flags: c_int) -> c_int, -1;
    readlink(() path, to: *mut c_char, bytes: usize) -> isize, -1;
    readlinkat((folder: c_int) path, to: *mut c_char, bytes: usize) -> isize, -1;
    __readlink_chk(() path, to: *mut c_char, bytes: usize, limit: usize) -> isize, -1;
    __readlinkat_chk((folder: c_int) path, to: *mut c_char, bytes: usize, limit: usize) -> isize, -1;
    realpath(() path, to: *mut c_char) -> *mut c_char, core::ptr::null_mut();
    __realpath_chk(() path, to: *mut c_char, limit: usize) -> *mut c_char, core::ptr::null_mut();
    canonicalize_file_name(() path) -> *mut c_char, core::ptr::null_mut();
    getxattr(() path, name: *const c_char, to: Opaque, bytes: usize) -> isize, -1;
    lgetxattr(() path, name: *const c_char, to: Opaque, bytes: usize) -> isize, -1;
    listxattr(() path, to: *mut c_char, bytes: usize) -> isize, -1;
    llistxattr(() path, to: *mut c_char, bytes: usize) -> isize, -1;
}
