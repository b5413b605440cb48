//! A child's side of its cables: finds the ends, switches them on, and waits until both sides are on.
//!
//! The supervisor creates cables after the child has started, and another process switches the remote end on. The child waits for both, with a
//! timeout.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, socket};

/// Interval at which an interface that is not ready is checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The kernel's ethtool command that reads the link state.
const ETHTOOL_GLINK: u32 = 0x0a;

/// The kernel's `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches these interfaces on as they appear, and waits until all have a carrier, at most `timeout`.
///
/// # Errors
/// The error of the system, or `TimedOut` with the interfaces whose other ends did not come up.
pub fn bring_up(interfaces: &[String], timeout: Duration) -> io::Result<()> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let deadline = Instant::now() + timeout;
    for interface in interfaces {
        until(deadline, interface, "has not appeared", || switch_on(&socket, interface))?;
    }
    for interface in interfaces {
        until(deadline, interface, "has no carrier", || Ok(has_carrier(&socket, interface)?.then_some(())))?;
    }
    Ok(())
}

/// Switches these interfaces on as they appear, at most `timeout`. Does not wait for the other ends.
///
/// # Errors
/// The error of the system, or `TimedOut` with the interfaces that did not appear.
pub fn switch_on_all(interfaces: &[String], timeout: Duration) -> io::Result<()> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let deadline = Instant::now() + timeout;
    interfaces.iter().try_for_each(|interface| {
        until(deadline, interface, "has not appeared", || switch_on(&socket, interface))
    })
}

/// Returns whether an interface and the other end of its cable are on.
///
/// It uses ethtool, because the flags of an interface follow its carrier with a delay of up to a second. The ethtool request also makes the kernel
/// finish the work that a new carrier requires. Before that, the first frames would be dropped.
pub(crate) fn has_carrier(socket: impl AsFd, interface: &str) -> io::Result<bool> {
    let flags = flags(&socket, interface)?;
    if flags & libc::IFF_UP as libc::c_short == 0 {
        return Ok(false);
    }
    let mut answer = EthtoolValue { command: ETHTOOL_GLINK, data: 0 };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut answer).cast();
    match exchange(socket, libc::SIOCETHTOOL, &mut request) {
        Ok(()) => Ok(answer.data != 0),
        // The driver does not support the request. The flags of the interface are the best substitute.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(flags & libc::IFF_RUNNING as libc::c_short != 0)
        }
        Err(error) => Err(error),
    }
}

/// Returns the MAC address of an Ethernet interface.
pub(crate) fn hardware_address(socket: impl AsFd, interface: &str) -> io::Result<[u8; 6]> {
    let mut request = request(interface)?;
    exchange(socket, libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: needed because the kernel answers in a union. A successful SIOCGIFHWADDR fills `ifru_hwaddr`, and every bit pattern is a valid integer.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|index| address[index] as u8))
}

/// Returns the longest payload that an interface sends in a frame, in bytes.
pub(crate) fn mtu(socket: impl AsFd, interface: &str) -> io::Result<usize> {
    let mut request = request(interface)?;
    exchange(socket, libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: needed because the kernel answers in a union. A successful SIOCGIFMTU fills `ifru_mtu`, and every bit pattern is a valid integer.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Sets the longest payload of an interface's frames in bytes, without the Ethernet header.
///
/// # Errors
/// The kernel's error.
pub fn set_mtu(interface: &str, mtu: libc::c_int) -> io::Result<()> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_mtu = mtu;
    exchange(socket, libc::SIOCSIFMTU, &mut request)
}

/// Switches an interface on, without address resolution. Returns `None` if it does not exist yet.
fn switch_on(socket: impl AsFd, interface: &str) -> io::Result<Option<()>> {
    let flags = match flags(&socket, interface) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
        flags => flags?,
    };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short;
    exchange(socket, libc::SIOCSIFFLAGS, &mut request)?;
    Ok(Some(()))
}

/// Switches an interface off. This has the effect of an unplugged cable.
///
/// # Errors
/// The kernel's error.
pub fn switch_off(interface: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_flags = flags(&socket, interface)? & !(libc::IFF_UP as libc::c_short);
    exchange(socket, libc::SIOCSIFFLAGS, &mut request)
}

fn flags(socket: impl AsFd, interface: &str) -> io::Result<libc::c_short> {
    let mut request = request(interface)?;
    exchange(socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: needed because the kernel answers in a union. A successful SIOCGIFFLAGS fills `ifru_flags`, and every
    // bit pattern is a valid integer.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

fn request(interface: &str) -> io::Result<libc::ifreq> {
    if interface.is_empty() || interface.len() >= libc::IFNAMSIZ || interface.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{interface:?} cannot name an interface"),
        ));
    }
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn exchange(socket: impl AsFd, command: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let (socket, request) = (socket.as_fd().as_raw_fd(), std::ptr::from_mut(request));
    // SAFETY: needed because these requests have no safe form. `request` is a whole, zero-terminated `ifreq` that exists through the call. The
    // commands used here touch nothing beyond it but the `EthtoolValue` that an ethtool request points to, which its caller keeps alive and untouched
    // through the call.
    let result = unsafe { libc::ioctl(socket, command as _, request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn until(
    deadline: Instant,
    interface: &str,
    complaint: &str,
    mut look: impl FnMut() -> io::Result<Option<()>>,
) -> io::Result<()> {
    while look()?.is_none() {
        if Instant::now() >= deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("interface {interface} {complaint}"),
            ));
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
