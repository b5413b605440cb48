//! Work requests and completions.

use core::ffi::{c_int, c_void};

use super::layout;

/// `struct ibv_sge`: a part of registered local memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address of the first byte, in the addresses of the region.
    pub addr: u64,
    /// Bytes.
    pub length: u32,
    /// Key of the region.
    pub lkey: u32,
}
layout!(Sge, 16);

/// `struct ibv_recv_wr`.
#[repr(C)]
pub struct RecvWr {
    /// Number that the completion repeats.
    pub wr_id: u64,
    /// Next request of the list, or null.
    pub next: *mut RecvWr,
    /// Parts of local memory.
    pub sg_list: *mut Sge,
    /// Number of parts.
    pub num_sge: c_int,
}
layout!(RecvWr, 32);

/// Remote memory of a write or a read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rdma {
    /// Address in the addresses of the remote region.
    pub remote_addr: u64,
    /// Key of the remote region.
    pub rkey: u32,
}

/// Remote memory and operands of an atomic operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Atomic {
    /// Address in the addresses of the remote region.
    pub remote_addr: u64,
    /// Value that is compared or added.
    pub compare_add: u64,
    /// New value of a compare-swap.
    pub swap: u64,
    /// Key of the remote region.
    pub rkey: u32,
}

/// Destination of a datagram.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ud {
    /// Address handle, a [`super::objects::Ah`].
    pub ah: *mut c_void,
    /// Remote queue pair.
    pub remote_qpn: u32,
    /// Q_Key that the remote queue pair must have.
    pub remote_qkey: u32,
}

/// Operands of a [`SendWr`], by its opcode.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Operands {
    /// Write or read.
    pub rdma: Rdma,
    /// Atomic operation.
    pub atomic: Atomic,
    /// Datagram.
    pub ud: Ud,
}

/// `struct ibv_send_wr`.
#[repr(C)]
pub struct SendWr {
    /// Number that the completion repeats.
    pub wr_id: u64,
    /// Next request of the list, or null.
    pub next: *mut SendWr,
    /// Parts of local memory.
    pub sg_list: *mut Sge,
    /// Number of parts.
    pub num_sge: c_int,
    /// Operation.
    pub opcode: u32,
    /// Flags, of [`super::constants`].
    pub send_flags: u32,
    /// Immediate data, in the order of bytes of the network.
    pub imm_data: u32,
    /// Operands.
    pub wr: Operands,
    /// Operands of XRC; unused here.
    pub qp_type: u64,
    /// Operands of memory windows and segmentation; unused here.
    pub others: [u64; 6],
}
layout!(SendWr, 128, wr at 40, qp_type at 72, others at 80);

/// `struct ibv_wc`: a completion.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wc {
    /// Number of the work request.
    pub wr_id: u64,
    /// Status.
    pub status: u32,
    /// Operation; undefined after an error.
    pub opcode: u32,
    /// Status in numbers of the vendor; 0 here.
    pub vendor_err: u32,
    /// Bytes of the message.
    pub byte_len: u32,
    /// Immediate data, if the flags say that there are any.
    pub imm_data: u32,
    /// Local queue pair.
    pub qp_num: u32,
    /// Remote queue pair of a datagram.
    pub src_qp: u32,
    /// Flags, of [`super::constants`].
    pub wc_flags: u32,
    /// Index of the P_Key.
    pub pkey_index: u16,
    /// Local identifier of the sender; 0 on Ethernet.
    pub slid: u16,
    /// Service level. For datagrams on Ethernet it has the kind of header, as drivers of such devices report it.
    pub sl: u8,
    /// Bits of the path; 0.
    pub dlid_path_bits: u8,
}
layout!(Wc, 48, imm_data at 24, qp_num at 28, sl at 44);
