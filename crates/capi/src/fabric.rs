//! Racks inside the process.

use std::ffi::c_char;
use std::sync::Arc;

use rackloom::fabric::{Fabric, Plan};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::{Out, text};

/// Handle of a rack inside the process.
pub type FabricHandle = u64;

/// Starts all nodes and switches of a rack inside this process. Returns when every node reaches every other node. `rack_file` is the text of a rack
/// file, and `name` its name for errors. The nodes have threads: a process that forks does so before this call.
///
/// Errors: BAD_INPUT with all mistakes of the rack file; SYSTEM; NOT_UP.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_fabric_local(
    rack_file: *const c_char,
    name: *const c_char,
    fabric: *mut FabricHandle,
) -> ErrorCode {
    with_pointers!({
        let fabric = Out::new(fabric)?;
        let plan = Plan::parse(text(rack_file)?, text(name)?)?;
        fabric.set(handles::add(Arc::new(Fabric::local(&plan)?))?);
        Ok(())
    })
}

/// Returns the number of GPU nodes of a rack.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_fabric_node_count(fabric: FabricHandle, count: *mut u32) -> ErrorCode {
    with_pointers!({
        let count = Out::new(count)?;
        count.set(handles::get::<Arc<Fabric>>(fabric)?.nodes().len() as u32);
        Ok(())
    })
}

/// Makes a handle of a node. `index` counts the GPU nodes in the order of the rack file, from 0. Each call makes a new handle.
///
/// Errors: NO_SUCH_NODE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_fabric_node(
    fabric: FabricHandle,
    index: u32,
    node: *mut NodeHandle,
) -> ErrorCode {
    with_pointers!({
        let node = Out::new(node)?;
        let fabric = handles::get::<Arc<Fabric>>(fabric)?;
        let none = || Failure::new(ErrorCode::NoSuchNode, format!("the rack has no node with index {index}"));
        node.set(handles::add(fabric.nodes().get(index as usize).ok_or_else(none)?.clone())?);
        Ok(())
    })
}

/// Frees the handle of a rack. Nodes with handles stay. The other nodes leave the rack.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_fabric_free(fabric: FabricHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Fabric>>(fabric))
}
