//! Pictures of racks as SVG text.

use std::collections::BTreeMap;

use super::blocks::{Blocks, LABELLED_MAX, Line, label, words};
use super::curve::{Curve, facing};
use super::layout::{Arrangement, NAME_MAX, Place, cell, columns, is_named, places};
use super::model::{CLASS_TEXTS, Graph, LinkState, NodeKind, class_of, groups};
use crate::number::coordinate;
use crate::svg::{Anchor, Svg};
use crate::text::{FONT, TITLE_FONT, hint, shortened, shown, width, wrapped};

const MARGIN: f64 = 22.0;
/// Least width of a picture: titles and the legend need it.
const WIDTH_MIN: f64 = 560.0;
/// Width of a picture above which title and legend are larger.
const SCALE_FROM: f64 = 1100.0;
/// Number of lines up to which each line is an element of its own, with a text beside the pointer.
const SINGLE_MAX: usize = 1500;
/// Number of lines up to which lines go around blocks.
const AROUND_MAX: usize = 700;
/// Half of the size of the cross on a link that is down.
const CROSS: f64 = 6.0;
/// Width of the frame of a member of a group. Frames of neighbours do not touch.
const BAND: f64 = 5.0;
/// Number of lines of one look above which only some are drawn, evenly distributed.
const THIN_FROM: usize = 70_000;

impl Graph {
    /// Returns the picture as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let (svg, size) = draw(self);
        let count = |kind: NodeKind| self.nodes.iter().filter(|node| node.kind == kind).count();
        let (nodes, switches) = (count(NodeKind::Node), count(NodeKind::Switch));
        let description =
            format!("{} {nodes} nodes, {switches} switches, {} links.", self.note, self.links.len());
        svg.finish(size, &self.title, &description)
    }
}

fn draw(graph: &Graph) -> (Svg, (f64, f64)) {
    let blocks = Blocks::of(graph);
    let mut places = places(graph, &blocks);
    let is_around = blocks.lines.len() <= AROUND_MAX && places.len() <= 2 * super::blocks::NAMED_MAX;
    let label_width = blocks.label_width(graph);
    let are_tiers = Arrangement::of(graph, &blocks) == Arrangement::Tiers;
    let curve = |line: &Line| {
        let (one, other) = (places[line.ends.0], places[line.ends.1]);
        let step = distance_of_parallel(one, other, label_width);
        let shift = (line.parallel.0 as f64 - (line.parallel.1 as f64 - 1.0) / 2.0) * step;
        match (is_around, are_tiers) {
            (true, _) => Curve::around(&places, line.ends, shift, are_tiers),
            (false, true) => {
                let (from, to) = facing(one, other);
                Curve::bent(from, to, shift)
            }
            (false, false) => Curve::bent(one, other, shift),
        }
    };
    let mut curves: Vec<Curve> = blocks.lines.iter().map(curve).collect();
    let [left, top, right, bottom] = bounds(&places, &curves);
    let names: Vec<Vec<String>> =
        (0..places.len()).map(|index| block_name(graph, &blocks, &places, index)).collect();
    let lines_below = names.iter().map(Vec::len).max().unwrap_or(0);
    let content = (right - left, bottom - top + 14.0 * lines_below as f64 + 2.0);
    let whole = (content.0 + 2.0 * MARGIN).max(WIDTH_MIN);

    // Titles of large pictures are as readable as those of small ones when the whole is shown.
    let scale = (whole / SCALE_FROM).max(1.0);
    let mut svg = Svg::default();
    let y = header(&mut svg, graph, &blocks, whole, scale);
    let moved = (f64::midpoint(whole, -content.0) - left, y + 14.0 - top);
    places.iter_mut().for_each(|place| (place.x, place.y) = (place.x + moved.0, place.y + moved.1));
    curves.iter_mut().for_each(|curve| *curve = curve.moved(moved));
    svg.raw(&format!("<style>{STYLE}</style>"));
    if places.len() == graph.nodes.len() {
        bands(&mut svg, graph, &places);
    }
    let is_single = blocks.lines.len() <= SINGLE_MAX;
    if is_single {
        blocks.lines.iter().zip(&curves).for_each(|(line, curve)| single(&mut svg, graph, line, curve));
    } else {
        merged(&mut svg, &blocks.lines, &curves);
    }
    for ((block, place), name) in blocks.blocks.iter().zip(&places).zip(&names) {
        paint_block(&mut svg, graph, &block.members, block.kind, *place);
        for (number, line) in name.iter().enumerate() {
            let y = place.y + place.height / 2.0 + 13.0 + 14.0 * number as f64;
            svg.text((place.x, y), Anchor::Middle, "soft halo", line);
        }
    }
    let without_label = if blocks.lines.len() <= LABELLED_MAX {
        labels(&mut svg, graph, &blocks.lines, &curves, &places, whole)
    } else {
        blocks.lines.len()
    };
    let has_labels = graph.links.iter().any(|link| !link.label.is_empty());
    let note = (has_labels && without_label > 0).then(|| {
        let what = if blocks.lines.len() == graph.links.len() { "links" } else { "lines" };
        format!("{without_label} of {} {what} have no number, for lack of space", blocks.lines.len())
    });
    let end = y + 14.0 + content.1 + 26.0 * scale;
    let end = legend(&mut svg, graph, &blocks, note.as_deref(), [end, whole, scale]);
    (svg, (whole, end + 8.0 * scale))
}

/// Rules of style of pictures of racks, beside those of all pictures.
const STYLE: &str = "\
.rk .link{fill:none}.rk .u0{stroke:var(--rk-u0);stroke-width:1.2}.rk .u1{stroke:var(--rk-u1);stroke-width:2}.rk .u2{stroke:var(--rk-u2);stroke-width:3}\
.rk .u3{stroke:var(--rk-u3);stroke-width:4}.rk .u4{stroke:var(--rk-u4);stroke-width:5.5}.rk .plain{stroke:var(--rk-6);stroke-width:1.4}\
.rk .faulted{stroke:var(--rk-warn);stroke-dasharray:8 4}.rk .failed{stroke:var(--rk-bad);stroke-dasharray:2 4;stroke-width:3}\
.rk .node{fill:var(--rk-node);stroke:var(--rk-ink)}.rk .switch{fill:var(--rk-switch);stroke:var(--rk-ink)}.rk .lost{stroke:var(--rk-bad);stroke-width:2.5}\
.rk .band rect{fill:var(--rk-grid)}.rk .band polyline{fill:none;stroke:var(--rk-grid);stroke-width:16}.rk .block{fill:var(--rk-paper);stroke:var(--rk-soft)}\
.rk .halo{stroke:var(--rk-paper);stroke-width:3px;paint-order:stroke;stroke-linejoin:round}.rk .thin{opacity:.55}
";

/// Returns left, top, right and bottom of everything.
fn bounds(places: &[Place], curves: &[Curve]) -> [f64; 4] {
    let corners = places.iter().flat_map(|place| {
        let (half_width, half_height) = (place.width / 2.0, place.height / 2.0);
        [(place.x - half_width, place.y - half_height), (place.x + half_width, place.y + half_height)]
    });
    let middles = curves.iter().flat_map(|curve| [0.25, 0.5, 0.75].map(|share| curve.at(share)));
    let start = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
    let bounds = corners.chain(middles).fold(start, |[left, top, right, bottom], (x, y)| {
        [left.min(x), top.min(y), right.max(x), bottom.max(y)]
    });
    if bounds[0] > bounds[2] { [0.0; 4] } else { bounds }
}

/// Returns the distance of parallel lines at their middle. Their labels stand beside each other.
fn distance_of_parallel(one: Place, other: Place, label_width: f64) -> f64 {
    if label_width == 0.0 {
        return 9.0;
    }
    let (dx, dy) = ((other.x - one.x).abs(), (other.y - one.y).abs());
    let length = dx.hypot(dy).max(1.0);
    (dy / length * (label_width + 8.0)).hypot(dx / length * 20.0)
}

/// Returns the name of a block of several members, in lines that leave space to its neighbours. Empty if there is no space.
fn block_name(graph: &Graph, blocks: &Blocks, places: &[Place], index: usize) -> Vec<String> {
    let (members, place) = (&blocks.blocks[index].members, places[index]);
    let [Some(first), Some(last)] = [members.first(), members.last()] else { return Vec::new() };
    if first == last {
        return Vec::new();
    }
    let neighbours = places.iter().enumerate().filter(|(other, neighbour)| {
        *other != index
            && (neighbour.y - place.y).abs() < f64::midpoint(neighbour.height, place.height) + 30.0
    });
    let nearest = neighbours.map(|(_, other)| (other.x - place.x).abs()).fold(f64::INFINITY, f64::min);
    let space = (nearest - 8.0).min(place.width + 2.0 * MARGIN - 4.0);
    let [first, last] = [first, last].map(|member| shown(&graph.nodes[*member].name));
    let name = format!("{first} to {last}");
    let lines = wrapped(&name, FONT, space, 2);
    // A name that is cut would be another one.
    if lines.join(" ") == name { lines } else { Vec::new() }
}

/// Draws title and note; returns the lowest line.
fn header(svg: &mut Svg, graph: &Graph, blocks: &Blocks, whole: f64, scale: f64) -> f64 {
    let length = whole - 2.0 * MARGIN;
    let mut y = 12.0 * scale;
    for line in wrapped(&graph.title, TITLE_FONT * scale * 1.08, length, 3) {
        y += 17.0 * scale;
        svg.sized((MARGIN, y), "title", &line, TITLE_FONT * scale);
    }
    let drawn = thinned(&blocks.lines);
    let thin =
        (drawn < blocks.lines.len()).then(|| format!("{drawn} of {} links are drawn.", blocks.lines.len()));
    let notes = [Some(graph.note.clone()).filter(|note| !note.is_empty()), thin].into_iter().flatten();
    y += 4.0 * scale;
    for line in notes.flat_map(|note| wrapped(&note, FONT * scale, length, 6)) {
        y += 15.0 * scale;
        svg.sized((MARGIN, y), "soft", &line, FONT * scale);
    }
    y + 6.0 * scale
}

/// Draws a band behind the members of each group: a frame for each of them, and a line between.
fn bands(svg: &mut Svg, graph: &Graph, places: &[Place]) {
    for (group, members) in groups(graph) {
        let of = || members.iter().map(|member| places[*member]);
        let line: Vec<String> =
            of().map(|place| format!("{},{}", coordinate(place.x), coordinate(place.y))).collect();
        let frame = |place: Place| {
            let (width, height) = (place.width + 2.0 * BAND, place.height + 2.0 * BAND);
            let [x, y] = [place.x - width / 2.0, place.y - height / 2.0].map(coordinate);
            format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"7\"/>",
                coordinate(width),
                coordinate(height)
            )
        };
        let frames: String = of().map(frame).collect();
        let title = hint(group);
        svg.raw(&format!(
            "<g class=\"band\"><title>{title}</title><polyline points=\"{}\"/>{frames}</g>",
            line.join(" ")
        ));
    }
}

/// Look of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Look {
    state: LinkState,
    class: Option<usize>,
}

impl Look {
    fn of(line: &Line) -> Self {
        Self { state: line.state, class: line.value.map(class_of) }
    }

    fn classes(self) -> String {
        let used = self.class.map_or_else(|| "plain".to_owned(), |class| format!("u{class}"));
        match self.state {
            LinkState::Good => format!("link {used}"),
            LinkState::Faulted => format!("link {used} faulted"),
            LinkState::Failed => format!("link {used} failed"),
        }
    }
}

fn path(curve: &Curve) -> String {
    let ((x, y), (to_x, to_y)) = (curve.from, curve.to);
    if curve.bend == 0.0 {
        return format!("M{x:.0} {y:.0}L{to_x:.0} {to_y:.0}");
    }
    format!("M{x:.0} {y:.0}Q{:.0} {:.0} {to_x:.0} {to_y:.0}", curve.control.0, curve.control.1)
}

fn single(svg: &mut Svg, graph: &Graph, line: &Line, curve: &Curve) {
    let title = hint(&words(graph, line));
    let classes = Look::of(line).classes();
    svg.raw(&format!("<path class=\"{classes}\" d=\"{}\"><title>{title}</title></path>", path(curve)));
    if line.state == LinkState::Failed {
        cross(svg, curve.at(0.5), CROSS);
    }
}

fn cross(svg: &mut Svg, (x, y): (f64, f64), half: f64) {
    let attributes = "style=\"stroke:var(--rk-bad)\" stroke-width=\"2.5\"";
    svg.line((x - half, y - half), (x + half, y + half), attributes);
    svg.line((x - half, y + half), (x + half, y - half), attributes);
}

/// Returns which of every how many lines of a look are drawn.
fn stride(state: LinkState, count: usize) -> usize {
    if state == LinkState::Good { count.div_ceil(THIN_FROM).max(1) } else { 1 }
}

fn by_look(lines: &[Line]) -> BTreeMap<Look, Vec<usize>> {
    let mut looks: BTreeMap<Look, Vec<usize>> = BTreeMap::new();
    lines.iter().enumerate().for_each(|(index, line)| looks.entry(Look::of(line)).or_default().push(index));
    looks
}

/// Returns the number of lines that are drawn.
fn thinned(lines: &[Line]) -> usize {
    if lines.len() <= SINGLE_MAX {
        return lines.len();
    }
    by_look(lines).iter().map(|(look, of)| of.len().div_ceil(stride(look.state, of.len()))).sum()
}

/// Draws all lines of one look as one element. Lines with more use and with faults are above the others.
fn merged(svg: &mut Svg, lines: &[Line], curves: &[Curve]) {
    for (look, of) in by_look(lines) {
        let paths: String =
            of.iter().step_by(stride(look.state, of.len())).map(|index| path(&curves[*index])).collect();
        svg.raw(&format!("<path class=\"{} thin\" d=\"{paths}\"/>", look.classes()));
    }
}

fn paint_block(svg: &mut Svg, graph: &Graph, members: &[usize], kind: NodeKind, place: Place) {
    let class = |member: usize| match (kind, graph.nodes[member].is_failed) {
        (NodeKind::Node, false) => "node",
        (NodeKind::Node, true) => "node lost",
        (NodeKind::Switch, false) => "switch",
        (NodeKind::Switch, true) => "switch lost",
    };
    let [left, top] = [place.x - place.width / 2.0, place.y - place.height / 2.0];
    if members.len() > 1 {
        let [x, y, width_text, height] = [left, top, place.width, place.height].map(coordinate);
        svg.raw(&format!(
            "<rect class=\"block\" x=\"{x}\" y=\"{y}\" width=\"{width_text}\" height=\"{height}\" rx=\"4\"/>"
        ));
    }
    let title = |member: usize| {
        let lost = if graph.nodes[member].is_failed { ", lost" } else { "" };
        format!("<title>{}{lost}</title>", hint(&graph.nodes[member].name))
    };
    let mut rect = |member: usize, [x, y, width, height, radius]: [f64; 5]| {
        let [x, y, width, height] = [x, y, width, height].map(coordinate);
        let class = class(member);
        svg.raw(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\">{}</rect>",
            title(member)
        ));
    };
    if let [member] = members {
        let radius = if kind == NodeKind::Switch { 12.0 } else { 3.0 };
        rect(*member, [left, top, place.width, place.height, radius]);
        if is_named(&place) {
            let name = shortened(&graph.nodes[*member].name, FONT, NAME_MAX);
            svg.text((place.x, place.y + 4.0), Anchor::Middle, "", &name);
        }
        if graph.nodes[*member].is_failed {
            cross(svg, (left + place.width, top), 5.0);
        }
        return;
    }
    let (count, cell) = (columns(members.len()), cell(graph));
    for (index, member) in members.iter().enumerate() {
        let (column, row) = (index % count, index / count);
        rect(
            *member,
            [
                left + 4.0 + cell * column as f64 + 1.0,
                top + 4.0 + cell * row as f64 + 1.0,
                cell - 2.0,
                cell - 2.0,
                1.0,
            ],
        );
    }
}

/// Draws each label on its line, where it covers neither a block nor another label and no other line passes, so that no reader takes it for
/// that of another line. Returns the number of lines whose labels have no such spot.
fn labels(
    svg: &mut Svg,
    graph: &Graph,
    lines: &[Line],
    curves: &[Curve],
    places: &[Place],
    whole: f64,
) -> usize {
    let mut taken: Vec<[f64; 4]> = places
        .iter()
        .map(|place| {
            let (half_width, half_height) = (place.width / 2.0 + 2.0, place.height / 2.0 + 2.0);
            [place.x - half_width, place.y - half_height, place.x + half_width, place.y + half_height]
        })
        .collect();
    let failed = lines.iter().zip(curves).filter(|(line, _)| line.state == LinkState::Failed);
    taken.extend(failed.map(|(_, curve)| {
        let (x, y) = curve.at(0.5);
        [x - CROSS, y - CROSS, x + CROSS, y + CROSS]
    }));
    let free = |taken: &[[f64; 4]], bounds: [f64; 4]| taken.iter().all(|other| are_apart(*other, bounds));
    let mut spots: Vec<(usize, String, Vec<[f64; 4]>)> = Vec::new();
    for (index, (line, curve)) in lines.iter().zip(curves).enumerate() {
        let words = shown(&label(&graph.links, line));
        if words.is_empty() {
            continue;
        }
        let half = width(&words, FONT) / 2.0 + 2.0;
        let is_own = |bounds: [f64; 4]| {
            let mut others = curves.iter().enumerate().filter(|(other, _)| *other != index);
            others.all(|(_, other)| !other.crosses(bounds))
        };
        let possible =
            SHARES.iter().map(|share| curve.at(*share)).map(|(x, y)| [x - half, y - 8.0, x + half, y + 8.0]);
        let possible = possible.filter(|bounds| {
            bounds[0] >= 2.0 && bounds[2] <= whole - 2.0 && free(&taken, *bounds) && is_own(*bounds)
        });
        spots.push((index, words, possible.collect()));
    }
    // Lines with few spots choose first.
    spots.sort_by_key(|(index, _, possible)| (possible.len(), *index));
    let mut without = 0;
    for (_, words, possible) in spots {
        let Some(bounds) = possible.into_iter().find(|bounds| free(&taken, *bounds)) else {
            without += 1;
            continue;
        };
        taken.push(bounds);
        let at = (f64::midpoint(bounds[0], bounds[2]), bounds[1] + 12.0);
        svg.text(at, Anchor::Middle, "halo", &words);
    }
    without
}

/// Shares of a line at which its label may stand, in the order of preference.
const SHARES: [f64; 31] = [
    0.5, 0.47, 0.53, 0.44, 0.56, 0.41, 0.59, 0.38, 0.62, 0.35, 0.65, 0.32, 0.68, 0.29, 0.71, 0.26, 0.74,
    0.23, 0.77, 0.2, 0.8, 0.17, 0.83, 0.14, 0.86, 0.12, 0.88, 0.1, 0.9, 0.08, 0.92,
];

const fn are_apart(one: [f64; 4], other: [f64; 4]) -> bool {
    one[0] >= other[2] || other[0] >= one[2] || one[1] >= other[3] || other[1] >= one[3]
}

/// Draws the legend in rows; returns its end.
/// `note` stands at its end, and `area` has its top, the width of the picture and the scale of texts.
fn legend(svg: &mut Svg, graph: &Graph, blocks: &Blocks, note: Option<&str>, area: [f64; 3]) -> f64 {
    let [y, whole, scale] = area;
    let mut items: Vec<(Sample, String)> = Vec::new();
    let has = |kind: NodeKind| graph.nodes.iter().any(|node| node.kind == kind);
    let mut add = |is_there: bool, sample: Sample, words: &str| {
        if is_there {
            items.push((sample, words.to_owned()));
        }
    };
    add(has(NodeKind::Node), Sample::Box("node", 3.0), "node");
    add(has(NodeKind::Switch), Sample::Box("switch", 8.0), "switch");
    add(graph.nodes.iter().any(|node| node.is_failed), Sample::Box("node lost", 3.0), "lost");
    let is_each = blocks.blocks.len() == graph.nodes.len();
    add(
        is_each && !groups(graph).is_empty() && !graph.group_meaning.is_empty(),
        Sample::Band,
        &graph.group_meaning,
    );
    let has_state = |state: LinkState| graph.links.iter().any(|link| link.state == state);
    add(has_state(LinkState::Faulted), Sample::Line("link plain faulted".to_owned()), "link with faults");
    add(has_state(LinkState::Failed), Sample::Line("link failed".to_owned()), "link that is down");
    let mut x = MARGIN;
    let mut end = y;
    let mut y = y;
    let mut flow = |svg: &mut Svg, sample: Option<&Sample>, words: &str| {
        let words = shortened(words, FONT * scale, whole - 2.0 * MARGIN - 40.0 * scale);
        let before = if sample.is_some() { 38.0 * scale } else { 0.0 };
        let length = before + width(&words, FONT * scale);
        if x + length > whole - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 22.0 * scale);
        }
        if let Some(sample) = sample {
            svg.raw(&format!(
                "<g transform=\"translate({} {}) scale({scale:.2})\">",
                coordinate(x),
                coordinate(y)
            ));
            sample.draw(svg);
            svg.raw("</g>");
        }
        svg.sized((x + before, y + 4.0 * scale), "soft", &words, FONT * scale);
        x += length + 20.0 * scale;
        y
    };
    for (sample, words) in &items {
        end = flow(svg, Some(sample), words);
    }
    if graph.links.iter().any(|link| link.value.is_some()) {
        end = flow(svg, None, &graph.meaning);
        for (class, words) in CLASS_TEXTS.iter().enumerate() {
            end = flow(svg, Some(&Sample::Line(format!("link u{class}"))), words);
        }
    }
    if let Some(note) = note {
        end = flow(svg, None, note);
    }
    end + 12.0 * scale
}

#[derive(Clone, Debug)]
enum Sample {
    Box(&'static str, f64),
    Band,
    Line(String),
}

impl Sample {
    /// Draws the sample to the right of the origin.
    fn draw(&self, svg: &mut Svg) {
        svg.raw(&match self {
            Self::Box(class, radius) => {
                format!("<rect class=\"{class}\" y=\"-8\" width=\"30\" height=\"16\" rx=\"{radius}\"/>")
            }
            Self::Band => {
                "<rect y=\"-8\" width=\"30\" height=\"16\" rx=\"7\" style=\"fill:var(--rk-grid)\"/>"
                    .to_owned()
            }
            Self::Line(class) => format!("<path class=\"{class}\" d=\"M0 0H30\"/>"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::curve::segment_crosses;
    use super::super::model::{Link, Node, Shape};
    use super::*;
    use crate::svg::overlaps;

    fn nodes(count: usize, kind: NodeKind, name: &str) -> Vec<Node> {
        let node = |number: usize| Node { name: format!("{name}{number}"), kind, ..Node::default() };
        (0..count).map(node).collect()
    }

    fn link(one: usize, other: usize) -> Link {
        let value = Some((one * 7 + other) as f64 % 11.0 / 10.0);
        Link {
            ends: (one, other),
            name: format!("{one}--{other}"),
            label: "100 Gbit/s".into(),
            value,
            ..Link::default()
        }
    }

    fn graph(shape: Shape, nodes: Vec<Node>, links: Vec<Link>) -> Graph {
        Graph {
            title: "a rack".into(),
            note: "as it is".into(),
            shape,
            nodes,
            links,
            meaning: "use".into(),
            ..Graph::default()
        }
    }

    fn full_mesh(count: usize) -> Graph {
        let links = (0..count).flat_map(|one| (one + 1..count).map(move |other| link(one, other))).collect();
        graph(Shape::FullMesh, nodes(count, NodeKind::Node, "n"), links)
    }

    fn ring(count: usize) -> Graph {
        let links = (0..count).map(|one| link(one, (one + 1) % count)).collect();
        graph(Shape::Ring, nodes(count, NodeKind::Node, "n"), links)
    }

    fn torus(sizes: &[usize]) -> Graph {
        let count = sizes.iter().product();
        let mut links = Vec::new();
        let mut stride = 1;
        for size in sizes {
            for one in 0..count {
                let is_last = one / stride % size == size - 1;
                if !(is_last && *size <= 2) {
                    links.push(link(one, if is_last { one - stride * (size - 1) } else { one + stride }));
                }
            }
            stride *= size;
        }
        graph(Shape::Torus(sizes.to_vec()), nodes(count, NodeKind::Node, "n"), links)
    }

    fn leaf_spine(leaves: usize, per_leaf: usize, spines: usize) -> Graph {
        let count = leaves * per_leaf;
        let mut all = nodes(count, NodeKind::Node, "n");
        all.extend(nodes(leaves, NodeKind::Switch, "leaf"));
        all.extend(nodes(spines, NodeKind::Switch, "spine"));
        let mut links: Vec<_> = (0..count).map(|node| link(node, count + node / per_leaf)).collect();
        links.extend(
            (0..leaves * spines).map(|pair| link(count + pair / spines, count + leaves + pair % spines)),
        );
        graph(Shape::LeafSpine, all, links)
    }

    fn racks() -> Vec<Graph> {
        let mut parallel = ring(4);
        parallel.links.extend([link(0, 1), link(0, 1), link(1, 0)]);
        let cube = Graph { shape: Shape::Hypercube, ..torus(&[2; 5]) };
        let custom = Graph { shape: Shape::Custom, ..leaf_spine(2, 3, 1) };
        vec![
            Graph::default(),
            ring(2),
            ring(8),
            ring(64),
            ring(1024),
            full_mesh(8),
            full_mesh(64),
            full_mesh(400),
            torus(&[4, 4]),
            torus(&[4, 2, 2]),
            torus(&[8, 8, 16]),
            torus(&[3, 3, 3, 3]),
            cube,
            custom,
            leaf_spine(1, 8, 0),
            leaf_spine(1, 1024, 0),
            leaf_spine(1, 100, 0),
            leaf_spine(4, 4, 2),
            leaf_spine(32, 32, 16),
            leaf_spine(64, 16, 32),
            parallel,
        ]
    }

    #[test]
    fn no_text_covers_another_and_all_are_within_the_picture() {
        for graph in racks() {
            let (svg, (width, height)) = draw(&graph);
            assert_eq!(overlaps(&svg), [], "{:?} of {}", graph.shape, graph.nodes.len());
            for (words, [left, top, right, bottom]) in &svg.boxes {
                assert!(
                    *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height,
                    "{words} leaves the picture"
                );
            }
        }
    }

    #[test]
    fn large_racks_have_small_pictures_with_every_member() {
        for graph in racks() {
            let svg = graph.svg();
            assert!(svg.len() < 2_000_000, "{:?} of {}: {} bytes", graph.shape, graph.nodes.len(), svg.len());
            let members =
                svg.matches("<rect class=\"node\" ").count() + svg.matches("<rect class=\"switch\" ").count();
            let legend = usize::from(!graph.nodes.is_empty())
                + usize::from(graph.nodes.iter().any(|node| node.kind == NodeKind::Switch));
            assert_eq!(members, graph.nodes.len() + legend, "{:?}", graph.shape);
            assert_eq!(svg, graph.clone().svg());
        }
    }

    #[test]
    fn blocks_of_members_do_not_cover_each_other() {
        for graph in racks() {
            let blocks = Blocks::of(&graph);
            let places = places(&graph, &blocks);
            for (index, one) in places.iter().enumerate() {
                for other in &places[index + 1..] {
                    let apart_x = (one.x - other.x).abs() >= (one.width + other.width) / 2.0 - 1e-6;
                    let apart_y = (one.y - other.y).abs() >= (one.height + other.height) / 2.0 - 1e-6;
                    assert!(
                        apart_x || apart_y,
                        "{:?} of {}: {one:?} {other:?}",
                        graph.shape,
                        graph.nodes.len()
                    );
                }
            }
        }
    }

    #[test]
    fn lost_members_and_links_with_faults_are_marked_also_in_large_racks() {
        for mut graph in [leaf_spine(4, 4, 2), leaf_spine(32, 32, 16), full_mesh(100)] {
            let clean = graph.svg();
            assert!(
                !clean.contains(" lost\"") && !clean.contains(" failed\"") && !clean.contains(" faulted")
            );
            graph.nodes[3].is_failed = true;
            graph.links[5].state = LinkState::Failed;
            graph.links[9].state = LinkState::Faulted;
            let svg = graph.svg();
            for mark in ["node lost\"", " faulted", "link that is down", "link with faults"] {
                assert!(svg.contains(mark), "{mark} in a rack of {}", graph.nodes.len());
            }
            // One of many links that are drawn as one is no failure of all of them.
            let is_bundled = graph.nodes.len() > 1000;
            assert_eq!(svg.contains("1 failed"), is_bundled);
            let failed =
                svg.lines().filter(|line| line.contains("<path class=\"link") && line.contains(" failed"));
            let drawn = failed
                .filter(|line| line.split_once(" d=").is_some_and(|(class, _)| class.contains(" failed")));
            assert_eq!(
                drawn.count(),
                if is_bundled { 1 } else { 2 },
                "the sample of the legend, and the link"
            );
        }
    }

    #[test]
    fn parallel_links_are_apart() {
        let mut graph = ring(3);
        graph.links.push(link(0, 1));
        let svg = graph.svg();
        let paths: Vec<&str> =
            svg.lines().filter(|line| line.contains("class=\"link") && line.contains("<title>")).collect();
        assert_eq!(paths.len(), 4);
        let mut shapes: Vec<&str> =
            paths.iter().filter_map(|line| line.split("d=\"").nth(1)?.split('"').next()).collect();
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes.len(), 4, "{paths:?}");
    }

    /// Returns the labels of links that a picture shows.
    fn numbers(svg: &str) -> usize {
        svg.lines().filter(|line| line.starts_with("<text ") && line.contains(" class=\"halo\"")).count()
    }

    /// Returns how many straight links pass labels that another link passes already.
    fn wrong_lines(svg: &str) -> usize {
        let value = |line: &str, name: &str| -> f64 {
            let rest = line.split_once(&format!(" {name}=\"")).expect("an attribute").1;
            rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
        };
        let labels = svg.lines().filter(|line| line.contains(" class=\"halo\""));
        let links: Vec<Vec<f64>> = svg
            .lines()
            .filter(|line| {
                line.starts_with("<path class=\"link") && line.contains("<title>") && !line.contains('Q')
            })
            .filter_map(|line| line.split_once(" d=\"M")?.1.split('"').next())
            .map(|path| path.split([' ', 'L']).filter_map(|number| number.parse().ok()).collect())
            .collect();
        let passing = |line: &str| {
            let (x, y) = (value(line, "x"), value(line, "y"));
            let bounds = [x - 12.0, y - 9.0, x + 12.0, y + 1.0];
            links.iter().filter(|at| segment_crosses(bounds, (at[0], at[1]), (at[2], at[3]))).count()
        };
        labels.map(passing).map(|count| count.saturating_sub(1)).sum()
    }

    fn with_numbers(mut graph: Graph) -> Graph {
        for (number, link) in graph.links.iter_mut().enumerate() {
            link.label = format!("{} %", 40 + number % 7);
        }
        graph
    }

    #[test]
    fn each_link_of_a_small_rack_has_its_number_on_its_own_line_alone() {
        let mut killed = leaf_spine(2, 4, 0);
        killed.links[3].state = LinkState::Failed;
        // A star of four nodes and two switches.
        let mut all = nodes(4, NodeKind::Node, "n");
        all.extend(nodes(2, NodeKind::Switch, "s"));
        let links: Vec<Link> = (0..8).map(|number| link(number / 2, 4 + number % 2)).collect();
        let star = graph(Shape::Star, all, links);
        let mut lost = star.clone();
        for index in [6, 7] {
            lost.links[index].state = LinkState::Failed;
        }
        let parallel = racks().pop().expect("a ring with parallel links");
        let small =
            [star, lost, killed, parallel, ring(4), ring(8), torus(&[3, 3]), full_mesh(4), full_mesh(5)];
        for graph in small.map(with_numbers) {
            let svg = graph.svg();
            assert_eq!(numbers(&svg), graph.links.len(), "{:?} of {}", graph.shape, graph.nodes.len());
            assert!(!svg.contains("for lack of space"), "{:?}", graph.shape);
            assert_eq!(wrong_lines(&svg), 0, "{:?} of {}", graph.shape, graph.nodes.len());
        }
    }

    #[test]
    fn a_picture_says_how_many_numbers_it_has_no_space_for() {
        let mesh = with_numbers(full_mesh(14));
        let svg = mesh.svg();
        let without = mesh.links.len() - numbers(&svg);
        assert!(without > 0, "a mesh of 91 links is too dense");
        assert!(svg.contains(&format!(">{without} of 91 links have no number, for lack of space<")), "{svg}");
        let large = with_numbers(full_mesh(20)).svg();
        assert!(large.contains(">190 of 190 links have no number, for lack of space<"));
        let plain = Graph { links: Vec::new(), ..full_mesh(20) }.svg();
        assert!(!plain.contains("for lack of space"));
    }

    #[test]
    fn each_block_of_a_large_rack_has_its_name_and_links_between_tiers_are_straight() {
        let svg = leaf_spine(32, 32, 16).svg();
        for (first, last) in (0..32).map(|leaf| (leaf * 32, leaf * 32 + 31)) {
            let is_whole = svg.contains(&format!(">n{first} to n{last}<"));
            let has_lines = svg.contains(&format!(">n{first} to<")) && svg.contains(&format!(">n{last}<"));
            assert!(is_whole || has_lines, "n{first} to n{last}");
        }
        let links: Vec<&str> = svg.lines().filter(|line| line.starts_with("<path class=\"link")).collect();
        assert!(links.len() >= 32 + 512, "{}", links.len());
        let bent = links.iter().filter(|line| line.contains('Q')).count();
        assert_eq!(bent, 0, "no member is between neighbouring tiers");
    }

    #[test]
    fn hostile_names_are_text_in_each_format() {
        let hostile = "<b>\"]|;`#&\\\u{202e}\n";
        let mut graph = leaf_spine(2, 2, 1);
        graph.title = hostile.into();
        graph.nodes[0].name = hostile.into();
        graph.links[0].label = hostile.into();
        for text in [graph.svg(), graph.dot(), graph.mermaid()] {
            assert!(!text.contains('\u{202e}'), "{text}");
        }
        assert!(!graph.svg().contains("<b>"));
        assert!(graph.dot().contains(r#"label="<b>\"]|;`#&amp;\\"#), "{}", graph.dot());
        assert!(graph.mermaid().contains("m0[\"#60;b#62;#34;]|#59;#96;#35;#38;#92;"), "{}", graph.mermaid());
    }

    #[test]
    fn text_formats_have_every_link_and_mermaid_only_as_many_as_it_draws() {
        let small = leaf_spine(4, 4, 2);
        assert_eq!(small.dot().matches(" -- ").count(), 24);
        assert_eq!(small.mermaid().matches(" ---").count(), 24);
        let large = leaf_spine(32, 32, 4);
        assert_eq!(large.dot().matches(" -- ").count(), 1024 + 128);
        // A line for each block and for each pair of switches.
        assert_eq!(large.mermaid().matches(" ---").count(), 32 + 128);
        assert!(large.mermaid().contains("n0 to n31 (32)"));
    }
}
