//! Topology of the rack of a report: kinds and servers of its members, ends and rates of its links.
//!
//! A picture of the rack needs nothing else, so that a report can be drawn without its rack file.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Topology of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Shape of the links.
    pub shape: TopologyShape,
    /// Members by dimension of a torus; empty for other shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Members, in the order of the report's `nodes`.
    pub members: Vec<TopologyMember>,
    /// Links, in the order of the plan. The directions of link `i` are the report's `links` 2 `i` (from `a` to `b`) and 2 `i` + 1.
    pub links: Vec<TopologyLink>,
}

impl Topology {
    /// Returns the names of both directions of each link, as reports have them. `names` are those of the members.
    #[must_use]
    pub fn directions(&self, names: &[&str]) -> Vec<[String; 2]> {
        direction_names(names, self.links.iter().map(|link| (link.a, link.b)))
    }
}

/// Returns the names of both directions of links between these members. A second link between the same two has `#1` behind its name.
pub(super) fn direction_names(names: &[&str], links: impl Iterator<Item = (u16, u16)>) -> Vec<[String; 2]> {
    let name = |member: u16| names.get(usize::from(member)).copied().unwrap_or("?");
    let mut times_named = HashMap::<(u16, u16), u32>::new();
    let of = |(a, b): (u16, u16)| {
        let times = times_named.entry((a.min(b), a.max(b))).or_default();
        let suffix = if *times > 0 { format!("#{times}") } else { String::new() };
        *times += 1;
        [(a, b), (b, a)].map(|(from, to)| format!("{}->{}{suffix}", name(from), name(to)))
    };
    links.map(of).collect()
}

/// Shape of a rack's links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyShape {
    /// Nodes below the switches of planes, which no link joins.
    Star,
    /// Nodes on a circle.
    Ring,
    /// A link between any two nodes.
    FullMesh,
    /// Nodes below leaf switches, which spine switches join.
    LeafSpine,
    /// Nodes on a closed grid.
    Torus,
    /// Nodes at the corners of a cube of any dimension.
    Hypercube,
    /// Any other.
    #[default]
    Custom,
}

/// Member of a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyMember {
    /// True for a switch, false for a GPU node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_switch: bool,
    /// Name of the node's server; empty for switches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
}

/// Link of a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyLink {
    /// Name of the link in the plan, such as `n0--n1`.
    pub name: String,
    /// Index of the first end among the members.
    pub a: u16,
    /// Index of the other end.
    pub b: u16,
    /// Port of the first end.
    pub a_port: u16,
    /// Port of the other end.
    pub b_port: u16,
    /// Rate of each direction in bits per second; absent if the link has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
}
