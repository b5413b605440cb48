//! Positions of blocks. Each layout is a direct computation.

use std::collections::BTreeMap;

use super::blocks::{Blocks, NAMED_MAX};
use super::model::{Graph, NodeKind, Shape};
use crate::text::{FONT, width};

/// Widest name in a box.
pub(super) const NAME_MAX: f64 = 110.0;
/// Number of members above which marks without names are tiny.
const TINY_FROM: usize = 256;
/// Width to which rows grow for the sake of labels.
const ROW_WIDTH_MAX: f64 = 1400.0;
/// Greatest number of blocks of a row of a layer.
const ROW_MAX: usize = 40;

/// Box of a block: middle and size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Returns the place of each block. All places have positive coordinates.
pub(super) fn places(graph: &Graph, blocks: &Blocks) -> Vec<Place> {
    let mut places: Vec<Place> = sizes(graph, blocks);
    if places.is_empty() {
        return places;
    }
    let label_width = blocks.label_width(graph);
    match Arrangement::of(graph, blocks) {
        Arrangement::Grid(sizes) => grid(&sizes, &mut places, label_width),
        Arrangement::Tiers => layers(blocks, &mut places, label_width),
        Arrangement::Circle => circle(&mut places, label_width),
    }
    let left = places.iter().map(|place| place.x - place.width / 2.0).fold(f64::INFINITY, f64::min);
    let top = places.iter().map(|place| place.y - place.height / 2.0).fold(f64::INFINITY, f64::min);
    places.iter_mut().for_each(|place| (place.x, place.y) = (place.x - left, place.y - top));
    places
}

/// Arrangement of the blocks of a picture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// A grid with this number of blocks in each dimension.
    Grid(Vec<usize>),
    /// Nodes below, switches above.
    Tiers,
    Circle,
}

impl Arrangement {
    pub(super) fn of(graph: &Graph, blocks: &Blocks) -> Self {
        let count = blocks.blocks.len();
        match &graph.shape {
            Shape::Torus(sizes) if is_grid(sizes, blocks) => Self::Grid(sizes.clone()),
            Shape::Hypercube if count.is_power_of_two() && count > 1 => {
                Self::Grid(vec![2; count.ilog2() as usize])
            }
            _ if blocks.blocks.iter().any(|block| block.kind == NodeKind::Switch) => Self::Tiers,
            _ => Self::Circle,
        }
    }
}

fn is_grid(sizes: &[usize], blocks: &Blocks) -> bool {
    !sizes.is_empty() && sizes.iter().product::<usize>() == blocks.blocks.len()
}

/// Returns places with sizes alone.
fn sizes(graph: &Graph, blocks: &Blocks) -> Vec<Place> {
    let is_named = blocks.blocks.len() <= NAMED_MAX;
    let cell = cell(graph);
    let size = |members: &[usize], kind: NodeKind| match members {
        [one] if is_named || kind == NodeKind::Switch && blocks.blocks.len() <= 2 * NAMED_MAX => {
            let name = width(&graph.nodes[*one].name, FONT).min(NAME_MAX);
            (name + 16.0, 24.0)
        }
        [_] => (cell - 2.0, cell - 2.0),
        several => {
            let columns = columns(several.len()) as f64;
            let rows = (several.len() as f64 / columns).ceil();
            (columns * cell + 8.0, rows * cell + 8.0)
        }
    };
    let sized = blocks.blocks.iter().map(|block| size(&block.members, block.kind));
    sized.map(|(width, height)| Place { width, height, ..Place::default() }).collect()
}

/// Returns the distance between small marks of nodes without names.
pub(super) fn cell(graph: &Graph) -> f64 {
    if graph.nodes.len() > TINY_FROM { 7.0 } else { 11.0 }
}

/// Returns true if a place has a name.
pub(super) fn is_named(place: &Place) -> bool {
    place.height > 20.0
}

/// Returns the number of columns of a block.
pub(super) fn columns(members: usize) -> usize {
    (members as f64).sqrt().ceil().max(1.0) as usize
}

/// Places blocks on a circle, the first at the top, clockwise. Labels need space beside lines.
fn circle(places: &mut [Place], label_width: f64) {
    let count = places.len() as f64;
    let widest = places.iter().map(|place| place.width).fold(0.0, f64::max);
    let tallest = places.iter().map(|place| place.height).fold(0.0, f64::max);
    // Neighbours at the top stand beside each other, those at the sides below each other.
    let gap = if places.iter().all(is_named) { 14.0 } else { 3.0 };
    let step = (widest + gap).max(tallest + gap);
    let least = if label_width > 0.0 { 110.0 + 16.0 * count.min(16.0) } else { 90.0 };
    let radius = (step * count / std::f64::consts::TAU).max(if count > 1.0 { least } else { 0.0 });
    for (index, place) in places.iter_mut().enumerate() {
        let angle = std::f64::consts::TAU * index as f64 / count;
        (place.x, place.y) = (radius * angle.sin(), -radius * angle.cos());
    }
}

/// Places blocks on a grid. The third and further dimensions go aslant, so that links of different dimensions do not cover each other.
fn grid(sizes: &[usize], places: &mut [Place], label_width: f64) {
    let widest = places.iter().map(|place| place.width).fold(0.0, f64::max);
    let tallest = places.iter().map(|place| place.height).fold(0.0, f64::max);
    let mut vectors: Vec<(f64, f64)> = Vec::new();
    // Space that one step of a dimension must leave to the dimensions that are drawn within it.
    let gap: f64 = if places.iter().all(is_named) { 34.0 } else { 12.0 };
    // A label has space beside a line that goes around a member.
    let (gap_x, gap_y) = if label_width > 0.0 { (label_width + 64.0, 70.0) } else { (gap, gap) };
    let (mut step_x, mut step_y) = (widest + gap_x, tallest + gap_y);
    if let Some(depth) = sizes.get(2) {
        let depth = *depth as f64 - 1.0;
        let slant = (widest * 0.5 + gap * 0.65, -(tallest + gap * 0.35));
        vectors = vec![(step_x + slant.0 * depth, 0.0), (0.0, step_y - slant.1 * depth), slant];
    } else {
        vectors.extend([(step_x, 0.0), (0.0, step_y)]);
    }
    let extent = |vectors: &[(f64, f64)]| {
        let along = |of: fn(&(f64, f64)) -> f64| -> f64 {
            vectors.iter().zip(sizes).map(|(vector, size)| of(vector).abs() * (*size as f64 - 1.0)).sum()
        };
        (along(|vector| vector.0), along(|vector| vector.1))
    };
    for dimension in 3..sizes.len() {
        (step_x, step_y) = extent(&vectors);
        // Copies of the picture so far stand beside and below each other in turn, with a small shift that keeps links apart.
        let shift = 17.0 * (dimension as f64 - 1.0);
        let beside = (step_x + widest + 60.0, shift);
        let below = (shift, step_y + tallest + 60.0);
        vectors.push(if dimension % 2 == 1 { beside } else { below });
    }
    for (index, place) in places.iter_mut().enumerate() {
        let mut rest = index;
        for (size, (x, y)) in sizes.iter().zip(&vectors) {
            let coordinate = (rest % size) as f64;
            rest /= size;
            place.x += coordinate * x;
            place.y += coordinate * y;
        }
    }
}

/// Places nodes in the lowest layer, and each switch in a layer above by its distance from the nodes. Labels need space beside lines.
fn layers(blocks: &Blocks, places: &mut [Place], label_width: f64) {
    let layer_of = distances(blocks);
    let mut layers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, layer) in layer_of.iter().enumerate() {
        layers.entry(*layer).or_default().push(index);
    }
    let mut rows: Vec<(usize, Vec<usize>)> = Vec::new();
    for (layer, members) in layers {
        // Rows of equal length.
        let count = members.len().div_ceil(ROW_MAX);
        let length = members.len().div_ceil(count.max(1));
        rows.extend(members.chunks(length.max(1)).map(|row| (layer, row.to_vec())));
    }
    let mut upward = vec![0_usize; places.len()];
    for line in blocks.lines.iter().filter(|line| layer_of[line.ends.0] != layer_of[line.ends.1]) {
        let (one, other) = line.ends;
        upward[if layer_of[one] < layer_of[other] { one } else { other }] += 1;
    }
    let gap = |row: &[usize]| {
        let least = if row.iter().any(|block| is_named(&places[*block])) { 16.0 } else { 2.0 };
        if label_width == 0.0 {
            return least;
        }
        // The labels of the lines of one block stand beside each other above it.
        let of_block = |block: &usize| (label_width + 10.0) * upward[*block] as f64 - places[*block].width;
        let wanted = row.iter().map(of_block).fold(least, f64::max);
        wanted.min((ROW_WIDTH_MAX / row.len() as f64).max(least))
    };
    let length = |row: &[usize]| row.iter().map(|block| places[*block].width + gap(row)).sum::<f64>();
    let widest = rows.iter().map(|(_, row)| length(row)).fold(0.0, f64::max);
    // Names stand below blocks of several members.
    let gap_of_rows = if blocks.blocks.iter().any(|block| block.members.len() > 1) { 44.0 } else { 20.0 };
    let mut positions: Vec<(usize, f64, f64)> = Vec::new();
    let mut y = 0.0;
    let mut below: Option<(usize, f64)> = None;
    for (layer, row) in &rows {
        let tallest = row.iter().map(|block| places[*block].height).fold(0.0, f64::max);
        if let Some((below, tallest_below)) = below {
            // Space for the links between layers grows with the width.
            let between: f64 = if label_width > 0.0 { 130.0 } else { 70.0 };
            let gap = if below == *layer { gap_of_rows } else { (between + widest * 0.08).min(260.0) };
            y -= f64::midpoint(tallest, tallest_below) + gap;
        }
        below = Some((*layer, tallest));
        // Few blocks spread over the width.
        let gap = gap(row) + ((widest - length(row)) / row.len() as f64).max(0.0);
        let mut x = 0.0;
        for block in row {
            let width = places[*block].width + gap;
            positions.push((*block, x + width / 2.0, y));
            x += width;
        }
    }
    for (block, x, y) in positions {
        (places[block].x, places[block].y) = (x, y);
    }
}

/// Returns the layer of each block: 0 for nodes, and for switches the distance from the nearest node.
fn distances(blocks: &Blocks) -> Vec<usize> {
    let mut neighbours = vec![Vec::new(); blocks.blocks.len()];
    for line in &blocks.lines {
        neighbours[line.ends.0].push(line.ends.1);
        neighbours[line.ends.1].push(line.ends.0);
    }
    let nodes = blocks.blocks.iter().enumerate().filter(|(_, block)| block.kind == NodeKind::Node);
    let mut layer_of = vec![usize::MAX; blocks.blocks.len()];
    let mut reached: Vec<usize> = nodes.map(|(index, _)| index).collect();
    reached.iter().for_each(|block| layer_of[*block] = 0);
    let mut layer = 1;
    while !reached.is_empty() {
        let mut next: Vec<usize> = Vec::new();
        for neighbour in reached.iter().flat_map(|block| &neighbours[*block]) {
            if layer_of[*neighbour] == usize::MAX {
                layer_of[*neighbour] = layer;
                next.push(*neighbour);
            }
        }
        reached = next;
        layer += 1;
    }
    // Switches that no node reaches stand beside the lowest ones.
    layer_of.iter().map(|layer| if *layer == usize::MAX { 1 } else { *layer }).collect()
}
