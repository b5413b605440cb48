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

    /// Returns the first of several bends that meets no block but its ends, or the one that meets the fewest. In tiers, a line between two
    /// of them begins and ends at the edges of its blocks, so that only blocks of tiers between them are in its way.
    pub(super) fn around(places: &[Place], ends: (usize, usize), shift: f64, are_tiers: bool) -> Self {
        let (from, to) =
            if are_tiers { facing(places[ends.0], places[ends.1]) } else { (places[ends.0], places[ends.1]) };
        let curve = |bend: f64| Self::bent(from, to, bend + shift);
        let is_passed = from.y == places[ends.0].y;
        let is_in_way = |place: &Place| {
            is_passed || (place.y - places[ends.0].y).abs() > 1.0 && (place.y - places[ends.1].y).abs() > 1.0
        };
        let met = |curve: &Self| {
            let others = places.iter().enumerate().filter(|(index, _)| *index != ends.0 && *index != ends.1);
            others.filter(|(_, place)| is_in_way(place) && curve.meets(place)).count()
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

    /// Returns true if the line passes through a box of left, top, right and bottom.
    pub(super) fn crosses(&self, bounds: [f64; 4]) -> bool {
        let parts = if self.bend == 0.0 { 1 } else { PARTS };
        let point = |part: usize| self.at(part as f64 / parts as f64);
        (0..parts).any(|part| segment_crosses(bounds, point(part), point(part + 1)))
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

/// Returns both ends of a line between two tiers: the upper edge of the lower block, and the lower edge of the upper one. Blocks beside each
/// other are returned as they are.
pub(super) fn facing(one: Place, other: Place) -> (Place, Place) {
    let reach = f64::midpoint(one.height, other.height);
    let edge = |place: Place, below: f64| Place { y: place.y + below * place.height / 2.0, ..place };
    match other.y - one.y {
        distance if distance > reach => (edge(one, 1.0), edge(other, -1.0)),
        distance if distance < -reach => (edge(one, -1.0), edge(other, 1.0)),
        _ => (one, other),
    }
}

/// Returns true if a straight line passes through a box.
pub(super) fn segment_crosses(
    [left, top, right, bottom]: [f64; 4],
    from: (f64, f64),
    to: (f64, f64),
) -> bool {
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    for (from, to, least, most) in [(from.0, to.0, left, right), (from.1, to.1, top, bottom)] {
        let length = to - from;
        if length.abs() < 1e-9 {
            if from < least || from > most {
                return false;
            }
            continue;
        }
        let (one, other) = ((least - from) / length, (most - from) / length);
        begin = begin.max(one.min(other));
        end = end.min(one.max(other));
    }
    begin <= end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_around_a_block_between_its_ends() {
        let place = |x: f64| Place { x, y: 0.0, width: 30.0, height: 24.0 };
        let places = [place(0.0), place(100.0), place(200.0)];
        assert_eq!(Curve::around(&places, (0, 1), 0.0, false).bend, 0.0);
        let around = Curve::around(&places, (0, 2), 0.0, false);
        assert!(around.bend != 0.0 && !around.meets(&places[1]), "{around:?}");
        assert!(Curve::bent(places[0], places[2], 0.0).meets(&places[1]));
    }

    #[test]
    fn a_line_between_neighbouring_tiers_is_straight_and_one_past_a_tier_goes_around() {
        let place = |x: f64, y: f64| Place { x, y, width: 30.0, height: 24.0 };
        let mut places: Vec<Place> = (0..20).map(|x| place(46.0 * f64::from(x), 0.0)).collect();
        places.push(place(0.0, -100.0));
        // The lowest angle passes just above the neighbours.
        let line = Curve::around(&places, (19, 20), 0.0, true);
        assert_eq!((line.bend, line.from.1, line.to.1), (0.0, -12.0, -88.0));
        assert!(Curve::around(&places, (19, 20), 0.0, false).bend != 0.0, "it would go around them");
        places.push(place(0.0, -200.0));
        assert!(Curve::around(&places, (0, 21), 0.0, true).bend != 0.0, "a tier is between");
        assert!(Curve::around(&places, (0, 2), 0.0, true).bend != 0.0, "a member of its tier is between");
    }

    #[test]
    fn a_line_crosses_the_boxes_on_it() {
        let place = |x: f64, y: f64| Place { x, y, width: 30.0, height: 24.0 };
        let straight = Curve::bent(place(0.0, 0.0), place(100.0, 100.0), 0.0);
        assert!(straight.crosses([45.0, 40.0, 60.0, 52.0]) && !straight.crosses([60.0, 0.0, 90.0, 50.0]));
        assert!(!straight.crosses([110.0, 110.0, 120.0, 120.0]), "behind its end");
        let bent = Curve::bent(place(0.0, 0.0), place(100.0, 0.0), 40.0);
        assert!(bent.crosses([40.0, 35.0, 60.0, 45.0]) && !bent.crosses([40.0, -5.0, 60.0, 5.0]));
    }
}
