//! Versions, errors and texts.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use crate::codes::{ErrorCode, Failure, RACKLOOM_ANY_NODE};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::pointers::{Out, Sized32, put_text, put_versioned};

/// Version of the interface: the major number times 1000, plus the minor number. Within a major number, functions, constants and fields of
/// structures with a size are only added.
pub const RACKLOOM_ABI_VERSION: u32 = 1002;

/// Timeout without an end, in nanoseconds.
pub const RACKLOOM_FOREVER: u64 = u64::MAX;

/// Handle of a text that the library made: a status, a report, a list.
pub type TextHandle = u64;

/// Details of the last failure of a thread. `size` is set by the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FailureRecord {
    /// sizeof(rackloom_failure).
    pub size: u32,
    /// Code that the call returned.
    pub error: i32,
    /// Peer that caused the error, or `RACKLOOM_ANY_NODE`.
    pub peer: u32,
    /// One of `RACKLOOM_REASON_...`.
    pub reason: u32,
    /// 1 if the operation may have happened, or may still happen.
    pub maybe_done: u32,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for FailureRecord {
    const SIZE_MIN: usize = size_of::<Self>();
}

/// Returns the version of the interface of this library. A program compares it with `RACKLOOM_ABI_VERSION` of its header: the major numbers must be
/// equal, and the minor number of the library must not be smaller.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_abi_version() -> u32 {
    RACKLOOM_ABI_VERSION
}

/// Returns the version of this library as text, such as "0.2.0". The text is never freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the meaning of a code in a few words, for any number. The text is never freed. `rackloom_last_error` says more.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_error_text(error: i32) -> *const c_char {
    let known = ErrorCode::ALL.iter().find(|(code, _)| *code as i32 == error);
    known.map_or(c"an unknown error", |(_, text)| *text).as_ptr()
}

/// Copies the text of the last failure of the calling thread, with a hint if there is one. Successful calls leave it as it is. The text is empty if no call
/// of this thread has failed. `length` may be null and gets the length without the final zero.
///
/// Errors: BUFFER_TOO_SMALL, which is not recorded as a failure.
/// Threads: any. Each thread has its own last failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_last_error(
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> ErrorCode {
    let last = guard::last();
    let text = last.map_or_else(String::new, |failure| failure.text);
    // SAFETY: needed because the buffer is memory of C. The caller promises that it is valid, as the documentation of this crate says.
    let copied = unsafe { put_text(&text, buffer, capacity, length) };
    copied.map_or_else(|failure| failure.code, |()| ErrorCode::Ok)
}

/// Writes the details of the last failure of the calling thread. `error` is `RACKLOOM_ERROR_OK` if no call of this thread has failed.
///
/// Errors: BAD_SIZE.
/// Threads: any. Each thread has its own last failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_last_failure(failure: *mut FailureRecord) -> ErrorCode {
    let last = guard::last();
    with_pointers!({
        put_versioned(failure, |size| {
            let none = || Failure::new(ErrorCode::Ok, "");
            let Failure { code, peer, reason, maybe_done, .. } = last.unwrap_or_else(none);
            FailureRecord {
                size,
                error: code as i32,
                peer: peer.map_or(RACKLOOM_ANY_NODE, u32::from),
                reason: reason as u32,
                maybe_done: maybe_done.into(),
            }
        })
    })
}

/// Makes a handle of a text.
pub(crate) fn add_text(text: String) -> Result<u64, Failure> {
    let text = CString::new(text).map_err(|_| Failure::new(ErrorCode::Other, "the text has a zero byte"))?;
    handles::add(Arc::new(text))
}

/// Returns a pointer to a text, which ends with a zero byte, and its length without that byte. `length` may be null. The pointer is valid until the
/// text is freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_text_data(
    text: TextHandle,
    data: *mut *const c_char,
    length: *mut usize,
) -> ErrorCode {
    with_pointers!({
        let text = handles::get::<Arc<CString>>(text)?;
        let (data, length) = (Out::new(data)?, Out::optional(length)?);
        data.set(text.as_ptr());
        if let Some(length) = length {
            length.set(text.as_bytes().len());
        }
        Ok(())
    })
}

/// Frees a text. Its pointer must not be used any more.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_text_free(text: TextHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<CString>>(text))
}
