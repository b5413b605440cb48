//! Declares nodes, groups and tenants.

use crate::model::local::LOCAL;
use crate::model::member::MEMORY_OPTIONS;
use crate::setting::table::{Key, Kind, REQUIRED, Table, joined, key, table};

/// Smallest and largest memory of a node.
const MEMORY_SIZE: Kind = Kind::Size(4 << 10, 64 << 30);

const MEMORY_FORMS: Kind = Kind::Either(&[MEMORY_SIZE, Kind::Table(&MEMORY)]);
const TENANT_NUMBER: Kind = Kind::Count(0, u16::MAX as u64);

pub(crate) static DEFAULTS: Table = table("defaults", DEFAULT_KEYS);
pub(crate) static GROUP: Table = table("groups", GROUP_KEYS);
pub(crate) static NODE: Table = table("nodes", NODE_KEYS);
/// Keys of [`NODE`] that a switch has.
pub(crate) static SWITCH: Table = table("nodes", &[key("server", Kind::Name, "", "")]);
static MEMORY_KEYS: [Key; 7] = joined(&[
    &[key("bytes", MEMORY_SIZE, "as inherited", "Size, as in the short form.")],
    MEMORY_OPTIONS.keys,
]);
pub(crate) static MEMORY: Table = table("memory", &MEMORY_KEYS);
pub(crate) static SERVER: Table = table(
    "servers",
    &[
        key("nodes", Kind::Names, REQUIRED, "Members that sit in the server, switches included."),
        key("local", Kind::Table(&LOCAL), "as in `local` of the rack", "The local path of this server."),
    ],
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
