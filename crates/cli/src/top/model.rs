//! State of the live view: rows with rates, histories, order, filter and selection. It draws nothing.

use std::collections::{HashMap, VecDeque};

use rackloom_control::links::{LinkCounters, LinkRate, LinkStatus};
use rackloom_control::report::balance::with_preambles;
use rackloom_control::request::{EventList, MemberStatus, RackStatus};
use rackloom_jobs::report::EventRecord;
use rackloom_runtime::standing::RackEvent;

use crate::present::{FaultInEffect, active_faults};

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

impl LinkRow {
    /// Returns the frames and packets that were sent again.
    pub(super) fn sent_again(&self) -> Option<u64> {
        self.replayed.map(|replayed| replayed.saturating_add(self.retransmitted.unwrap_or(0)))
    }
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
    /// True if the order of a pane is reversed, by pane.
    pub(super) is_reversed: [bool; 3],
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
            is_reversed: [false; 3],
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
        let (links, members) = (std::mem::take(&mut self.links), std::mem::take(&mut self.members));
        self.make_rows(Some(&earlier));
        self.keep_rates(&earlier, &links, &members);
        let mut total = 0;
        for row in &mut self.links {
            let rate = row.bytes_per_s.unwrap_or(0);
            total = rate.saturating_add(total);
            let history = self.histories.entry(row.name.clone()).or_default();
            push(history, rate);
            row.history.clone_from(history);
        }
        push(&mut self.total, total);
    }

    /// Makes the rows of the status, with rates since the earlier one.
    fn make_rows(&mut self, earlier: Option<&RackStatus>) {
        let links = earlier.map_or(&[][..], |status| &status.links);
        let is_down =
            |member: &MemberStatus, link: u16| member.links_up.is_none() || member.links_down.contains(&link);
        let members: HashMap<&str, &MemberStatus> =
            self.status.members.iter().map(|member| (member.name.as_str(), member)).collect();
        let is_up = |link: &LinkStatus| {
            let ends = [&link.from, &link.to].map(|end| members.get(end.as_str()));
            ends.into_iter().all(|end| end.is_some_and(|end| !is_down(end, link.link)))
        };
        let rows = self.status.links.iter().enumerate();
        let before = |index: usize, name: &str| counterpart(links, index, |link| link.name == name);
        let rows = rows.map(|(index, link)| link_row(link, before(index, &link.name), is_up(link)));
        self.links = rows.collect();
        let members = earlier.map_or(&[][..], |status| &status.members);
        let before = |index: usize, name: &str| counterpart(members, index, |member| member.name == name);
        let rows = self.status.members.iter().enumerate();
        let rows = rows.map(|(index, member)| member_row(member, before(index, &member.name)));
        self.members = rows.collect();
    }

    /// Keeps the rates of members whose counters are those of the earlier status: they were read at one time. `links`, `members`: rows of that status.
    fn keep_rates(&mut self, earlier: &RackStatus, links: &[LinkRow], members: &[MemberRow]) {
        let at_ns = |link: &LinkStatus| link.sent.as_ref().map(|sent| sent.at_ns);
        for (index, (row, link)) in self.links.iter_mut().zip(&self.status.links).enumerate() {
            let before = counterpart(&earlier.links, index, |before| before.name == link.name);
            let is_one_sample =
                before.is_some_and(|before| at_ns(before).is_some() && at_ns(before) == at_ns(link));
            if let (true, Some(old)) = (is_one_sample, counterpart(links, index, |old| old.name == row.name))
            {
                (row.bytes_per_s, row.frames_per_s, row.share) =
                    (old.bytes_per_s, old.frames_per_s, old.share);
            }
        }
        for (index, (row, member)) in self.members.iter_mut().zip(&self.status.members).enumerate() {
            let before = counterpart(&earlier.members, index, |before| before.name == member.name);
            let is_one_sample =
                before.is_some_and(|before| before.at_ns.is_some() && before.at_ns == member.at_ns);
            if let (true, Some(old)) =
                (is_one_sample, counterpart(members, index, |old| old.name == row.name))
            {
                row.processor = old.processor;
            }
        }
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

    pub(super) fn faults(&self) -> Vec<FaultInEffect<'_>> {
        active_faults(&self.status.faults)
    }

    pub(super) const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the events that the filter leaves, latest first.
    pub(super) fn events(&self) -> Vec<&EventRecord> {
        let fits = |event: &&EventRecord| {
            self.filter.is_empty() || self.fits(&format!("{} {} {}", event.member, event.kind, event.text))
        };
        self.events.iter().rev().filter(fits).collect()
    }

    /// Returns the rows of links that the filter leaves, in order.
    pub(super) fn links(&self) -> Vec<&LinkRow> {
        let mut rows: Vec<_> = self.links.iter().filter(|row| self.fits(&row.name)).collect();
        let key = |row: &LinkRow| match self.order[Pane::Links as usize] {
            1 => row.bytes_per_s,
            2 => row.lost,
            3 => row.sent_again(),
            4 => row.credit_waits,
            _ => None,
        };
        // Greatest first; rows with equal values keep the order of the plan.
        rows.sort_by_key(|row| std::cmp::Reverse(key(row).unwrap_or(0)));
        if self.is_reversed[Pane::Links as usize] {
            rows.reverse();
        }
        rows
    }

    /// Returns the rows of members that the filter leaves, in order.
    pub(super) fn members(&self) -> Vec<&MemberRow> {
        let fits = |row: &&MemberRow| {
            self.filter.is_empty() || self.fits(&format!("{} {} {}", row.name, row.role, row.state))
        };
        let mut rows: Vec<_> = self.members.iter().filter(fits).collect();
        let key = |row: &MemberRow| match self.order[Pane::Members as usize] {
            1 => row.processor.map(|share| (share * 1e6) as u64),
            2 => row.memory_bytes,
            3 => row.incarnation,
            _ => None,
        };
        rows.sort_by_key(|row| std::cmp::Reverse(key(row).unwrap_or(0)));
        if self.is_reversed[Pane::Members as usize] {
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

/// Returns the entry that `is_it` finds. Most lists have one order, so the entry at `index` is tried first.
fn counterpart<T>(list: &[T], index: usize, is_it: impl Fn(&T) -> bool) -> Option<&T> {
    list.get(index).filter(|entry| is_it(entry)).or_else(|| list.iter().find(|entry| is_it(entry)))
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
    let load_per_s = |rate: &LinkRate| with_preambles(rate.bytes_per_s, rate.frames_per_s);
    let share = rate.and_then(|rate| Some(load_per_s(&rate) as f64 * 8.0 / link.rate_bits_per_s? as f64));
    let of_sender = |count: fn(&LinkCounters) -> u64| link.sent.as_ref().map(count);
    let dropped = link
        .dropped
        .as_ref()
        .map(|dropped| dropped.values().fold(0, |sum: u64, count| sum.saturating_add(*count)));
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

/// Returns the row of a member, with its use of a processor since an earlier status of it. Both times are those at which the member read its figures.
fn member_row(member: &MemberStatus, earlier: Option<&MemberStatus>) -> MemberRow {
    let earlier = earlier.filter(|before| before.pid == member.pid);
    let since =
        |now: Option<u64>, of: fn(&MemberStatus) -> Option<u64>| now?.checked_sub(earlier.and_then(of)?);
    let spent_ns = since(member.processor_ns, |before| before.processor_ns);
    let elapsed_ns = since(member.at_ns, |before| before.at_ns).filter(|elapsed_ns| *elapsed_ns > 0);
    MemberRow {
        name: member.name.clone(),
        role: member.role.clone(),
        state: member.state.clone(),
        processor: spent_ns.zip(elapsed_ns).map(|(spent, elapsed)| spent as f64 / elapsed as f64),
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
            at_ns: Some(at_ns),
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
        assert_eq!((rows[0].share, rows[0].link.as_str()), (Some(0.51), "n0--n1"), "with preambles and gaps");
        assert_eq!(model.members()[0].processor, Some(0.25));
        assert_eq!(model.total().0, Some(500_000_000));
    }

    #[test]
    fn rates_stay_until_there_are_later_counters() {
        let mut model = model();
        // The members have not written since, and the supervisor is half a second later.
        let again = RackStatus { uptime_ns: 3_500_000_000, ..status(3, 1_000_000_000) };
        model.update(again);
        assert_eq!((model.links()[0].bytes_per_s, model.links()[0].share), (Some(500_000_000), Some(0.51)));
        assert_eq!(model.members()[0].processor, Some(0.25));
        model.update(status(4, 1_250_000_000));
        assert_eq!(model.links()[0].bytes_per_s, Some(250_000_000));
        let mut silent = status(5, 0);
        silent.links[0].sent = None;
        (silent.members[0].at_ns, silent.members[0].processor_ns) = (None, None);
        model.update(silent.clone());
        model.update(silent);
        assert_eq!((model.links()[0].bytes_per_s, model.members()[0].processor), (None, None));
    }

    #[test]
    fn a_filter_leaves_rows_and_an_order_sorts_them() {
        let mut model = model();
        model.order[Pane::Links as usize] = 1;
        assert_eq!(model.links()[0].name, "n0->n1");
        model.is_reversed[Pane::Links as usize] = true;
        assert_eq!(model.links()[0].name, "n1->n0");
        assert_eq!(model.members()[0].name, "n0", "the other table keeps its order");
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
