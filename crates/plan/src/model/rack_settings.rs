//! Keys at the top level of a rack file with a single value.
//!
//! The defaults suit real processes that share a few cores. Public descriptions of scale-up fabrics publish few of these numbers;
//! `ours` marks the others.

use rackloom_protocol::wire::layout::{OPERATION_HEADER, OPERATIONS};
use rackloom_protocol::wire::packed::LOAD_BYTES_MAX;

use crate::model::bounds::{HOUR_NS, MILLISECOND_NS, PROCESSES_MAX};
use crate::model::links::wire::{Checks, PayloadMode, Reception, WireKind};
use crate::setting::complaint::Complaint;
use crate::setting::named_value::named_values;
use crate::setting::quantity::{Unit, shown};
use crate::setting::section::section;
use crate::setting::table::{Kind, RACK_NAME};

named_values! {
    /// Ports of the RDMA device of a seat.
    pub enum DevicePorts {
        /// One port, whose queue pairs use all links.
        #[default]
        Single = "single",
        /// One port per plane.
        PerPlane = "per-plane",
    }
}

/// Headers of a data frame in bytes, Ethernet header included.
pub(crate) const HEADER_BYTES: u64 = OPERATIONS as u64;
/// Smallest frame: the reply to one load, which is never split, must fit.
pub(crate) const FRAME_BYTES_MIN: u64 = HEADER_BYTES + OPERATION_HEADER as u64 + LOAD_BYTES_MAX as u64;
/// Largest frame: an Ethernet frame of a 9000-byte MTU.
const FRAME_BYTES_MAX: u64 = 9014;
/// Largest transfer of the Load/Store path in the protocol core.
const STORE_BYTES_MAX: u64 = 16 << 10;
/// Smallest EtherType. Smaller numbers are lengths of frames.
const ETHER_TYPE_MIN: u64 = 0x0600;

section! {
    /// Values at the top level of a rack file. [`Plan::change`](crate::Plan::change) changes them: credits, configuration hash and epoch
    /// follow from some.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RackSettings: RACK_SETTINGS = RACK_NAME {
        /// Seed of all random numbers: faults and data patterns.
        seed: u64 {
            form = Kind::Count(0, u64::MAX);
            default = 1;
            encoded = false;
        }
        /// Medium of the frames between real processes.
        wire: WireKind {
            form = Kind::Choice(WireKind::NAMES);
            default = WireKind::SharedMemory;
        }
        /// True if GPU nodes of one server use frames only. Otherwise they use each other's memory without a frame: real processes map it,
        /// and virtual time takes the server's local path (see [local](#local)).
        force_wire: bool {
            form = Kind::Flag;
            default = false;
        }
        /// End-to-end check of routed frames. `auto` turns it on for the packet and udp wires and where any link corrupts (ours). `never`
        /// with corruption is refused.
        checks: Checks {
            form = Kind::Choice(Checks::NAMES);
            default = Checks::Auto;
        }
        /// Largest frame, Ethernet header included: 14 bytes more than the MTU, so `9014B` for one of 9000. By default 4096 bytes of a put
        /// fit behind 130 bytes of headers, rounded up to a multiple of 16. The least is the reply to a load of 256 bytes. Long transfers
        /// are cut into multiples of 256 bytes.
        frame_bytes_max: u16 {
            form = Kind::Size(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
            default = 4240;
            ours = true;
            explain = explain_frame;
        }
        /// Size of the ring of one link direction on the shared-memory wire, a power of two. Use 64KiB to 256KiB in large meshes.
        ring_bytes: u32 {
            form = Kind::Size(4 << 10, 1 << 30);
            default = 1 << 20;
            ours = true;
        }
        /// EtherType of every frame. The default is IEEE 802 local experimental EtherType 1.
        ether_type: u16 {
            form = Kind::Code(ETHER_TYPE_MIN, 0xFFFF);
            default = 0x88B5;
            explain = explain_ether_type;
        }
        /// On the udp wire between hosts: the port of messages between supervisors. Link number *i*, counted from zero, has the port 1 + *i*
        /// above it.
        udp_port: u16 {
            form = Kind::Count(1024, 65_535);
            default = 26_000;
            ours = true;
        }
        /// Reception of frames on the packet wire: through a ring that the member shares with the kernel, in batches of up to 32 frames per
        /// system call, or one by one (`portable`), for systems that have neither. `auto` takes the ring, and the others where the system has
        /// no memory for it or does not know it.
        reception: Reception {
            form = Kind::Choice(Reception::NAMES);
            default = Reception::Auto;
        }
        /// Process seats of each GPU node in a rack for programs (`up --seats programs`): endpoints `n0.p0`, `n0.p1` and so on behind `n0`,
        /// for processes of its program. Other commands ignore the key.
        processes: Option<u16> {
            form = Kind::Count(0, PROCESSES_MAX as u64);
            default = None;
            shown = "4";
            ours = true;
            encoded = false;
        }
        /// Ports of the RDMA device of a seat in a rack for programs (`up --seats programs`): one (`single`), which is down only when no path is
        /// left, or one per plane (`per-plane`), whose queue pairs use only the links of that plane. Other commands ignore the key.
        ports: DevicePorts {
            form = Kind::Choice(DevicePorts::NAMES);
            default = DevicePorts::Single;
            encoded = false;
        }
        /// IP over the fabric in a rack for programs (`up --seats programs`): each seat has an interface `rack0` with an address.
        /// Other commands ignore the key.
        ip: bool {
            form = Kind::Flag;
            default = true;
            encoded = false;
        }
        /// Loads in flight per peer.
        outstanding_loads_max: u32 {
            form = Kind::Count(1, 65_536);
            default = 64;
        }
        /// Operations larger than this take the bulk path.
        rdma_threshold_bytes: u32 {
            form = Kind::Size(0, STORE_BYTES_MAX);
            default = 4096;
            ours = true;
        }
        /// A run without progress for this time ends, and the report names what each member waits for.
        watchdog_ns: u64 {
            key = "watchdog";
            form = Kind::Time(MILLISECOND_NS, 24 * HOUR_NS);
            default = 30_000 * MILLISECOND_NS;
            ours = true;
        }
        /// Treatment of the bytes of long transfers in virtual time; real processes always move them. `full` moves them. `elided`
        /// moves nothing: collectives are checked by fingerprints, and other jobs by numbers of messages and bytes.
        /// Times of both differ by a nanosecond in some polls in which a node fills, reduces or checks bytes. Where frames compete, that may
        /// change all that follows: times by a few per cent and counters. The job `litmus` needs `full`.
        payload: PayloadMode {
            form = Kind::Choice(PayloadMode::NAMES);
            default = PayloadMode::Full;
            encoded = false;
        }
    }
}

fn explain_frame(path: &str, bytes: u64) -> Option<Complaint> {
    (bytes < FRAME_BYTES_MIN).then(|| {
        let least = shown(FRAME_BYTES_MIN, Unit::Bytes);
        let message = format!("`{path}` is {}, below {least}", shown(bytes, Unit::Bytes));
        let hint = format!("the headers take {HEADER_BYTES}B, and the reply to a load must fit behind them");
        Complaint::about(message).hint(hint)
    })
}

fn explain_ether_type(path: &str, ether_type: u64) -> Option<Complaint> {
    (ether_type < ETHER_TYPE_MIN).then(|| {
        let message =
            format!("`{path}` {ether_type:#06x} is below {ETHER_TYPE_MIN:#06x}, where frame lengths are");
        Complaint::about(message).hint("0x88B5 and 0x88B6 are kept free for local experiments")
    })
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::wire::packed::{PUT_BYTES, SELECT_BYTES};

    use super::*;
    use crate::model::plan::Plan;

    #[test]
    fn a_block_of_4_kib_fits_one_default_frame() {
        let plan = Plan::parse("name: r\nshape: {ring: {nodes: 2}}\n", "rack").expect("a rack");
        assert!(usize::from(plan.settings.frame_bytes_max) - OPERATIONS - SELECT_BYTES - PUT_BYTES >= 4096);
    }
}
