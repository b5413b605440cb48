//! Drawing of the live view. It changes nothing but the selection, which is limited to the rows that exist.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use rackloom_plan::printable;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use super::columns::{self, Cells, Column, parts};
use super::keys::KEYS;
use super::model::{Mode, Model, Pane};
use crate::present::{FaultInEffect, units};

/// Cells of a bar of utilisation.
const BAR: usize = 10;
/// Steps of a history, from none to the greatest value.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PLAIN_STEPS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) has_colour: bool,
    pub(super) has_blocks: bool,
}

impl Look {
    /// Returns the abilities that the environment states: `NO_COLOR`, `TERM`, and the encoding of the locale.
    pub(super) fn of_environment() -> Self {
        let value = |name: &str| std::env::var(name).unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(value).into_iter().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_lowercase();
        Self {
            has_colour: value("NO_COLOR").is_empty() && value("TERM") != "dumb",
            has_blocks: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, look: &Look) {
    let faults = model.faults().len().min(3) as u16;
    let faults_height = if faults > 0 { faults + 1 } else { 0 };
    // A table has a title and heads.
    let wanted = [model.links().len(), model.members().len()].map(|rows| rows.min(1000) as u16 + 2);
    let space = frame.area().height.saturating_sub(3 + faults_height);
    let [links_height, members_height, events_height] = heights(space, wanted, model.pane);
    let areas = parts(frame.area(), [2, links_height, members_height, faults_height, events_height, 1]);
    head(frame, areas[0], model, *look);
    links(frame, areas[1], model, *look);
    members(frame, areas[2], model, *look);
    if faults > 0 {
        draw_faults(frame, areas[3], model, *look);
    }
    draw_events(frame, areas[4], model, *look);
    foot(frame, areas[5], model, *look);
    if model.mode == Mode::Help {
        help(frame);
    }
    clean(frame);
}

/// Removes characters that control a terminal or the direction of text. The library leaves those without a width in the cell before them.
fn clean(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        if let Cow::Owned(_) = printable(cell.symbol()) {
            let kept: String = cell
                .symbol()
                .chars()
                .filter(|one| printable(one.encode_utf8(&mut [0; 4])).starts_with(*one))
                .collect();
            cell.set_symbol(&kept);
        }
    }
}

/// Returns the heights of links, members and events, which share `space`. Tables get the heights that they want, and events the rest, but at
/// least a fifth. If that is too little, the pane in use gets most of it.
fn heights(space: u16, wanted: [u16; 2], pane: Pane) -> [u16; 3] {
    let events = if pane == Pane::Events { space / 2 } else { (space / 5).max(2) }.min(space);
    let tables = space - events;
    let [links, members] = wanted;
    if links + members <= tables {
        return [links, members, space - links - members];
    }
    let small = tables.div_ceil(3);
    let share = if pane == Pane::Members { small } else { tables - small };
    // What one table leaves is for the other.
    let links = links.min(share.max(tables.saturating_sub(members)));
    [links, tables - links, events]
}

fn head(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let status = model.status();
    let job = match status.verdict {
        Some(verdict) => format!("{}: {}", status.job, verdict.name()),
        None => status.job.clone(),
    };
    let mut spans = vec![
        Span::styled(format!("rack {}", status.name), Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(format!(
            " · {} · {} · {} · job {job}",
            status.state,
            units::time(status.uptime_ns),
            status.wire
        )),
    ];
    if model.is_paused {
        spans.push(Span::styled(" · PAUSED", look.bad()));
    }
    let links = format!("{} of {} links up", status.links_up, status.links_total);
    let links =
        Span::styled(links, if status.links_up < status.links_total { look.bad() } else { Style::new() });
    let (rate, history) = model.total();
    let faults = match model.faults().len() {
        0 => Span::raw(" · no fault"),
        1 => Span::styled(" · 1 fault in force", look.bad()),
        count => Span::styled(format!(" · {count} faults in force"), look.bad()),
    };
    let rate = rate.map_or_else(|| "-".to_owned(), units::rate);
    let second = vec![
        links,
        faults,
        Span::raw(format!(" · all links {rate} ")),
        Span::styled(spark(history, look), look.colour(Color::Cyan)),
    ];
    frame.render_widget(Paragraph::new(vec![Line::from(spans), Line::from(second)]), area);
}

/// Returns a history as one character per value, relative to the greatest one.
fn spark(history: &VecDeque<u64>, look: Look) -> String {
    let most = history.iter().copied().max().unwrap_or(0).max(1);
    let steps = if look.has_blocks { STEPS } else { PLAIN_STEPS };
    history.iter().map(|value| steps[value.saturating_mul(7).div_ceil(most).min(7) as usize]).collect()
}

/// Returns a bar for a share from 0 to 1.
fn bar(share: f64, look: Look) -> String {
    let (full, empty) = if look.has_blocks { ('█', '░') } else { ('#', '.') };
    let cells = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    let bar = std::iter::repeat_n(full, cells).chain(std::iter::repeat_n(empty, BAR - cells));
    bar.collect()
}

fn titled(title: &str, pane: Option<Pane>, model: &Model) -> Block<'static> {
    let is_active = pane == Some(model.pane);
    let title = if is_active { format!("[{title}]") } else { format!(" {title} ") };
    let style = if is_active { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
    Block::new().borders(Borders::TOP).title(Span::styled(title, style))
}

/// Returns the title of a pane with the column of its order.
fn ordered(name: &str, pane: Pane, columns: &[&str], count: usize, model: &Model) -> String {
    let by = columns.get(model.order[pane as usize]).copied().unwrap_or("plan");
    let direction = if model.is_reversed[pane as usize] { ", reversed" } else { "" };
    let filter = if model.filter.is_empty() { String::new() } else { format!(", with \"{}\"", model.filter) };
    format!("{name} {count} by {by}{direction}{filter}")
}

/// Rows of a table that its area shows. Cells are made for these alone.
struct Shown {
    rows: Range<usize>,
    /// Selected row among them, if the table has the keys.
    selected: Option<usize>,
}

impl Shown {
    /// Returns the first rows, or those that end with the selected one. `count`: number of all rows.
    fn of(area: Rect, model: &Model, pane: Pane, count: usize) -> Self {
        // Title and header take a line each.
        let space = usize::from(area.height.saturating_sub(2));
        let selected =
            (model.pane == pane && count > 0).then(|| model.selected[pane as usize].min(count - 1));
        let first = selected.map_or(0, |selected| (selected + 1).saturating_sub(space)).min(count);
        let rows = first..first.saturating_add(space).min(count);
        let selected = selected.and_then(|selected| selected.checked_sub(first));
        Self { selected: selected.filter(|index| *index < rows.len()), rows }
    }
}

/// Draws a table under its title. `row`: cells of the row with this index.
fn table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    title: Block<'_>,
    columns: [Column; N],
    shown: Shown,
    row: impl Fn(usize) -> Cells<N>,
) {
    let inner = title.inner(area);
    frame.render_widget(title, area);
    columns::draw(frame.buffer_mut(), inner, columns, shown.rows.map(row), shown.selected);
}

fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Returns the width of the longest name, within limits.
fn width_of<'n>(names: impl Iterator<Item = &'n String>, least: usize, most: usize) -> u16 {
    names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(least, most) as u16
}

fn links(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let rows = model.links();
    let orders = ["plan", "rate", "lost", "sent again", "credit waits"];
    let title = ordered("links", Pane::Links, &orders, rows.len(), model);
    let cells = |index: usize| {
        let row = rows[index];
        let is_bad = !row.is_up || row.lost.is_some_and(|lost| lost > 0);
        Cells {
            texts: [
                row.name.clone(),
                if row.is_up { "up" } else { "DOWN" }.to_owned(),
                or_dash(row.bytes_per_s, units::rate),
                row.share.map_or_else(String::new, |share| bar(share, look)),
                row.share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0)),
                or_dash(row.frames_per_s, units::count),
                or_dash(row.lost, units::count),
                or_dash(row.sent_again(), units::count),
                or_dash(row.credit_waits, units::count),
                spark(&row.history, look),
            ],
            style: if is_bad { look.bad() } else { Style::new() },
        }
    };
    let columns = [
        Column::left("link", width_of(rows.iter().map(|row| &row.name), 4, 16), 0),
        Column::left("", 4, 1),
        Column::right("rate", 10, 2),
        Column::left("use", BAR as u16, 7),
        Column::right("", 4, 3),
        Column::right("frames/s", 8, 6),
        Column::right("lost", 6, 4),
        Column::right("again", 6, 5),
        Column::right("credits", 7, 8),
        Column::rest("history", 9),
    ];
    let shown = Shown::of(area, model, Pane::Links, rows.len());
    table(frame, area, titled(&title, Some(Pane::Links), model), columns, shown, cells);
}

fn members(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let rows = model.members();
    let orders = ["plan", "processor", "memory", "incarnation"];
    let title = ordered("members", Pane::Members, &orders, rows.len(), model);
    let cells = |index: usize| {
        let row = rows[index];
        let is_bad = matches!(row.state.as_str(), "lost" | "silent");
        Cells {
            texts: [
                row.name.clone(),
                row.role.clone(),
                row.state.clone(),
                row.processor.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0)),
                or_dash(row.memory_bytes, units::bytes),
                row.links.clone(),
                or_dash(row.incarnation, |incarnation| format!("{incarnation:x}")),
            ],
            style: if is_bad { look.bad() } else { Style::new() },
        }
    };
    let columns = [
        Column::left("member", width_of(rows.iter().map(|row| &row.name), 6, 20), 0),
        Column::left("role", 8, 5),
        Column::left("state", 9, 1),
        Column::right("processor", 9, 2),
        Column::right("memory", 10, 3),
        Column::right("links", 7, 4),
        Column::rest("incarnation", 6),
    ];
    let shown = Shown::of(area, model, Pane::Members, rows.len());
    table(frame, area, titled(&title, Some(Pane::Members), model), columns, shown, cells);
}

fn draw_faults(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let space = usize::from(area.height.saturating_sub(1));
    let line = |fault: &FaultInEffect<'_>| {
        let members = fault.members.join(", ");
        Line::styled(format!("{} at {members}, {} ago", fault.what, units::time(fault.age_ns)), look.bad())
    };
    let faults = model.faults();
    let mut lines: Vec<_> = faults.iter().take(space).map(line).collect();
    let more = faults.len().saturating_sub(space);
    if let (true, Some(last)) = (more > 0, lines.last_mut()) {
        *last = Line::from(format!("and {} more", more + 1));
    }
    frame.render_widget(Paragraph::new(lines).block(titled("faults in force", None, model)), area);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let events = model.events();
    let missed = model.missed();
    let title = if missed > 0 { format!("events, {missed} missed") } else { "events".to_owned() };
    let selected = if model.pane == Pane::Events { model.selected[Pane::Events as usize] } else { 0 };
    let space = usize::from(area.height.saturating_sub(1));
    let skipped = (selected + 1).saturating_sub(space);
    let line = |(index, event): (usize, &&rackloom_jobs::report::EventRecord)| {
        let text = format!("{:>10} {} {}", units::time(event.at_ns), event.member, event.text);
        let is_bad = matches!(event.kind.as_str(), "node-lost" | "fault" | "order-broken");
        let style = if is_bad { look.bad() } else { Style::new() };
        let is_selected = model.pane == Pane::Events && index == selected;
        Line::styled(text, if is_selected { style.add_modifier(Modifier::REVERSED) } else { style })
    };
    let lines: Vec<_> = events.iter().enumerate().skip(skipped).take(space).map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(titled(&title, Some(Pane::Events), model)), area);
}

fn foot(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let line = match &model.mode {
        Mode::Confirm(action) => Line::styled(action.question(), look.bad()),
        Mode::Filter => Line::from(format!("filter: {}_", model.filter)),
        Mode::Normal | Mode::Help if !model.message.is_empty() => Line::from(model.message.clone()),
        Mode::Normal | Mode::Help => Line::from(
            "q quit  Tab table  s sort  / filter  Space pause  d down  l loss  k kill  h heal  ? help",
        ),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn help(frame: &mut Frame<'_>) {
    let lines: Vec<_> = KEYS.iter().map(|(key, effect)| Line::from(format!("{key:<20} {effect}"))).collect();
    let area = frame.area();
    let [width, height] = [62.min(area.width), (KEYS.len() as u16 + 2).min(area.height)];
    let inner = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, inner);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), inner);
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::model;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        let look = Look { has_colour: false, has_blocks: false };
        terminal.draw(|frame| draw(frame, model, &look)).expect("it draws");
        terminal.backend().to_string()
    }

    #[test]
    fn a_small_terminal_shows_links_members_and_keys() {
        let screen = screen(&model(), 80, 24);
        for text in
            ["rack pair", "n0->n1", "500 MB/s", "#####.....", "51%", "n1", "25.0%", "4.00 KiB", "q quit"]
        {
            assert!(screen.contains(text), "{text} in\n{screen}");
        }
    }

    #[test]
    fn a_narrow_terminal_leaves_columns_out_and_cuts_no_number() {
        let screen = screen(&model(), 40, 12);
        for text in ["500 MB/s", "n0->n1", "n1", "processor", "25.0%"] {
            assert!(screen.contains(text), "{text} in\n{screen}");
        }
        assert!(!screen.contains("credits") && !screen.contains("incarnation"), "{screen}");
    }

    #[test]
    fn tables_get_the_rows_that_they_have_and_the_pane_in_use_most_of_little_space() {
        assert_eq!(heights(20, [5, 6], Pane::Links), [5, 6, 9]);
        assert_eq!(heights(20, [40, 6], Pane::Links), [10, 6, 4], "members need no more");
        let [links, members, _] = heights(20, [40, 40], Pane::Members);
        assert!(members > links && links >= 5, "{links} {members}");
        assert_eq!(heights(20, [40, 40], Pane::Events)[2], 10);
        for space in 0..8 {
            assert_eq!(heights(space, [40, 40], Pane::Links).iter().sum::<u16>(), space);
        }
    }

    #[test]
    fn any_size_can_be_drawn() {
        for (width, height) in [(1, 1), (20, 5), (40, 12), (200, 60)] {
            let _ = screen(&model(), width, height);
        }
        let mut model = model();
        model.mode = Mode::Help;
        let _ = screen(&model, 10, 3);
    }

    #[test]
    fn the_selected_row_is_shown_and_no_cells_are_made_for_the_others() {
        let mut model = model();
        let shown = |model: &Model, height: u16, count: usize| {
            let shown = Shown::of(Rect::new(0, 0, 80, height), model, Pane::Links, count);
            (shown.rows, shown.selected)
        };
        assert_eq!(shown(&model, 7, 100), (0..5, Some(0)));
        model.selected[Pane::Links as usize] = 6;
        assert_eq!(shown(&model, 7, 100), (2..7, Some(4)));
        assert_eq!(shown(&model, 7, 3), (0..3, Some(2)), "fewer rows than the selection");
        assert_eq!(shown(&model, 7, 0), (0..0, None));
        assert_eq!(shown(&model, 1, 100).1, None, "no line for a row");
        model.pane = Pane::Members;
        assert_eq!(shown(&model, 7, 100), (0..5, None));
    }

    #[test]
    fn texts_of_the_rack_cannot_control_the_terminal() {
        let mut model = model();
        model.message = "e\u{202e}v\u{1b}[2Jil".to_owned();
        let screen = screen(&model, 80, 24);
        assert!(screen.contains("ev") && !screen.contains(['\u{202e}', '\u{1b}']), "{screen:?}");
    }

    #[test]
    fn a_question_replaces_the_keys() {
        let mut model = model();
        model.mode = Mode::Confirm(super::super::model::Action::Heal);
        assert!(screen(&model, 80, 24).contains("end all faults? y/n"));
    }
}
