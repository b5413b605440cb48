//! Marks and lines that coincide: marks stand side by side, and the lines below are wider.

/// Distance between marks, or between the ends of their bars, at which they cover each other.
const NEAR: f64 = 5.0;
/// Distance between marks that are drawn side by side.
const STEP: f64 = 7.0;
/// Distance between lines at which they cover each other.
const NEAR_LINE: f64 = 1.6;

/// Returns the shift of each mark along the axis of the positions. `marks` has series, position and both ends of the bar in coordinates,
/// the smaller one first. Marks of one series are not shifted apart.
pub(super) fn shifts(marks: &[(usize, f64, (f64, f64))]) -> Vec<f64> {
    let mut shifts = vec![0.0; marks.len()];
    let mut is_done = vec![false; marks.len()];
    for first in 0..marks.len() {
        if is_done[first] {
            continue;
        }
        let (_, at, _) = marks[first];
        let mut group = vec![first];
        for index in first + 1..marks.len() {
            let (series, other_at, (least, most)) = marks[index];
            let touches = |known: &usize| marks[*known].2.0 < most + NEAR && least < marks[*known].2.1 + NEAR;
            let is_other = group.iter().all(|known| marks[*known].0 != series);
            if !is_done[index] && (other_at - at).abs() < NEAR && is_other && group.iter().any(touches) {
                group.push(index);
            }
        }
        for (number, index) in group.iter().enumerate() {
            is_done[*index] = true;
            shifts[*index] = (number as f64 - (group.len() - 1) as f64 / 2.0) * STEP;
        }
    }
    shifts
}

/// Returns how many later lines run along each line for a good part. Lines are in coordinates, ordered by position.
pub(super) fn covered(lines: &[Vec<(f64, f64)>]) -> Vec<usize> {
    let along = |line: &[(f64, f64)], other: &[(f64, f64)]| {
        let near = line.iter().filter(|(at, value)| {
            between(other, *at).is_some_and(|other_value| (other_value - value).abs() < NEAR_LINE)
        });
        near.count() * 4 > line.len() && line.len() > 1
    };
    let later = |index: usize| lines[index + 1..].iter().filter(|other| along(&lines[index], other)).count();
    (0..lines.len()).map(later).collect()
}

/// Returns the value of a line at a position.
fn between(line: &[(f64, f64)], at: f64) -> Option<f64> {
    let pair = line.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&at))?;
    let span = pair[1].0 - pair[0].0;
    let share = if span > 0.0 { (at - pair[0].0) / span } else { 0.0 };
    Some(pair[0].1 + (pair[1].1 - pair[0].1) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coincident_marks_of_different_series_stand_side_by_side() {
        let level = (10.0, 10.0);
        let marks = [
            (0, 10.0, level),
            (1, 10.0, (11.0, 40.0)),
            (2, 10.0, (42.0, 42.0)),
            (0, 50.0, level),
            (0, 51.0, level),
        ];
        assert_eq!(shifts(&marks), [-STEP, 0.0, STEP, 0.0, 0.0]);
    }

    #[test]
    fn a_line_below_others_is_counted() {
        let flat = |value: f64| vec![(0.0, value), (50.0, value), (100.0, value)];
        assert_eq!(covered(&[flat(5.0), flat(5.5), flat(40.0), flat(5.0)]), [2, 1, 0, 0]);
    }
}
