//! Paths of device files.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Environment variable: folder that holds the device files in place of `/`.
const ROOT_VARIABLE: &CStr = c"RACKLOOM_DEVICE_FILES";
/// Beginnings of the paths that lead into the folder.
const LED: [&[u8]; 2] = [b"/dev/infiniband", b"/sys/class/infiniband"];
/// Ends of the second one that belong to it: the class of devices, and that of their access by verbs.
const SYSFS_ENDS: [&[u8]; 2] = [b"", b"_verbs"];
/// Longest path with its end, in bytes.
const PATH_BYTES: usize = libc::PATH_MAX as usize;

/// Calls `next` with the path at which a file is: in the folder of device files, or the path itself.
///
/// # Safety
/// `path` is null or a string of C.
pub(crate) unsafe fn lead<R>(path: *const c_char, next: impl FnOnce(*const c_char) -> R) -> R {
    if path.is_null() {
        return next(path);
    }
    // SAFETY: needed to read a path of the program. It is a string of C by the contract of this function.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    match root().filter(|_| is_led(bytes)) {
        Some(root) => join(root.to_bytes(), bytes, next),
        None => next(path),
    }
}

/// Calls `next` with the path below the folder `root`. A function of its own, because other calls need no memory for a path, and a signal handler may
/// have little.
#[inline(never)]
fn join<R>(root: &[u8], path: &[u8], next: impl FnOnce(*const c_char) -> R) -> R {
    let mut joined = [0_u8; PATH_BYTES];
    // The end stays zero. A path that is too long is cut, and names no file.
    let spaces = joined[..PATH_BYTES - 1].iter_mut();
    spaces.zip(root.iter().chain(path)).for_each(|(space, byte)| *space = *byte);
    next(joined.as_ptr().cast())
}

/// Returns true for paths of device files.
fn is_led(path: &[u8]) -> bool {
    let is_whole = |rest: &[u8]| matches!(rest.first(), None | Some(b'/'));
    let [devices, classes] = LED;
    if let Some(rest) = path.strip_prefix(devices) {
        return is_whole(rest);
    }
    let Some(rest) = path.strip_prefix(classes) else { return false };
    SYSFS_ENDS.iter().any(|end| rest.strip_prefix(*end).is_some_and(is_whole))
}

/// Returns the folder of device files, as the environment names it at the first call. Programs may clear their environment later.
fn root() -> Option<&'static CStr> {
    static ROOT: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
    let mut root = ROOT.load(Ordering::Acquire);
    if root.is_null() {
        // SAFETY: needed to read the environment without allocating in a program that may be inside its allocator. The variable is a string of C, and
        // the copy is never freed. Two threads may both make one.
        root = unsafe {
            let value = libc::getenv(ROOT_VARIABLE.as_ptr());
            if value.is_null() { libc::strdup(c"".as_ptr()) } else { libc::strdup(value) }
        };
        if root.is_null() {
            return None;
        }
        ROOT.store(root, Ordering::Release);
    }
    // SAFETY: needed for the copy, which is a string of C that is never freed.
    let root = unsafe { CStr::from_ptr(root) };
    (!root.is_empty()).then_some(root)
}
