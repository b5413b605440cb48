//! Structures of connection management, as `librdmacm.so.1` has them.

use core::ffi::{c_char, c_int, c_void};

use super::attributes::AhAttr;
use super::layout;
use super::objects::{CompChannel, Context, Cq, Pd, Qp, Srq};

/// `struct sockaddr_storage`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Storage(pub [u8; 128]);
layout!(Storage, 128);

/// `struct rdma_event_channel`.
#[repr(C)]
pub struct EventChannel {
    /// Descriptor that is readable while events are queued.
    pub fd: c_int,
}
layout!(EventChannel, 4);

/// `struct rdma_addr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Addresses {
    /// Own address.
    pub source: Storage,
    /// Address of the peer.
    pub destination: Storage,
    /// Addresses of InfiniBand; unused on Ethernet.
    pub infiniband: [u64; 5],
}
layout!(Addresses, 296, destination at 128, infiniband at 256);

/// `struct rdma_route`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Route {
    /// Addresses.
    pub addresses: Addresses,
    /// Path records; null.
    pub path_rec: *mut c_void,
    /// Number of path records.
    pub num_paths: c_int,
}
layout!(Route, 312, path_rec at 296, num_paths at 304);

/// `struct rdma_cm_id`.
#[repr(C)]
pub struct CmId {
    /// Context of the device, or null while the identifier is bound to none.
    pub verbs: *mut Context,
    /// Channel of the events.
    pub channel: *mut EventChannel,
    /// Value of the program.
    pub context: *mut c_void,
    /// Queue pair, or null.
    pub qp: *mut Qp,
    /// Addresses.
    pub route: Route,
    /// Port space.
    pub ps: u32,
    /// Port of the device.
    pub port_num: u8,
    /// Last event of a synchronous identifier.
    pub event: *mut CmEvent,
    /// Channel of the completions of sends.
    pub send_cq_channel: *mut CompChannel,
    /// Completions of sends.
    pub send_cq: *mut Cq,
    /// Channel of the completions of receives.
    pub recv_cq_channel: *mut CompChannel,
    /// Completions of receives.
    pub recv_cq: *mut Cq,
    /// Shared receive queue, or null.
    pub srq: *mut Srq,
    /// Protection domain.
    pub pd: *mut Pd,
    /// Service of queue pairs.
    pub qp_type: u32,
}
layout!(CmId, 416, route at 32, ps at 344, port_num at 348, event at 352, send_cq at 368, srq at 392, qp_type at 408);

/// `struct rdma_conn_param`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConnParam {
    /// Private data.
    pub private_data: *const c_void,
    /// Bytes of private data.
    pub private_data_len: u8,
    /// Reads and atomic operations of the peer that are executed at a time.
    pub responder_resources: u8,
    /// Reads and atomic operations that are outstanding at a time.
    pub initiator_depth: u8,
    /// Flow control.
    pub flow_control: u8,
    /// Retries without an answer.
    pub retry_count: u8,
    /// Retries if no receive is posted.
    pub rnr_retry_count: u8,
    /// The queue pair has a shared receive queue.
    pub srq: u8,
    /// Number of the queue pair.
    pub qp_num: u32,
}
layout!(ConnParam, 24, private_data_len at 8, srq at 14, qp_num at 16);

/// `struct rdma_ud_param`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UdParam {
    /// Private data.
    pub private_data: *const c_void,
    /// Bytes of private data.
    pub private_data_len: u8,
    /// Route to the peer.
    pub ah_attr: AhAttr,
    /// Number of the queue pair.
    pub qp_num: u32,
    /// Q_Key.
    pub qkey: u32,
}
layout!(UdParam, 56, ah_attr at 16, qp_num at 48);

/// Parameters of an event.
#[repr(C)]
#[derive(Clone, Copy)]
pub union EventParam {
    /// Of a connection.
    pub conn: ConnParam,
    /// Of datagrams.
    pub ud: UdParam,
}

/// `struct rdma_cm_event`.
#[repr(C)]
pub struct CmEvent {
    /// Identifier.
    pub id: *mut CmId,
    /// Listener, for requests.
    pub listen_id: *mut CmId,
    /// Kind.
    pub event: u32,
    /// Status.
    pub status: c_int,
    /// Parameters.
    pub param: EventParam,
}
layout!(CmEvent, 80, event at 16, status at 20, param at 24);

/// `struct rdma_addrinfo`.
#[repr(C)]
pub struct AddrInfo {
    /// Flags.
    pub ai_flags: c_int,
    /// Address family.
    pub ai_family: c_int,
    /// Service of queue pairs.
    pub ai_qp_type: c_int,
    /// Port space.
    pub ai_port_space: c_int,
    /// Bytes of the own address.
    pub ai_src_len: u32,
    /// Bytes of the address of the peer.
    pub ai_dst_len: u32,
    /// Own address.
    pub ai_src_addr: *mut libc::sockaddr,
    /// Address of the peer.
    pub ai_dst_addr: *mut libc::sockaddr,
    /// Own name.
    pub ai_src_canonname: *mut c_char,
    /// Name of the peer.
    pub ai_dst_canonname: *mut c_char,
    /// Bytes of the route.
    pub ai_route_len: usize,
    /// Route.
    pub ai_route: *mut c_void,
    /// Bytes of private data.
    pub ai_connect_len: usize,
    /// Private data.
    pub ai_connect: *mut c_void,
    /// Next result.
    pub ai_next: *mut Self,
}
layout!(AddrInfo, 96, ai_src_addr at 24, ai_route at 64, ai_next at 88);

/// Port space of connections.
pub const PS_TCP: u32 = 0x106;
/// Port space of datagrams.
pub const PS_UDP: u32 = 0x111;
/// Value of a number of reads that means as many as possible.
pub const READS_MAX: u8 = 0xff;
/// Flag: the address is for a listener.
pub const RAI_PASSIVE: c_int = 1;
/// Flag: the name is a numeric address.
pub const RAI_NUMERICHOST: c_int = 2;
/// Flag: the hints have an address family.
pub const RAI_FAMILY: c_int = 8;
