//! Contexts with the functions of their data path, and their objects: protection domains, regions, completion queues, queue pairs and others.
//!
//! A context names functions on its objects, and each object names its context, so they are in one file.

use core::ffi::{c_int, c_void};

use super::device::Device;
use super::work::{RecvWr, SendWr, Wc};
use super::{Condition, Mutex, layout};

/// Function behind `ibv_poll_cq`.
pub type PollCq = unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int;
/// Function behind `ibv_req_notify_cq`.
pub type ReqNotifyCq = unsafe extern "C" fn(*mut Cq, c_int) -> c_int;
/// Function behind `ibv_post_srq_recv`.
pub type PostSrqRecv = unsafe extern "C" fn(*mut Srq, *mut RecvWr, *mut *mut RecvWr) -> c_int;
/// Function behind `ibv_post_send`.
pub type PostSend = unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int;
/// Function behind `ibv_post_recv`.
pub type PostRecv = unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int;

/// `struct ibv_context_ops`: functions that inline functions of the C header call. Absent ones are zero.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ContextOps {
    unused_0: [usize; 7],
    /// Memory windows: absent, so the header refuses them.
    pub memory_windows: [usize; 3],
    unused_10: usize,
    /// `ibv_poll_cq`.
    pub poll_cq: Option<PollCq>,
    /// `ibv_req_notify_cq`.
    pub req_notify_cq: Option<ReqNotifyCq>,
    unused_13: [usize; 7],
    /// `ibv_post_srq_recv`.
    pub post_srq_recv: Option<PostSrqRecv>,
    unused_21: [usize; 4],
    /// `ibv_post_send`.
    pub post_send: Option<PostSend>,
    /// `ibv_post_recv`.
    pub post_recv: Option<PostRecv>,
    unused_27: [usize; 5],
}

/// `struct ibv_context`.
#[repr(C)]
pub struct Context {
    /// Device of the context.
    pub device: *mut Device,
    /// Functions of the data path.
    pub ops: ContextOps,
    /// Descriptor of the kernel's command file; -1, because there is none.
    pub cmd_fd: c_int,
    /// Descriptor that is readable while asynchronous events are queued.
    pub async_fd: c_int,
    /// Number of completion vectors.
    pub num_comp_vectors: c_int,
    /// Lock of the C library; unused here.
    pub mutex: Mutex,
    /// All ones: a `VerbsContext` is around this structure.
    pub abi_compat: usize,
}
layout!(Context, 328, ops at 8, cmd_fd at 264, async_fd at 268, num_comp_vectors at 272, mutex at 280, abi_compat at 320);
const _: () = {
    const OPS: usize = core::mem::offset_of!(Context, ops);
    assert!(size_of::<ContextOps>() == 256);
    assert!(OPS + core::mem::offset_of!(ContextOps, memory_windows) == 64);
    assert!(OPS + core::mem::offset_of!(ContextOps, poll_cq) == 96);
    assert!(OPS + core::mem::offset_of!(ContextOps, req_notify_cq) == 104);
    assert!(OPS + core::mem::offset_of!(ContextOps, post_srq_recv) == 168);
    assert!(OPS + core::mem::offset_of!(ContextOps, post_send) == 208);
    assert!(OPS + core::mem::offset_of!(ContextOps, post_recv) == 216);
};

/// `struct ibv_pd`.
#[repr(C)]
pub struct Pd {
    /// Context of the domain.
    pub context: *mut Context,
    /// Number of the domain.
    pub handle: u32,
}
layout!(Pd, 16);

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    /// Context of the region.
    pub context: *mut Context,
    /// Domain of the region.
    pub pd: *mut Pd,
    /// First byte.
    pub addr: *mut c_void,
    /// Bytes.
    pub length: usize,
    /// Number of the region.
    pub handle: u32,
    /// Key for operations of this process.
    pub lkey: u32,
    /// Key for operations of peers.
    pub rkey: u32,
}
layout!(Mr, 48, lkey at 36, rkey at 40);

/// `struct ibv_comp_channel`.
#[repr(C)]
pub struct CompChannel {
    /// Context of the channel.
    pub context: *mut Context,
    /// Descriptor that is readable while events are queued.
    pub fd: c_int,
    /// Number of completion queues that use the channel.
    pub refcnt: c_int,
}
layout!(CompChannel, 16, fd at 8);

/// `struct ibv_cq`.
#[repr(C)]
pub struct Cq {
    /// Context of the queue.
    pub context: *mut Context,
    /// Channel of its events, or null.
    pub channel: *mut CompChannel,
    /// Value of the program.
    pub cq_context: *mut c_void,
    /// Number of the queue.
    pub handle: u32,
    /// Capacity in completions.
    pub cqe: c_int,
    /// Lock of the C library; unused here.
    pub mutex: Mutex,
    /// Condition variable of the C library; unused here.
    pub cond: Condition,
    /// Events of the channel that the program has acknowledged.
    pub comp_events_completed: u32,
    /// Asynchronous events that the program has acknowledged.
    pub async_events_completed: u32,
}
layout!(Cq, 128);

/// `struct ibv_srq`.
#[repr(C)]
pub struct Srq {
    /// Context of the queue.
    pub context: *mut Context,
    /// Value of the program.
    pub srq_context: *mut c_void,
    /// Domain of the queue.
    pub pd: *mut Pd,
    /// Number of the queue.
    pub handle: u32,
    /// Lock of the C library; unused here.
    pub mutex: Mutex,
    /// Condition variable of the C library; unused here.
    pub cond: Condition,
    /// Asynchronous events that the program has acknowledged.
    pub events_completed: u32,
}
layout!(Srq, 128);

/// `struct ibv_qp`.
#[repr(C)]
pub struct Qp {
    /// Context of the queue pair.
    pub context: *mut Context,
    /// Value of the program.
    pub qp_context: *mut c_void,
    /// Domain of the queue pair.
    pub pd: *mut Pd,
    /// Queue of the completions of sends.
    pub send_cq: *mut Cq,
    /// Queue of the completions of receives.
    pub recv_cq: *mut Cq,
    /// Shared receive queue, or null.
    pub srq: *mut Srq,
    /// Number of the object.
    pub handle: u32,
    /// Number that peers use.
    pub qp_num: u32,
    /// State at the last call of `ibv_modify_qp` or `ibv_query_qp`.
    pub state: u32,
    /// Service, [`super::constants::QPT_RC`] or [`super::constants::QPT_UD`].
    pub qp_type: u32,
    /// Lock of the C library; unused here.
    pub mutex: Mutex,
    /// Condition variable of the C library; unused here.
    pub cond: Condition,
    /// Asynchronous events that the program has acknowledged.
    pub events_completed: u32,
}
layout!(Qp, 160, qp_num at 52, state at 56);

/// `struct ibv_ah`.
#[repr(C)]
pub struct Ah {
    /// Context of the handle.
    pub context: *mut Context,
    /// Domain of the handle.
    pub pd: *mut Pd,
    /// Number of the handle.
    pub handle: u32,
}
layout!(Ah, 24);

/// Element of an [`AsyncEvent`]: a pointer to the object, or the number of the port.
#[repr(C)]
#[derive(Clone, Copy)]
pub union EventElement {
    /// Completion queue.
    pub cq: *mut Cq,
    /// Queue pair.
    pub qp: *mut Qp,
    /// Shared receive queue.
    pub srq: *mut Srq,
    /// Number of a port.
    pub port_num: c_int,
}

/// `struct ibv_async_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AsyncEvent {
    /// Object that the event concerns.
    pub element: EventElement,
    /// Kind of event.
    pub event_type: u32,
}
layout!(AsyncEvent, 16);
