//! What the supervisor knows about its seats, and what follows from it. Pure: no process, no socket, no clock.
//!
//! Opening, until every link was up; running, until every living GPU node has finished; then everybody reports, and only
//! when all have reported may they go, so that nobody mistakes the end of the run for a death. A watchdog ends a run in
//! which nobody gets further: seats are asked what they wait for, then for their reports. Time is counted in ticks rather
//! than by a clock, so that the time during which the supervisor itself was stopped counts for nothing.
//!
//! A death is noted here and told to nobody: the other members find out from their links, and the run goes on until they
//! have, or had the time to. A GPU node that another one has lost is not waited for, though its process may live.
//!
//! Who kills itself and is to be followed by a new life of its seat is waited for, too, until the links of the new life are up or
//! it had the time for that.
//!
//! A rack that stays is the same with two differences: it ends only when it is told to, and seats may be vacant, which
//! count for nothing until somebody takes them. A seat whose process died can be taken again.

mod seat;
mod settle;
mod step;

use rackloom_jobs::report::EventRecord;

use self::seat::Followed;
pub(crate) use self::seat::Seat;
pub(crate) use self::step::{Ending, Step};
use crate::outcome::headway::Headway;
use rackloom_control::notice::Notice;

/// Time between two calls of [`Rack::tick`].
pub(crate) const TICK_NS: u64 = 50_000_000;
/// How long seats may take to say what they wait for.
const ANSWER_NS: u64 = 1_000_000_000;
/// How long seats may take to say how they are.
const SURVEY_NS: u64 = 500_000_000;
/// How long seats may take to report, and then again to end.
const FAREWELL_NS: u64 = 5_000_000_000;
/// How long a seat that its neighbours have lost may take to report all the same.
const LAST_WORD_NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Running,
    /// Everybody has finished, but not everybody has named the dead yet.
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

/// All members, and how far the run is.
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
    /// How long the living may take to come to rest once everything is healed; nothing where nobody asks.
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

    /// Whether everything is being healed after the job.
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

    /// Make it a rack that ends only when it is told to, with seats that nobody has taken yet.
    pub(crate) fn stay(&mut self, vacant: &[usize]) {
        self.stays = true;
        vacant.iter().for_each(|member| self.seats[*member].is_vacant = true);
    }

    /// Members whose processes still run.
    pub(crate) fn living(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().enumerate().filter(|(_, seat)| seat.is_alive()).map(|(member, _)| member)
    }

    /// Whether all links have been up and nobody has been asked to leave.
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

    /// Whether everybody here has finished, and nobody may go as long as other hosts have not.
    pub(crate) fn has_finished(&self) -> bool {
        let some_are_awaited = || self.seats.iter().any(Seat::is_awaited);
        let is_settled = || {
            self.all_dead_are_named()
                && !(self.waits_for_the_lost && self.some_lost_work())
                && !some_are_awaited()
        };
        matches!(self.phase, Phase::Naming { left_ns } if left_ns == 0 || is_settled())
    }

    /// Whether the links are not up yet.
    pub(crate) fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    /// Whether other hosts still need the members that have finished here.
    pub(crate) fn hold(&mut self, is_held: bool) -> Vec<Step> {
        self.is_held = is_held;
        self.settle()
    }

    /// Nothing will come of waiting any longer: ask who waits for what.
    pub(crate) fn stall(&mut self) -> Vec<Step> {
        self.phase = Phase::Asking { left_ns: ANSWER_NS };
        vec![Step::AskWaiting]
    }

    /// There is another rack where the rest of this one should be.
    pub(crate) fn refuse(&mut self, what: String) -> Vec<Step> {
        self.end(Ending::CouldNotStart(what))
    }

    /// How many GPU nodes have finished, and how far the slowest of the others is.
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

    /// Nobody can follow this member after all.
    pub(crate) fn cannot_be_followed(&mut self, member: usize, why: &str) -> Vec<Step> {
        let seat = &mut self.seats[member];
        seat.followed = Followed::No;
        let how = seat.death.take().unwrap_or_default();
        seat.death = Some(format!("{how}, and nobody could follow: {why}"));
        self.settle()
    }

    /// Somebody wants to know how everybody is.
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

    /// Somebody wants this member to leave a rack that stays.
    pub(crate) fn asked_leave(&mut self, member: usize) -> Vec<Step> {
        let seat = &mut self.seats[member];
        if std::mem::replace(&mut seat.leaves, true) { Vec::new() } else { vec![Step::AskLeave(member)] }
    }

    /// A member that was asked to leave is gone: its seat is as vacant as one that nobody has taken.
    fn has_left(&mut self, member: usize) -> Vec<Step> {
        let Seat { name, is_endpoint, earlier_deaths, .. } = std::mem::take(&mut self.seats[member]);
        self.seats[member] = Seat { name, is_endpoint, earlier_deaths, is_vacant: true, ..Seat::default() };
        let mut steps = vec![Step::Left(member)];
        steps.extend(self.end_survey());
        steps
    }

    /// A seat said something.
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
                // One who comes later and cannot begin is that one's trouble alone.
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

    /// The user wants out; asking twice is impatience.
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

    /// Whether time matters now. In a rack that stays and is up nothing is counted as long as nobody asks it anything.
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

    /// Whether somebody who follows is not waited for any longer.
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
            // Who waits for its user gets nowhere by intent.
            Phase::Running if self.stays => Vec::new(),
            // If every seat is vacant, nobody says that all links are up.
            Phase::Opening if nobody_sits => self.settle(),
            // A dead member is followed when its script says so, however long that is.
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
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.settle() } else { Vec::new() }
            }
            Phase::Healing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 {
                    return self.end_healed();
                }
                // Whoever has not come to rest is asked again.
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
                } else if left_ns == FAREWELL_NS - LAST_WORD_NS {
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
