//! Declares shapes, members and links.

use rackloom_protocol::wire::layout::HOP_LIMIT_START;

pub(crate) use crate::model::bounds::{LINKS_MAX, MEMBERS_MAX};
use crate::model::members::hub::SwitchKind;
use crate::setting::name::Named;
use crate::setting::section::{Reference, section};
use crate::setting::table::{Choose, Key, Kind, REQUIRED, Table, key, table};

/// Largest number of links that a frame can cross.
pub(crate) const HOPS_MAX: u64 = HOP_LIMIT_START as u64;
/// Largest number of planes of a rack.
pub(crate) const PLANES_MAX: u64 = 12;
/// Largest number of links between two members in one plane.
const PARALLEL_MAX: u64 = 16;

/// Largest number of dimensions of a hypercube: 16384 nodes.
const HYPERCUBE_DIMENSIONS_MAX: u64 = MEMBERS_MAX.ilog2() as u64;

/// Returns the number of nodes of the largest full mesh within [`LINKS_MAX`].
const fn full_mesh_nodes_max() -> u64 {
    let mut most = 2;
    while most * (most + 1) / 2 <= LINKS_MAX {
        most += 1;
    }
    most
}

section! {
    /// Keys of a ring.
    pub(crate) struct RingKeys: RING = "shape.ring" {
        /// Number of nodes. Two nodes share one link. The long way round stays within the hop limit of a frame.
        nodes: u16 {
            // The detour around a cut link must stay within the hop limit of a frame.
            form = Kind::Count(2, HOPS_MAX + 1);
            default = 0;
            shown = REQUIRED;
        }
    }
}

section! {
    /// Keys of a star.
    pub(crate) struct StarKeys: STAR = "shape.star" {
        /// Number of nodes; 16384 with the switches.
        nodes: u16 {
            form = Kind::Count(2, MEMBERS_MAX - 1);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of planes, each with a switch of its own. With one plane, a lost switch is an outage.
        planes: u8 {
            form = Kind::Count(1, PLANES_MAX);
            default = 1;
        }
        /// Kind of the switches: members of the rack, or bridges of the kernel, which are none. A bridge needs the packet wire.
        switch: SwitchKind {
            form = Kind::Choice(SwitchKind::NAMES);
            default = SwitchKind::Member;
        }
    }
}

section! {
    /// Keys of a full mesh.
    pub(crate) struct FullMeshKeys: FULL_MESH = "shape.full-mesh" {
        /// Number of nodes.
        nodes: u16 {
            form = Kind::Count(2, full_mesh_nodes_max());
            default = 0;
            shown = REQUIRED;
        }
    }
}

section! {
    /// Keys of a rack of leaf switches and spine switches.
    pub(crate) struct LeafSpineKeys: LEAF_SPINE = "shape.leaf-spine" {
        /// Number of leaf switches of a plane; 16384 members in all.
        leaves: u16 {
            form = Kind::Count(2, MEMBERS_MAX);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of nodes at each leaf.
        nodes_per_leaf: u16 {
            form = Kind::Count(1, MEMBERS_MAX);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of spine switches of a plane. A frame to another leaf crosses one of them.
        spines: u16 {
            form = Kind::Count(1, MEMBERS_MAX);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of links that join a leaf and a spine.
        parallel: u16 {
            form = Kind::Count(1, PARALLEL_MAX);
            default = 1;
        }
        /// Number of planes. Each has leaves and spines of its own, and a link of each node.
        planes: u8 {
            form = Kind::Count(1, PLANES_MAX);
            default = 1;
        }
    }
}

section! {
    /// Keys of a torus.
    pub(crate) struct TorusKeys: TORUS = "shape.torus" {
        /// Number of nodes in the first dimension; 16384 in all.
        x: u16 {
            form = Kind::Count(2, HOPS_MAX + 1);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of nodes in the second dimension.
        y: u16 {
            form = Kind::Count(2, HOPS_MAX + 1);
            default = 0;
            shown = REQUIRED;
        }
        /// Number of nodes in the third dimension. 1 is a torus of two dimensions.
        z: u16 {
            form = Kind::Count(1, HOPS_MAX + 1);
            default = 1;
        }
    }
}

section! {
    /// Keys of a hypercube.
    pub(crate) struct HypercubeKeys: HYPERCUBE = "shape.hypercube" {
        /// Number of dimensions *d*; there are 2^*d* nodes.
        dimensions: u8 {
            form = Kind::Count(1, HYPERCUBE_DIMENSIONS_MAX);
            default = 0;
            shown = REQUIRED;
        }
    }
}

pub(crate) static CUSTOM: Table = table(
    "shape.custom",
    &[
        key("nodes", Kind::Names, REQUIRED, "GPU nodes, in order of their rank."),
        key("switches", Kind::Names, "none", "Forwarders without memory."),
        key("links", Kind::List(&CUSTOM_LINK), "none", "Links of the rack."),
    ],
);

section! {
    /// Keys of one entry of `links`.
    pub(crate) struct CustomLinkKeys: CUSTOM_LINK = "shape.custom.links" {
        /// One end. The link's name and its forward direction begin here.
        a: Reference {
            form = Kind::Name(Named::Member);
            default = Reference;
            shown = REQUIRED;
        }
        /// The other end.
        b: Reference {
            form = Kind::Name(Named::Member);
            default = Reference;
            shown = REQUIRED;
        }
        /// The plane that the link belongs to.
        plane: u8 {
            form = Kind::Count(0, PLANES_MAX - 1);
            default = 0;
        }
        /// Number of such links that join the two.
        parallel: u16 {
            form = Kind::Count(1, PARALLEL_MAX);
            default = 1;
        }
    }
}

pub(crate) static SHAPE: Table = Table { name: "shape", keys: SHAPE_KEYS, choose: Choose::One };

const SHAPE_KEYS: &[Key] = &[
    key("ring", Kind::Table(&RING), "", "Each node linked to the next and the previous one."),
    key("star", Kind::Table(&STAR), "", "Each node linked to one switch per plane."),
    key("full-mesh", Kind::Table(&FULL_MESH), "", "Each node linked to each other node."),
    key(
        "leaf-spine",
        Kind::Table(&LEAF_SPINE),
        "",
        "Each node linked to a leaf switch, each leaf to each spine switch.",
    ),
    key(
        "torus",
        Kind::Table(&TORUS),
        "",
        "A grid of two or three dimensions whose rows, columns and pillars are rings.",
    ),
    key("hypercube", Kind::Table(&HYPERCUBE), "", "Two nodes linked if their numbers differ in one bit."),
    key("custom", Kind::Table(&CUSTOM), "", "Members and links by name."),
];
