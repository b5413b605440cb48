//! Pictures of racks: members, links, their use and their faults, as SVG, as text for Graphviz, and as text for Mermaid.
//!
//! A picture is data ([`Graph`]). Its layout follows from the [`Shape`]: a circle for rings and meshes, layers for racks with switches, a
//! grid for a torus. Every layout is computed directly, so equal racks have equal pictures. In large racks, nodes with equal neighbours are
//! blocks, links between the same blocks are one line, and names are left out.

mod blocks;
mod curve;
mod dot;
mod layout;
mod mermaid;
mod model;
mod paint;

pub use model::{Graph, Link, LinkState, Node, NodeKind, Shape};
