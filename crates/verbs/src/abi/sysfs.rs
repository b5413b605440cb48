//! Files of sysfs, which utilities read through the library.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::guard::call;

/// Returns the folder of sysfs.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// Reads a file into a buffer, without the end of its line. Returns the number of bytes, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_read_sysfs_file(
    folder: *const c_char,
    file: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    call!(number, {
        if folder.is_null() || file.is_null() || buffer.is_null() || size == 0 {
            return Err(Errno::INVAL);
        }
        let [folder, file] = [folder, file].map(|text| OsStr::from_bytes(CStr::from_ptr(text).to_bytes()));
        let error = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(Path::new(folder).join(file)).map_err(error)?;
        opened.take(size as u64).read_to_end(&mut bytes).map_err(error)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        core::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), buffer, bytes.len());
        if bytes.len() < size {
            buffer.add(bytes.len()).write(0);
        }
        Ok(c_int::try_from(bytes.len()).unwrap_or(c_int::MAX))
    })
}
