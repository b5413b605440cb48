//! Drawing of the live view. It changes nothing but the selection, which is limited to the rows that exist.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Table, TableState};

use super::keys::KEYS;
use super::model::{LinkRow, MemberRow, Mode, Model, Pane};
use crate::present::units;

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
    let fill = |pane: Pane| if model.pane == pane { Constraint::Fill(3) } else { Constraint::Fill(1) };
    let events = if model.pane == Pane::Events { Constraint::Fill(3) } else { Constraint::Length(5) };
    let areas = Layout::vertical([
        Constraint::Length(2),
        fill(Pane::Links),
        fill(Pane::Members),
        Constraint::Length(if faults > 0 { faults + 1 } else { 0 }),
        events,
        Constraint::Length(1),
    ])
    .split(frame.area());
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
    history.iter().map(|value| steps[(value * 7).div_ceil(most).min(7) as usize]).collect()
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
    let direction = if model.is_reversed { ", reversed" } else { "" };
    let filter = if model.filter.is_empty() { String::new() } else { format!(", with \"{}\"", model.filter) };
    format!("{name} {count} by {by}{direction}{filter}")
}

fn show(frame: &mut Frame<'_>, area: Rect, model: &Model, pane: Pane, table: Table<'_>, rows: usize) {
    let mut state = TableState::default();
    if model.pane == pane && rows > 0 {
        state.select(Some(model.selected[pane as usize].min(rows - 1)));
    }
    let marked = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED)).column_spacing(1);
    frame.render_stateful_widget(marked, area, &mut state);
}

fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn right(text: String) -> ratatui::text::Text<'static> {
    ratatui::text::Text::from(text).right_aligned()
}

fn links(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let rows = model.links();
    let columns = ["plan", "rate", "lost", "sent again", "credit waits"];
    let title = ordered("links", Pane::Links, &columns, rows.len(), model);
    let row = |row: &LinkRow| {
        let again = row.replayed.map(|replayed| replayed + row.retransmitted.unwrap_or(0));
        let is_bad = !row.is_up || row.lost.is_some_and(|lost| lost > 0);
        let style = if is_bad { look.bad() } else { Style::new() };
        Row::new([
            ratatui::text::Text::from(row.name.clone()),
            ratatui::text::Text::from(if row.is_up { "up" } else { "DOWN" }),
            right(or_dash(row.bytes_per_s, units::rate)),
            ratatui::text::Text::from(row.share.map_or_else(String::new, |share| bar(share, look))),
            right(row.share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0))),
            right(or_dash(row.frames_per_s, units::count)),
            right(or_dash(row.lost, units::count)),
            right(or_dash(again, units::count)),
            right(or_dash(row.credit_waits, units::count)),
            ratatui::text::Text::from(spark(&row.history, look)),
        ])
        .style(style)
    };
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(4).clamp(4, 16) as u16;
    let widths = [
        Constraint::Length(names),
        Constraint::Length(4),
        Constraint::Length(10),
        Constraint::Length(BAR as u16),
        Constraint::Length(4),
        Constraint::Length(8),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Fill(1),
    ];
    let heads = ["link", "", "rate", "use", "", "frames/s", "lost", "again", "credits", "history"];
    let aligned = heads.iter().enumerate().map(|(index, head)| {
        let text = ratatui::text::Text::from(*head);
        if matches!(index, 2 | 5..=8) { text.right_aligned() } else { text }
    });
    let header = Row::new(aligned).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(rows.iter().map(row), widths);
    let table = table.header(header).block(titled(&title, Some(Pane::Links), model));
    show(frame, area, model, Pane::Links, table, rows.len());
}

fn members(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let rows = model.members();
    let columns = ["plan", "processor", "memory", "incarnation"];
    let title = ordered("members", Pane::Members, &columns, rows.len(), model);
    let row = |row: &MemberRow| {
        let style = if matches!(row.state.as_str(), "lost" | "silent") { look.bad() } else { Style::new() };
        Row::new([
            ratatui::text::Text::from(row.name.clone()),
            ratatui::text::Text::from(row.role.clone()),
            ratatui::text::Text::from(row.state.clone()),
            right(row.processor.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))),
            right(or_dash(row.memory_bytes, units::bytes)),
            right(row.links.clone()),
            ratatui::text::Text::from(or_dash(row.incarnation, |incarnation| format!("{incarnation:x}"))),
        ])
        .style(style)
    };
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(4).clamp(6, 20) as u16;
    let widths = [
        Constraint::Length(names),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(10),
        Constraint::Length(7),
        Constraint::Fill(1),
    ];
    let heads = ["member", "role", "state", "processor", "memory", "links", "incarnation"];
    let aligned = heads.iter().enumerate().map(|(index, head)| {
        let text = ratatui::text::Text::from(*head);
        if matches!(index, 3..=5) { text.right_aligned() } else { text }
    });
    let header = Row::new(aligned).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(rows.iter().map(row), widths);
    let table = table.header(header).block(titled(&title, Some(Pane::Members), model));
    show(frame, area, model, Pane::Members, table, rows.len());
}

fn draw_faults(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let space = usize::from(area.height.saturating_sub(1));
    let line = |fault: &rackloom_control::request::ActiveFault| {
        Line::styled(
            format!("{} at {}, for {}", fault.what, fault.member, units::time(fault.age_ns)),
            look.bad(),
        )
    };
    let mut lines: Vec<_> = model.faults().iter().take(space).map(line).collect();
    let more = model.faults().len().saturating_sub(space);
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
            ["rack pair", "n0->n1", "500 MB/s", "#####.....", "50%", "n1", "25.0%", "4.00 KiB", "q quit"]
        {
            assert!(screen.contains(text), "{text} in\n{screen}");
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
    fn a_question_replaces_the_keys() {
        let mut model = model();
        model.mode = Mode::Confirm(super::super::model::Action::Heal);
        assert!(screen(&model, 80, 24).contains("end all faults? y/n"));
    }
}
