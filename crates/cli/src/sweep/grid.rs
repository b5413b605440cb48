//! Grid of a sweep: every combination of the values of its axes, as points with the options of `rackloom sim`.
//!
//! The last axis varies fastest, and seeds vary faster than all axes, so runs that differ in their seed only stand together.

use std::collections::HashSet;

use rackloom_plan::NamedValue;
use serde::{Deserialize, Serialize};

use crate::arguments::SweepArguments;
use crate::failure::Failure;

/// Maximum number of points of a grid.
const POINTS_MAX: u64 = 1_000_000;
/// Name of the axis of algorithms, in tables and columns.
pub(super) const ALGORITHM: &str = "algorithm";
/// Name of the axis of seeds.
pub(super) const SEED: &str = "seed";

/// One value of an axis, at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Coordinate {
    /// Key of the rack file, `algorithm` or `seed`.
    pub(super) key: String,
    /// Value, as on the command line.
    pub(super) value: String,
}

/// One run of a sweep: a line of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// Number of the point, from 0 on.
    pub(super) index: u64,
    /// Value of each axis.
    pub(super) coordinates: Vec<Coordinate>,
    /// Options of `rackloom sim`, behind the rack file.
    pub(super) arguments: Vec<String>,
}

/// Values of one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Axis {
    key: String,
    values: Vec<String>,
}

/// Grid of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    axes: Vec<Axis>,
    /// Options of all points.
    common: Vec<String>,
}

impl Grid {
    /// Returns the grid that the options state. `common` are the options of all its points.
    ///
    /// # Errors
    /// An axis has no values or is stated twice, or there are too many points.
    pub(super) fn of(arguments: &SweepArguments, common: Vec<String>) -> Result<Self, Failure> {
        let mut axes = Vec::new();
        for setting in &arguments.overrides.set {
            axes.push(axis(setting)?);
        }
        let algorithms = arguments.overrides.job.algorithm.iter().flatten();
        let algorithms: Vec<String> = algorithms.map(|choice| choice.name().to_owned()).collect();
        axes.push(Axis { key: ALGORITHM.to_owned(), values: algorithms });
        let seeds = arguments.seeds.iter().flat_map(|seeds| &seeds.0);
        axes.push(Axis { key: SEED.to_owned(), values: seeds.map(ToString::to_string).collect() });
        axes.retain(|axis| !axis.values.is_empty());
        let grid = Self { axes, common };
        grid.check()?;
        Ok(grid)
    }

    fn check(&self) -> Result<(), Failure> {
        for (index, axis) in self.axes.iter().enumerate() {
            if self.axes[..index].iter().any(|other| other.key == axis.key) {
                let hint = format!("write all its values at once: --set {}=A,B,...", axis.key);
                return Err(Failure::bad_input(format!("`{}` is stated twice", axis.key)).hint(hint));
            }
            let mut seen = HashSet::new();
            if let Some(value) = axis.values.iter().find(|value| !seen.insert(*value)) {
                let message = format!("`{}` has the value {value} twice", axis.key);
                return Err(Failure::bad_input(message).hint("leave one of them out"));
            }
        }
        let lengths = self.axes.iter().map(|axis| axis.values.len() as u64);
        let points = lengths.fold(1_u64, u64::saturating_mul);
        if points > POINTS_MAX {
            let message = format!("the grid has {points} points, more than {POINTS_MAX}");
            return Err(Failure::bad_input(message).hint("leave out values, or make several sweeps"));
        }
        Ok(())
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> u64 {
        self.axes.iter().map(|axis| axis.values.len() as u64).product()
    }

    /// Returns all points, in order.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        (0..self.len()).map(|index| self.point(index))
    }

    /// Returns the first point, and for each further value of each axis the point that differs from the first one in it.
    pub(super) fn probes(&self) -> Vec<Point> {
        let mut probes = vec![self.point(0)];
        let mut stride = self.len();
        for axis in self.axes.iter().filter(|axis| axis.key != SEED) {
            stride /= axis.values.len() as u64;
            probes.extend((1..axis.values.len() as u64).map(|value| self.point(value * stride)));
        }
        probes
    }

    fn point(&self, index: u64) -> Point {
        let mut rest = index;
        let mut coordinates = Vec::new();
        for axis in self.axes.iter().rev() {
            let count = axis.values.len() as u64;
            let value = axis.values[(rest % count) as usize].clone();
            coordinates.push(Coordinate { key: axis.key.clone(), value });
            rest /= count;
        }
        coordinates.reverse();
        let mut arguments = self.common.clone();
        for Coordinate { key, value } in &coordinates {
            arguments.extend(match key.as_str() {
                ALGORITHM => ["--algorithm".to_owned(), value.clone()],
                SEED => ["--seed".to_owned(), value.clone()],
                _ => ["--set".to_owned(), format!("{key}={value}")],
            });
        }
        Point { index, coordinates, arguments }
    }
}

/// Reads `KEY=A,B,...`. Commas inside of brackets belong to a value.
fn axis(setting: &str) -> Result<Axis, Failure> {
    let wrong = |message: &str| {
        let hint = "write KEY=A,B,... such as --set link.loss=0,1e-6";
        Err(Failure::bad_input(message).at(format!("--set {setting}")).hint(hint))
    };
    let Some((key, list)) = setting.split_once('=') else { return wrong("a setting has a key and values") };
    let values = split(list);
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return wrong("a key or a value is missing");
    }
    Ok(Axis { key: key.trim().to_owned(), values })
}

fn split(list: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut depth = 0_usize;
    for character in list.chars() {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match values.last_mut() {
            Some(value) if character != ',' || depth > 0 => value.push(character),
            _ => values.push(String::new()),
        }
    }
    values.iter().map(|value| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(settings: &[&str]) -> Grid {
        let axes = settings.iter().map(|setting| axis(setting).unwrap()).collect();
        Grid { axes, common: vec!["--bytes".to_owned(), "1KiB".to_owned()] }
    }

    #[test]
    fn the_last_axis_varies_fastest() {
        let points: Vec<_> = grid(&["a=1,2", "b=x,y,z"]).points().collect();
        let shown: Vec<_> = points.iter().map(|point| point.arguments[2..].join(" ")).collect();
        assert_eq!(shown.len(), 6);
        assert_eq!(shown[0], "--set a=1 --set b=x");
        assert_eq!(shown[1], "--set a=1 --set b=y");
        assert_eq!(shown[5], "--set a=2 --set b=z");
        assert_eq!(points[5].index, 5);
        assert_eq!(points[5].arguments[..2], ["--bytes", "1KiB"]);
    }

    #[test]
    fn a_grid_without_axes_is_one_point() {
        assert_eq!(grid(&[]).points().count(), 1);
    }

    #[test]
    fn each_value_is_in_a_probe() {
        let grid = Grid {
            axes: ["a=1,2,3", "b=x,y", "seed=1,2,3,4"].map(|text| axis(text).unwrap()).to_vec(),
            common: Vec::new(),
        };
        let probes = grid.probes();
        let shown: Vec<_> = probes.iter().map(|point| point.arguments.join(" ")).collect();
        assert_eq!(
            shown,
            [
                "--set a=1 --set b=x --seed 1",
                "--set a=2 --set b=x --seed 1",
                "--set a=3 --set b=x --seed 1",
                "--set a=1 --set b=y --seed 1"
            ]
        );
    }

    #[test]
    fn commas_in_brackets_belong_to_a_value() {
        assert_eq!(split("{from: 1, to: 2}, 7"), ["{from: 1, to: 2}", "7"]);
        assert_eq!(split("[a, b],[c]"), ["[a, b]", "[c]"]);
    }

    #[test]
    fn an_axis_without_values_and_one_that_is_stated_twice_are_refused() {
        for bad in ["loss", "loss=", "=1", "loss=1,,2"] {
            let text = axis(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("--set {bad}")) && text.contains("hint:"), "{text}");
        }
        for (settings, what) in
            [(["a=1,2", "a=3"], "`a` is stated twice"), (["a=1,1", "b=2"], "value 1 twice")]
        {
            let text = grid(&settings).check().unwrap_err().to_string();
            assert!(text.contains(what) && text.contains("hint:"), "{text}");
        }
    }
}
