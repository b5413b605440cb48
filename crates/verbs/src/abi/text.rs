//! Texts of values, and rates.

use core::ffi::{CStr, c_char, c_int, c_uint};

/// Returns the text of a value, or "unknown".
fn text(texts: &[&'static CStr], value: usize) -> *const c_char {
    texts.get(value).copied().unwrap_or(c"unknown").as_ptr()
}

/// Returns a text for a status of a completion.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_wc_status_str(status: c_uint) -> *const c_char {
    const TEXTS: &[&CStr] = &[
        c"success",
        c"local length error",
        c"local queue pair operation error",
        c"local end-to-end context operation error",
        c"local protection error",
        c"work request flushed",
        c"memory window bind error",
        c"bad response",
        c"local access error",
        c"remote invalid request",
        c"remote access error",
        c"remote operation error",
        c"retries exceeded: no answer",
        c"retries exceeded: receiver not ready",
        c"local datagram domain violation",
        c"remote invalid datagram request",
        c"remote abort",
        c"invalid end-to-end context number",
        c"invalid end-to-end context state",
        c"fatal error",
        c"response timeout",
        c"general error",
        c"tag matching error",
        c"tag matching: incomplete rendezvous",
    ];
    text(TEXTS, status as usize)
}

/// Returns a text for a kind of asynchronous event.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_event_type_str(event: c_uint) -> *const c_char {
    const TEXTS: &[&CStr] = &[
        c"completion queue error",
        c"queue pair: fatal error",
        c"queue pair: invalid request",
        c"queue pair: access violation",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration failed",
        c"device fatal error",
        c"port active",
        c"port error",
        c"local identifier changed",
        c"P_Key table changed",
        c"subnet manager changed",
        c"shared receive queue error",
        c"shared receive queue below its limit",
        c"last work request reached",
        c"client reregistration",
        c"address table changed",
        c"work queue fatal error",
    ];
    text(TEXTS, event as usize)
}

/// Returns a text for a kind of node.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_node_type_str(kind: c_uint) -> *const c_char {
    const TEXTS: &[&CStr] = &[
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ];
    text(TEXTS, kind as usize)
}

/// Returns the name of a state of a port.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_port_state_str(state: c_uint) -> *const c_char {
    const TEXTS: &[&CStr] =
        &[c"no change", c"PORT_DOWN", c"PORT_INIT", c"PORT_ARMED", c"PORT_ACTIVE", c"PORT_ACTIVE_DEFER"];
    text(TEXTS, state as usize)
}

/// Rate: its code, its multiple of 2.5 Gbit/s, if it is one, and its Mbit/s.
struct Rate {
    code: c_uint,
    multiple: c_int,
    mbit: c_int,
}

const fn rate(code: c_uint, multiple: c_int, mbit: c_int) -> Rate {
    Rate { code, multiple, mbit }
}

#[rustfmt::skip]
const RATES: &[Rate] = &[
    rate(2, 1, 2_500), rate(5, 2, 5_000), rate(3, 4, 10_000), rate(6, 8, 20_000), rate(4, 12, 30_000), rate(7, 16, 40_000),
    rate(8, 24, 60_000), rate(9, 32, 80_000), rate(10, 48, 120_000), rate(11, 5, 14_062), rate(12, 22, 56_250), rate(13, 45, 112_500),
    rate(14, 67, 168_750), rate(15, 10, 25_781), rate(16, 41, 103_125), rate(17, 82, 206_250), rate(18, 123, 309_375),
    rate(19, 11, 28_125), rate(20, 20, 50_000), rate(21, 160, 400_000), rate(22, 240, 600_000), rate(23, 320, 800_000), rate(24, 480, 1_200_000),
];

/// Returns a rate as a multiple of 2.5 Gbit/s, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mult(code: c_uint) -> c_int {
    RATES.iter().find(|rate| rate.code == code).map_or(-1, |rate| rate.multiple)
}

/// Returns the rate of a multiple of 2.5 Gbit/s, or 0 for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn mult_to_ibv_rate(multiple: c_int) -> c_uint {
    RATES.iter().find(|rate| rate.multiple == multiple).map_or(0, |rate| rate.code)
}

/// Returns a rate in Mbit/s, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mbps(code: c_uint) -> c_int {
    RATES.iter().find(|rate| rate.code == code).map_or(-1, |rate| rate.mbit)
}

/// Returns the rate of Mbit/s, or 0 for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn mbps_to_ibv_rate(mbit: c_int) -> c_uint {
    RATES.iter().find(|rate| rate.mbit == mbit).map_or(0, |rate| rate.code)
}
