//! Attributes of queue pairs, shared receive queues and address handles.

use core::ffi::{c_int, c_void};

use super::objects::{Cq, Srq};
use super::{Gid, layout};

/// `struct ibv_global_route`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalRoute {
    /// Address of the destination.
    pub dgid: Gid,
    /// Flow label.
    pub flow_label: u32,
    /// Index of the local address.
    pub sgid_index: u8,
    /// Number of hops.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
}
layout!(GlobalRoute, 24);

/// `struct ibv_ah_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AhAttr {
    /// Route.
    pub grh: GlobalRoute,
    /// Local identifier; unused on Ethernet.
    pub dlid: u16,
    /// Service level.
    pub sl: u8,
    /// Bits of the path.
    pub src_path_bits: u8,
    /// Limit of the rate.
    pub static_rate: u8,
    /// The route is used. Required on Ethernet.
    pub is_global: u8,
    /// Local port.
    pub port_num: u8,
}
layout!(AhAttr, 32);

/// `struct ibv_qp_cap`: capacities of a queue pair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCap {
    /// Work requests in the send queue.
    pub max_send_wr: u32,
    /// Work requests in the receive queue.
    pub max_recv_wr: u32,
    /// Parts of memory of a send.
    pub max_send_sge: u32,
    /// Parts of memory of a receive.
    pub max_recv_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
}
layout!(QpCap, 20);

/// `struct ibv_qp_init_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QpInitAttr {
    /// Value of the program.
    pub qp_context: *mut c_void,
    /// Queue of the completions of sends.
    pub send_cq: *mut Cq,
    /// Queue of the completions of receives.
    pub recv_cq: *mut Cq,
    /// Shared receive queue, or null.
    pub srq: *mut Srq,
    /// Requested capacities; the call sets them to the granted ones.
    pub cap: QpCap,
    /// Service.
    pub qp_type: u32,
    /// Each send is signalled.
    pub sq_sig_all: c_int,
}
layout!(QpInitAttr, 64);

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpAttr {
    /// New state.
    pub qp_state: u32,
    /// State that the program expects.
    pub cur_qp_state: u32,
    /// Largest payload of a packet.
    pub path_mtu: u32,
    /// State of path migration.
    pub path_mig_state: u32,
    /// Q_Key of datagrams.
    pub qkey: u32,
    /// First packet number of the receive side.
    pub rq_psn: u32,
    /// First packet number of the send side.
    pub sq_psn: u32,
    /// Remote queue pair.
    pub dest_qp_num: u32,
    /// Remote operations that are allowed.
    pub qp_access_flags: u32,
    /// Capacities.
    pub cap: QpCap,
    /// Path to the peer.
    pub ah_attr: AhAttr,
    /// Alternate path.
    pub alt_ah_attr: AhAttr,
    /// Index of the P_Key.
    pub pkey_index: u16,
    /// Index of the P_Key of the alternate path.
    pub alt_pkey_index: u16,
    /// An event reports that the send queue is drained.
    pub en_sqd_async_notify: u8,
    /// The send queue is being drained.
    pub sq_draining: u8,
    /// Reads and atomic operations that may be outstanding at the peer.
    pub max_rd_atomic: u8,
    /// Reads and atomic operations of the peer that may be outstanding here.
    pub max_dest_rd_atomic: u8,
    /// Code of the time that a sender waits if no receive is posted.
    pub min_rnr_timer: u8,
    /// Local port.
    pub port_num: u8,
    /// Code of the time until a retry.
    pub timeout: u8,
    /// Retries without an answer.
    pub retry_cnt: u8,
    /// Retries if no receive is posted; 7 is no limit.
    pub rnr_retry: u8,
    /// Port of the alternate path.
    pub alt_port_num: u8,
    /// Timeout of the alternate path.
    pub alt_timeout: u8,
    /// Limit of the rate.
    pub rate_limit: u32,
}
layout!(QpAttr, 144, ah_attr at 56, pkey_index at 120, rate_limit at 136);

/// `struct ibv_srq_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqAttr {
    /// Work requests in the queue.
    pub max_wr: u32,
    /// Parts of memory of a work request.
    pub max_sge: u32,
    /// An event reports that fewer work requests than this are left. 0 is off.
    pub srq_limit: u32,
}
layout!(SrqAttr, 12);

/// `struct ibv_srq_init_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SrqInitAttr {
    /// Value of the program.
    pub srq_context: *mut c_void,
    /// Requested capacities; the call sets them to the granted ones.
    pub attr: SrqAttr,
}
layout!(SrqInitAttr, 24);
