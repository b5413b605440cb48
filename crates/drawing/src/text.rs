//! Texts of pictures: their width, their lines, and characters that need care.
//!
//! The font of the reader is not known, so widths are estimates on the wide side (those of DejaVu Sans and Verdana, rounded up).

use std::borrow::Cow;

/// Size of the texts of all pictures, and of their titles.
pub(crate) const FONT: f64 = 12.0;
pub(crate) const TITLE_FONT: f64 = 15.0;
/// Stands in place of characters that XML forbids or that reorder the text around them.
const REPLACEMENT: char = '\u{fffd}';
/// Begin and end of a text whose direction does not concern the text around it.
const ISOLATE: (char, char) = ('\u{2068}', '\u{2069}');

/// Returns the estimated width of a text in a font of this size.
pub(crate) fn width(text: &str, font_size: f64) -> f64 {
    text.chars().map(share_of_size).sum::<f64>() * font_size
}

/// Returns the width of a character as a share of the size of its font.
fn share_of_size(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.45,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        'a'..='z' | '0'..='9' => 0.645,
        'A'..='Z' => 0.79,
        character if is_invisible(character) => 0.0,
        character if character.is_ascii() => 0.84,
        _ => 1.05,
    }
}

/// Returns true for marks of direction and the ends of isolated texts.
const fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2068}' | '\u{2069}')
}

/// Returns a text that a line can show: forbidden characters, ends of lines and overrides of direction are replaced, and a text with
/// characters of right-to-left scripts is isolated.
#[must_use]
pub fn shown(text: &str) -> String {
    let is_override = |character| matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_forbidden = |character: char| {
        character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}')
    };
    let clean = |character| match is_override(character) || is_forbidden(character) {
        true => REPLACEMENT,
        false => character,
    };
    let clean: String = text.chars().map(clean).collect();
    match clean.chars().any(is_right_to_left) {
        true => format!("{}{clean}{}", ISOLATE.0, ISOLATE.1),
        false => clean,
    }
}

/// Returns true for characters of right-to-left scripts and for marks of direction.
const fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}' | '\u{200e}' | '\u{200f}'
    )
}

/// Longest text beside the pointer, and longest description, in characters.
pub(crate) const HINT_MAX: usize = 400;

/// Returns a text, or its beginning with an ellipsis if it has more characters than this.
#[must_use]
pub fn cut(text: &str, length_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(length_max) {
        Some((end, _)) => Cow::Owned(format!("{}\u{2026}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns a text beside the pointer, or a description, as the content of an element.
pub(crate) fn hint(text: &str) -> String {
    escaped(&shown(&cut(text, HINT_MAX)))
}

/// Returns the text as the content of an element or of an attribute in double quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Breaks a text into at most `lines_max` lines of at most this width. A word that is too long for a line is broken, and a text that is too
/// long for the lines ends with an ellipsis.
pub(crate) fn wrapped(text: &str, font_size: f64, width_max: f64, lines_max: usize) -> Vec<String> {
    let text = shown(text);
    let fits = |line: &str| width(line, font_size) <= width_max;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        if let Some(line) = lines.last_mut() {
            let longer = format!("{line} {word}");
            if fits(&longer) {
                *line = longer;
                continue;
            }
        }
        let mut rest = String::new();
        for character in word.chars() {
            if !rest.is_empty() && !fits(&format!("{rest}{character}")) {
                lines.push(std::mem::take(&mut rest));
            }
            rest.push(character);
        }
        lines.push(rest);
    }
    if lines.len() > lines_max.max(1) {
        lines.truncate(lines_max.max(1));
        if let Some(last) = lines.last_mut() {
            *last = shortened(&format!("{last}\u{2026}\u{2026}"), font_size, width_max);
        }
    }
    lines.into_iter().map(balanced).collect()
}

/// Returns the text, or its beginning with an ellipsis if it is wider than this.
pub(crate) fn shortened(text: &str, font_size: f64, width_max: f64) -> String {
    let text = shown(text);
    let text = text.trim_end_matches('\u{2026}').to_owned()
        + if text.ends_with('\u{2026}') { "\u{2026}" } else { "" };
    if width(&text, font_size) <= width_max {
        return balanced(text);
    }
    let mut short = text.trim_end_matches('\u{2026}').to_owned();
    while !short.is_empty() && width(&format!("{short}\u{2026}"), font_size) > width_max {
        short.pop();
    }
    balanced(format!("{}\u{2026}", short.trim_end()))
}

/// Ends an isolated part of a text, or begins it: a line has part of a text only.
fn balanced(line: String) -> String {
    match (line.contains(ISOLATE.0), line.contains(ISOLATE.1)) {
        (true, false) => format!("{line}{}", ISOLATE.1),
        (false, true) => format!("{}{line}", ISOLATE.0),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_is_text() {
        assert_eq!(escaped(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("\u{5d0}\u{5d1}\u{5d2}", 2), "\u{5d0}\u{5d1}\u{2026}");
        assert_eq!(cut("\u{5d0}\u{5d1}", 2), "\u{5d0}\u{5d1}");
    }

    #[test]
    fn overrides_of_direction_are_replaced_and_right_to_left_scripts_isolated() {
        assert_eq!(shown("n0\u{202e}1n"), "n0\u{fffd}1n");
        assert_eq!(shown("a\nb\u{7}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(shown("\u{5d0}1"), "\u{2068}\u{5d0}1\u{2069}");
        assert_eq!(shown("n\u{200f}1"), "\u{2068}n\u{200f}1\u{2069}");
        assert_eq!(shown("plain"), "plain");
    }

    #[test]
    fn lines_are_complete_and_fit() {
        let text = "bulk blocked, a channel for each class, round-robin";
        let lines = wrapped(text, 12.0, 170.0, 9);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 12.0) <= 170.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        let long = wrapped(&"x".repeat(300), 12.0, 170.0, 9);
        assert!(long.len() > 5 && long.iter().all(|line| width(line, 12.0) <= 170.0), "{long:?}");
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_an_ellipsis() {
        let short = shortened("a name that goes on and on", 12.0, 80.0);
        assert!(short.ends_with('\u{2026}') && width(&short, 12.0) <= 80.0, "{short}");
        assert_eq!(shortened("n0", 12.0, 80.0), "n0");
        let lines = wrapped("one two three four five six", 12.0, 50.0, 2);
        assert!(lines.len() == 2 && lines[1].ends_with('\u{2026}'), "{lines:?}");
        // Each line of an isolated text is isolated itself.
        let lines = wrapped("\u{5d0}\u{5d0}\u{5d0} \u{5d1}\u{5d1}\u{5d1}", 12.0, 45.0, 3);
        assert!(
            lines.len() == 2
                && lines.iter().all(|line| line.starts_with(ISOLATE.0) && line.ends_with(ISOLATE.1))
        );
    }
}
