//! State of all seats as a pure state machine: inputs are notices, ends of processes and ticks; outputs are [`Step`]s. No process, socket or clock.
//!
//! The rack opens until every link has been up, then runs until every live GPU node has finished. Then all members report, and only when all
//! have reported do they end, so that no member takes the end of the run for a death. A watchdog ends a run without progress: seats report
//! their pending conditions, then their results. Time is counted in ticks, so time during which the supervisor was stopped does not count.
//!
//! A death is recorded here and not reported to other members: they detect it on their links, and the run waits until they have, within
//! a limit. A GPU node that another one has lost is not waited for, even if its process runs.
//!
//! A seat whose process has a successor is waited for until the links of the successor are up, within a limit.
//!
//! A standing rack differs in two points: it ends only on request, and seats may be vacant, which do not count until they are taken. A seat
//! whose process died can be taken again.

mod seat;
mod settle;
mod step;

use rackloom_control::notice::Notice;
use rackloom_jobs::report::EventRecord;

use self::seat::Followed;
pub(crate) use self::seat::Seat;
pub(crate) use self::step::{Ending, Step};
use crate::outcome::headway::Headway;

/// Time between two calls of [`Rack::tick`].
pub(crate) const TICK_NS: u64 = 50_000_000;
/// Longest time for seats to report their pending conditions.
const ANSWER_NS: u64 = 1_000_000_000;
/// Longest time for seats to report their status.
const SURVEY_NS: u64 = 500_000_000;
/// Longest time for seats to report, and then again to end.
const DEPARTURE_NS: u64 = 5_000_000_000;
/// Longest time to report for a seat that its neighbours have lost.
const LAST_WORD_NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Running,
    /// All nodes have finished, and some have not detected every death yet.
    Naming {
        left_ns: u64,
    },
    /// Everybody has finished under a fault script, or a rack that stays is to go: whatever befell it is healed, and then all must come
    /// to rest.
    Healing {
        left_ns: u64,
    },
    Asking {
        left_ns: u64,
    },
    Reporting {
        left_ns: u64,
    },
    Releasing {
        left_ns: u64,
    },
    Killing,
    Over,
}

/// All members, and the phase of the run.
#[derive(Debug)]
pub(crate) struct Rack {
    pub(crate) seats: Vec<Seat>,
    pub(crate) ending: Option<Ending>,
    phase: Phase,
    stays: bool,
    watchdog_ns: u64,
    naming_ns: u64,
    idle_ns: u64,
    survey_left_ns: Option<u64>,
    all_mapped: bool,
    /// Other hosts have not finished, and need the members that have.
    is_held: bool,
    /// Members that others have lost are waited for as well, as long as there is time: a fault script may have parted or
    /// stopped them, and what becomes of them is what its user wants to know.
    waits_for_the_lost: bool,
    /// Longest time for live members to come to rest once all faults have ended; `None` if that is not requested.
    healing_ns: Option<u64>,
}

impl Rack {
    /// `naming_ns`: how long members may take to notice a death.
    pub(crate) fn new(
        members: impl IntoIterator<Item = (String, bool)>,
        watchdog_ns: u64,
        naming_ns: u64,
    ) -> Self {
        let seats =
            members.into_iter().map(|(name, is_endpoint)| Seat { name, is_endpoint, ..Seat::default() });
        Self {
            seats: seats.collect(),
            ending: None,
            phase: Phase::Opening,
            stays: false,
            watchdog_ns,
            naming_ns,
            idle_ns: 0,
            survey_left_ns: None,
            all_mapped: false,
            is_held: false,
            waits_for_the_lost: false,
            healing_ns: None,
        }
    }

    /// After the job heal everything, and see whether the living come to rest within this time.
    pub(crate) fn heal_afterwards(&mut self, healing_ns: u64) {
        self.healing_ns = Some(healing_ns);
    }

    /// The living are at rest.
    pub(crate) fn is_at_rest(&mut self) -> Vec<Step> {
        if self.is_healing() { self.end_healed() } else { Vec::new() }
    }

    /// Returns whether all faults are being ended after the job.
    pub(crate) const fn is_healing(&self) -> bool {
        matches!(self.phase, Phase::Healing { .. })
    }

    /// A rack that stays is healed only because it was asked to go.
    fn end_healed(&mut self) -> Vec<Step> {
        self.end(if self.stays { Ending::TakenDown } else { Ending::Complete })
    }

    /// Faults may part members from each other, and stop them for so long: wait for those, too.
    pub(crate) fn wait_for_the_lost(&mut self, stopped_ns: u64) {
        self.waits_for_the_lost = true;
        self.naming_ns = self.naming_ns.saturating_add(stopped_ns);
    }

    /// Makes it a standing rack, with vacant seats.
    pub(crate) fn stay(&mut self, vacant: &[usize]) {
        self.stays = true;
        vacant.iter().for_each(|member| self.seats[*member].is_vacant = true);
    }

    /// Members whose processes still run.
    pub(crate) fn living(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().enumerate().filter(|(_, seat)| seat.is_alive()).map(|(member, _)| member)
    }

    /// Returns whether all links have been up and the rack does not end yet.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Other hosts run these members. Until more is known of those hosts, they need the members that run here.
    pub(crate) fn leave_elsewhere(&mut self, members: &[usize]) {
        self.is_held = !members.is_empty();
        for member in members {
            let seat = &mut self.seats[*member];
            (seat.is_vacant, seat.is_elsewhere) = (true, true);
        }
    }

    /// Returns whether all members here have finished and wait for other hosts.
    pub(crate) fn has_finished(&self) -> bool {
        let some_are_awaited = || self.seats.iter().any(Seat::is_awaited);
        let is_settled = || {
            self.all_dead_are_named()
                && !(self.waits_for_the_lost && self.some_lost_work())
                && !some_are_awaited()
        };
        // A member that was lost through a fault works on, alone or with those it still reaches, until its own timeouts end.
        let is_waited_for =
            || self.waits_for_the_lost && self.some_lost_work() && self.idle_ns < self.watchdog_ns;
        matches!(self.phase, Phase::Naming { left_ns } if (left_ns == 0 && !is_waited_for()) || is_settled())
    }

    /// Returns whether links are not up yet.
    pub(crate) fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    /// Whether other hosts still need the members that have finished here.
    pub(crate) fn hold(&mut self, is_held: bool) -> Vec<Step> {
        self.is_held = is_held;
        self.settle()
    }

    /// Ends the wait without progress: requests the pending conditions of all seats.
    pub(crate) fn stall(&mut self) -> Vec<Step> {
        self.phase = Phase::Asking { left_ns: ANSWER_NS };
        vec![Step::AskWaiting]
    }

    /// There is another rack where the rest of this one should be.
    pub(crate) fn refuse(&mut self, what: String) -> Vec<Step> {
        self.end(Ending::CouldNotStart(what))
    }

    /// Returns the number of finished GPU nodes, and the progress of the slowest of the others.
    pub(crate) fn headway(&self) -> Headway {
        let finished = self.seats.iter().filter(|seat| seat.is_endpoint && seat.finished).count();
        let working = self.seats.iter().filter(|seat| seat.is_endpoint && seat.is_alive() && !seat.finished);
        Headway::of(finished, working.filter_map(|seat| seat.portion))
    }

    /// Somebody took a seat that was vacant, or lost with the process that had it. What was known of that one is over;
    /// how it ended is kept.
    pub(crate) fn taken(&mut self, member: usize, pid: u32, taken_at_ns: u64) {
        self.seats.iter_mut().for_each(|seat| seat.lost.retain(|lost| *lost != member));
        let seat = &mut self.seats[member];
        let Seat { name, is_endpoint, mut earlier_deaths, death, followed, .. } = std::mem::take(seat);
        earlier_deaths.extend(death);
        let followed = match followed {
            Followed::No => Followed::No,
            _ => Followed::Awaited { left_ns: self.naming_ns },
        };
        *seat = Seat { name, is_endpoint, earlier_deaths, followed, pid, taken_at_ns, ..Seat::default() };
    }

    /// Somebody is to follow this member now: what to say once that is so. Nothing if nobody is, or the rack goes.
    pub(crate) fn due_to_be_followed(&self, member: usize) -> Option<EventRecord> {
        let seat = &self.seats[member];
        let Followed::Later { ends, .. } = &seat.followed else { return None };
        let goes_on = matches!(self.phase, Phase::Opening | Phase::Running | Phase::Naming { .. });
        (goes_on && seat.ended).then(|| (**ends).clone())
    }

    /// Records that the successor of this member cannot start.
    pub(crate) fn cannot_be_followed(&mut self, member: usize, why: &str) -> Vec<Step> {
        let seat = &mut self.seats[member];
        seat.followed = Followed::No;
        let how = seat.death.take().unwrap_or_default();
        seat.death = Some(format!("{how}, and nobody could follow: {why}"));
        self.settle()
    }

    /// Handles a request for the status of all members.
    pub(crate) fn asked_status(&mut self) -> Vec<Step> {
        if self.survey_left_ns.is_some() {
            return Vec::new();
        }
        self.survey_left_ns = Some(SURVEY_NS);
        self.seats.iter_mut().for_each(|seat| seat.status = None);
        let mut steps = vec![Step::AskStatus];
        steps.extend(self.end_survey());
        steps
    }

    /// The user wants a rack that stays to go. `healing_ns`: how long its members may take to come to rest before, once everything is healed;
    /// nothing where that cannot be asked of them.
    pub(crate) fn asked_down(&mut self, healing_ns: Option<u64>) -> Vec<Step> {
        // Who is in the middle of a job is not at rest.
        if let Some(left_ns) = healing_ns.filter(|_| self.is_running() && self.is_finished()) {
            self.phase = Phase::Healing { left_ns };
            return self.ask_rest();
        }
        match self.phase {
            Phase::Opening | Phase::Running | Phase::Asking { .. } => self.end(Ending::TakenDown),
            _ => Vec::new(),
        }
    }

    /// Handles a request that this member leaves a standing rack.
    pub(crate) fn asked_leave(&mut self, member: usize) -> Vec<Step> {
        let seat = &mut self.seats[member];
        if std::mem::replace(&mut seat.leaves, true) { Vec::new() } else { vec![Step::AskLeave(member)] }
    }

    /// Handles the end of a member that leaves: its seat is vacant.
    fn has_left(&mut self, member: usize) -> Vec<Step> {
        let Seat { name, is_endpoint, earlier_deaths, .. } = std::mem::take(&mut self.seats[member]);
        self.seats[member] = Seat { name, is_endpoint, earlier_deaths, is_vacant: true, ..Seat::default() };
        let mut steps = vec![Step::Left(member)];
        steps.extend(self.end_survey());
        steps
    }

    /// Handles a notice of a seat.
    pub(crate) fn heard(&mut self, member: usize, notice: Notice) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        match notice {
            Notice::Ready => seat.ready = true,
            Notice::LinksUp => seat.links_up = true,
            Notice::Mapped => seat.mapped = true,
            Notice::Finished => seat.finished = true,
            Notice::Lost { member } => seat.lost.push(usize::from(member)),
            Notice::Progress { count, .. } if count == seat.progress => return Vec::new(),
            Notice::Progress { count, portion } => {
                (seat.progress, seat.portion) = (count, portion);
                self.idle_ns = 0;
                return vec![Step::Further];
            }
            Notice::LogFailed { what } => {
                seat.log_error = Some(what);
                return vec![Step::LogFailed(member)];
            }
            Notice::Waiting { lines } => seat.waiting = Some(lines),
            Notice::Status(status) => {
                seat.status = Some(status);
                return self.end_survey();
            }
            Notice::Rested(rest) => {
                seat.rest = Some(rest);
                let is_known = matches!(self.phase, Phase::Healing { .. })
                    && self.all_living(|seat| seat.rest.is_some());
                return if is_known { vec![Step::JudgeRest] } else { Vec::new() };
            }
            Notice::Happened(record) => return vec![Step::Happened(record)],
            Notice::Fault(record) => return vec![Step::Fault(record)],
            Notice::SetOff { event } => return vec![Step::SetOff(member, event)],
            Notice::Pausing { for_ns } => return vec![Step::ResumeAfter(member, for_ns)],
            Notice::Dying => {
                seat.dies_by_script = true;
                return Vec::new();
            }
            Notice::Returning { after_ns, ends } => {
                seat.followed = Followed::Later { after_ns, ends: Box::new(ends) };
                return Vec::new();
            }
            Notice::Report(_) if seat.leaves && self.phase == Phase::Running => {
                return vec![Step::LetGo(member)];
            }
            Notice::Report(report) => seat.report = Some(*report),
            Notice::Failed { what } => {
                seat.death = Some(what.clone());
                let name = seat.name.clone();
                // A later process that cannot start does not end the rack.
                return if seat.ready || self.phase != Phase::Opening {
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
    pub(crate) fn ended(&mut self, member: usize, how: String) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        if seat.leaves && self.phase == Phase::Running {
            return self.has_left(member);
        }
        seat.ended = true;
        if seat.report.is_none() {
            seat.death.get_or_insert(how);
        }
        self.idle_ns = 0;
        let mut steps = self.end_survey();
        if let Followed::Later { after_ns, .. } = self.seats[member].followed {
            steps.push(Step::FollowAfter(member, after_ns));
            steps.extend(self.settle());
            return steps;
        }
        self.seats[member].followed = Followed::No;
        if self.stays && self.phase == Phase::Opening {
            let seat = &self.seats[member];
            let what = format!("{}: {}", seat.name, seat.death.as_deref().unwrap_or("ended"));
            steps.extend(self.end(Ending::CouldNotStart(what)));
        } else if self.phase == Phase::Opening
            && !self.seats[member].links_up
            && !self.seats[member].dies_by_script
        {
            // The fabric will never be whole, and who was never met cannot be missed. Who had met everybody may have died in its job, before
            // the others came to say that they had, too; they will miss it.
            let seat = &self.seats[member];
            let how = seat.death.as_deref().unwrap_or("ended");
            let what = format!("{} ended before all links were up: {how}", seat.name);
            steps.extend(self.end(Ending::LostEarly(what)));
        } else {
            steps.extend(self.settle());
        }
        steps
    }

    /// Handles an interruption. The second one kills.
    pub(crate) fn interrupted(&mut self) -> Vec<Step> {
        match self.phase {
            Phase::Opening
            | Phase::Running
            | Phase::Naming { .. }
            | Phase::Healing { .. }
            | Phase::Asking { .. } => self.end(Ending::Interrupted),
            Phase::Reporting { .. } | Phase::Releasing { .. } => self.kill(),
            Phase::Killing | Phase::Over => Vec::new(),
        }
    }

    /// Returns whether ticks count now. A standing rack that is up counts none without a request.
    pub(crate) fn counts_time(&self) -> bool {
        !(self.stays && self.phase == Phase::Running) || self.survey_left_ns.is_some()
    }

    /// [`TICK_NS`] have passed, or more.
    pub(crate) fn tick(&mut self) -> Vec<Step> {
        if let Some(left_ns) = &mut self.survey_left_ns {
            *left_ns = left_ns.saturating_sub(TICK_NS);
        }
        let mut steps = self.end_survey();
        if self.tick_followed() {
            steps.extend(self.settle());
        }
        steps.extend(self.tick_phase());
        steps
    }

    /// Returns whether the wait for a successor is over.
    fn tick_followed(&mut self) -> bool {
        let mut is_given_up = false;
        for seat in &mut self.seats {
            if let Followed::Awaited { left_ns } = &mut seat.followed {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 {
                    (seat.followed, is_given_up) = (Followed::No, true);
                }
            }
        }
        is_given_up
    }

    fn tick_phase(&mut self) -> Vec<Step> {
        let somebody_follows =
            self.seats.iter().any(|seat| seat.ended && matches!(seat.followed, Followed::Later { .. }));
        let nobody_sits = self.living().next().is_none() && !somebody_follows;
        match &mut self.phase {
            // A standing rack makes no progress by intent.
            Phase::Running if self.stays => Vec::new(),
            // If every seat is vacant, no seat reports that all links are up.
            Phase::Opening if nobody_sits => self.settle(),
            // A successor starts at the time of its script, however long that is.
            Phase::Opening | Phase::Running if somebody_follows => Vec::new(),
            Phase::Opening | Phase::Running => {
                self.idle_ns += TICK_NS;
                if self.idle_ns < self.watchdog_ns {
                    return Vec::new();
                }
                self.phase = Phase::Asking { left_ns: ANSWER_NS };
                vec![Step::AskWaiting]
            }
            Phase::Naming { left_ns } => {
                self.idle_ns += TICK_NS;
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.settle() } else { Vec::new() }
            }
            Phase::Healing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 {
                    return self.end_healed();
                }
                // Members that have not come to rest get another request.
                if self.all_living(|seat| seat.rest.is_some()) { self.ask_rest() } else { Vec::new() }
            }
            Phase::Asking { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.end(Ending::Stalled) } else { Vec::new() }
            }
            Phase::Reporting { left_ns } | Phase::Releasing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                let left_ns = *left_ns;
                if left_ns == 0 {
                    self.kill()
                } else if left_ns == DEPARTURE_NS - LAST_WORD_NS {
                    self.give_up_the_hung()
                } else {
                    Vec::new()
                }
            }
            Phase::Killing | Phase::Over => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
