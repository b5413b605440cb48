//! Content of a picture of a rack.

/// Content of a picture of a rack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Title.
    pub title: String,
    /// Text below the title. May be empty.
    pub note: String,
    /// Shape, by which members are arranged.
    pub shape: Shape,
    /// Members.
    pub nodes: Vec<Node>,
    /// Links between members.
    pub links: Vec<Link>,
    /// Meaning of the links' values, for the legend.
    pub meaning: String,
    /// Meaning of groups, for the legend, such as "members of one server".
    pub group_meaning: String,
}

/// Member of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: NodeKind,
    /// Name of the group, such as a server; empty for none. Groups of several members are shown.
    pub group: String,
    /// True if it was lost.
    pub is_failed: bool,
}

/// Kind of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Node at the edge of the fabric.
    #[default]
    Node,
    /// Switch.
    Switch,
}

/// Link between two members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Indices of both members.
    pub ends: (usize, usize),
    /// Name, for texts beside the pointer.
    pub name: String,
    /// Text at the link; may be empty. It is left out if it would cover another text.
    pub label: String,
    /// Use from 0 to 1, if known.
    pub value: Option<f64>,
    /// State.
    pub state: LinkState,
}

/// State of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkState {
    /// No fault.
    #[default]
    Good,
    /// It lost frames or was down for a while.
    Faulted,
    /// It is down.
    Failed,
}

/// Shape of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Nodes below the switches of the planes.
    Star,
    /// Nodes on a circle.
    Ring,
    /// Nodes on a circle.
    FullMesh,
    /// Nodes, leaf switches and spine switches in layers.
    LeafSpine,
    /// Nodes on a grid of these sizes. The first coordinate grows fastest.
    Torus(Vec<usize>),
    /// Nodes at the corners of a cube of any dimension.
    Hypercube,
    /// Any other: layers if there are switches, else a circle.
    #[default]
    Custom,
}

/// Texts of the classes of use; the last is full use.
pub(super) const CLASS_TEXTS: [&str; 5] =
    ["below 1 %", "1 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"];

/// Returns the class of a value of use.
pub(super) fn class_of(value: f64) -> usize {
    [0.01, 0.25, 0.5, 0.75].iter().filter(|bound| value >= **bound).count()
}

/// Returns the ends of a link in the order of their indices; `None` if an end does not exist.
pub(super) fn ends_of(link: &Link, nodes: usize) -> Option<(usize, usize)> {
    let (one, other) = link.ends;
    (one < nodes && other < nodes).then(|| (one.min(other), one.max(other)))
}

/// Returns groups of several members, in the order of their first ones.
pub(super) fn groups(graph: &Graph) -> Vec<(&str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.group.is_empty()) {
        let place = *known.entry(node.group.as_str()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, members)) => members.push(index),
            None => groups.push((&node.group, vec![index])),
        }
    }
    groups.retain(|(_, members)| members.len() > 1);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_all_values() {
        assert_eq!([0.0, 0.005, 0.01, 0.3, 0.5, 0.75, 1.0, f64::NAN].map(class_of), [0, 0, 1, 2, 3, 4, 4, 0]);
    }
}
