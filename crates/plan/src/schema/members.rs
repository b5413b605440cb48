//! Declares nodes, groups and tenants.

use crate::model::member::ShareBy;
use crate::schema::{Key, Kind, REQUIRED, Table, key, table};

/// Smallest and largest memory of a node.
const MEMORY_SIZE: Kind = Kind::Size(4 << 10, 64 << 30);
const NUMA_NODE_MAX: u64 = 1023;
const MILLISECOND_NS: u64 = 1_000_000;

const MEMORY_FORMS: Kind = Kind::Either(&[MEMORY_SIZE, Kind::Table(&MEMORY)]);
const TENANT_NUMBER: Kind = Kind::Count(0, u16::MAX as u64);

pub(crate) static DEFAULTS: Table = table("defaults", DEFAULT_KEYS);
pub(crate) static GROUP: Table = table("groups", GROUP_KEYS);
pub(crate) static NODE: Table = table("nodes", NODE_KEYS);
/// Keys of [`NODE`] that a switch has.
pub(crate) static SWITCH: Table = table("nodes", &[key("server", Kind::Name, "", "")]);
pub(crate) static MEMORY: Table = table(
    "memory",
    &[
        key("bytes", MEMORY_SIZE, "as inherited", "Size, as in the short form."),
        key("huge_pages", Kind::Flag, "`false`", "Whether huge pages hold the memory."),
        key("locked", Kind::Flag, "`false`", "Whether the memory is kept from being swapped out."),
        key(
            "numa_node",
            Kind::Count(0, NUMA_NODE_MAX),
            "any",
            "The NUMA node of the machine that holds the memory.",
        ),
        key("device", Kind::Device, "the host's memory", "The GPU that holds the memory."),
        key(
            "share",
            Kind::Word(ShareBy::NAMES),
            "`handle`",
            "How nodes of the same server open memory of a GPU: each region by a handle of its own, or all out of one pool.",
        ),
        key(
            "mapped",
            Kind::Device,
            "no device",
            "The GPU whose kernels read and write memory of the host in place.",
        ),
    ],
);
pub(crate) static SERVER: Table = table(
    "servers",
    &[
        key("nodes", Kind::Names, REQUIRED, "Members that sit in the server, switches included."),
        key("local", Kind::Table(&LOCAL), "as in `local` of the rack", "The local path of this server."),
    ],
);
pub(crate) static LOCAL: Table = table(
    "local",
    &[
        key(
            "latency",
            Kind::Time(0, MILLISECOND_NS),
            "`150ns` (ours)",
            "Time from the end of an operation's transfer until its bytes are visible and the operation ends.",
        ),
        key(
            "rate",
            Kind::Rate(1_000_000, 100_000_000_000_000),
            "`320Gbit/s` (ours)",
            "Bits per second that all operations of the server share, one after the other.",
        ),
    ],
);
pub(crate) static TENANT: Table = table(
    "tenants",
    &[key(
        "memory_max",
        Kind::Size(0, u64::MAX),
        "unlimited",
        "Memory of all its nodes together. A rack that gives them more is refused.",
    )],
);

const DEFAULT_KEYS: &[Key] = &[
    key("memory", MEMORY_FORMS, "`16MiB` (ours)", "Memory of the node."),
    key(
        "tenant",
        TENANT_NUMBER,
        "0",
        "Partition of the seat. A node's tenant comes from here, never from a message.",
    ),
    key("server", Kind::Name, "`server-` and the node's name", "The server that all nodes sit in."),
];
const GROUP_KEYS: &[Key] = &[
    key("nodes", Kind::Names, REQUIRED, "Members of the group. A member is in one group at most."),
    key("memory", MEMORY_FORMS, "as in `defaults`", "Memory of each of its nodes."),
    key("tenant", TENANT_NUMBER, "as in `defaults`", "Partition of its seats."),
    key("server", Kind::Name, "as in `defaults`", "The server that all of its members sit in."),
];
const NODE_KEYS: &[Key] = &[
    key("memory", MEMORY_FORMS, "as in its group", "Memory of this node."),
    key("tenant", TENANT_NUMBER, "as in its group", "Partition of this seat."),
    key("server", Kind::Name, "as in its group", "The server that this member sits in."),
];
