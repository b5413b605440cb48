//! Declares shapes, members and links.

use rackloom_protocol::wire::layout::HOP_LIMIT_START;

use crate::model::hub::SwitchKind;
use crate::schema::{Choose, Key, Kind, REQUIRED, Table, key, table};

/// Largest number of members of a rack.
pub(crate) const MEMBERS_MAX: u64 = 4096;
/// Largest number of links of a rack: the core numbers them with 16 bits.
pub(crate) const LINKS_MAX: u64 = u16::MAX as u64;
/// Largest number of links that a frame can cross.
pub(crate) const HOPS_MAX: u64 = HOP_LIMIT_START as u64;
/// Largest number of planes of a rack.
pub(crate) const PLANES_MAX: u64 = 12;
/// Largest number of links between two members in one plane.
const PARALLEL_MAX: u64 = 16;

/// Returns the number of nodes of the largest full mesh within [`LINKS_MAX`].
const fn full_mesh_nodes_max() -> u64 {
    let mut most = 2;
    while most * (most + 1) / 2 <= LINKS_MAX {
        most += 1;
    }
    most
}

pub(crate) static SHAPE: Table = Table { name: "shape", keys: SHAPE_KEYS, choose: Choose::One };
pub(crate) static RING: Table = table(
    "shape.ring",
    // The detour around a cut link must stay within the hop limit of a frame.
    &[key(
        "nodes",
        Kind::Count(2, HOPS_MAX + 1),
        REQUIRED,
        "Number of nodes. Two nodes share one link. The long way round stays within the hop limit of a frame.",
    )],
);
pub(crate) static STAR: Table = table(
    "shape.star",
    &[
        key("nodes", Kind::Count(2, MEMBERS_MAX - 1), REQUIRED, "Number of nodes; 4096 with the switches."),
        key(
            "planes",
            Kind::Count(1, PLANES_MAX),
            "1",
            "Number of planes, each with a switch of its own. With one plane, a lost switch is an outage.",
        ),
        key(
            "switch",
            Kind::Word(SwitchKind::NAMES),
            "`member`",
            "What a switch is: a member of the rack, or a bridge of the kernel, which is none. A bridge needs the packet wire.",
        ),
    ],
);
pub(crate) static FULL_MESH: Table = table(
    "shape.full-mesh",
    &[key("nodes", Kind::Count(2, full_mesh_nodes_max()), REQUIRED, "Number of nodes.")],
);
pub(crate) static CUSTOM: Table = table(
    "shape.custom",
    &[
        key("nodes", Kind::Names, REQUIRED, "GPU nodes, in order of their rank."),
        key("switches", Kind::Names, "none", "Forwarders without memory."),
        key("links", Kind::List(&CUSTOM_LINK), "none", "Who is joined to whom."),
    ],
);
pub(crate) static CUSTOM_LINK: Table = table(
    "shape.custom.links",
    &[
        key("a", Kind::Name, REQUIRED, "One end. The link's name and its forward direction begin here."),
        key("b", Kind::Name, REQUIRED, "The other end."),
        key("plane", Kind::Count(0, PLANES_MAX - 1), "0", "The plane that the link belongs to."),
        key("parallel", Kind::Count(1, PARALLEL_MAX), "1", "How many such links join the two."),
    ],
);

const SHAPE_KEYS: &[Key] = &[
    key("ring", Kind::Table(&RING), "", "Each node linked to the next and the previous one."),
    key("star", Kind::Table(&STAR), "", "Each node linked to one switch per plane."),
    key("full-mesh", Kind::Table(&FULL_MESH), "", "Each node linked to each other node."),
    key("custom", Kind::Table(&CUSTOM), "", "Members and links by name."),
];
