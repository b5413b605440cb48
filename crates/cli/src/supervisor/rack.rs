//! What the supervisor knows about its seats, and what follows from it. Pure: no process, no socket, no clock.
//!
//! Opening, until every link was up; running, until every living GPU node has finished; then everybody reports, and only
//! when all have reported may they go, so that nobody mistakes the end of the run for a death. A watchdog ends a run in
//! which nobody gets further: seats are asked what they wait for, then for their reports. Time is counted in ticks rather
//! than by a clock, so that the time during which the supervisor itself was stopped counts for nothing.
//!
//! A death is noted here and told to nobody: the other members find out from their links.

use rackloom_jobs::report::MemberReport;

use crate::control::Notice;

/// Time between two calls of [`Rack::tick`].
pub(super) const TICK_NS: u64 = 50_000_000;
/// How long seats may take to say what they wait for.
const ANSWER_NS: u64 = 1_000_000_000;
/// How long seats may take to report, and then again to end.
const FAREWELL_NS: u64 = 5_000_000_000;

/// What the supervisor must do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All links were up: say so.
    LinksUp,
    /// Ask the living seats what they wait for.
    AskWaiting,
    /// Ask the living seats for their reports.
    AskReports,
    /// Let everybody go.
    Release,
    /// Time is up for these: end them.
    Kill(Vec<usize>),
    /// Nobody is left.
    Over,
}

/// Why the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Every living GPU node has finished.
    Complete,
    /// A seat could not begin.
    CouldNotStart(String),
    /// Nobody got further.
    Stalled,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Running,
    Asking { left_ns: u64 },
    Reporting { left_ns: u64 },
    Releasing { left_ns: u64 },
    Killing,
    Over,
}

/// One member as the supervisor sees it.
#[derive(Debug, Default)]
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) is_endpoint: bool,
    pub(super) pid: u32,
    /// How the process ended before it had reported, if it did.
    pub(super) death: Option<String>,
    /// What it waited for when the watchdog asked.
    pub(super) waiting: Option<Vec<String>>,
    /// What it said last.
    pub(super) report: Option<MemberReport>,
    ready: bool,
    links_up: bool,
    finished: bool,
    ended: bool,
    progress: u64,
}

/// All members, and how far the run is.
#[derive(Debug)]
pub(super) struct Rack {
    pub(super) seats: Vec<Seat>,
    pub(super) ending: Option<Ending>,
    phase: Phase,
    watchdog_ns: u64,
    idle_ns: u64,
}

impl Rack {
    pub(super) fn new(members: impl IntoIterator<Item = (String, bool)>, watchdog_ns: u64) -> Self {
        let seats =
            members.into_iter().map(|(name, is_endpoint)| Seat { name, is_endpoint, ..Seat::default() });
        Self { seats: seats.collect(), ending: None, phase: Phase::Opening, watchdog_ns, idle_ns: 0 }
    }

    /// Members whose processes still run.
    pub(super) fn living(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().enumerate().filter(|(_, seat)| !seat.ended).map(|(member, _)| member)
    }

    /// A seat said something.
    pub(super) fn heard(&mut self, member: usize, notice: Notice) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        match notice {
            Notice::Ready => seat.ready = true,
            Notice::LinksUp => seat.links_up = true,
            Notice::Finished => seat.finished = true,
            Notice::Progress { count } if count == seat.progress => return Vec::new(),
            Notice::Progress { count } => seat.progress = count,
            Notice::Waiting { lines } => seat.waiting = Some(lines),
            Notice::Report(report) => seat.report = Some(*report),
            Notice::Failed { what } => {
                seat.death = Some(what.clone());
                let name = seat.name.clone();
                return if seat.ready {
                    Vec::new()
                } else {
                    self.end(Ending::CouldNotStart(format!("{name}: {what}")))
                };
            }
        }
        self.idle_ns = 0;
        self.settle()
    }

    /// A seat's process ended.
    pub(super) fn ended(&mut self, member: usize, how: String) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        seat.ended = true;
        if seat.report.is_none() {
            seat.death.get_or_insert(how);
        }
        self.idle_ns = 0;
        self.settle()
    }

    /// The user wants out; asking twice is impatience.
    pub(super) fn interrupted(&mut self) -> Vec<Step> {
        match self.phase {
            Phase::Opening | Phase::Running | Phase::Asking { .. } => self.end(Ending::Interrupted),
            Phase::Reporting { .. } | Phase::Releasing { .. } => self.kill(),
            Phase::Killing | Phase::Over => Vec::new(),
        }
    }

    /// [`TICK_NS`] have passed, or more.
    pub(super) fn tick(&mut self) -> Vec<Step> {
        match &mut self.phase {
            Phase::Opening | Phase::Running => {
                self.idle_ns += TICK_NS;
                if self.idle_ns < self.watchdog_ns {
                    return Vec::new();
                }
                self.phase = Phase::Asking { left_ns: ANSWER_NS };
                vec![Step::AskWaiting]
            }
            Phase::Asking { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.end(Ending::Stalled) } else { Vec::new() }
            }
            Phase::Reporting { left_ns } | Phase::Releasing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.kill() } else { Vec::new() }
            }
            Phase::Killing | Phase::Over => Vec::new(),
        }
    }

    fn end(&mut self, ending: Ending) -> Vec<Step> {
        self.ending.get_or_insert(ending);
        self.phase = Phase::Reporting { left_ns: FAREWELL_NS };
        let mut steps = vec![Step::AskReports];
        steps.extend(self.settle());
        steps
    }

    fn kill(&mut self) -> Vec<Step> {
        self.phase = Phase::Killing;
        for seat in self.seats.iter_mut().filter(|seat| !seat.ended && seat.report.is_none()) {
            seat.death.get_or_insert_with(|| "gave no report in time".to_owned());
        }
        vec![Step::Kill(self.living().collect())]
    }

    /// What follows from what is known now.
    fn settle(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.phase == Phase::Opening && self.seats.iter().all(|seat| seat.links_up) {
            self.phase = Phase::Running;
            steps.push(Step::LinksUp);
        }
        if matches!(self.phase, Phase::Opening | Phase::Running) && self.is_finished() {
            steps.extend(self.end(Ending::Complete));
        }
        if matches!(self.phase, Phase::Asking { .. }) && self.all_living(|seat| seat.waiting.is_some()) {
            steps.extend(self.end(Ending::Stalled));
        }
        if matches!(self.phase, Phase::Reporting { .. }) && self.all_living(|seat| seat.report.is_some()) {
            self.phase = Phase::Releasing { left_ns: FAREWELL_NS };
            steps.push(Step::Release);
        }
        let leaving = matches!(self.phase, Phase::Releasing { .. } | Phase::Killing);
        if leaving && self.seats.iter().all(|seat| seat.ended) {
            self.phase = Phase::Over;
            steps.push(Step::Over);
        }
        steps
    }

    fn all_living(&self, is_so: impl Fn(&Seat) -> bool) -> bool {
        self.seats.iter().all(|seat| seat.ended || is_so(seat))
    }

    /// Whether no living GPU node still works. Switches have no work of their own.
    fn is_finished(&self) -> bool {
        self.seats.iter().all(|seat| seat.ended || seat.finished || !seat.is_endpoint)
    }
}

#[cfg(test)]
mod tests {
    use rackloom_jobs::report::MemberState;

    use super::*;

    const WATCHDOG_NS: u64 = 10 * TICK_NS;

    fn rack() -> Rack {
        let members = [("n0", true), ("n1", true), ("s0", false)];
        Rack::new(members.map(|(name, is_endpoint)| (name.to_owned(), is_endpoint)), WATCHDOG_NS)
    }

    fn running() -> Rack {
        let mut rack = rack();
        for member in 0..3 {
            assert_eq!(rack.heard(member, Notice::Ready), []);
        }
        assert_eq!(rack.heard(0, Notice::LinksUp), []);
        assert_eq!(rack.heard(1, Notice::LinksUp), []);
        assert_eq!(rack.heard(2, Notice::LinksUp), [Step::LinksUp]);
        rack
    }

    fn report() -> Notice {
        Notice::Report(Box::new(MemberReport::silent("n", None, MemberState::Finished)))
    }

    fn ticks(rack: &mut Rack, count: u64) -> Vec<Step> {
        (0..count).flat_map(|_| rack.tick()).collect()
    }

    #[test]
    fn nobody_leaves_before_everybody_has_reported() {
        let mut rack = running();
        assert_eq!(rack.heard(0, Notice::Finished), []);
        assert_eq!(rack.heard(1, Notice::Finished), [Step::AskReports]);
        assert_eq!(rack.heard(0, report()), []);
        assert_eq!(rack.heard(1, report()), []);
        assert_eq!(rack.heard(2, report()), [Step::Release]);
        assert_eq!(rack.ended(0, "exit 0".into()), []);
        assert_eq!(rack.ended(1, "exit 0".into()), []);
        assert_eq!(rack.ended(2, "exit 0".into()), [Step::Over]);
        assert_eq!(rack.ending, Some(Ending::Complete));
        assert!(rack.seats.iter().all(|seat| seat.death.is_none()));
    }

    #[test]
    fn a_death_is_noted_and_the_others_go_on() {
        let mut rack = running();
        assert_eq!(rack.ended(0, "killed by signal 9".into()), []);
        assert_eq!(rack.seats[0].death.as_deref(), Some("killed by signal 9"));
        assert_eq!(rack.heard(1, Notice::Finished), [Step::AskReports]);
    }

    #[test]
    fn progress_feeds_the_watchdog_and_repetition_does_not() {
        let mut rack = running();
        assert_eq!(ticks(&mut rack, 9), []);
        assert_eq!(rack.heard(0, Notice::Progress { count: 5 }), []);
        assert_eq!(ticks(&mut rack, 9), []);
        assert_eq!(rack.heard(0, Notice::Progress { count: 5 }), []);
        assert_eq!(ticks(&mut rack, 1), [Step::AskWaiting]);
        for member in 0..2 {
            assert_eq!(rack.heard(member, Notice::Waiting { lines: vec!["a signal".into()] }), []);
        }
        assert_eq!(rack.heard(2, Notice::Waiting { lines: vec![] }), [Step::AskReports]);
        assert_eq!(rack.ending, Some(Ending::Stalled));
    }

    #[test]
    fn seats_that_answer_nothing_are_ended_in_bounded_time() {
        let mut rack = running();
        assert_eq!(ticks(&mut rack, 10), [Step::AskWaiting]);
        assert_eq!(ticks(&mut rack, ANSWER_NS / TICK_NS), [Step::AskReports]);
        rack.heard(1, report());
        assert_eq!(ticks(&mut rack, FAREWELL_NS / TICK_NS), [Step::Kill(vec![0, 1, 2])]);
        assert_eq!(ticks(&mut rack, 1_000), []);
        assert_eq!(rack.seats[0].death.as_deref(), Some("gave no report in time"));
        assert_eq!(rack.seats[1].death, None);
    }

    #[test]
    fn a_seat_that_cannot_begin_ends_the_run_with_its_name() {
        let mut rack = rack();
        assert_eq!(rack.heard(1, Notice::Failed { what: "no memory".into() }), [Step::AskReports]);
        assert_eq!(rack.ending, Some(Ending::CouldNotStart("n1: no memory".into())));
    }

    #[test]
    fn the_first_interrupt_asks_and_the_second_kills() {
        let mut rack = running();
        assert_eq!(rack.interrupted(), [Step::AskReports]);
        assert_eq!(rack.interrupted(), [Step::Kill(vec![0, 1, 2])]);
        assert_eq!(rack.ending, Some(Ending::Interrupted));
    }

    #[test]
    fn a_rack_whose_members_are_all_dead_is_over() {
        let mut rack = running();
        rack.ended(2, "killed by signal 9".into());
        rack.ended(0, "killed by signal 9".into());
        let steps = rack.ended(1, "killed by signal 9".into());
        assert_eq!(steps, [Step::AskReports, Step::Release, Step::Over]);
    }
}
