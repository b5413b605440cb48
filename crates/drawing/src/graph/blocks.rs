//! Members and links as they are drawn: in small racks each on its own, in large ones together with others that have the same place.

use std::collections::BTreeMap;

use super::model::{Graph, Link, LinkState, NodeKind, ends_of};
use crate::text::{FONT, shown, width};

/// Number of members up to which each of them is drawn with its name.
pub(super) const NAMED_MAX: usize = 96;
/// Number of links up to which parallel ones are drawn side by side.
const PARALLEL_MAX: usize = 400;

/// Number of lines up to which lines have labels.
pub(super) const LABELLED_MAX: usize = 120;

/// Members and links as they are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<Block>,
    pub(super) lines: Vec<Line>,
}

/// Members that are drawn together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) members: Vec<usize>,
    pub(super) kind: NodeKind,
}

/// Links that are drawn as one line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Indices of blocks.
    pub(super) ends: (usize, usize),
    pub(super) links: Vec<usize>,
    /// Number of this line among those of the same ends, and the number of these.
    pub(super) parallel: (usize, usize),
    /// Greatest use.
    pub(super) value: Option<f64>,
    /// Failed if all links have failed, and faulted if one of them is not good.
    pub(super) state: LinkState,
}

impl Blocks {
    /// Returns members and links as they are drawn.
    pub(super) fn of(graph: &Graph) -> Self {
        let has_switches = graph.nodes.iter().any(|node| node.kind == NodeKind::Switch);
        let is_large = graph.nodes.len() > NAMED_MAX;
        let blocks = if is_large && has_switches { by_neighbours(graph) } else { each(graph) };
        Self::with(graph, blocks, graph.links.len() <= PARALLEL_MAX && !is_large)
    }

    /// Returns members and links with as few blocks and lines as possible.
    pub(super) fn fewest(graph: &Graph) -> Self {
        Self::with(graph, by_neighbours(graph), false)
    }

    /// Returns each member and each link.
    pub(super) fn all(graph: &Graph) -> Self {
        Self::with(graph, each(graph), true)
    }

    /// Returns the width of the widest label; 0 if lines have none.
    pub(super) fn label_width(&self, graph: &Graph) -> f64 {
        if self.lines.len() > LABELLED_MAX {
            return 0.0;
        }
        self.lines.iter().map(|line| width(&shown(&label(&graph.links, line)), FONT)).fold(0.0, f64::max)
    }

    fn with(graph: &Graph, blocks: Vec<Block>, is_apart: bool) -> Self {
        let mut block_of = vec![0; graph.nodes.len()];
        for (index, block) in blocks.iter().enumerate() {
            block.members.iter().for_each(|member| block_of[*member] = index);
        }
        let mut by_ends: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (index, link) in graph.links.iter().enumerate() {
            let Some((one, other)) = ends_of(link, graph.nodes.len()) else { continue };
            let ends = (block_of[one].min(block_of[other]), block_of[one].max(block_of[other]));
            by_ends.entry(ends).or_default().push(index);
        }
        let mut lines = Vec::new();
        for (ends, links) in by_ends {
            let parts: Vec<Vec<usize>> =
                if is_apart { links.chunks(1).map(<[_]>::to_vec).collect() } else { vec![links] };
            let count = parts.len();
            lines.extend(parts.into_iter().enumerate().map(|(number, links)| {
                let of = || links.iter().map(|link| &graph.links[*link]);
                Line {
                    ends,
                    parallel: (number, count),
                    value: of().filter_map(|link| link.value).reduce(f64::max),
                    state: joined(of().map(|link| link.state)),
                    links,
                }
            }));
        }
        Self { blocks, lines }
    }
}

/// Returns the state of a line of several links.
fn joined(states: impl Iterator<Item = LinkState> + Clone) -> LinkState {
    match (states.clone().min(), states.max()) {
        (Some(LinkState::Failed), _) => LinkState::Failed,
        (_, None | Some(LinkState::Good)) => LinkState::Good,
        _ => LinkState::Faulted,
    }
}

fn each(graph: &Graph) -> Vec<Block> {
    graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| Block { members: vec![index], kind: node.kind })
        .collect()
}

/// Returns blocks of nodes that have the same neighbours, in the order of their first members. Switches are on their own.
fn by_neighbours(graph: &Graph) -> Vec<Block> {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for link in &graph.links {
        let Some((one, other)) = ends_of(link, graph.nodes.len()) else { continue };
        neighbours[one].push(other);
        neighbours[other].push(one);
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut known: BTreeMap<(Vec<usize>, &str), usize> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut of_node = std::mem::take(&mut neighbours[index]);
        of_node.sort_unstable();
        let next = blocks.len();
        // Groups of one member are named after it.
        let group = if graph.nodes.iter().any(|other| other.group == node.group && other.name != node.name) {
            &node.group
        } else {
            ""
        };
        let is_alone = node.kind == NodeKind::Switch || of_node.is_empty();
        let place = if is_alone { next } else { *known.entry((of_node, group)).or_insert(next) };
        match blocks.get_mut(place) {
            Some(block) => block.members.push(index),
            None => blocks.push(Block { members: vec![index], kind: node.kind }),
        }
    }
    blocks
}

/// Returns the text for a line: its links' names, use and state.
pub(super) fn words(graph: &Graph, line: &Line) -> String {
    let name = match &line.links[..] {
        [link] => graph.links[*link].name.clone(),
        [first, ..] => format!("{} and {} more", graph.links[*first].name, line.links.len() - 1),
        [] => String::new(),
    };
    let of = |state: LinkState| line.links.iter().filter(|link| graph.links[**link].state == state).count();
    let count = |state: LinkState, word: &str| match (of(state), line.links.len()) {
        (0, _) => None,
        (1, 1) => Some(word.to_owned()),
        (count, _) => Some(format!("{count} {word}")),
    };
    let most = if line.links.len() > 1 { "at most " } else { "" };
    let value = line.value.map(|value| format!("{most}{} %", crate::number::plain(value * 100.0, 3)));
    let states = [count(LinkState::Failed, "failed"), count(LinkState::Faulted, "with faults")];
    let parts: Vec<String> = [Some(name), value].into_iter().chain(states).flatten().collect();
    parts.join(", ")
}

/// Returns the label of a line: that of its link, or the number of links.
pub(super) fn label(links: &[Link], line: &Line) -> String {
    match &line.links[..] {
        [link] => links[*link].label.clone(),
        several => format!("{} links", several.len()),
    }
}
