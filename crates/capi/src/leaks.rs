//! Reports of memory that was not freed, as texts and for functions of the program.

use std::ffi::{CString, c_char, c_void};

use rackloom::fabric::Node;
use rackloom::pool::LeakReport;
use serde_json::json;

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::library::{TextHandle, add_text};
use crate::node::NodeHandle;
use crate::pointers::Out;

/// Function that gets the report of memory that was not freed: the JSON array of `rackloom_node_allocations` or
/// `rackloom_block_pool_leaks`, which ends with a zero byte and is valid during the call. `context` is that of the
/// function that has set it.
///
/// It returns, and does not leave by `longjmp` or by an exception of C++. It runs in the thread whose call has ended
/// the object. It calls no function of the library: such a call returns IN_CALLBACK.
pub type LeakFunction = Option<unsafe extern "C" fn(leaks: *const c_char, context: *mut c_void)>;

/// Function of the program that gets a report, with its context.
pub(crate) struct Listener {
    function: unsafe extern "C" fn(*const c_char, *mut c_void),
    context: *mut c_void,
}

// SAFETY: needed because the thread that ends an object calls the function. Sound because the maker of a `Listener` promises that any thread may do so.
unsafe impl Send for Listener {}

impl Listener {
    /// Returns a function with its context.
    ///
    /// # Safety
    /// Any thread may call the function with the context until the value is dropped. It accesses nothing but the text
    /// and what belongs to the context, and returns.
    pub(crate) unsafe fn new(function: LeakFunction, context: *mut c_void) -> Result<Self, Failure> {
        let none = || Failure::new(ErrorCode::NullPointer, "the function is null");
        Ok(Self { function: function.ok_or_else(none)?, context })
    }

    /// Passes a report on.
    pub(crate) fn report(&self, report: &LeakReport) {
        // JSON writes a zero byte of a tag as an escape sequence, so there always is a text.
        let text = CString::new(json_of(report)).unwrap_or_default();
        // SAFETY: needed because the function is one of C. `new` has its promise, and the text is valid during the call.
        guard::in_callback(|| unsafe { (self.function)(text.as_ptr(), self.context) });
    }
}

/// Returns a report as a JSON array.
pub(crate) fn json_of(report: &LeakReport) -> String {
    let entries = report.leaks.iter().map(|leak| {
        json!({
            "region": leak.region.0,
            "offset": leak.offset,
            "bytes": leak.bytes,
            "tenant": leak.tenant.0,
            "tag": leak.tag,
        })
    });
    serde_json::Value::from_iter(entries).to_string()
}

/// Makes a text of the regions of a node that have a handle now: a JSON array of objects with `region`, `offset` (0),
/// `bytes`, `tenant` and `tag`. The tag is that of `rackloom_pool_allocate`, and empty for other regions. The array is
/// empty after the node has left.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_allocations(
    node: NodeHandle,
    allocations: *mut TextHandle,
) -> ErrorCode {
    with_pointers!({
        let allocations = Out::new(allocations)?;
        let report = handles::get::<Node>(node)?.allocations();
        allocations.set(add_text(json_of(&report))?);
        Ok(())
    })
}

/// Sets the function that is called once when a node leaves, also because its last handle is freed, and regions still
/// have a handle. The regions end with the node. It is not called if there is none, and replaces one that was set
/// before. `context`, which may be null, stays valid until the node has left.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_on_leak(
    node: NodeHandle,
    function: LeakFunction,
    context: *mut c_void,
) -> ErrorCode {
    with_pointers!({
        let node = handles::get::<Node>(node)?;
        let listener = Listener::new(function, context)?;
        node.on_leak(move |report| listener.report(report));
        Ok(())
    })
}
