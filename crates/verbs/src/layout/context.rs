//! Extended functions around a context, which inline functions of the C header look for.

use core::ffi::{c_int, c_void};

use super::layout;
use super::objects::Context;
use super::query::PortAttr;

/// Function behind `ibv_query_port`. The last argument is the caller's size of the structure.
pub type QueryPort = unsafe extern "C" fn(*mut Context, u8, *mut PortAttr, usize) -> c_int;
/// Function behind `ibv_query_device_ex`. The last argument is the caller's size of the structure.
pub type QueryDeviceEx = unsafe extern "C" fn(*mut Context, *const c_void, *mut c_void, usize) -> c_int;

/// `struct verbs_context`: extended functions, which grow upward from the context. Absent ones are zero.
#[repr(C)]
pub struct VerbsContext {
    unused_0: [usize; 6],
    /// `ibv_query_port`.
    pub query_port: Option<QueryPort>,
    unused_7: [usize; 26],
    /// `ibv_query_device_ex`.
    pub query_device_ex: Option<QueryDeviceEx>,
    unused_34: [usize; 11],
    /// Size of this structure, so that programs know which functions it has.
    pub size: usize,
    /// The context that programs see.
    pub context: Context,
}
layout!(VerbsContext, 696, query_port at 368 - 320, query_device_ex at 368 - 104, size at 368 - 8, context at 368);

impl VerbsContext {
    /// Returns a structure around a context, without extended functions.
    #[must_use]
    pub const fn new(context: Context) -> Self {
        Self {
            unused_0: [0; 6],
            query_port: None,
            unused_7: [0; 26],
            query_device_ex: None,
            unused_34: [0; 11],
            size: size_of::<Self>(),
            context,
        }
    }
}
