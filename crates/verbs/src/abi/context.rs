//! Contexts, as other calls see them.

use core::ffi::c_char;
use std::sync::Arc;

use rustix::io::Errno;

use super::process;
use crate::engine::{AsyncEvent, Events, identifier};
use crate::layout::context::VerbsContext;
use crate::layout::objects::Context;

/// Context with its queue of asynchronous events.
#[repr(C)]
pub(super) struct ContextObject {
    pub(super) verbs: VerbsContext,
    pub(super) events: Arc<Events<AsyncEvent>>,
}

/// Returns the object around a context.
///
/// # Safety
/// A pointer that is not null is a context of this library.
pub(super) unsafe fn context_object<'a>(context: *mut Context) -> Result<&'a ContextObject, Errno> {
    if context.is_null() {
        return Err(Errno::INVAL);
    }
    let offset = core::mem::offset_of!(ContextObject, verbs) + core::mem::offset_of!(VerbsContext, context);
    // SAFETY: needed to find the structure around the one that programs see. Each context of this library is within such an object.
    Ok(unsafe { &*context.byte_sub(offset).cast() })
}

/// Copies a text into an array and leaves a zero at its end.
pub(super) fn fill<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (target, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        *target = byte.cast_signed();
    }
    array
}

/// Returns the identifier of the device of this process in the order of bytes of the network.
pub(super) fn guid() -> u64 {
    identifier(process::node().unwrap_or(0)).to_be()
}
