//! The figure of an experiment: the closed form as a line, and measurements as points.

pub use rackloom_drawing::chart::{Axes, Axis};
use rackloom_drawing::chart::{BOTTOM, COLOURS, LEFT, RADIUS, RIGHT, Scale, Svg, TOP, draw, frame, legend};

use crate::experiment::{Experiment, Findings, Row, Verdict};

/// Number of x values at which a curve is computed.
const SAMPLES: u32 = 80;

/// Returns the figure of an experiment's findings as SVG text.
#[must_use]
pub fn figure(experiment: &Experiment, findings: &Findings) -> String {
    let drawn: Vec<&Row> = findings.rows.iter().filter(|row| row.is_drawn).collect();
    let x = Scale::over(experiment.axes.x, drawn.iter().map(|row| row.x), LEFT, RIGHT);
    let values = drawn.iter().flat_map(|row| [Some(row.expected), row.measured]).flatten();
    let y = Scale::over(experiment.axes.y, values, BOTTOM, TOP);
    let mut svg = Svg::begin(experiment.name, experiment.question);
    frame(&mut svg, experiment.axes, &x, &y);
    let mut series: Vec<&str> = Vec::new();
    drawn.iter().for_each(|row| {
        if !series.contains(&row.series.as_str()) {
            series.push(&row.series);
        }
    });
    let mut legend_height = TOP + 8.0;
    for (number, name) in series.iter().enumerate() {
        let rows: Vec<&Row> = drawn.iter().copied().filter(|row| row.series == *name).collect();
        let colour = COLOURS[number % COLOURS.len()];
        let closed_form = |at| (experiment.curve)(name, at);
        let line = line(&rows, closed_form);
        if experiment.axes.names.is_some() {
            // Kinds have no values between them.
            line.iter().for_each(|point| draw(&mut svg, colour, &[*point], &x, &y));
        } else {
            draw(&mut svg, colour, &line, &x, &y);
        }
        // Where points of several series coincide, the earlier ones remain visible around the later.
        let later = series.len() - 1 - number;
        points(&mut svg, colour, RADIUS + later.min(4) as f64, &rows, &x, &y);
        legend_height = legend(&mut svg, legend_height, colour, name);
    }
    svg.text(RIGHT + 18.0, BOTTOM, "start", r##" fill="#444444""##, "line: closed form");
    svg.text(RIGHT + 18.0, BOTTOM + 16.0, "start", r##" fill="#444444""##, "points: measured");
    svg.line("</svg>");
    svg.text
}

/// Returns the expected line: along the closed form if there is one, else from point to point.
fn line(rows: &[&Row], closed_form: impl Fn(f64) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = rows.iter().map(|row| (row.x, row.expected)).collect();
    line.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some((first, _)), Some((last, _))) = (line.first().copied(), line.last().copied()) else {
        return line;
    };
    // Equal factors: every axis along which a closed form bends is logarithmic.
    let sample = |number| first * (last / first).powf(f64::from(number) / f64::from(SAMPLES));
    let along = (0..=SAMPLES).map(sample).map(|at| Some((at, closed_form(at)?)));
    match along.collect::<Option<Vec<_>>>() {
        Some(curve) if first > 0.0 && last > first => curve,
        _ => line,
    }
}

fn points(svg: &mut Svg, colour: &str, radius: f64, rows: &[&Row], x: &Scale, y: &Scale) {
    for row in rows {
        let Some(measured) = row.measured else { continue };
        let (Some(at), Some(height)) = (x.coordinate(row.x), y.coordinate(measured)) else { continue };
        let fill = if row.verdict == Verdict::Pass { colour } else { "#ffffff" };
        svg.circle((at, height), radius, fill, colour);
    }
}
