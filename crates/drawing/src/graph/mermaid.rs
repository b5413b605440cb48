//! Text for Mermaid, as pages of repositories draw it.

use super::blocks::{Blocks, label};
use super::model::{Graph, LinkState, NodeKind};
use crate::text::shown;

/// Number of links that Mermaid draws without a changed configuration.
const LINKS_MAX: usize = 500;

impl Graph {
    /// Returns the graph as text for Mermaid. It draws 500 links, so that a graph with more has blocks of nodes with equal neighbours.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut blocks = Blocks::all(self);
        if blocks.lines.len() > LINKS_MAX {
            blocks = Blocks::fewest(self);
        }
        let mut text = format!("---\ntitle: {}\n---\nflowchart BT\n", quoted_title(&self.title));
        if blocks.lines.len() > LINKS_MAX {
            text += &format!("  %% {} links: Mermaid needs a greater maxEdges\n", blocks.lines.len());
        }
        for (index, block) in blocks.blocks.iter().enumerate() {
            let name = match &block.members[..] {
                [one] => self.nodes[*one].name.clone(),
                [first, .., last] => {
                    let [first, last] = [first, last].map(|member| &self.nodes[*member].name);
                    format!("{first} to {last} ({})", block.members.len())
                }
                [] => String::new(),
            };
            text += &match block.kind {
                NodeKind::Node => format!("  m{index}[{}]\n", quoted(&name)),
                NodeKind::Switch => format!("  m{index}([{}])\n", quoted(&name)),
            };
            if block.members.iter().any(|member| self.nodes[*member].is_failed) {
                text += &format!("  style m{index} stroke:#b3001b,stroke-width:4px,stroke-dasharray:4\n");
            }
        }
        for (number, line) in blocks.lines.iter().enumerate() {
            let label = label(&self.links, line);
            let label = if label.is_empty() { String::new() } else { format!("|{}|", quoted(&label)) };
            let arrow = match line.state {
                LinkState::Good => "---",
                LinkState::Faulted | LinkState::Failed => "-.-",
            };
            text += &format!("  m{} {arrow}{label} m{}\n", line.ends.0, line.ends.1);
            let colour = match line.state {
                LinkState::Failed => Some("#b3001b"),
                LinkState::Faulted => Some("#a35b00"),
                LinkState::Good => None,
            };
            let pen = line.value.map(|value| format!("stroke-width:{}px", 1 + super::model::class_of(value)));
            let styles: Vec<String> =
                colour.map(|colour| format!("stroke:{colour}")).into_iter().chain(pen).collect();
            if !styles.is_empty() {
                text += &format!("  linkStyle {number} {}\n", styles.join(","));
            }
        }
        text
    }
}

/// Returns a text in quotes, with entities for the characters that have a meaning in Mermaid.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in shown(text).chars() {
        match character {
            '#' | '"' | '<' | '>' | '&' | '`' | '\\' | ';' => {
                quoted.push_str(&format!("#{};", u32::from(character)))
            }
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

/// Returns the title as a text of YAML.
fn quoted_title(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}
