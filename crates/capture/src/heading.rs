//! Heading of a capture, before the first frame: the rack, its members, the two ends of the link.
//!
//! Every part of a capture of one link begins with the same heading, so that interfaces have the same numbers in all.

use rackloom_plan::Plan;
use rackloom_plan::impair::Direction;

use crate::block;

/// Prefix of the comment that lists the members by number.
pub const MEMBERS: &str = "members:";

/// Names of one link in its capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Both ends, as `n0-p0--n1-p1`; also the name of its file.
    pub link: String,
    /// The ends, as interfaces: the one that sends forward, and the one that sends backward.
    pub ends: [String; 2],
    descriptions: [String; 2],
    rate_bits_per_s: Option<u64>,
    comments: Vec<String>,
}

impl Heading {
    /// Returns the heading of a link of a plan.
    #[must_use]
    pub fn of(plan: &Plan, edge: u16) -> Option<Self> {
        let link = plan.links.get(usize::from(edge))?;
        let (a, b) = ((link.edge.a, link.edge.a_port), (link.edge.b, link.edge.b_port));
        let name = |member: rackloom_protocol::NodeId| plan.members[member.index()].name.as_str();
        let end = |(member, port): (_, rackloom_protocol::PortId)| format!("{}-p{}", name(member), port.0);
        let describe = |(from, port): (_, rackloom_protocol::PortId), to| {
            format!("{} port {} to {}, {}", name(from), port.0, name(to), link.edge.plane)
        };
        let names: Vec<_> = plan.members.iter().map(|member| member.name.as_str()).collect();
        let comments = vec![format!("rack: {}", plan.name), format!("{MEMBERS} {}", names.join(" "))];
        Some(Self {
            link: format!("{}--{}", end(a), end(b)),
            ends: [end(a), end(b)],
            descriptions: [describe(a, b.0), describe(b, a.0)],
            rate_bits_per_s: link.profile.rate_bits_per_s,
            comments,
        })
    }

    /// Returns the interface whose frames go in this direction.
    #[must_use]
    pub const fn interface(direction: Direction) -> u32 {
        match direction {
            Direction::Forward => 0,
            Direction::Backward => 1,
        }
    }

    /// Appends section header and interfaces.
    pub fn write(&self, out: &mut Vec<u8>) {
        let application = concat!("rackloom ", env!("CARGO_PKG_VERSION"));
        block::section_header(out, application, &self.comments);
        for (name, description) in self.ends.iter().zip(&self.descriptions) {
            block::interface_description(out, name, description, self.rate_bits_per_s);
        }
    }
}

/// Returns the members that a section's comments list, by number; empty if they list none.
#[must_use]
pub fn members_of(comments: &[String]) -> Vec<String> {
    let line = comments.iter().find_map(|comment| comment.strip_prefix(MEMBERS));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
