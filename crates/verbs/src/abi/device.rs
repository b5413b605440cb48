//! Devices and contexts.

use core::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;

use super::context::{ContextObject, context_object, fill, guid};
use super::guard::{at, call};
use super::{completion, post, process, query};
use crate::engine::Events;
use crate::layout::constants::{NODE_CA, TRANSPORT_IB};
use crate::layout::context::VerbsContext;
use crate::layout::device::Device;
use crate::layout::objects::{Context, ContextOps};

/// Device with bytes behind it: drivers of other vendors, which programs link, read beyond the end of a device to see if it is theirs.
#[repr(C)]
struct DeviceObject {
    device: Device,
    behind: [u64; 1024],
}

/// Returns the device of the process. It exists until the process ends, because contexts and programs keep pointers to it.
fn device() -> *mut Device {
    static DEVICE: OnceLock<usize> = OnceLock::new();
    let address = DEVICE.get_or_init(|| {
        let device = Device {
            operations: [0; 2],
            node_type: NODE_CA,
            transport_type: TRANSPORT_IB,
            name: fill("rackloom0"),
            dev_name: fill("uverbs0"),
            dev_path: fill("/sys/class/infiniband_verbs/uverbs0"),
            ibdev_path: fill("/sys/class/infiniband/rackloom0"),
        };
        Box::into_raw(Box::new(DeviceObject { device, behind: [0; 1024] })) as usize
    });
    *address as *mut Device
}

/// Returns a list of devices with null at its end: one device on a seat, none elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut Device {
    call!(object, {
        let mut list = Vec::new();
        if process::node().is_some() {
            list.push(device());
        }
        if !count.is_null() {
            count.write(c_int::try_from(list.len()).unwrap_or(c_int::MAX));
        }
        // A fixed length, so that the list can be freed.
        list.resize(LIST, core::ptr::null_mut());
        let list: Box<[*mut Device; LIST]> = list.into_boxed_slice().try_into().map_err(|_| Errno::NOMEM)?;
        Ok(Box::into_raw(list).cast())
    })
}

/// Length of a list with its end.
const LIST: usize = 2;

/// Frees a list. Its devices stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut Device) {
    call!(nothing, {
        if !list.is_null() {
            drop(Box::from_raw(list.cast::<[*mut Device; LIST]>()));
        }
        Ok(())
    });
}

/// Returns the name of a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut Device) -> *const c_char {
    call!(object, { Ok(at(device)?.name.as_ptr().cast_mut()) })
}

/// Returns the identifier of a device in the order of bytes of the network, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_guid(device: *mut Device) -> u64 {
    if device.is_null() { 0 } else { guid() }
}

/// Returns the index of a device, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(device: *mut Device) -> c_int {
    call!(number, { at(device).map(|_| 0) })
}

/// Opens a device. Returns null and `errno` if there is no free file descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut Device) -> *mut Context {
    call!(object, {
        at(device)?;
        process::open()?;
        let events = Arc::new(Events::new()?);
        process::with(|engine, _| engine.add_context(&events));
        let mut ops = ContextOps::default();
        ops.poll_cq = Some(completion::poll_cq);
        ops.req_notify_cq = Some(completion::req_notify_cq);
        ops.post_srq_recv = Some(post::post_srq_recv);
        ops.post_send = Some(post::post_send);
        ops.post_recv = Some(post::post_recv);
        let context = Context {
            device,
            ops,
            cmd_fd: -1,
            async_fd: events.descriptor().as_raw_fd(),
            num_comp_vectors: 1,
            mutex: [0; 5],
            abi_compat: usize::MAX,
        };
        let mut verbs = VerbsContext::new(context);
        verbs.query_port = Some(query::query_port);
        verbs.query_device_ex = Some(query::query_device_ex);
        let object = Box::into_raw(Box::new(ContextObject { verbs, events }));
        Ok(&raw mut (*object).verbs.context)
    })
}

/// Closes a context. The program has destroyed its objects before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: *mut Context) -> c_int {
    call!(code, {
        let object: *const ContextObject = context_object(context)?;
        process::flush();
        drop(Box::from_raw(object.cast_mut()));
        Ok(())
    })
}

/// Does nothing: memory of this library is shared with children as any other memory.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_fork_init() -> c_int {
    0
}

/// Returns that forks need no preparation.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_is_fork_initialized() -> c_int {
    const UNNEEDED: c_int = 2;
    UNNEEDED
}

/// Does nothing, as [`ibv_fork_init`].
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dontfork_range(_base: *mut core::ffi::c_void, _size: usize) -> c_int {
    0
}

/// Does nothing, as [`ibv_fork_init`].
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dofork_range(_base: *mut core::ffi::c_void, _size: usize) -> c_int {
    0
}
