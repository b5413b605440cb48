//! Tables and areas of the live view, placed by plain arithmetic.
//!
//! Widths are known, so no solver of constraints is needed: it took more time than all other drawing together.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Returns the parts of an area from top to bottom, with these numbers of lines. Parts at the bottom have fewer or none if there are too few.
pub(super) fn parts<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let mut y = area.y;
    heights.map(|lines| {
        let part = Rect { y, height: lines.min(area.bottom() - y), ..area };
        y += part.height;
        part
    })
}

/// Column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) head: &'static str,
    /// Width in cells; `None` for the rest of the line.
    pub(super) width: Option<u16>,
    pub(super) is_right: bool,
    /// Columns of the highest rank are left out first if a line is too short.
    pub(super) rank: u8,
}

impl Column {
    pub(super) const fn left(head: &'static str, width: u16, rank: u8) -> Self {
        Self { head, width: Some(width), is_right: false, rank }
    }

    pub(super) const fn right(head: &'static str, width: u16, rank: u8) -> Self {
        Self { head, width: Some(width), is_right: true, rank }
    }

    pub(super) const fn rest(head: &'static str, rank: u8) -> Self {
        Self { head, width: None, is_right: false, rank }
    }

    /// Returns the least width with which the column is shown.
    fn width_min(&self) -> u16 {
        self.width.unwrap_or(self.head.len() as u16)
    }
}

/// Returns for each column whether it is shown: as many as fit into a line as a whole. The first one is always shown.
fn fitting<const N: usize>(columns: &[Column; N], width: u16) -> [bool; N] {
    let mut shown = [true; N];
    loop {
        let of_shown = || columns.iter().zip(&shown).enumerate().filter(|(_, (_, shown))| **shown);
        let needed: u16 = of_shown().map(|(_, (column, _))| column.width_min() + 1).sum();
        let last = of_shown().skip(1).max_by_key(|(_, (column, _))| column.rank).map(|(index, _)| index);
        match last {
            Some(last) if needed > width + 1 => shown[last] = false,
            _ => return shown,
        }
    }
}

/// Line of a table.
#[derive(Clone, Debug)]
pub(super) struct Cells<const N: usize> {
    pub(super) texts: [String; N],
    pub(super) style: Style,
}

/// Draws a table with a line of heads, and as many columns as fit. `selected`: line of the rows that is marked.
pub(super) fn draw<const N: usize>(
    buffer: &mut Buffer,
    area: Rect,
    columns: [Column; N],
    rows: impl Iterator<Item = Cells<N>>,
    selected: Option<usize>,
) {
    let fits = fitting(&columns, area.width);
    let heads = columns.map(|column| column.head.to_owned());
    let head = Cells { texts: heads, style: Style::new().add_modifier(Modifier::UNDERLINED) };
    for ((index, row), y) in std::iter::once(head).chain(rows).enumerate().zip(area.top()..area.bottom()) {
        let mut x = area.left();
        let shown = columns.iter().zip(&row.texts).zip(&fits).filter(|(_, fits)| **fits);
        for ((column, text), _) in shown {
            let left = area.right().saturating_sub(x);
            let width = column.width.unwrap_or(left).min(left);
            let blank = width.saturating_sub(text.chars().count() as u16);
            let begin = if column.is_right { x + blank } else { x };
            buffer.set_stringn(begin, y, text, usize::from(width), Style::new());
            x = x.saturating_add(width).saturating_add(1).min(area.right());
        }
        let is_selected = index > 0 && selected == Some(index - 1);
        let style = if is_selected { row.style.add_modifier(Modifier::REVERSED) } else { row.style };
        buffer.set_style(Rect { y, height: 1, ..area }, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_the_last_have_what_is_left() {
        let of =
            |height: u16| parts(Rect::new(0, 1, 80, height), [2, 3, 1]).map(|part| (part.y, part.height));
        assert_eq!(of(9), [(1, 2), (3, 3), (6, 1)]);
        assert_eq!(of(4), [(1, 2), (3, 2), (5, 0)], "too few lines");
    }

    #[test]
    fn columns_of_the_highest_rank_are_left_out_first() {
        let columns = [
            Column::left("name", 4, 0),
            Column::right("n", 3, 2),
            Column::right("rate", 6, 1),
            Column::rest("rest", 3),
        ];
        assert_eq!(fitting(&columns, 20), [true; 4]);
        assert_eq!(fitting(&columns, 19), [true, true, true, false]);
        assert_eq!(fitting(&columns, 14), [true, false, true, false]);
        assert_eq!(fitting(&columns, 2), [true, false, false, false]);
    }

    #[test]
    fn cells_are_aligned_and_cut() {
        let area = Rect::new(0, 0, 14, 3);
        let columns = [Column::left("name", 4, 0), Column::right("n", 3, 1), Column::rest("rest", 2)];
        let cells = |texts: [&str; 3]| Cells { texts: texts.map(str::to_owned), style: Style::new() };
        let rows =
            [cells(["longer", "7", "x"]), cells(["a", "12345", "beyond the end"]), cells(["no", "line", ""])];
        let mut buffer = Buffer::empty(area);
        draw(&mut buffer, area, columns, rows.into_iter(), Some(1));
        let line = |y: u16| (0..14).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert_eq!([line(0), line(1), line(2)], ["name   n rest ", "long   7 x    ", "a    123 beyon"]);
        let is_marked = |y: u16| buffer[(0, y)].modifier.contains(Modifier::REVERSED);
        assert_eq!([is_marked(0), is_marked(1), is_marked(2)], [false, false, true]);
        let mut narrow = Buffer::empty(Rect::new(0, 0, 1, 1));
        draw(&mut narrow, Rect::new(0, 0, 1, 1), columns, std::iter::empty(), None);
        assert_eq!(narrow[(0, 0)].symbol(), "n");
    }
}
