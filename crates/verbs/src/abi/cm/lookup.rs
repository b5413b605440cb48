//! Names and services, as lists of addresses.

use core::ffi::{c_char, c_int};

use rustix::io::Errno;

use crate::abi::guard::{at, call, put};
use crate::layout::connection::{
    AddrInfo, PS_TCP, PS_UDP, RAI_FAMILY, RAI_NUMERICHOST, RAI_PASSIVE, Storage,
};
use crate::layout::constants::{QPT_RC, QPT_UD};

/// Returns a copy of an address. A length beyond that of any address is refused.
///
/// # Safety
/// A pointer that is not null points to so many bytes.
unsafe fn copy(address: *const libc::sockaddr, length: u32) -> Result<*mut libc::sockaddr, Errno> {
    let mut storage = Storage([0; 128]);
    let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
    if address.is_null() || length > storage.0.len() {
        return Err(Errno::INVAL);
    }
    // SAFETY: needed because the pointer comes from C; the caller's promise is the same.
    let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) };
    storage.0[..length].copy_from_slice(bytes);
    Ok(Box::into_raw(Box::new(storage)).cast())
}

/// Returns the first address of a name and a service, with its length.
///
/// # Safety
/// Pointers that are not null are texts of C.
unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    flags: c_int,
    family: c_int,
) -> Result<(*mut libc::sockaddr, u32, c_int), Errno> {
    // SAFETY: needed to call the C library. The hints are a variable of this function, and the result is freed after its copy.
    unsafe {
        let mut hints: libc::addrinfo = std::mem::zeroed();
        hints.ai_socktype = libc::SOCK_STREAM;
        hints.ai_family = family;
        hints.ai_flags = if flags & RAI_PASSIVE != 0 { libc::AI_PASSIVE } else { 0 };
        if flags & RAI_NUMERICHOST != 0 {
            hints.ai_flags |= libc::AI_NUMERICHOST;
        }
        let mut found = std::ptr::null_mut();
        if libc::getaddrinfo(node, service, &raw const hints, &raw mut found) != 0 || found.is_null() {
            return Err(Errno::NODATA);
        }
        let copied = copy((*found).ai_addr, (*found).ai_addrlen);
        let (length, family) = ((*found).ai_addrlen, (*found).ai_family);
        libc::freeaddrinfo(found);
        Ok((copied?, length, family))
    }
}

/// Looks for the addresses of a name and a service. The list has one result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const AddrInfo,
    result: *mut *mut AddrInfo,
) -> c_int {
    call!(number, {
        let hints = hints.as_ref();
        let has_name = !(node.is_null() && service.is_null());
        let given = hints.filter(|hints| !hints.ai_dst_addr.is_null() || !hints.ai_src_addr.is_null());
        if result.is_null() || !(has_name || given.is_some()) {
            return Err(Errno::INVAL);
        }
        let flags = hints.map_or(0, |hints| hints.ai_flags);
        let family =
            hints.filter(|_| flags & RAI_FAMILY != 0).map_or(libc::AF_UNSPEC, |hints| hints.ai_family);
        let is_datagram = hints.is_some_and(|hints| {
            hints.ai_qp_type.cast_unsigned() == QPT_UD || hints.ai_port_space.cast_unsigned() == PS_UDP
        });
        let (service_kind, space) = if is_datagram { (QPT_UD, PS_UDP) } else { (QPT_RC, PS_TCP) };
        let mut info = Box::new(AddrInfo {
            ai_flags: flags,
            ai_family: family,
            ai_qp_type: service_kind.cast_signed(),
            ai_port_space: space.cast_signed(),
            ai_src_len: 0,
            ai_dst_len: 0,
            ai_src_addr: std::ptr::null_mut(),
            ai_dst_addr: std::ptr::null_mut(),
            ai_src_canonname: std::ptr::null_mut(),
            ai_dst_canonname: std::ptr::null_mut(),
            ai_route_len: 0,
            ai_route: std::ptr::null_mut(),
            ai_connect_len: 0,
            ai_connect: std::ptr::null_mut(),
            ai_next: std::ptr::null_mut(),
        });
        if has_name {
            // A name without a service has port 0.
            let (address, length, family) = look_up(node, service, flags, family)?;
            info.ai_family = family;
            if flags & RAI_PASSIVE != 0 {
                (info.ai_src_addr, info.ai_src_len) = (address, length);
            } else {
                (info.ai_dst_addr, info.ai_dst_len) = (address, length);
            }
        }
        if let Some(hints) = given {
            if info.ai_src_addr.is_null() && !hints.ai_src_addr.is_null() {
                info.ai_src_addr = copy(hints.ai_src_addr, hints.ai_src_len)?;
                info.ai_src_len = hints.ai_src_len;
            }
            if info.ai_dst_addr.is_null() && !hints.ai_dst_addr.is_null() {
                info.ai_dst_addr = copy(hints.ai_dst_addr, hints.ai_dst_len)?;
                info.ai_dst_len = hints.ai_dst_len;
            }
        }
        put(result, Box::into_raw(info))?;
        Ok(0)
    })
}

/// Frees a list of addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_freeaddrinfo(info: *mut AddrInfo) {
    call!(nothing, {
        at(info)?;
        let info = Box::from_raw(info);
        for address in [info.ai_src_addr, info.ai_dst_addr] {
            if !address.is_null() {
                drop(Box::from_raw(address.cast::<Storage>()));
            }
        }
        Ok(())
    });
}
