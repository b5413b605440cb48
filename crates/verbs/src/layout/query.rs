//! Answers of queries: attributes of the device, of its port and of its addresses.

use core::ffi::{c_char, c_int};

use super::{Gid, layout};

/// `struct ibv_device_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceAttr {
    /// Version, with a zero at its end.
    pub fw_ver: [c_char; 64],
    /// Identifier of the node, in the order of bytes of the network.
    pub node_guid: u64,
    /// Identifier of the system, in the order of bytes of the network.
    pub sys_image_guid: u64,
    /// Bytes of the largest region.
    pub max_mr_size: u64,
    /// Sizes of pages, as a mask.
    pub page_size_cap: u64,
    /// Vendor.
    pub vendor_id: u32,
    /// Model.
    pub vendor_part_id: u32,
    /// Revision.
    pub hw_ver: u32,
    /// Queue pairs.
    pub max_qp: c_int,
    /// Work requests of a queue.
    pub max_qp_wr: c_int,
    /// Capabilities.
    pub device_cap_flags: u32,
    /// Parts of memory of a work request.
    pub max_sge: c_int,
    /// Parts of memory of a read.
    pub max_sge_rd: c_int,
    /// Completion queues.
    pub max_cq: c_int,
    /// Completions of a queue.
    pub max_cqe: c_int,
    /// Regions.
    pub max_mr: c_int,
    /// Domains.
    pub max_pd: c_int,
    /// Outstanding reads and atomic operations at a queue pair.
    pub max_qp_rd_atom: c_int,
    /// Unused.
    pub max_ee_rd_atom: c_int,
    /// Outstanding reads and atomic operations at the device.
    pub max_res_rd_atom: c_int,
    /// Outstanding reads and atomic operations of a queue pair.
    pub max_qp_init_rd_atom: c_int,
    /// Unused.
    pub max_ee_init_rd_atom: c_int,
    /// Guarantee of atomic operations.
    pub atomic_cap: u32,
    /// Unused: end-to-end contexts, datagram domains, memory windows, raw queue pairs.
    pub unused: [c_int; 5],
    /// Multicast groups.
    pub max_mcast_grp: c_int,
    /// Queue pairs of a multicast group.
    pub max_mcast_qp_attach: c_int,
    /// Queue pairs of all multicast groups.
    pub max_total_mcast_qp_attach: c_int,
    /// Address handles.
    pub max_ah: c_int,
    /// Unused: fast registration.
    pub fast_registration: [c_int; 2],
    /// Shared receive queues.
    pub max_srq: c_int,
    /// Work requests of a shared receive queue.
    pub max_srq_wr: c_int,
    /// Parts of memory of such a work request.
    pub max_srq_sge: c_int,
    /// P_Keys of a port.
    pub max_pkeys: u16,
    /// Code of the delay of acknowledgements.
    pub local_ca_ack_delay: u8,
    /// Ports.
    pub phys_port_cnt: u8,
}
layout!(DeviceAttr, 232, node_guid at 64, max_qp at 108, atomic_cap at 164, max_srq at 212, max_pkeys at 224);

/// `struct ibv_device_attr_ex`. Everything beyond the plain attributes is zero here, except the number of ports.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceAttrEx {
    /// Plain attributes.
    pub orig_attr: DeviceAttr,
    /// Fields that the answer has; 0.
    pub comp_mask: u32,
    /// Capabilities that the device lacks.
    pub unused_236: [u32; 11],
    /// Capabilities, with more bits.
    pub device_cap_flags_ex: u64,
    /// Capabilities that the device lacks.
    pub unused_288: [u32; 27],
    /// Ports, with more bits.
    pub phys_port_cnt_ex: u32,
}
layout!(DeviceAttrEx, 400, comp_mask at 232, device_cap_flags_ex at 280, phys_port_cnt_ex at 396);

/// `struct ibv_port_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAttr {
    /// Logical state.
    pub state: u32,
    /// Largest MTU.
    pub max_mtu: u32,
    /// MTU in use.
    pub active_mtu: u32,
    /// Number of addresses.
    pub gid_tbl_len: c_int,
    /// Capabilities.
    pub port_cap_flags: u32,
    /// Bytes of the largest message.
    pub max_msg_sz: u32,
    /// Packets with a wrong P_Key.
    pub bad_pkey_cntr: u32,
    /// Packets with a wrong Q_Key.
    pub qkey_viol_cntr: u32,
    /// Number of P_Keys.
    pub pkey_tbl_len: u16,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// Local identifier of the subnet manager; 0 on Ethernet.
    pub sm_lid: u16,
    /// Mask of local identifiers.
    pub lmc: u8,
    /// Virtual lanes.
    pub max_vl_num: u8,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// Timeout of the subnet.
    pub subnet_timeout: u8,
    /// Kind of initialisation.
    pub init_type_reply: u8,
    /// Code of the number of lanes.
    pub active_width: u8,
    /// Code of the speed of a lane.
    pub active_speed: u8,
    /// Physical state.
    pub phys_state: u8,
    /// Kind of link, [`super::constants::LINK_LAYER_ETHERNET`].
    pub link_layer: u8,
    /// Flags of the port.
    pub flags: u8,
    /// Capabilities, continued.
    pub port_cap_flags2: u16,
    /// Code of the speed, with more bits.
    pub active_speed_ex: u32,
}
layout!(PortAttr, 56, pkey_tbl_len at 32, link_layer at 46, flags at 47, port_cap_flags2 at 48, active_speed_ex at 52);

/// `struct ibv_gid_entry`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GidEntry {
    /// Address.
    pub gid: Gid,
    /// Index of the address.
    pub gid_index: u32,
    /// Port.
    pub port_num: u32,
    /// Kind of address.
    pub gid_type: u32,
    /// Network interface, or 0.
    pub ndev_ifindex: u32,
}
layout!(GidEntry, 32, gid_index at 16);
