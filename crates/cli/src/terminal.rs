//! Terminals: their width, text that is wrapped for it, and colours.
//!
//! Text for a file or a pipe is not wrapped. Tables are not wrapped here: [`crate::present::table`] prints those that are
//! too wide as records.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rackloom_plan::printable_lines;
use rustix::termios::tcgetwinsize;

/// Narrowest width that is used, in columns. A terminal that is narrower breaks lines itself.
const COLUMNS_MIN: usize = 20;
/// Width from which progress has a bar, in columns. Narrower terminals show its message only.
const BAR_COLUMNS_MIN: usize = 80;
/// Columns by which the rest of a wrapped line is indented, beside the indentation of the line.
const HANGING_COLUMNS: usize = 2;
/// Words with which lines of failures begin, and their colours.
const LABELS: [(&str, Colour); 5] = [
    ("error:", Colour::Red),
    ("warning:", Colour::Yellow),
    ("note:", Colour::Cyan),
    ("hint:", Colour::Cyan),
    ("where:", Colour::None),
];

/// Last line of the report of a run that has passed.
pub(crate) const PASSED: &str = "verdict: pass";

/// Width of standard output, as measured when the command began.
static OUTPUT_COLUMNS: OnceLock<Option<usize>> = OnceLock::new();

/// Style of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Colour,
}

/// Foreground of bold text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    None,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    /// Returns colour for a terminal that has it, unless `NO_COLOR` is set.
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        if stream.is_terminal() && !refused && !is_dumb { Self::Colour } else { Self::Plain }
    }

    /// Paints the last line of a report, which is its verdict.
    pub(crate) fn paint_verdict(self, text: &str) -> String {
        let (before, verdict) = text.rsplit_once('\n').unwrap_or(("", text));
        let colour = if verdict == PASSED { Colour::Green } else { Colour::Red };
        let painted = self.paint(verdict, colour);
        if before.is_empty() { painted } else { format!("{before}\n{painted}") }
    }

    fn paint(self, text: &str, colour: Colour) -> String {
        let foreground = match colour {
            Colour::None => "",
            Colour::Red => ";31",
            Colour::Green => ";32",
            Colour::Yellow => ";33",
            Colour::Cyan => ";36",
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\x1b[1{foreground}m{text}\x1b[0m"),
        }
    }

    /// Paints the first word of each line that begins with one of [`LABELS`].
    fn paint_labels(self, text: &str) -> String {
        let lines = text.split('\n').map(|line| self.paint_label(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn paint_label(self, line: &str) -> String {
        // A mistake of a file has its hint behind an equals sign, below the quoted line.
        let words = line.trim_start_matches([' ', '=']);
        match LABELS.iter().find(|(label, _)| words.starts_with(label)) {
            Some((label, colour)) => {
                let indentation = &line[..line.len() - words.len()];
                format!("{indentation}{}{}", self.paint(label, *colour), &words[label.len()..])
            }
            None => line.to_owned(),
        }
    }
}

/// Measures standard output for [`output_columns`]. Without this call it has no width.
pub(crate) fn measure_output() {
    let _ = OUTPUT_COLUMNS.set(columns_of(&std::io::stdout()));
}

/// Returns the width of standard output in columns, or `None` if it is no terminal.
pub(crate) fn output_columns() -> Option<usize> {
    OUTPUT_COLUMNS.get().copied().flatten()
}

/// Returns the width of standard error in columns, or `None` if it is no terminal.
pub(crate) fn error_columns() -> Option<usize> {
    columns_of(&std::io::stderr())
}

/// Joins the first parts of a message that fit into this width. The first part is always there.
pub(crate) fn fitting(parts: &[String], columns: Option<usize>) -> String {
    let mut line = String::new();
    for (index, part) in parts.iter().enumerate() {
        let longer = if index == 0 { part.clone() } else { format!("{line} · {part}") };
        if index > 0 && columns.is_some_and(|columns| width(&longer) > columns) {
            break;
        }
        line = longer;
    }
    line
}

/// Returns true if standard error is a terminal on which a bar beside its message does not fit.
pub(crate) fn is_too_narrow_for_bars() -> bool {
    error_columns().is_some_and(|columns| columns < BAR_COLUMNS_MIN)
}

/// Returns a failure or a note as standard error shows it: with colours and wrapped on a terminal. Characters of the text that control a terminal
/// are replaced.
pub(crate) fn message(text: &str) -> String {
    let text = &*printable_lines(text);
    let stderr = std::io::stderr();
    let wrapped = columns_of(&stderr).map(|columns| wrap(text, columns));
    Style::for_stream(&stderr).paint_labels(wrapped.as_deref().unwrap_or(text))
}

/// Returns the width of a stream: `COLUMNS` if it is set, else that of the terminal. `None` if the stream is no terminal or does not
/// know its width.
fn columns_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let columns = stated.filter(|columns| *columns > 0).or_else(measured);
    columns.filter(|columns| *columns > 0).map(|columns| columns.max(COLUMNS_MIN))
}

/// Breaks lines that are longer than `columns` between words. A word that is longer remains whole.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    let indentation = " ".repeat(line.len() - words.len());
    let mut wrapped = String::new();
    let mut current = indentation.clone();
    let mut is_first = true;
    for word in words.split(' ') {
        let gap = usize::from(!is_first);
        if !is_first && width(&current) + gap + width(word) > columns {
            wrapped += current.trim_end();
            wrapped.push('\n');
            current = format!("{indentation}{}{word}", " ".repeat(HANGING_COLUMNS));
        } else {
            current += &" ".repeat(gap);
            current += word;
        }
        is_first = false;
    }
    wrapped + current.trim_end()
}

/// Returns the columns that a line takes: its characters without the codes of colours.
pub(crate) fn width(line: &str) -> usize {
    let mut characters = line.chars();
    let mut columns = 0;
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            let _ = characters.find(char::is_ascii_alphabetic);
        } else {
            columns += 1;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indentation() {
        let text = "  hint:  name a file in a folder that exists\nshort";
        assert_eq!(wrap(text, 24), "  hint:  name a file in\n    a folder that exists\nshort");
        assert_eq!(wrap("a/path/that/is/longer/than/that end", 10), "a/path/that/is/longer/than/that\n  end");
        assert_eq!(wrap("n0   n1", 20), "n0   n1", "a line that fits is not changed");
    }

    #[test]
    fn a_narrow_line_has_whole_parts_of_a_message() {
        let parts = ["0.4%", "time left unknown", "1.17 ms of virtual time", "0.4 of 100"].map(str::to_owned);
        assert_eq!(fitting(&parts, Some(60)), "0.4% · time left unknown · 1.17 ms of virtual time");
        assert_eq!(fitting(&parts, Some(50)), "0.4% · time left unknown · 1.17 ms of virtual time");
        assert_eq!(fitting(&parts, Some(49)), "0.4% · time left unknown");
        assert_eq!(fitting(&parts, Some(1)), "0.4%");
        assert_eq!(fitting(&parts, None), parts.join(" · "));
    }

    #[test]
    fn colours_take_no_columns() {
        let painted = Style::Colour.paint_verdict("verdict: fail");
        assert_eq!(painted, "\x1b[1;31mverdict: fail\x1b[0m");
        assert_eq!(width(&painted), 13);
        assert_eq!(Style::Plain.paint_verdict("verdict: fail"), "verdict: fail");
        assert_eq!(Style::Colour.paint_verdict("a\nverdict: pass"), "a\n\x1b[1;32mverdict: pass\x1b[0m");
    }

    #[test]
    fn only_labels_at_the_beginning_of_a_line_have_colours() {
        let text = "error: no hint: here\n  where: a.yaml\n  hint:  write one\n  = hint: and this";
        let painted = Style::Colour.paint_labels(text);
        assert_eq!(
            painted,
            "\x1b[1;31merror:\x1b[0m no hint: here\n  \x1b[1mwhere:\x1b[0m a.yaml\n  \x1b[1;36mhint:\x1b[0m  write one\n  = \
             \x1b[1;36mhint:\x1b[0m and this"
        );
        assert_eq!(Style::Plain.paint_labels(text), text);
    }
}
