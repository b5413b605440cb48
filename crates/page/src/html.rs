//! A page as HTML. All texts pass through [`shown_text`], and there is no other way from content into the page.

use rackloom_drawing::text::{cut, escaped, shown};

use crate::model::{Block, Cell, Column, Figure, Page, Row, Section, Table, Tone, Value};
use crate::policy;

const STYLE: &str = include_str!("style.css");
/// Longest text of a paragraph or value, of a cell, and of a heading. Longer ones end with an ellipsis.
const TEXT_MAX: usize = 2000;
const CELL_MAX: usize = 400;
const HEADING_MAX: usize = 240;
/// Longest text of a cell that is not wrapped.
const LINE_MAX: usize = 36;
/// Number of columns from which on a table has small letters and wide paper when it is printed.
const WIDE_FROM: usize = 10;
/// Longest listing, in lines.
const LINES_MAX: usize = 400;

impl Page {
    /// Returns the page as the text of one HTML file.
    #[must_use]
    pub fn html(&self) -> String {
        let sections: Vec<(String, &Section)> = identified(&self.sections);
        let mut html = String::with_capacity(1 << 16);
        let title = shown_text(&self.title, HEADING_MAX);
        html += &format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            policy::content_security()
        );
        html += "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header>\n";
        html += &format!("<h1>{title}</h1>\n");
        if let Some(verdict) = &self.verdict {
            html += &format!("<p class=\"verdict\">{}</p>\n", cell_text(verdict, HEADING_MAX));
        }
        if !self.subtitle.is_empty() {
            html += &format!("<p class=\"subtitle\">{}</p>\n", shown_text(&self.subtitle, TEXT_MAX));
        }
        html += "</header>\n";
        contents(&mut html, &sections);
        html += "<main id=\"content\" tabindex=\"-1\">\n";
        for (id, section) in &sections {
            html += &format!("<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n");
            html += &format!("<h2 id=\"{id}-heading\">{}</h2>\n", shown_text(&section.title, HEADING_MAX));
            section.blocks.iter().filter(|block| !block.is_empty()).for_each(|one| block(&mut html, one));
            html += "</section>\n";
        }
        html += &format!("</main>\n<script>{}</script>\n</body>\n</html>\n", policy::SCRIPT);
        html
    }
}

/// Returns the sections with content, each with an identifier of its own.
fn identified(sections: &[Section]) -> Vec<(String, &Section)> {
    let mut identified: Vec<(String, &Section)> = Vec::new();
    let has_content = |section: &&Section| section.blocks.iter().any(|block| !block.is_empty());
    for section in sections.iter().filter(has_content) {
        let name: String = section
            .title
            .chars()
            .take(40)
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
            .collect();
        let is_used = |id: &str| identified.iter().any(|(known, _)| known == id);
        let name = format!("section-{}", name.trim_matches('-'));
        let id = if is_used(&name) { format!("{name}-{}", identified.len() + 1) } else { name };
        identified.push((id, section));
    }
    identified
}

fn contents(html: &mut String, sections: &[(String, &Section)]) {
    *html += "<nav aria-label=\"Contents\">\n<ul>\n";
    for (id, section) in sections {
        *html += &format!("<li><a href=\"#{id}\">{}</a></li>\n", shown_text(&section.title, HEADING_MAX));
    }
    *html += "</ul>\n</nav>\n";
}

fn block(html: &mut String, block: &Block) {
    match block {
        Block::Text(text) => *html += &format!("<p>{}</p>\n", shown_text(text, TEXT_MAX)),
        Block::List(lines) => {
            *html += "<ul>\n";
            for line in lines {
                *html += &format!("<li>{}</li>\n", shown_text(line, TEXT_MAX));
            }
            *html += "</ul>\n";
        }
        // A command that is cut would be another one.
        Block::Command(command) => {
            let text = shown_text(command, usize::MAX);
            *html +=
                &format!("<div class=\"copied\"><pre class=\"command\"><code>{text}</code></pre></div>\n");
        }
        Block::Listing(text) => listing(html, text),
        Block::Values(values) => list_of_values(html, values),
        Block::Table(one) => table(html, one),
        Block::Figure(figure) => {
            let svg = match &**figure {
                Figure::Chart(chart) => chart.svg(),
                Figure::Panels(panels) => panels.svg(),
                Figure::Bars(bars) => bars.svg(),
                Figure::TimeLine(lanes) => lanes.svg(),
                Figure::Rack(graph) => graph.svg(),
            };
            *html += &format!("<figure><div class=\"scroll\">{svg}</div></figure>\n");
        }
    }
}

fn listing(html: &mut String, text: &str) {
    let lines: Vec<String> = text.lines().take(LINES_MAX).map(|line| shown_text(line, TEXT_MAX)).collect();
    *html += &format!("<div class=\"copied\"><pre><code>{}</code></pre></div>\n", lines.join("\n"));
    let more = text.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        *html += &format!("<p class=\"note\">{more} more lines are left out.</p>\n");
    }
}

fn list_of_values(html: &mut String, values: &[Value]) {
    *html += "<dl>\n";
    for Value { name, value } in values {
        *html += &format!(
            "<div><dt>{}</dt><dd>{}</dd></div>\n",
            shown_text(name, HEADING_MAX),
            cell_text(value, TEXT_MAX)
        );
    }
    *html += "</dl>\n";
}

fn table(html: &mut String, table: &Table) {
    let kind = if table.columns.len() >= WIDE_FROM { "table wide" } else { "table" };
    let title = shown_text(&table.title, HEADING_MAX);
    *html += &format!(
        "<div class=\"{kind}\">\n<div class=\"scroll\"><table>\n<caption>{title}</caption>\n<thead><tr>"
    );
    for Column { title, is_number } in &table.columns {
        let class = if *is_number { " class=\"n\"" } else { "" };
        *html += &format!("<th scope=\"col\"{class}>{}</th>", shown_text(title, HEADING_MAX));
    }
    *html += "</tr></thead>\n<tbody>\n";
    table.rows.iter().for_each(|one| row(html, &table.columns, one));
    *html += "</tbody>\n</table></div>\n";
    if !table.note.is_empty() {
        *html += &format!("<p class=\"note\">{}</p>\n", shown_text(&table.note, TEXT_MAX));
    }
    *html += "</div>\n";
}

fn row(html: &mut String, columns: &[Column], row: &Row) {
    *html += "<tr>";
    for (index, (column, cell)) in columns.iter().zip(row).enumerate() {
        let is_long = cell.text.chars().nth(LINE_MAX).is_some();
        let class = match (column.is_number, is_long) {
            (true, _) => " class=\"n\"",
            (false, true) => " class=\"w\"",
            (false, false) => "",
        };
        let key = match cell.key.filter(|key| key.is_finite()) {
            Some(key) => format!(" data-key=\"{key}\""),
            None => String::new(),
        };
        // The first cell names the row.
        let (begin, end) = if index == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
        *html += &format!("<{begin}{class}{key}>{}</{end}>", cell_text(cell, CELL_MAX));
    }
    *html += "</tr>\n";
}

/// Returns the text of a cell, with this number of characters at most. A tone has a sign beside its colour.
fn cell_text(cell: &Cell, length_max: usize) -> String {
    let text = shown_text(&cell.text, length_max);
    let (class, sign) = match cell.tone {
        Tone::Plain => return text,
        Tone::Good => ("good", '\u{2713}'),
        Tone::Warning => ("warning", '\u{26a0}'),
        Tone::Bad => ("bad", '\u{2717}'),
    };
    format!("<span class=\"{class}\"><span aria-hidden=\"true\">{sign}\u{fe0e} </span>{text}</span>")
}

/// Returns a text as content of an element. It has at most this number of characters.
fn shown_text(text: &str, length_max: usize) -> String {
    escaped(&shown(&cut(text, length_max)))
}

#[cfg(test)]
mod tests {
    use rackloom_drawing::chart::{Axis, Lane, Lanes, Mark};

    use super::*;

    const HOSTILE: &str =
        "</script><script>alert(1)</script><img src=x onerror=\"alert(1)\">'&\u{202e}\u{5d0}";

    fn page(text: &str) -> Page {
        let table = Table {
            rows: vec![vec![Cell::text(text), Cell::number(text, 1.5).with_tone(Tone::Bad)]],
            note: text.to_owned(),
            ..Table::new(text, vec![Column::text(text), Column::number("count")])
        };
        let mark = Mark { at: 1.0, text: text.to_owned(), ..Mark::default() };
        let lanes = Lanes {
            title: text.to_owned(),
            note: text.to_owned(),
            time: Axis::linear("time (ns)"),
            range: (0.0, 2.0),
            lanes: vec![Lane { name: text.to_owned(), marks: vec![mark] }],
        };
        let blocks = vec![
            Block::Text(text.to_owned()),
            Block::List(vec![text.to_owned()]),
            Block::Command(text.to_owned()),
            Block::Listing(text.to_owned()),
            Block::Values(vec![Value::new(text, text)]),
            Block::Table(table),
            Block::figure(Figure::TimeLine(lanes)),
        ];
        Page {
            title: text.to_owned(),
            subtitle: text.to_owned(),
            verdict: Some(Cell::text(text).with_tone(Tone::Good)),
            sections: vec![Section::new(text, blocks)],
        }
    }

    #[test]
    fn hostile_texts_are_text_in_every_part() {
        let html = page(HOSTILE).html();
        assert_eq!(html.matches("<script").count(), 1);
        assert_eq!(html.matches("</script>").count(), 1);
        assert!(!html.contains("<img") && !html.contains('\u{202e}'));
        // A harmless text gives the same elements, except that texts of pictures have fewer lines.
        let elements = |html: &str| html.matches('<').count() - 2 * html.matches("<text ").count();
        assert_eq!(elements(&html), elements(&page("harmless").html()));
        assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    }

    #[test]
    fn nothing_is_loaded() {
        let html = page("text").html();
        for forbidden in ["http://", "https://", " src=", "@import", "url("] {
            let found = html.replace("http://www.w3.org/2000/svg", "").matches(forbidden).count();
            assert_eq!(found, 0, "{forbidden}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn long_texts_are_cut_except_commands() {
        let html = page(&"long".repeat(10_000)).html();
        assert_eq!(html.matches(&"long".repeat(10_000)).count(), 1, "the command alone");
        assert!(html.contains("long\u{2026}"));
    }

    #[test]
    fn sections_have_different_identifiers_and_empty_ones_are_left_out() {
        let section = |blocks| Section::new("Links & nodes", blocks);
        let text = || vec![Block::Text("x".to_owned())];
        let page = Page {
            sections: vec![
                section(text()),
                section(Vec::new()),
                section(vec![Block::List(Vec::new())]),
                section(text()),
            ],
            ..Page::default()
        };
        let html = page.html();
        assert_eq!(html.matches("<section ").count(), 2);
        assert!(
            html.contains("href=\"#section-links---nodes\"")
                && html.contains("href=\"#section-links---nodes-2\"")
        );
    }

    #[test]
    fn tables_of_many_columns_have_wide_paper() {
        let kind = |columns: usize| {
            let all = (0..columns).map(|number| Column::number(number.to_string())).collect();
            let rows = vec![vec![Cell::number("1", 1.0); columns]];
            let mut html = String::new();
            table(&mut html, &Table { rows, ..Table::new("t", all) });
            html.starts_with("<div class=\"table wide\">")
        };
        assert_eq!((kind(WIDE_FROM - 1), kind(WIDE_FROM)), (false, true));
    }

    #[test]
    fn keys_are_numbers_of_the_cells() {
        let html = page("x").html();
        assert!(html.contains("<td class=\"n\" data-key=\"1.5\"><span class=\"bad\">"), "{html}");
    }
}
