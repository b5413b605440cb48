//! Queries of the device, its port, its addresses and its P_Key.

use core::ffi::{c_int, c_void};

use rustix::io::Errno;

use super::context::{context_object, fill, guid};
use super::guard::{call, put};
use super::process;
use crate::engine::{Port, limits};
use crate::layout::Gid;
use crate::layout::constants::*;
use crate::layout::objects::Context;
use crate::layout::query::{DeviceAttr, DeviceAttrEx, GidEntry, PortAttr};

/// The only P_Key: full membership of the default partition.
const PKEY: u16 = 0xffff;
/// Bytes of port attributes that every version of the interface has.
const OLD_PORT_BYTES: usize = 48;

fn signed(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn device_attributes() -> DeviceAttr {
    DeviceAttr {
        fw_ver: fill(env!("CARGO_PKG_VERSION")),
        node_guid: guid(),
        sys_image_guid: guid(),
        max_mr_size: u64::MAX,
        page_size_cap: 0xffff_f000,
        vendor_id: 0x52_4b4c,
        vendor_part_id: 1,
        hw_ver: 0,
        max_qp: signed(limits::QUEUE_PAIRS),
        max_qp_wr: signed(limits::QUEUE_WORK),
        device_cap_flags: CAP_CURRENT_STATE | CAP_RNR,
        max_sge: signed(limits::PARTS),
        max_sge_rd: signed(limits::PARTS),
        max_cq: signed(limits::QUEUE_PAIRS),
        max_cqe: signed(limits::COMPLETIONS),
        max_mr: signed(limits::REGIONS),
        max_pd: signed(limits::DOMAINS),
        max_qp_rd_atom: limits::READS.into(),
        max_ee_rd_atom: 0,
        max_res_rd_atom: signed(limits::QUEUE_PAIRS) * c_int::from(limits::READS),
        max_qp_init_rd_atom: limits::READS.into(),
        max_ee_init_rd_atom: 0,
        atomic_cap: ATOMIC_GLOB,
        unused: [0; 5],
        max_mcast_grp: 0,
        max_mcast_qp_attach: 0,
        max_total_mcast_qp_attach: 0,
        max_ah: signed(limits::QUEUE_PAIRS),
        fast_registration: [0; 2],
        max_srq: signed(limits::SHARED),
        max_srq_wr: signed(limits::QUEUE_WORK),
        max_srq_sge: signed(limits::PARTS),
        max_pkeys: 1,
        local_ca_ack_delay: 16,
        phys_port_cnt: port_count(),
    }
}

fn port_count() -> u8 {
    process::with(|engine, _| engine.port_count())
}

/// Capability: the current state may be given with a change.
const CAP_CURRENT_STATE: u32 = 1 << 7;
/// Capability: a connection without a receive answers so.
const CAP_RNR: u32 = 1 << 12;

fn port_attributes(addresses: usize, port: Port) -> PortAttr {
    /// Code of four lanes.
    const FOUR_LANES: u8 = 2;
    /// Code of 25 Gbit/s per lane.
    const SPEED_25: u8 = 32;
    let (state, phys_state) = match port {
        Port::Active => (PORT_ACTIVE, PHYS_STATE_LINK_UP),
        Port::Down | Port::Removed => (PORT_DOWN, PHYS_STATE_DISABLED),
    };
    PortAttr {
        state,
        max_mtu: MTU_4096,
        active_mtu: MTU_4096,
        gid_tbl_len: c_int::try_from(addresses).unwrap_or(0),
        port_cap_flags: 0,
        max_msg_sz: u32::try_from(limits::MESSAGE_BYTES).unwrap_or(u32::MAX),
        pkey_tbl_len: 1,
        max_vl_num: 1,
        active_width: FOUR_LANES,
        active_speed: SPEED_25,
        phys_state,
        link_layer: LINK_LAYER_ETHERNET,
        flags: QPF_GRH_REQUIRED,
        active_speed_ex: SPEED_25.into(),
        ..PortAttr::default()
    }
}

/// Copies the first bytes of an answer into the structure of a caller that knows more or fewer fields. Further bytes of the caller are zero.
unsafe fn put_bytes<T: Copy>(answer: &T, target: *mut c_void, bytes: usize) -> Result<(), Errno> {
    if target.is_null() {
        return Err(Errno::INVAL);
    }
    let known = bytes.min(size_of::<T>());
    // SAFETY: needed because the caller's structure has a size of its own. The caller promises that many bytes, and the answer has at least the
    // bytes that are copied.
    unsafe {
        target.cast::<u8>().write_bytes(0, bytes);
        core::ptr::copy_nonoverlapping((&raw const *answer).cast::<u8>(), target.cast(), known);
    }
    Ok(())
}

/// Returns the addresses of a port by their index. None for a port that does not exist.
fn addresses(port: u8) -> Vec<Gid> {
    process::with(|engine, _| engine.addresses(port).to_vec())
}

/// Returns an address of a port.
fn address(port: u32, index: u32) -> Result<Gid, Errno> {
    let port = u8::try_from(port).map_err(|_| Errno::INVAL)?;
    addresses(port).get(index as usize).copied().ok_or(Errno::INVAL)
}

/// Gets the attributes of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_device(context: *mut Context, attributes: *mut DeviceAttr) -> c_int {
    call!(code, {
        context_object(context)?;
        put(attributes, device_attributes())
    })
}

/// Gets the extended attributes of the device, as far as the caller's structure has them.
pub(super) unsafe extern "C" fn query_device_ex(
    context: *mut Context,
    input: *const c_void,
    attributes: *mut c_void,
    bytes: usize,
) -> c_int {
    call!(code, {
        context_object(context)?;
        // The input is a mask of requested extensions, of which there are none.
        let wants = !input.is_null() && input.cast::<u32>().read() != 0;
        if wants || bytes < core::mem::offset_of!(DeviceAttrEx, comp_mask) + 4 {
            return Err(Errno::INVAL);
        }
        let answer = DeviceAttrEx {
            orig_attr: device_attributes(),
            comp_mask: 0,
            unused_236: [0; 11],
            device_cap_flags_ex: device_attributes().device_cap_flags.into(),
            unused_288: [0; 27],
            phys_port_cnt_ex: port_count().into(),
        };
        put_bytes(&answer, attributes, bytes)
    })
}

/// Gets the attributes of a port, as far as the caller's structure has them.
pub(super) unsafe extern "C" fn query_port(
    context: *mut Context,
    port: u8,
    attributes: *mut PortAttr,
    bytes: usize,
) -> c_int {
    call!(code, {
        context_object(context)?;
        let (addresses, state) = (addresses(port).len(), process::with(|engine, _| engine.port(port)));
        put_bytes(&port_attributes(addresses, state.ok_or(Errno::INVAL)?), attributes.cast(), bytes)
    })
}

/// Gets the attributes of a port that programs of every version know.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(context: *mut Context, port: u8, attributes: *mut PortAttr) -> c_int {
    // SAFETY: needed to pass the pointers on; the caller's promise is the same, for the bytes of the oldest structure.
    unsafe { query_port(context, port, attributes, OLD_PORT_BYTES) }
}

/// Gets an address of a port. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(
    context: *mut Context,
    port: u8,
    index: c_int,
    gid: *mut Gid,
) -> c_int {
    call!(number, {
        context_object(context)?;
        let index = u32::try_from(index).map_err(|_| Errno::INVAL)?;
        put(gid, address(port.into(), index)?).map(|()| 0)
    })
}

/// Gets the kind of an address in the numbers of sysfs. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid_type(
    context: *mut Context,
    port: u8,
    index: core::ffi::c_uint,
    kind: *mut u32,
) -> c_int {
    call!(number, {
        context_object(context)?;
        address(port.into(), index)?;
        put(kind, GID_TYPE_SYSFS_ROCE_V2).map(|()| 0)
    })
}

fn entry(port: u32, index: u32, gid: Gid) -> GidEntry {
    GidEntry { gid, gid_index: index, port_num: port, gid_type: GID_TYPE_ROCE_V2, ndev_ifindex: 0 }
}

/// Gets an entry of the address table, as far as the caller's structure has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut Context,
    port: u32,
    index: u32,
    target: *mut GidEntry,
    flags: u32,
    bytes: usize,
) -> c_int {
    call!(code, {
        context_object(context)?;
        if flags != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        put_bytes(&entry(port, index, address(port, index)?), target.cast(), bytes)
    })
}

/// Gets the address table. Returns the number of entries, or a negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut Context,
    entries: *mut GidEntry,
    count: usize,
    flags: u32,
    bytes: usize,
) -> isize {
    let mut found = 0;
    let error = call!(code, {
        context_object(context)?;
        if flags != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let of_port =
            |port: u8| (0..).zip(addresses(port)).map(move |(index, gid)| entry(port.into(), index, gid));
        let table: Vec<_> = (1..=port_count()).flat_map(of_port).collect();
        if table.len() > count {
            return Err(Errno::INVAL);
        }
        for (position, entry) in table.iter().enumerate() {
            put_bytes(entry, entries.byte_add(position * bytes).cast(), bytes)?;
        }
        found = table.len();
        Ok(())
    });
    if error == 0 { found.cast_signed() } else { -(error as isize) }
}

/// Gets a P_Key in the order of bytes of the network. Returns 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_pkey(
    context: *mut Context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    call!(number, {
        context_object(context)?;
        if !(1..=port_count()).contains(&port) || index != 0 {
            return Err(Errno::INVAL);
        }
        put(pkey, PKEY.to_be()).map(|()| 0)
    })
}

/// Returns the index of a P_Key, or -1 and `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_pkey_index(context: *mut Context, port: u8, pkey: u16) -> c_int {
    call!(number, {
        context_object(context)?;
        // The highest bit is the membership, which does not tell partitions apart.
        let is_known = (1..=port_count()).contains(&port) && u16::from_be(pkey) | 1 << 15 == PKEY;
        if is_known { Ok(0) } else { Err(Errno::INVAL) }
    })
}

/// Returns 0: nothing is promised about the order in which data of a queue pair become visible.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_qp_data_in_order(_qp: *mut c_void, _operation: u32, _flags: u32) -> c_int {
    0
}
