//! Colours, marks and dashes. Colours differ in brightness, and each series has a mark and a dash of its own as well.

/// Number of colours for series.
const COLOURS: usize = 8;

/// Dashes of lines; the first is solid.
const DASHES: [&str; 6] = ["", "7 3", "2 2.5", "9 3 2 3", "12 3", "5 2 1.5 2 1.5 2"];

/// Rules of style of all pictures. Names begin with `rk`, so that pictures may stand in a page with rules of its own.
pub(crate) const STYLE: &str = "\
.rk{--rk-paper:#fff;--rk-ink:#1c1c1c;--rk-soft:#555;--rk-grid:#e3e3e3;--rk-0:#0b559f;--rk-1:#c8500a;--rk-2:#127a5b;--rk-3:#7b3294;\
--rk-4:#8f6600;--rk-5:#c2185b;--rk-6:#4d4d4d;--rk-7:#3f7d12;--rk-bad:#b3001b;--rk-warn:#a35b00;--rk-node:#dbe9f8;--rk-switch:#ececec;\
--rk-u0:#c3ccd6;--rk-u1:#8fb7dd;--rk-u2:#3f86c6;--rk-u3:#0b559f;--rk-u4:#06264d;\
font-family:'DejaVu Sans',Verdana,system-ui,sans-serif;font-size:12px}
@media screen and (prefers-color-scheme:dark){.rk{--rk-paper:#15181c;--rk-ink:#eceff2;--rk-soft:#a9b1ba;--rk-grid:#333a42;--rk-0:#6db3ff;--rk-1:#ff9b5e;\
--rk-2:#4fd6ad;--rk-3:#d9a5f5;--rk-4:#e6bd4a;--rk-5:#ff85b3;--rk-6:#c8c8c8;--rk-7:#9fdc6a;--rk-bad:#ff6b7d;--rk-warn:#ffb454;\
--rk-node:#1f3a56;--rk-switch:#343a41;--rk-u0:#4a535d;--rk-u1:#3d6a94;--rk-u2:#4a98de;--rk-u3:#8cc4ff;--rk-u4:#e2f1ff}}
.rk text{fill:var(--rk-ink);unicode-bidi:isolate}
.rk .soft{fill:var(--rk-soft)}
.rk .title{font-size:15px;font-weight:bold}
.rk .grid{stroke:var(--rk-grid);stroke-width:1}
.rk .axis{stroke:var(--rk-ink);stroke-width:1.5}
.rk .paper{fill:var(--rk-paper)}
.rk .hollow{fill:var(--rk-paper)!important}
";

/// Look of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    number: usize,
}

impl Look {
    /// Returns the look of the series with this number.
    pub(crate) const fn new(number: usize) -> Self {
        Self { number }
    }

    /// Returns the colour as a value of style.
    pub(crate) fn colour(self) -> String {
        format!("var(--rk-{})", self.number % COLOURS)
    }

    /// Returns the dash of its line; empty if it is solid.
    pub(crate) const fn dash(self) -> &'static str {
        DASHES[self.number % DASHES.len()]
    }

    /// Returns the path of its mark around a point.
    pub(crate) fn mark(self, x: f64, y: f64, radius: f64) -> String {
        // Further rounds of colours have other marks.
        let shape = SHAPES[(self.number + self.number / COLOURS) % SHAPES.len()];
        let mut path = String::new();
        for (index, (dx, dy)) in shape.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            path.push_str(&format!("{command}{:.1} {:.1}", x + dx * radius, y + dy * radius));
        }
        if shape.is_empty() {
            let (left, twice) = (x - radius, radius * 2.0);
            return format!(
                "M{left:.1} {y:.1}a{radius:.1} {radius:.1} 0 1 0 {twice:.1} 0a{radius:.1} {radius:.1} 0 1 0 -{twice:.1} 0Z"
            );
        }
        path + "Z"
    }
}

/// Outlines of marks around the origin, of about equal area. The first is a circle.
const SHAPES: [&[(f64, f64)]; 8] = [
    &[],
    &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
    &[(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.25), (1.15, -0.8), (-1.15, -0.8)],
    &[
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ],
    &[(-1.3, -0.65), (1.3, -0.65), (1.3, 0.65), (-1.3, 0.65)],
    &[(-0.65, -1.3), (0.65, -1.3), (0.65, 1.3), (-0.65, 1.3)],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_in_colour_mark_and_dash_and_none_of_sixteen_is_a_twin() {
        let look = |number| Look::new(number);
        let all: Vec<_> =
            (0..16).map(|number| (look(number).colour(), look(number).mark(0.0, 0.0, 4.0))).collect();
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
        for number in 0..15 {
            assert_ne!(look(number).dash(), look(number + 1).dash());
            assert_ne!(look(number).colour(), look(number + 1).colour());
            assert_ne!(look(number).mark(0.0, 0.0, 4.0), look(number + 1).mark(0.0, 0.0, 4.0));
        }
    }
}
