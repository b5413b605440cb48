//! Pointers of C as values of Rust, with the checks that are possible.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use rackloom::fabric::{Ended, NodeId};

use crate::codes::{CompletionRecord, ErrorCode, Failure};

/// Place for a result, checked before anything happens.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    pub(crate) fn new(place: *mut T) -> Result<Self, Failure> {
        let place = NonNull::new(place).ok_or_else(null)?;
        if !place.is_aligned() {
            return Err(misaligned());
        }
        Ok(Self(place))
    }

    pub(crate) fn optional(place: *mut T) -> Result<Option<Self>, Failure> {
        if place.is_null() { Ok(None) } else { Self::new(place).map(Some) }
    }

    /// Writes the result.
    ///
    /// # Safety
    /// The place is valid for writes.
    pub(crate) unsafe fn set(self, value: T) {
        // SAFETY: needed because the place is memory of C. The caller promises that it is valid; `new` has checked its alignment.
        unsafe { self.0.write(value) };
    }
}

fn null() -> Failure {
    Failure::new(ErrorCode::NullPointer, "a pointer is null")
}

fn misaligned() -> Failure {
    Failure::argument("a pointer is not aligned for its type")
}

/// Returns a text.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero, which do not change during `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null());
    }
    // SAFETY: needed because the text is memory of C. It is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::argument("a text is not UTF-8"))
}

/// Returns a text, or `None` for a null pointer.
///
/// # Safety
/// That of [`text`].
pub(crate) unsafe fn optional_text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    // SAFETY: needed and sound as the call is: the caller makes the promise of `text`.
    if pointer.is_null() { Ok(None) } else { unsafe { text(pointer) }.map(Some) }
}

/// Returns an array. A null pointer is an empty array if `count` is 0.
///
/// # Safety
/// `start` is null or valid for reads of `count` values, which do not change during `'a`.
pub(crate) unsafe fn array<'a, T>(start: *const T, count: u64) -> Result<&'a [T], Failure> {
    let count = checked::<T>(start, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: needed because the array is memory of C. Null, alignment and total length were checked; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// Returns an array that the call changes. A null pointer is an empty array if `count` is 0.
///
/// # Safety
/// `start` is null or valid for reads and writes of `count` values, which nothing else accesses during `'a`.
pub(crate) unsafe fn array_mut<'a, T>(start: *mut T, count: u64) -> Result<&'a mut [T], Failure> {
    let count = checked::<T>(start, count)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: needed because the array is memory of C. Null, alignment and total length were checked; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
}

fn checked<T>(start: *const T, count: u64) -> Result<usize, Failure> {
    let in_bounds =
        |count: usize| count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    let count = usize::try_from(count).ok().filter(|count| in_bounds(*count));
    let count = count.ok_or_else(|| Failure::argument("an array is longer than the memory of a process"))?;
    match start {
        start if count > 0 && start.is_null() => Err(null()),
        start if count > 0 && !start.is_aligned() => Err(misaligned()),
        _ => Ok(count),
    }
}

/// Refuses arrays that have bytes in common.
pub(crate) fn check_apart(first: (*const c_void, u64), second: (*const c_void, u64)) -> Result<(), Failure> {
    let range = |(start, bytes): (*const c_void, u64)| {
        (start.addr() as u64, (start.addr() as u64).saturating_add(bytes))
    };
    let ((a, a_end), (b, b_end)) = (range(first), range(second));
    if a < b_end && b < a_end {
        return Err(Failure::argument("input and output overlap"));
    }
    Ok(())
}

/// Structure whose first field is its size, so that later versions can have more fields.
///
/// `unsafe` is needed because [`versioned`] and [`put_versioned`] read and write the structure by its bytes, and the compiler does not check the
/// properties that this requires. It is sound because each implementation states that its type has them.
///
/// # Safety
/// The type has the layout of C (`repr(C)`), begins with a `u32` that is the size, and every bit pattern is a value of it, zeros included.
/// Fields are only added at the end. `SIZE_MIN` is at least 4 and at most the size of the type.
pub(crate) unsafe trait Sized32: Copy {
    /// Size of the first version, in bytes.
    const SIZE_MIN: usize;
}

/// Reads a structure of any version: fields that the program does not know are 0, and fields that the library does not know must be 0.
///
/// # Safety
/// `pointer` is null or valid for reads of as many bytes as its field `size` says.
pub(crate) unsafe fn versioned<T: Sized32>(pointer: *const T) -> Result<T, Failure> {
    let pointer = NonNull::new(pointer.cast_mut()).ok_or_else(null)?;
    if !pointer.is_aligned() {
        return Err(misaligned());
    }
    // SAFETY: needed because the structure is memory of C. It begins with its size in every version, is aligned, and is valid for reads.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if size < T::SIZE_MIN || size > 1 << 16 {
        let text = format!("the size of a structure is {size}, and must be at least {}", T::SIZE_MIN);
        return Err(Failure::new(ErrorCode::BadSize, text + "; hint: set `size` to sizeof the structure"));
    }
    // SAFETY: needed because the structure is memory of C. The caller promises that `size` bytes can be read, and do not change during the call.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>().as_ptr(), size) };
    let (known, unknown) = bytes.split_at(size.min(size_of::<T>()));
    if unknown.iter().any(|byte| *byte != 0) {
        let text = "a structure has fields that this version of the library does not know";
        return Err(Failure::new(ErrorCode::BadSize, text));
    }
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: needed to fill a structure by its bytes. `known` is at most as long as the structure, and the two are apart. Every bit
    // pattern is a value, zeros included.
    unsafe {
        std::ptr::copy_nonoverlapping(known.as_ptr(), value.as_mut_ptr().cast(), known.len());
        Ok(value.assume_init())
    }
}

/// Copies a structure to the program, as much of it as the program knows.
///
/// # Safety
/// `pointer` is null or valid for reads and writes of as many bytes as its field `size` says.
pub(crate) unsafe fn put_versioned<T: Sized32>(
    pointer: *mut T,
    value: impl FnOnce(u32) -> T,
) -> Result<(), Failure> {
    let place = NonNull::new(pointer).ok_or_else(null)?;
    if !place.is_aligned() {
        return Err(misaligned());
    }
    // SAFETY: needed because the structure is memory of C. It begins with its size in every version, is aligned, and is valid for reads.
    let size = unsafe { place.cast::<u32>().read() };
    if (size as usize) < T::SIZE_MIN {
        let text = format!("the size of a structure is {size}; hint: set `size` to sizeof the structure");
        return Err(Failure::new(ErrorCode::BadSize, text));
    }
    let value = value(size);
    let count = (size as usize).min(size_of::<T>());
    // SAFETY: needed because the structure is memory of C, valid for `size` bytes, of which `count` are written. `value` has as many, and is apart.
    unsafe { std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), pointer.cast(), count) };
    Ok(())
}

/// Copies a text with its final zero into a buffer, and returns its length without the zero.
///
/// # Safety
/// `buffer` is null or valid for writes of `capacity` bytes, and `length` is null or valid for a write.
pub(crate) unsafe fn put_text(
    value: &str,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Failure> {
    let length = Out::optional(length)?;
    if buffer.is_null() && capacity > 0 {
        return Err(null());
    }
    if let Some(length) = length {
        // SAFETY: needed because the place is memory of C, which the caller promises to be valid.
        unsafe { length.set(value.len()) };
    }
    if value.len() >= capacity {
        return Err(Failure::new(ErrorCode::BufferTooSmall, format!("the text has {} bytes", value.len())));
    }
    // SAFETY: needed because the buffer is memory of C. It has space for the text and a zero, and no text of this library is in it.
    unsafe {
        std::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast(), value.len());
        buffer.add(value.len()).write(0);
    }
    Ok(())
}

/// Writes the end of an operation, also of one that failed, and returns its failure.
///
/// # Safety
/// The place is valid for writes.
pub(crate) unsafe fn put_end(
    place: Option<Out<CompletionRecord>>,
    operation: u64,
    result: Result<Ended, Failure>,
) -> Result<(), Failure> {
    let failure = result.as_ref().err().cloned();
    if let Some(place) = place {
        // SAFETY: needed because the place is memory of C. The caller promises that it is valid.
        unsafe { place.set(CompletionRecord::of(0, operation, result)) };
    }
    failure.map_or(Ok(()), Err)
}

/// Reads a field that is 0 or 1.
pub(crate) fn truth(field: &str, value: u32) -> Result<bool, Failure> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Failure::argument(format!("the field {field} is {value}, and must be 0 or 1"))),
    }
}

/// Returns the node of this number.
pub(crate) fn node(number: u32) -> Result<NodeId, Failure> {
    let text = || Failure::new(ErrorCode::NoSuchNode, format!("there is no node {number}"));
    u16::try_from(number).map(NodeId).map_err(|_| text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Later {
        size: u32,
        old: u32,
        new: u64,
    }

    // SAFETY: needed for the functions under test. The structure has the layout of C and consists of numbers, the first of which is the size.
    unsafe impl Sized32 for Later {
        const SIZE_MIN: usize = 8;
    }

    fn read(value: &[u32]) -> Result<Later, ErrorCode> {
        let mut aligned = [0_u64; 8];
        for (index, word) in value.iter().enumerate() {
            aligned[index / 2] |= u64::from(*word) << (32 * (index % 2));
        }
        // SAFETY: needed because the function is unsafe. The buffer is longer than every size below.
        unsafe { versioned(aligned.as_ptr().cast::<Later>()) }.map_err(|failure| failure.code)
    }

    #[test]
    fn structures_of_other_versions_are_read_if_nothing_is_lost() {
        assert_eq!(read(&[16, 7, 9, 0]), Ok(Later { size: 16, old: 7, new: 9 }));
        assert_eq!(read(&[8, 7, 9, 0]), Ok(Later { size: 8, old: 7, new: 0 }), "an older program");
        assert_eq!(read(&[24, 7, 9, 0, 0, 0]), Ok(Later { size: 24, old: 7, new: 9 }), "a later program");
        assert_eq!(read(&[24, 7, 9, 0, 0, 1]), Err(ErrorCode::BadSize), "a field of a later program is used");
        for size in [0, 4, 7, 1 << 20] {
            assert_eq!(read(&[size, 7, 9, 0]), Err(ErrorCode::BadSize), "{size}");
        }
    }

    #[test]
    fn a_result_is_written_as_far_as_the_program_knows_it() {
        let mut value = Later { size: 8, old: 0, new: 5 };
        let full = |size| Later { size, old: 1, new: 2 };
        // SAFETY: needed because the function is unsafe. The structure is valid and longer than its size says.
        unsafe { put_versioned(&raw mut value, full) }.expect("a size of the first version");
        assert_eq!(value, Later { size: 8, old: 1, new: 5 });
    }

    #[test]
    fn overlapping_arrays_are_refused() {
        let bytes = [0_u8; 16];
        let at = |offset: usize| bytes.as_ptr().wrapping_add(offset).cast::<c_void>();
        assert!(check_apart((at(0), 8), (at(8), 8)).is_ok());
        assert!(check_apart((at(0), 9), (at(8), 8)).is_err());
        assert!(check_apart((at(8), 0), (at(8), 8)).is_ok(), "an empty array overlaps nothing");
    }
}
