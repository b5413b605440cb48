//! Lines between blocks: straight, or bent around blocks that are in their way.

use super::layout::Place;

/// Tried bends, in the order of preference.
const BENDS: [f64; 11] = [0.0, 26.0, -26.0, 44.0, -44.0, 70.0, -70.0, 110.0, -110.0, 160.0, -160.0];
/// Number of parts in which a line is checked.
const PARTS: usize = 24;
/// Distance that a line keeps from blocks.
const DISTANCE: f64 = 4.0;

/// Line from one point to another, with a control point between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) from: (f64, f64),
    pub(super) control: (f64, f64),
    pub(super) to: (f64, f64),
    /// Distance of its middle from the straight line.
    pub(super) bend: f64,
}

impl Curve {
    /// Returns a line whose middle is this far from the straight one.
    pub(super) fn bent(from: Place, to: Place, bend: f64) -> Self {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy).max(1.0);
        let middle = (f64::midpoint(from.x, to.x), f64::midpoint(from.y, to.y));
        let control = (middle.0 - dy / length * bend * 2.0, middle.1 + dx / length * bend * 2.0);
        Self { from: (from.x, from.y), control, to: (to.x, to.y), bend }
    }

    /// Returns the first of several bends that meets no block but its ends, or the one that meets the fewest.
    pub(super) fn around(places: &[Place], ends: (usize, usize), shift: f64) -> Self {
        let curve = |bend: f64| Self::bent(places[ends.0], places[ends.1], bend + shift);
        let met = |curve: &Self| {
            let others = places.iter().enumerate().filter(|(index, _)| *index != ends.0 && *index != ends.1);
            others.filter(|(_, place)| curve.meets(place)).count()
        };
        let mut best = (curve(shift), usize::MAX);
        for bend in BENDS {
            let tried = curve(bend);
            let count = met(&tried);
            if count < best.1 {
                best = (tried, count);
            }
            if count == 0 {
                break;
            }
        }
        best.0
    }

    fn meets(&self, place: &Place) -> bool {
        (1..PARTS).any(|part| {
            let (x, y) = self.at(part as f64 / PARTS as f64);
            (x - place.x).abs() < place.width / 2.0 + DISTANCE
                && (y - place.y).abs() < place.height / 2.0 + DISTANCE
        })
    }

    /// Returns the point at a share of the line.
    pub(super) fn at(&self, share: f64) -> (f64, f64) {
        let rest = 1.0 - share;
        let mix = |from: f64, control: f64, to: f64| {
            rest * rest * from + 2.0 * rest * share * control + share * share * to
        };
        (mix(self.from.0, self.control.0, self.to.0), mix(self.from.1, self.control.1, self.to.1))
    }

    /// Returns the line, moved.
    pub(super) fn moved(self, (dx, dy): (f64, f64)) -> Self {
        let [from, control, to] = [self.from, self.control, self.to].map(|(x, y)| (x + dx, y + dy));
        Self { from, control, to, bend: self.bend }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_around_a_block_between_its_ends() {
        let place = |x: f64| Place { x, y: 0.0, width: 30.0, height: 24.0 };
        let places = [place(0.0), place(100.0), place(200.0)];
        assert_eq!(Curve::around(&places, (0, 1), 0.0).bend, 0.0);
        let around = Curve::around(&places, (0, 2), 0.0);
        assert!(around.bend != 0.0 && !around.meets(&places[1]), "{around:?}");
        assert!(Curve::bent(places[0], places[2], 0.0).meets(&places[1]));
    }
}
