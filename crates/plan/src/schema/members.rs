//! Declares nodes, groups, servers, and what they inherit.

use crate::model::defaults;
use crate::model::members::device::DEVICE;
use crate::model::members::local::LOCAL;
use crate::model::members::member::MEMORY_OPTIONS;
use crate::setting::name::Named;
use crate::setting::section::{Reference, section};
use crate::setting::table::{DefaultText, Key, Kind, REQUIRED, Table, joined, key, table, with_defaults};

/// Smallest and largest memory of a node.
const MEMORY_SIZE: Kind = Kind::Size(4 << 10, 64 << 30);
/// Forms of `memory`.
const MEMORY_FORMS: Kind = Kind::Either(&[MEMORY_SIZE, Kind::Table(&MEMORY)]);

section! {
    /// Settings of one seat. An absent value is inherited.
    #[derive(Clone, Debug)]
    pub(crate) struct SeatKeys: SEAT = "nodes" {
        /// Memory of the node.
        memory: Reference {
            form = MEMORY_FORMS;
            default = Reference;
            shown = "as in its group";
        }
        /// Partition of the seat. A node's tenant comes from here, never from a message.
        tenant: Option<u16> {
            form = Kind::Count(0, u16::MAX as u64);
            default = None;
            shown = "as in its group";
        }
        /// The server that the member sits in.
        server: Option<String> {
            form = Kind::Name(Named::Server);
            default = None;
            shown = "as in its group";
        }
    }
}

section! {
    /// Size of a node's memory in the long form of `memory`.
    #[derive(Clone, Debug)]
    pub(crate) struct MemorySize: MEMORY_BYTES = "memory" {
        /// Size, as in the short form.
        bytes: Option<u64> {
            form = MEMORY_SIZE;
            default = None;
            shown = "as inherited";
        }
    }
}

static MEMORY_KEYS: [Key; 9] = joined(&[MEMORY_BYTES.keys, MEMORY_OPTIONS.keys]);
pub(crate) static MEMORY: Table = table("memory", &MEMORY_KEYS);

const OWN_DEVICE: Key = key(
    "device",
    Kind::Table(&DEVICE),
    "as in `device` of the rack",
    "Model of the GPU of this node or group, in virtual time. Keys that are not stated are those of the group, or of the rack.",
);
static NODE_KEYS: [Key; 4] = joined(&[SEAT.keys, &[OWN_DEVICE]]);
pub(crate) static NODE: Table = table("nodes", &NODE_KEYS);

static DEFAULT_KEYS: [Key; 3] = with_defaults(
    SEAT.keys,
    [
        DefaultText::Constant { shown: || MEMORY_SIZE.number_shown(defaults::MEMORY_BYTES), is_ours: true },
        DefaultText::Text("0"),
        DefaultText::Text("`server-` and the node's name"),
    ],
);
pub(crate) static DEFAULTS: Table = table("defaults", &DEFAULT_KEYS);

const GROUP_NODES: Key =
    key("nodes", Kind::Names, REQUIRED, "Members of the group. A member is in one group at most.");
static GROUP_KEYS: [Key; 5] = joined(&[
    &[GROUP_NODES],
    &with_defaults::<3>(SEAT.keys, [DefaultText::Text("as in `defaults`"); 3]),
    &[OWN_DEVICE],
]);
pub(crate) static GROUP: Table = table("groups", &GROUP_KEYS);

/// Keys of [`NODE`] that a switch has.
static SWITCH_KEYS: [Key; 1] = [SEAT.keys[2]];
pub(crate) static SWITCH: Table = table("nodes", &SWITCH_KEYS);

pub(crate) static SERVER: Table = table(
    "servers",
    &[
        key("nodes", Kind::Names, REQUIRED, "Members that sit in the server, switches included."),
        key("local", Kind::Table(&LOCAL), "as in `local` of the rack", "The local path of this server."),
    ],
);
