//! Text for Graphviz (`dot -Tsvg`).

use super::blocks::{Blocks, words};
use super::model::{Graph, LinkState, NodeKind, Shape, class_of, groups};
use crate::text::shown;

/// Colours of the classes of use.
const COLOURS: [&str; 5] = ["#c3ccd6", "#8fb7dd", "#3f86c6", "#0b559f", "#06264d"];

impl Graph {
    /// Returns the graph as text for Graphviz. Every member and every link is in it.
    #[must_use]
    pub fn dot(&self) -> String {
        let layout = match self.shape {
            Shape::Star | Shape::LeafSpine => "dot",
            Shape::Ring | Shape::FullMesh => "circo",
            Shape::Torus(_) | Shape::Hypercube | Shape::Custom => "neato",
        };
        let mut text = format!("graph {} {{\n", quoted(&self.title));
        text += &format!("  layout={layout}; rankdir=BT; overlap=false; fontname=\"sans-serif\";\n");
        text += &format!("  label={}; labelloc=t;\n", quoted(&self.title));
        text += "  node [fontname=\"sans-serif\", style=filled];\n";
        // Names are labels: they may have any characters.
        for (index, node) in self.nodes.iter().enumerate() {
            let (shape, fill) = match node.kind {
                NodeKind::Node => ("box", "#dbe9f8"),
                NodeKind::Switch => ("ellipse", "#ececec"),
            };
            let failed =
                if node.is_failed { ", color=\"#b3001b\", penwidth=3, style=\"filled,dashed\"" } else { "" };
            text += &format!(
                "  m{index} [label={}, shape={shape}, fillcolor=\"{fill}\"{failed}];\n",
                quoted(&node.name)
            );
        }
        for (number, (group, members)) in groups(self).into_iter().enumerate() {
            let members: Vec<String> = members.iter().map(|member| format!("m{member}")).collect();
            text += &format!(
                "  subgraph cluster_{number} {{ label={}; {}; }}\n",
                quoted(group),
                members.join("; ")
            );
        }
        for line in Blocks::all(self).lines {
            let link = &self.links[line.links[0]];
            let colour = match (link.state, link.value) {
                (LinkState::Failed, _) => "#b3001b",
                (LinkState::Faulted, _) => "#a35b00",
                (LinkState::Good, value) => COLOURS[value.map_or(2, class_of)],
            };
            let style = match link.state {
                LinkState::Good => "solid",
                LinkState::Faulted => "dashed",
                LinkState::Failed => "dotted",
            };
            let label = if link.label.is_empty() {
                String::new()
            } else {
                format!(", label={}", quoted(&link.label))
            };
            let pen = 1 + link.value.map_or(0, class_of);
            let (one, other) = line.ends;
            let tooltip = quoted(&words(self, &line));
            text += &format!(
                "  m{one} -- m{other} [color=\"{colour}\", style={style}, penwidth={pen}, tooltip={tooltip}{label}];\n"
            );
        }
        text + "}\n"
    }
}

/// Returns a text in quotes. In labels, Graphviz reads backslashes as escapes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;"))
}
