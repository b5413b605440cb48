//! Declares the top level of the file.

use rackloom_protocol::wire::layout::{OPERATION_HEADER, OPERATIONS};
use rackloom_protocol::wire::packed::LOAD_BYTES_MAX;

use crate::model::job::JobKind;
use crate::model::wire::{Checks, PayloadMode, Reception, WireKind};
use crate::setting::table::RACK_NAME;
use crate::schema::{
    By, CHANNELS_FORMS, CREDITS, DEFAULTS, EXPECT, FORWARDING, GROUP, HOST, JOB, Key, Kind, LINK, LOCAL,
    NODE, PACKING, PATHS, REQUIRED, SECURITY, SERVER, SHAPE, TENANT, TIMERS_FORMS, TRANSPORT, Table, key,
    table,
};
use crate::setting::table::RACK_NAME;

/// Headers of a data frame in bytes, Ethernet header included.
pub(crate) const HEADER_BYTES: u64 = OPERATIONS as u64;
/// Smallest frame: the reply to one load, which is never split, must fit.
pub(crate) const FRAME_BYTES_MIN: u64 = HEADER_BYTES + OPERATION_HEADER as u64 + LOAD_BYTES_MAX as u64;
/// Largest frame: an Ethernet frame of a 9000-byte MTU.
const FRAME_BYTES_MAX: u64 = 9014;
/// Largest transfer of the Load/Store path in the protocol core.
const STORE_BYTES_MAX: u64 = 16 << 10;
const MILLISECOND_NS: u64 = 1_000_000;
const DAY_NS: u64 = 24 * 3_600_000 * MILLISECOND_NS;

const JOB_FORMS: Kind = Kind::Either(&[Kind::Word(JobKind::NAMES), Kind::Table(&JOB)]);

pub(crate) static RACK: Table = table(RACK_NAME, KEYS);

const KEYS: &[Key] = &[
    key(
        "name",
        Kind::Name,
        REQUIRED,
        "Name of the rack. With the configuration hash it makes the 16-bit epoch that every frame carries.",
    ),
    key("seed", Kind::Count(0, u64::MAX), "1", "Seed of everything random: faults, data patterns."),
    key("shape", Kind::Table(&SHAPE), REQUIRED, "Members and links."),
    key(
        "defaults",
        Kind::Table(&DEFAULTS),
        "",
        "Settings of every node that neither its entry nor its group states.",
    ),
    key("groups", Kind::TableBy(By::Group, &GROUP), "", "What several nodes have alike."),
    key("nodes", Kind::TableBy(By::Member, &NODE), "", "What single members have instead."),
    key(
        "servers",
        Kind::Servers(&SERVER),
        "",
        "Members that sit in one server: `{box0: [n0, n1], box1: [n2, n3]}`. A server may also be named by a group or \
         by the member itself, but not differently. A table sets the server's own local path: \
         `{box0: {nodes: [n0, n1], local: {latency: 1us}}}`.",
    ),
    key(
        "local",
        Kind::Table(&LOCAL),
        "",
        "The path between the memories of nodes of one server, in virtual time. `servers` sets it for single servers.",
    ),
    key(
        "hosts",
        Kind::TableBy(By::Host, &HOST),
        "",
        "Members of each machine, and the interface of links between machines: `{A: {nodes: [n0, n1], interface: eth1}, B: \
         {nodes: [n2, n3], interface: eth1}}`. `run` and `up` start one host's share with `--host`, and all \
         members without it.",
    ),
    key(
        "tenants",
        Kind::TableBy(By::Tenant, &TENANT),
        "",
        "Quotas of single tenants: `1: {memory_max: 16MiB}`.",
    ),
    key(
        "security",
        Kind::Table(&SECURITY),
        "",
        "The key with which frames, and messages between hosts, are authenticated; between real processes.",
    ),
    key("link", Kind::Table(&LINK), "", "What every link does to frames."),
    key(
        "links",
        Kind::TableBy(By::Link, &LINK),
        "",
        "What single links do instead: `n0--n1: {loss: 1%}`. Either end may be named first; the second of parallel links \
         is `n0--n1#1`. Keys that are not named keep the value of `link`.",
    ),
    key(
        "wire",
        Kind::Word(WireKind::NAMES),
        "`shared-memory`",
        "What carries frames between real processes.",
    ),
    key(
        "force_wire",
        Kind::Flag,
        "`false`",
        "Whether GPU nodes of one server talk in frames only. Otherwise they use each other's memory without a frame: real \
         processes map it, and virtual time takes the server's local path (see [local](#local)).",
    ),
    key(
        "checks",
        Kind::Word(Checks::NAMES),
        "`auto`",
        "End-to-end check of routed frames. `auto` turns it on for the packet and udp wires and where any link corrupts (ours). \
         `never` with corruption is refused.",
    ),
    key(
        "timers",
        TIMERS_FORMS,
        "`auto`",
        "When a link counts as lost and when as back. With `auto`, and for each key that is left open here and in `transport`, real \
         processes take the default of the key, and virtual time takes a value that follows from the links.",
    ),
    key("transport", Kind::Table(&TRANSPORT), "", "End-to-end reliability."),
    key("paths", Kind::Table(&PATHS), "", "Which way a packet takes where several lead to its node."),
    key("packing", Kind::Table(&PACKING), "", "How small operations share a frame."),
    key(
        "forwarding",
        Kind::Table(&FORWARDING),
        "",
        "What it takes a switch, or a node that relays for others, to pass a frame on; in virtual time.",
    ),
    key("credits", Kind::Table(&CREDITS), "", "Flow control of a link."),
    key(
        "channels",
        CHANNELS_FORMS,
        "`off`",
        "Virtual channels of every link, each with a queue and credits of its own: none, one for each message class, or as the \
         table says.",
    ),
    key(
        "frame_bytes_max",
        Kind::Size(FRAME_BYTES_MIN, FRAME_BYTES_MAX),
        "`4240B` (ours)",
        "Largest frame, Ethernet header included: 14 bytes more than the MTU, so `9014B` for one of 9000. By default \
         4096 bytes of a put fit behind 130 bytes of headers; the least is what the reply to a load of 256 bytes takes. Long transfers are cut into multiples of 256 bytes.",
    ),
    key(
        "ring_bytes",
        Kind::Size(4 << 10, 1 << 30),
        "`1MiB` (ours)",
        "Ring of one link direction on the shared-memory wire, a power of two. Use 64KiB to 256KiB in large meshes.",
    ),
    key(
        "ether_type",
        Kind::Count(0x0600, 0xFFFF),
        "`0x88B5`",
        "EtherType of every frame: IEEE 802 local experimental EtherType 1.",
    ),
    key(
        "udp_port",
        Kind::Count(1024, 65_535),
        "26000 (ours)",
        "On the udp wire between hosts: the port of the supervisors' words. Link number *i*, counted from zero, has the port \
         1 + *i* above it.",
    ),
    key(
        "reception",
        Kind::Word(Reception::NAMES),
        "`auto`",
        "How a member receives on the packet wire: through a ring that it shares with the kernel, in batches of up to 32 frames per \
         system call, or one by one (`portable`), for systems that have neither. `auto` takes the ring, and the others where the system \
         has no memory for it or does not know it.",
    ),
    key("outstanding_loads_max", Kind::Count(1, 65_536), "64", "Loads in flight per peer."),
    key(
        "rdma_threshold_bytes",
        Kind::Size(0, STORE_BYTES_MAX),
        "`4096B` (ours)",
        "Operations larger than this take the bulk path.",
    ),
    key(
        "watchdog",
        Kind::Time(MILLISECOND_NS, DAY_NS),
        "`30s` (ours)",
        "A run without progress for this long ends, and the report names what each member waits for.",
    ),
    key(
        "payload",
        Kind::Word(PayloadMode::NAMES),
        "`full`",
        "What becomes of the bytes of long transfers in virtual time; real processes always move them. `full` moves them. `shadow` \
         moves a fingerprint of every 256 bytes in their place, and checks compare those. `elided` moves nothing, so that nothing \
         of it can be checked. Times, events and counters are the same. Jobs that look at every byte need `full`.",
    ),
    key("job", JOB_FORMS, "`litmus`", "Job of the rack."),
    key("expect", Kind::Table(&EXPECT), "", "What the report holds the run against."),
];
