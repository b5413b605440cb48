//! State of the live view: rows with rates, histories, order, filter and selection. It draws nothing.

use std::collections::{HashMap, VecDeque};

use rackloom_control::links::{LinkCounters, LinkStatus};
use rackloom_control::request::{ActiveFault, EventList, MemberStatus, RackStatus};
use rackloom_jobs::report::EventRecord;
use rackloom_runtime::standing::RackEvent;

/// Number of rates that a history keeps, one per status.
pub(super) const HISTORY: usize = 32;
/// Number of events that are kept.
const EVENTS_MAX: usize = 200;

/// Part of the screen that has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    Links,
    Members,
    Events,
}

impl Pane {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Links => Self::Members,
            Self::Members => Self::Events,
            Self::Events => Self::Links,
        }
    }
}

/// State of the keyboard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Normal,
    /// Keys change the filter.
    Filter,
    /// An action waits for its confirmation.
    Confirm(Action),
    /// The list of keys is shown.
    Help,
}

/// Change of the rack that a key requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Injects one event of a fault script.
    Inject(String),
    /// Ends all faults.
    Heal,
}

/// Row of a direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LinkRow {
    pub(super) name: String,
    /// Name of the link in fault scripts: `n0--n1`.
    pub(super) link: String,
    pub(super) is_up: bool,
    pub(super) bytes_per_s: Option<u64>,
    pub(super) frames_per_s: Option<u64>,
    /// Share of the rate, if the link has one.
    pub(super) share: Option<f64>,
    pub(super) lost: Option<u64>,
    pub(super) replayed: Option<u64>,
    pub(super) retransmitted: Option<u64>,
    pub(super) credit_waits: Option<u64>,
    pub(super) history: VecDeque<u64>,
}

/// Row of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MemberRow {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) state: String,
    /// Share of one processor since the last status.
    pub(super) processor: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) incarnation: Option<u64>,
    pub(super) links: String,
}

/// State of the live view.
#[derive(Debug)]
pub(super) struct Model {
    status: RackStatus,
    /// Rows of the latest status, in the order of the plan.
    links: Vec<LinkRow>,
    members: Vec<MemberRow>,
    histories: HashMap<String, VecDeque<u64>>,
    total: VecDeque<u64>,
    events: VecDeque<EventRecord>,
    missed: u64,
    /// Result of the last action.
    pub(super) message: String,
    pub(super) pane: Pane,
    pub(super) mode: Mode,
    pub(super) filter: String,
    /// Number of the column by which rows are ordered, by pane.
    pub(super) order: [usize; 3],
    pub(super) is_reversed: bool,
    pub(super) is_paused: bool,
    /// Selected row, by pane.
    pub(super) selected: [usize; 3],
}

impl Model {
    /// Returns the view of a first status, with the events so far.
    pub(super) fn new(status: RackStatus, list: EventList) -> Self {
        let mut model = Self {
            links: Vec::new(),
            members: Vec::new(),
            status,
            histories: HashMap::new(),
            total: VecDeque::new(),
            events: VecDeque::new(),
            missed: 0,
            message: String::new(),
            pane: Pane::default(),
            mode: Mode::default(),
            filter: String::new(),
            order: [0; 3],
            is_reversed: false,
            is_paused: false,
            selected: [0; 3],
        };
        list.events.into_iter().for_each(|event| model.keep(event));
        model.make_rows(None);
        model
    }

    pub(super) fn rack_name(&self) -> &str {
        &self.status.name
    }

    pub(super) fn status(&self) -> &RackStatus {
        &self.status
    }

    /// Takes a new status, unless the view is paused.
    pub(super) fn update(&mut self, status: RackStatus) {
        if self.is_paused {
            return;
        }
        let earlier = std::mem::replace(&mut self.status, status);
        self.make_rows(Some(&earlier));
        let mut total = 0;
        for row in &mut self.links {
            let rate = row.bytes_per_s.unwrap_or(0);
            total += rate;
            let history = self.histories.entry(row.name.clone()).or_default();
            push(history, rate);
            row.history.clone_from(history);
        }
        push(&mut self.total, total);
    }

    /// Makes the rows of the status, with rates since the earlier one.
    fn make_rows(&mut self, earlier: Option<&RackStatus>) {
        let links = earlier.map_or(&[][..], |status| &status.links);
        let links: HashMap<&str, &LinkStatus> = links.iter().map(|link| (link.name.as_str(), link)).collect();
        let is_down =
            |member: &MemberStatus, link: u16| member.links_up.is_none() || member.links_down.contains(&link);
        let members: HashMap<&str, &MemberStatus> =
            self.status.members.iter().map(|member| (member.name.as_str(), member)).collect();
        let is_up = |link: &LinkStatus| {
            let ends = [&link.from, &link.to].map(|end| members.get(end.as_str()));
            ends.into_iter().all(|end| end.is_some_and(|end| !is_down(end, link.link)))
        };
        let rows = self.status.links.iter();
        let rows = rows.map(|link| link_row(link, links.get(link.name.as_str()).copied(), is_up(link)));
        self.links = rows.collect();
        let before = earlier.map_or(&[][..], |status| &status.members);
        let before: HashMap<&str, &MemberStatus> =
            before.iter().map(|member| (member.name.as_str(), member)).collect();
        let elapsed_ns = earlier.map_or(0, |earlier| self.status.uptime_ns.saturating_sub(earlier.uptime_ns));
        let rows = self.status.members.iter();
        let rows =
            rows.map(|member| member_row(member, before.get(member.name.as_str()).copied(), elapsed_ns));
        self.members = rows.collect();
    }

    /// Adds an event, unless the view is paused.
    pub(super) fn add_event(&mut self, event: RackEvent) {
        match event {
            _ if self.is_paused => {}
            RackEvent::Happened(event) => self.keep(event),
            RackEvent::Missed(count) => self.missed += count,
        }
    }

    fn keep(&mut self, event: EventRecord) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Shows a line until the next action.
    pub(super) fn say(&mut self, line: String) {
        self.message = line;
    }

    /// Returns the rate of all links together, and its history.
    pub(super) fn total(&self) -> (Option<u64>, &VecDeque<u64>) {
        (self.total.back().copied(), &self.total)
    }

    pub(super) fn faults(&self) -> &[ActiveFault] {
        &self.status.faults
    }

    pub(super) const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the events that the filter leaves, latest first.
    pub(super) fn events(&self) -> Vec<&EventRecord> {
        let fits =
            |event: &&EventRecord| self.fits(&format!("{} {} {}", event.member, event.kind, event.text));
        self.events.iter().rev().filter(fits).collect()
    }

    /// Returns the rows of links that the filter leaves, in order.
    pub(super) fn links(&self) -> Vec<LinkRow> {
        let mut rows: Vec<_> = self.links.iter().filter(|row| self.fits(&row.name)).cloned().collect();
        let key = |row: &LinkRow| match self.order[Pane::Links as usize] {
            1 => row.bytes_per_s,
            2 => row.lost,
            3 => row.replayed.map(|replayed| replayed + row.retransmitted.unwrap_or(0)),
            4 => row.credit_waits,
            _ => None,
        };
        // Greatest first; rows with equal values keep the order of the plan.
        rows.sort_by_key(|row| std::cmp::Reverse(key(row).unwrap_or(0)));
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Returns the rows of members that the filter leaves, in order.
    pub(super) fn members(&self) -> Vec<MemberRow> {
        let fits = |row: &&MemberRow| self.fits(&format!("{} {} {}", row.name, row.role, row.state));
        let mut rows: Vec<_> = self.members.iter().filter(fits).cloned().collect();
        let key = |row: &MemberRow| match self.order[Pane::Members as usize] {
            1 => row.processor.map(|share| (share * 1e6) as u64),
            2 => row.memory_bytes,
            3 => row.incarnation,
            _ => None,
        };
        rows.sort_by_key(|row| std::cmp::Reverse(key(row).unwrap_or(0)));
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Returns the number of rows of the pane that has the keys.
    pub(super) fn rows(&self) -> usize {
        match self.pane {
            Pane::Links => self.links().len(),
            Pane::Members => self.members().len(),
            Pane::Events => self.events().len(),
        }
    }

    fn fits(&self, text: &str) -> bool {
        self.filter.is_empty() || text.to_lowercase().contains(&self.filter.to_lowercase())
    }
}

/// Returns the name of a direction's link in fault scripts: `n0->n1#1` is on `n0--n1#1`.
fn link_name(link: &LinkStatus) -> String {
    let number = link.name.split_once('#').map_or_else(String::new, |(_, number)| format!("#{number}"));
    format!("{}--{}{number}", link.from, link.to)
}

/// Returns the row of a direction, with rates since an earlier status of it.
fn link_row(link: &LinkStatus, earlier: Option<&LinkStatus>, is_up: bool) -> LinkRow {
    let rate = link.sent.as_ref().zip(earlier.and_then(|earlier| earlier.sent.as_ref()));
    let rate = rate.and_then(|(sent, before)| sent.rate_since(before));
    let share = rate.and_then(|rate| Some(rate.bytes_per_s as f64 * 8.0 / link.rate_bits_per_s? as f64));
    let of_sender = |count: fn(&LinkCounters) -> u64| link.sent.as_ref().map(count);
    let dropped = link.dropped.as_ref().map(|dropped| dropped.values().sum::<u64>());
    LinkRow {
        name: link.name.clone(),
        link: link_name(link),
        is_up,
        bytes_per_s: rate.map(|rate| rate.bytes_per_s),
        frames_per_s: rate.map(|rate| rate.frames_per_s),
        share,
        lost: dropped.or(link.missing).map(|dropped| dropped.max(link.missing.unwrap_or(0))),
        replayed: of_sender(|sent| sent.replayed),
        retransmitted: of_sender(|sent| sent.retransmitted),
        credit_waits: of_sender(|sent| sent.credit_waits),
        history: VecDeque::new(),
    }
}

/// Returns the row of a member, with its use of a processor since an earlier status of it.
fn member_row(member: &MemberStatus, earlier: Option<&MemberStatus>, elapsed_ns: u64) -> MemberRow {
    let spent = earlier
        .filter(|before| before.pid == member.pid)
        .and_then(|before| member.processor_ns?.checked_sub(before.processor_ns?));
    MemberRow {
        name: member.name.clone(),
        role: member.role.clone(),
        state: member.state.clone(),
        processor: spent.filter(|_| elapsed_ns > 0).map(|spent| spent as f64 / elapsed_ns as f64),
        memory_bytes: member.memory_used_bytes,
        incarnation: member.incarnation,
        links: format!(
            "{}/{}",
            member.links_up.map_or_else(|| "-".to_owned(), |up| up.to_string()),
            member.links_total
        ),
    }
}

fn push(history: &mut VecDeque<u64>, value: u64) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(value);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Status of two nodes after `seconds`, in which n0 sent `bytes` and n1 nothing.
    pub(in crate::top) fn status(seconds: u64, bytes: u64) -> RackStatus {
        let at_ns = seconds * 1_000_000_000;
        let link = |from: &str, to: &str, bytes: u64| LinkStatus {
            name: format!("{from}->{to}"),
            from: from.into(),
            to: to.into(),
            link: 0,
            plane: 0,
            rate_bits_per_s: Some(8_000_000_000),
            sent: Some(LinkCounters { at_ns, bytes, frames: bytes / 1000, ..LinkCounters::default() }),
            rate: None,
            missing: Some(0),
            dropped: Some([("injected".to_owned(), bytes / 100_000)].into()),
            unanswered: Vec::new(),
        };
        let member = |name: &str| {
            MemberStatus {
            processor_ns: Some(at_ns / 4),
            incarnation: Some(7),
            ..serde_json::from_value(serde_json::json!({
                "name": name, "role": "gpu node", "pid": 5, "server": "s", "tenant": 0, "state": "up",
                "memory_used_bytes": 4096, "memory_bytes": 65536, "links_up": 1, "links_total": 1, "uptime_ns": 1
            }))
            .expect("a member")
        }
        };
        RackStatus {
            name: "pair".into(),
            state: "up".into(),
            uptime_ns: at_ns,
            links_up: 1,
            links_total: 1,
            members: vec![member("n0"), member("n1")],
            links: vec![link("n0", "n1", bytes), link("n1", "n0", 0)],
            ..RackStatus::default()
        }
    }

    pub(in crate::top) fn model() -> Model {
        let mut model = Model::new(status(1, 0), EventList::default());
        model.update(status(3, 1_000_000_000));
        model
    }

    #[test]
    fn rates_are_differences_of_two_status_over_the_time_between() {
        let model = model();
        let rows = model.links();
        assert_eq!((rows[0].bytes_per_s, rows[0].frames_per_s), (Some(500_000_000), Some(500_000)));
        assert_eq!((rows[0].share, rows[0].link.as_str()), (Some(0.5), "n0--n1"));
        assert_eq!(model.members()[0].processor, Some(0.25));
        assert_eq!(model.total().0, Some(500_000_000));
    }

    #[test]
    fn a_filter_leaves_rows_and_an_order_sorts_them() {
        let mut model = model();
        model.order[Pane::Links as usize] = 1;
        assert_eq!(model.links()[0].name, "n0->n1");
        model.is_reversed = true;
        assert_eq!(model.links()[0].name, "n1->n0");
        model.filter = "N1->".into();
        assert_eq!(model.links().len(), 1);
    }

    #[test]
    fn a_paused_view_does_not_change() {
        let mut model = model();
        model.is_paused = true;
        model.update(status(9, 9_000_000_000));
        assert_eq!(model.links()[0].bytes_per_s, Some(500_000_000));
    }
}
