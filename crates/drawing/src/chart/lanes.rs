//! Time line: a lane for each kind of event, with marks for moments and boxes for durations.
//!
//! Marks that would cover each other stand below each other, in a few rows. Lanes differ in colour and in their marks. Durations with names
//! differ in their outlines and colours too, and have their names in or beside them.

use super::axis::Axis;
use super::bars::header;
use super::legend::LINE_HEIGHT;
use super::scale::Scale;
use super::ticks;
use crate::number::coordinate;
use crate::palette::Look;
use crate::svg::{Anchor, Svg};
use crate::text::{FONT, hint, shown, width, wrapped};

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 14.0;
/// Widest name of a lane.
const NAME_MAX: f64 = 160.0;
/// Height of a row of marks, of a box, and half of the size of a mark.
const ROW: f64 = 13.0;
const BOX_HEIGHT: f64 = 9.0;
/// Height of a row with names.
const NAMED_ROW: f64 = 21.0;
const RADIUS: f64 = 4.0;
/// Rows of a lane at most. Marks without a free row stand in the last one.
const ROWS_MAX: usize = 5;
/// Space above and below the marks of a lane.
const PADDING: f64 = 5.0;

/// Content of a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// Title.
    pub title: String,
    /// Text below the title. May be empty.
    pub note: String,
    /// Axis of time. Its scale is linear.
    pub time: Axis,
    /// Begin and end of the axis.
    pub range: (f64, f64),
    /// Lanes from top to bottom.
    pub lanes: Vec<Lane>,
}

/// Marks of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Name.
    pub name: String,
    /// Marks.
    pub marks: Vec<Mark>,
}

/// Moment or duration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Begin.
    pub at: f64,
    /// End of a duration; `None` for a moment.
    pub until: Option<f64>,
    /// Text that browsers show beside the pointer.
    pub text: String,
    /// Name in or beside the box of a duration; may be empty. It is left out where there is no space, and the picture says so.
    pub name: String,
}

impl Lanes {
    /// Returns the time line as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let (svg, size) = draw(self);
        let names: Vec<&str> = self.lanes.iter().map(|lane| lane.name.as_str()).collect();
        svg.finish(size, &self.title, &format!("{} Lanes: {}.", self.note, names.join(", ")))
    }
}

/// Mark with its horizontal extent and its row.
struct Placed<'a> {
    mark: &'a Mark,
    left: f64,
    right: f64,
    row: usize,
    /// Position of the name, and its shown text.
    name: Option<(f64, String)>,
}

fn draw(lanes: &Lanes) -> (Svg, (f64, f64)) {
    let mut svg = Svg::default();
    let top = header(&mut svg, &lanes.title, &lanes.note);
    let names: Vec<Vec<String>> =
        lanes.lanes.iter().map(|lane| wrapped(&lane.name, FONT, NAME_MAX, 2)).collect();
    let widest = names.iter().flatten().map(|line| width(line, FONT)).fold(0.0, f64::max);
    let (left, right) = (MARGIN + widest + 12.0, WIDTH - MARGIN - 24.0);
    let (from, to) = lanes.range;
    let to = if to > from { to } else { from + 1.0 };
    let scale = Scale::of_range(from, to, left, right);
    let placed: Vec<Vec<Placed<'_>>> = lanes.lanes.iter().map(|lane| place(lane, &scale)).collect();
    let heights: Vec<f64> = placed.iter().map(|marks| height(marks)).collect();
    let bottom = top + heights.iter().sum::<f64>();

    let marks = ticks::level(&lanes.time, &scale, &[], FONT);
    for (value, text) in &marks.marks {
        let Some(at) = scale.coordinate(*value) else { continue };
        svg.line((at, top), (at, bottom), "class=\"grid\"");
        svg.text((at, bottom + 17.0), Anchor::Middle, "", text);
    }
    let mut y = top;
    for (number, ((lines, marks), height)) in names.iter().zip(&placed).zip(&heights).enumerate() {
        let first = y + height / 2.0 + 4.0 - LINE_HEIGHT * (lines.len() - 1) as f64 / 2.0;
        for (index, line) in lines.iter().enumerate() {
            svg.text((left - 10.0, first + LINE_HEIGHT * index as f64), Anchor::End, "", line);
        }
        let rows = marks.iter().map(|mark| mark.row + 1).max().unwrap_or(1);
        let row = row_height(marks);
        let upper = y + (height - row * rows as f64) / 2.0;
        let mut known: Vec<&str> = Vec::new();
        for placed in marks {
            // Equal names have equal looks.
            let name = placed.mark.name.as_str();
            let look = if name.is_empty() {
                number
            } else if let Some(known) = known.iter().position(|one| *one == name) {
                known
            } else {
                known.push(name);
                known.len() - 1
            };
            draw_mark(&mut svg, look, placed, (upper + row * placed.row as f64, row));
        }
        y += height;
        svg.line((MARGIN, y), (right, y), "class=\"grid\"");
    }
    svg.line((left, top), (left, bottom), "class=\"axis\"");
    svg.line((left, bottom), (right, bottom), "class=\"axis\"");
    let label = lanes.time.label_with(marks.unit.as_deref());
    svg.text((f64::midpoint(left, right), bottom + 37.0), Anchor::Middle, "", &label);
    let is_unnamed = |placed: &&Placed<'_>| !placed.mark.name.is_empty() && placed.name.is_none();
    let unnamed = placed.iter().flatten().filter(is_unnamed).count();
    if unnamed == 0 {
        return (svg, (WIDTH, bottom + 37.0 + MARGIN));
    }
    let note = format!("{unnamed} names have no space here; they appear beside the pointer.");
    svg.text((left, bottom + 56.0), Anchor::Start, "soft", &note);
    (svg, (WIDTH, bottom + 56.0 + MARGIN))
}

/// Returns the height of a lane: that of its rows, and at least that of a name of two lines.
fn height(marks: &[Placed<'_>]) -> f64 {
    let rows = marks.iter().map(|mark| mark.row + 1).max().unwrap_or(1);
    (row_height(marks) * rows as f64).max(LINE_HEIGHT * 2.0) + 2.0 * PADDING
}

/// Returns the height of a row: names need more than marks.
fn row_height(marks: &[Placed<'_>]) -> f64 {
    if marks.iter().any(|placed| placed.name.is_some()) { NAMED_ROW } else { ROW }
}

/// Returns the marks in the order of time. Each stands in the first row that is free there.
fn place<'a>(lane: &'a Lane, scale: &Scale) -> Vec<Placed<'a>> {
    let extent = |mark: &'a Mark| {
        let at = scale.nearest(mark.at)?;
        let (left, right) = match mark.until {
            Some(until) => {
                let right = scale.nearest(until)?.max(at);
                (at.min(right), right.max(at + 2.0))
            }
            None => (at - RADIUS, at + RADIUS),
        };
        Some(Placed { mark, left, right, row: 0, name: None })
    };
    let mut placed: Vec<Placed<'_>> = lane.marks.iter().filter_map(extent).collect();
    placed.sort_by(|one, other| one.left.total_cmp(&other.left));
    let mut ends = [f64::NEG_INFINITY; ROWS_MAX];
    for mark in &mut placed {
        let extent = named(mark, scale);
        let free = |left: f64| ends.iter().position(|end| *end <= left);
        let (row, end) =
            match (extent.and_then(|(left, right, at)| Some((free(left)?, right, at))), free(mark.left)) {
                (Some((row, right, at)), _) => {
                    mark.name = Some((at, shown(&mark.mark.name)));
                    (row, right)
                }
                (None, row) => (row.unwrap_or(ROWS_MAX - 1), mark.right),
            };
        mark.row = row;
        ends[row] = ends[row].max(end + 1.0);
    }
    placed
}

/// Returns the extent of a duration with its name, and the begin of the name: in the box, right of it, or left of it. `None` if it has no
/// name, or no side has space for it.
fn named(placed: &Placed<'_>, scale: &Scale) -> Option<(f64, f64, f64)> {
    let name = &placed.mark.name;
    if name.is_empty() || placed.mark.until.is_none() {
        return None;
    }
    let length = width(&shown(name), FONT);
    let (left, right) = (placed.left, placed.right);
    if length + 8.0 <= right - left {
        return Some((left, right, left + 4.0));
    }
    if right + 4.0 + length <= scale.end() {
        return Some((left, right + 8.0 + length, right + 4.0));
    }
    (left - 4.0 - length >= scale.begin()).then_some((left - 8.0 - length, right, left - 4.0 - length))
}

fn draw_mark(svg: &mut Svg, number: usize, placed: &Placed<'_>, (top, row): (f64, f64)) {
    let look = Look::new(number);
    let colour = look.colour();
    let title = hint(&placed.mark.text);
    let middle = top + row / 2.0;
    if placed.mark.until.is_some() {
        let height = row - ROW + BOX_HEIGHT;
        let [left, top, wide, high] =
            [placed.left, middle - height / 2.0, placed.right - placed.left, height].map(coordinate);
        let is_named = !placed.mark.name.is_empty();
        let (opacity, dash) = if is_named { (".25", look.dash()) } else { (".45", "") };
        let dash = if dash.is_empty() { String::new() } else { format!(";stroke-dasharray:{dash}") };
        svg.raw(&format!(
            "<rect class=\"mark\" x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" style=\"fill:{colour};fill-opacity:{opacity};stroke:{colour}{dash}\"><title>{title}</title></rect>"
        ));
        if let Some((at, name)) = &placed.name {
            svg.text((*at, middle + 4.0), Anchor::Start, "", name);
        }
    } else {
        let path = look.mark(placed.left + RADIUS, middle, RADIUS);
        svg.raw(&format!(
            "<path class=\"mark\" d=\"{path}\" style=\"fill:{colour};stroke:var(--rk-paper);stroke-width:.6\"><title>{title}</title></path>"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::overlaps;

    fn moment(at: f64) -> Mark {
        Mark { at, text: format!("at {at}"), ..Mark::default() }
    }

    fn lanes(lanes: Vec<Lane>, range: (f64, f64)) -> Lanes {
        Lanes {
            title: "time line".into(),
            note: "a note".into(),
            time: Axis::linear("time (ns)"),
            range,
            lanes,
        }
    }

    fn lane(name: &str, marks: Vec<Mark>) -> Lane {
        Lane { name: name.into(), marks }
    }

    #[test]
    fn a_duration_is_a_box_as_long_as_its_share_of_the_time() {
        let marks =
            |until| vec![Mark { at: 250.0, until: Some(until), text: "phase".into(), ..Mark::default() }];
        let all = lanes(vec![lane("a", marks(500.0)), lane("b", marks(1000.0))], (0.0, 1000.0));
        let widths: Vec<f64> = all
            .svg()
            .lines()
            .filter_map(|line| line.strip_prefix("<rect class=\"mark\"")?.split("width=\"").nth(1))
            .map(|rest| rest.split('"').next().expect("a width").parse().expect("a number"))
            .collect();
        assert!((widths[1] / widths[0] - 3.0).abs() < 0.02, "{widths:?}");
    }

    fn phase(name: &str, at: f64, until: f64) -> Mark {
        Mark { at, until: Some(until), text: format!("{name} beside the pointer"), name: name.into() }
    }

    #[test]
    fn durations_have_their_names_and_differ_in_more_than_colour() {
        let marks = vec![
            phase("forward", 0.0, 300.0),
            phase("backward", 300.0, 330.0),
            phase("gradients", 330.0, 990.0),
            phase("end", 990.0, 1000.0),
            phase("forward", 400.0, 700.0),
        ];
        let all = lanes(vec![lane("phases", marks)], (0.0, 1000.0));
        let (drawn, _) = draw(&all);
        assert_eq!(overlaps(&drawn), [], "names cover each other");
        let svg = all.svg();
        for (name, count) in [("forward", 2), ("backward", 1), ("gradients", 1), ("end", 1)] {
            assert_eq!(svg.matches(&format!(">{name}</text>")).count(), count, "{name}: {svg}");
        }
        let mut looks: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<rect class=\"mark\""))
            .map(|line| {
                line.split_once(";stroke:").and_then(|(_, rest)| rest.split('"').next()).expect("a look")
            })
            .collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 4, "equal names have one look");
        assert_eq!(looks.iter().filter(|look| look.contains("dasharray")).count(), 3);
        assert!(!svg.contains("no space"));
    }

    #[test]
    fn names_without_space_are_counted() {
        let marks = (0..100).map(|at| phase("a phase of many", f64::from(at), f64::from(at) + 0.5)).collect();
        let all = lanes(vec![lane("phases", marks)], (0.0, 100.0));
        let (drawn, _) = draw(&all);
        assert_eq!(overlaps(&drawn), [], "names cover each other");
        let svg = all.svg();
        let shown = svg.matches(">a phase of many</text>").count();
        assert!(shown > 5 && svg.contains(&format!(">{} names have no space here", 100 - shown)), "{shown}");
    }

    #[test]
    fn marks_at_one_time_stand_below_each_other_and_rows_are_bounded() {
        let marks = (0..50).map(|_| moment(5.0)).collect();
        let lane = lane("a", marks);
        let scale = Scale::of_range(0.0, 10.0, 0.0, 600.0);
        let placed = place(&lane, &scale);
        let rows: Vec<usize> = placed.iter().map(|mark| mark.row).collect();
        assert_eq!((&rows[..4], rows[49]), (&[0, 1, 2, 3][..], ROWS_MAX - 1));
        let svg = lanes(vec![lane], (0.0, 10.0)).svg();
        assert_eq!(svg.matches("<title>at 5</title>").count(), 50);
    }

    #[test]
    fn marks_outside_the_range_stand_at_its_ends() {
        let svg = lanes(vec![lane("a", vec![moment(-5.0), moment(50.0)])], (0.0, 10.0)).svg();
        assert_eq!(svg.matches("class=\"mark\"").count(), 2);
        assert!(lanes(vec![lane("a", vec![moment(1.0)])], (3.0, 3.0)).svg().contains("class=\"mark\""));
    }

    #[test]
    fn no_text_covers_another_or_leaves_the_picture() {
        let long = "a lane with a name that is longer than its place, and then some words more";
        for end in [0.0, 3.0, 1234.0, 9.87e9] {
            for count in [0, 1, 12] {
                let of = |number: usize| {
                    lane(if number.is_multiple_of(2) { long } else { "b" }, vec![moment(end)])
                };
                let (svg, (width, height)) = draw(&lanes((0..count).map(of).collect(), (0.0, end)));
                assert_eq!(overlaps(&svg), [], "texts cover each other");
                for (words, [left, top, right, bottom]) in &svg.boxes {
                    assert!(
                        *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height,
                        "{words} leaves the picture"
                    );
                }
            }
        }
    }

    #[test]
    fn hostile_texts_are_text() {
        let hostile = "<script>\"'&\u{202e}\u{5d0}\n";
        let mark = Mark { at: 1.0, until: Some(1.5), text: hostile.into(), name: hostile.into() };
        let svg = lanes(vec![lane(hostile, vec![mark])], (0.0, 2.0)).svg();
        assert!(!svg.contains("<script") && !svg.contains('\u{202e}'), "{svg}");
    }
}
