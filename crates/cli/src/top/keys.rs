//! Keys of the live view.

use rackloom_plan::faults::FaultScript;
use rackloom_runtime::standing::StandingRack;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Action, Mode, Model, Pane};

/// Keys and their effects, for the help.
pub(super) const KEYS: [(&str, &str); 14] = [
    ("q, Esc", "quit"),
    ("Tab", "next table"),
    ("Up, Down, PgUp, PgDn", "select a row"),
    ("s", "order by the next column"),
    ("r", "reverse the order of the table"),
    ("/", "filter by text; Enter ends, Esc clears"),
    ("Space", "pause"),
    ("d", "link: down for 2 s"),
    ("l", "link: lose 1 % of frames"),
    ("c", "link: corrupt 1 % of frames"),
    ("p", "member: stop for 1 s"),
    ("k", "member: kill"),
    ("h", "heal: end all faults"),
    ("?", "this help"),
];

/// Number of columns by which each pane can be ordered.
const ORDERS: [usize; 3] = [5, 4, 1];
/// Number of rows of a page.
const PAGE: usize = 10;

/// Effect of a key that the model cannot have by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Quit,
    Do(Action),
}

impl Action {
    /// Returns the question of the confirmation.
    pub(super) fn question(&self) -> String {
        match self {
            Self::Inject(event) => format!("inject {{{event}}}? y/n"),
            Self::Heal => "end all faults? y/n".to_owned(),
        }
    }

    /// Carries the action out on a connection of its own. Returns a line about its result.
    pub(super) fn carry_out(&self, rack: &str) -> String {
        let done = StandingRack::named(rack).and_then(|rack| match self {
            Self::Inject(event) => rack.inject(script_of(event), true).map(|_| format!("injected: {event}")),
            Self::Heal => rack.end_faults().map(|()| "all faults end".to_owned()),
        });
        done.unwrap_or_else(|failure| failure.to_string().replace('\n', " "))
    }
}

/// Returns the script of one event. Its name makes the event one that no file states, so that it is shown without a line.
fn script_of(event: &str) -> String {
    format!("name: {}\nevents:\n  - {{{event}}}\n", FaultScript::INJECTED)
}

/// Applies a key to the model.
pub(super) fn handle(model: &mut Model, key: KeyEvent) -> Effect {
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return Effect::Quit;
    }
    match std::mem::take(&mut model.mode) {
        Mode::Normal => normal(model, key.code),
        Mode::Help => Effect::None,
        Mode::Filter => {
            filter(model, key.code);
            Effect::None
        }
        Mode::Confirm(action) => match key.code {
            KeyCode::Char('y' | 'Y') => Effect::Do(action),
            _ => {
                model.say("nothing was changed".to_owned());
                Effect::None
            }
        },
    }
}

fn normal(model: &mut Model, code: KeyCode) -> Effect {
    let pane = model.pane as usize;
    let last = model.rows().saturating_sub(1);
    let selected = &mut model.selected[pane];
    *selected = (*selected).min(last);
    match code {
        KeyCode::Char('q') | KeyCode::Esc => return Effect::Quit,
        KeyCode::Tab => model.pane = model.pane.next(),
        KeyCode::Up => *selected = selected.saturating_sub(1),
        KeyCode::Down => *selected = (*selected + 1).min(last),
        KeyCode::PageUp => *selected = selected.saturating_sub(PAGE),
        KeyCode::PageDown => *selected = (*selected + PAGE).min(last),
        KeyCode::Char('s') => model.order[pane] = (model.order[pane] + 1) % ORDERS[pane],
        KeyCode::Char('r') => model.is_reversed[pane] = !model.is_reversed[pane],
        KeyCode::Char(' ') => model.is_paused = !model.is_paused,
        KeyCode::Char('/') => model.mode = Mode::Filter,
        KeyCode::Char('?') => model.mode = Mode::Help,
        KeyCode::Char('h') => model.mode = Mode::Confirm(Action::Heal),
        KeyCode::Char(letter @ ('d' | 'l' | 'c' | 'p' | 'k')) => match event_of(model, letter) {
            Some(event) => model.mode = Mode::Confirm(Action::Inject(event)),
            None => model.say("select a link for d, l and c, and a member for p and k".to_owned()),
        },
        _ => {}
    }
    Effect::None
}

/// Returns the event of a fault script that a letter stands for, for the selected row.
fn event_of(model: &Model, letter: char) -> Option<String> {
    let at = model.selected[model.pane as usize];
    let link =
        || (model.pane == Pane::Links).then(|| model.links().get(at).map(|row| row.link.clone())).flatten();
    let member = || {
        (model.pane == Pane::Members).then(|| model.members().get(at).map(|row| row.name.clone())).flatten()
    };
    match letter {
        'd' => link().map(|link| format!("what: down, where: {link}, for: 2s")),
        'l' => link().map(|link| format!("what: loss, where: {link}, rate: 1%")),
        'c' => link().map(|link| format!("what: corrupt, where: {link}, rate: 1%")),
        'p' => member().map(|member| format!("what: pause, where: {member}, for: 1s")),
        'k' => member().map(|member| format!("what: kill, where: {member}")),
        _ => None,
    }
}

fn filter(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Enter => return,
        KeyCode::Esc => return model.filter.clear(),
        KeyCode::Backspace => drop(model.filter.pop()),
        KeyCode::Char(letter) => model.filter.push(letter),
        _ => {}
    }
    model.mode = Mode::Filter;
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;

    use super::super::model::tests::model;
    use super::*;

    fn press(model: &mut Model, code: KeyCode) -> Effect {
        handle(model, KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_fault_is_injected_only_after_its_confirmation() {
        let mut model = model();
        assert_eq!(press(&mut model, KeyCode::Char('d')), Effect::None);
        let Mode::Confirm(action) = &model.mode else { panic!("{:?}", model.mode) };
        assert!(action.question().contains("where: n0--n1"));
        assert_eq!(press(&mut model, KeyCode::Char('n')), Effect::None);
        assert_eq!(model.mode, Mode::Normal);
        press(&mut model, KeyCode::Char('d'));
        let event = "what: down, where: n0--n1, for: 2s".to_owned();
        assert_eq!(press(&mut model, KeyCode::Char('y')), Effect::Do(Action::Inject(event)));
    }

    #[test]
    fn faults_of_members_need_a_selected_member() {
        let mut model = model();
        press(&mut model, KeyCode::Char('k'));
        assert_eq!(model.mode, Mode::Normal);
        assert!(model.message.contains("select"));
        press(&mut model, KeyCode::Tab);
        press(&mut model, KeyCode::Down);
        press(&mut model, KeyCode::Down);
        press(&mut model, KeyCode::Char('k'));
        assert_eq!(model.mode, Mode::Confirm(Action::Inject("what: kill, where: n1".into())));
    }

    #[test]
    fn an_order_is_reversed_in_the_table_that_has_the_keys() {
        let mut model = model();
        press(&mut model, KeyCode::Char('r'));
        assert_eq!(model.links()[0].name, "n1->n0");
        assert_eq!(model.members()[0].name, "n0");
        press(&mut model, KeyCode::Tab);
        press(&mut model, KeyCode::Char('r'));
        assert_eq!((&*model.links()[0].name, &*model.members()[0].name), ("n1->n0", "n1"));
    }

    #[test]
    fn a_fault_of_a_key_is_an_event_that_no_file_states() {
        let plan = "name: pair\nshape: {full-mesh: {nodes: 2}}\n";
        let plan = Plan::parse(plan, "rack.yaml").expect("a rack");
        for event in ["what: loss, where: n0--n1, rate: 1%", "what: kill, where: n1"] {
            let script = FaultScript::parse(&script_of(event), "script", &plan).expect("a script");
            assert!(script.events[0].name().ends_with(" (injected)"), "{}", script.events[0].name());
        }
    }

    #[test]
    fn letters_of_a_filter_are_no_commands() {
        let mut model = model();
        for letter in "/q1".chars() {
            assert_eq!(press(&mut model, KeyCode::Char(letter)), Effect::None);
        }
        assert_eq!(model.filter, "q1");
        press(&mut model, KeyCode::Esc);
        assert_eq!((model.filter.as_str(), &model.mode), ("", &Mode::Normal));
    }
}
