//! State of all seats as a pure state machine. Inputs are notices, ends of processes and ticks; outputs are
//! [`Step`]s. It has no process, socket or clock.
//!
//! The rack opens until every link has been up, then runs until every live GPU node has finished. Then all
//! members report. They end only when all have reported, so that no member takes the end of the run for a
//! death. A watchdog ends a run without progress: seats report their pending conditions, then their results.
//! Time is counted in ticks, so time during which the supervisor was stopped does not count.
//!
//! A death is recorded here and not reported to other members: they detect it on their links, and the run
//! waits until they have, within a limit. A GPU node that another one has lost is not waited for, even if its
//! process runs.
//!
//! If a dead member gets a successor, the run waits until the links of the successor are up, within a limit.
//!
//! A standing rack differs in two points. It ends only on request, and seats may be vacant, which do not
//! count until they are taken. A seat whose process died can be taken again.

mod seat;
mod settle;
mod step;

use rackloom_control::notice::{Notice, SeatStatus};
use rackloom_jobs::report::EventRecord;

pub(crate) use self::seat::{Occupancy, Seat};
use self::seat::{Stage, Successor};
pub(crate) use self::step::{Ending, Step};
use crate::outcome::progress::{NodeProgress, RunProgress};

/// Time between two calls of [`Rack::tick`].
pub(crate) const TICK_NS: u64 = 50_000_000;
/// Longest time for seats to report their pending conditions.
const ANSWER_NS: u64 = 1_000_000_000;
/// Longest time for seats to report their status.
const SURVEY_NS: u64 = 500_000_000;
/// Longest time for seats to report, and then again to end.
const DEPARTURE_NS: u64 = 5_000_000_000;
/// Longest time to report for a seat that its neighbours have lost.
const LOST_REPORT_NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Running,
    /// All nodes have finished, and some have not detected every death yet.
    Detecting {
        left_ns: u64,
    },
    /// The job of a rack with a fault script has ended, or a standing rack is to end. All faults are ended,
    /// and then all members must come to rest.
    Healing {
        left_ns: u64,
    },
    /// The watchdog has expired. Seats report their pending conditions.
    Diagnosing {
        left_ns: u64,
    },
    Reporting {
        left_ns: u64,
    },
    Closing {
        left_ns: u64,
    },
    Killing,
    Ended,
}

/// Lifetime of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RackKind {
    /// The rack ends with its job.
    Run,
    /// The rack stays until it is taken down.
    Standing,
}

/// All members, and the phase of the run.
#[derive(Debug)]
pub(crate) struct Rack {
    pub(crate) seats: Vec<Seat>,
    pub(crate) ending: Option<Ending>,
    phase: Phase,
    kind: RackKind,
    watchdog_ns: u64,
    detection_ns: u64,
    idle_ns: u64,
    survey_left_ns: Option<u64>,
    all_mapped: bool,
    /// True while other hosts have not finished and need the members of this host.
    is_held: bool,
    /// True if members that others have lost are waited for, within the limit: a fault script may have
    /// separated or stopped them, and their outcome belongs to the result.
    waits_for_lost: bool,
    /// Longest time for live members to come to rest once all faults have ended; `None` if that is not requested.
    healing_ns: Option<u64>,
}

impl Rack {
    /// Returns a rack whose links are not up. `members`: name, and true for a GPU node. `detection_ns`:
    /// longest time for members to detect a death.
    pub(crate) fn new(
        members: impl IntoIterator<Item = (String, bool)>,
        watchdog_ns: u64,
        detection_ns: u64,
    ) -> Self {
        let seats =
            members.into_iter().map(|(name, is_endpoint)| Seat { name, is_endpoint, ..Seat::default() });
        Self {
            seats: seats.collect(),
            ending: None,
            phase: Phase::Opening,
            kind: RackKind::Run,
            watchdog_ns,
            detection_ns,
            idle_ns: 0,
            survey_left_ns: None,
            all_mapped: false,
            is_held: false,
            waits_for_lost: false,
            healing_ns: None,
        }
    }

    /// Marks the process seats, each with its GPU node.
    pub(crate) fn set_processes(&mut self, processes: impl IntoIterator<Item = (usize, usize)>) {
        for (member, node) in processes {
            self.seats[member].process_of = Some(node);
        }
    }

    /// Ends all faults after the job, and gives live members this time to come to rest.
    pub(crate) fn heal_after_job(&mut self, healing_ns: u64) {
        self.healing_ns = Some(healing_ns);
    }

    /// Handles the result that all live members are at rest.
    pub(crate) fn is_at_rest(&mut self) -> Vec<Step> {
        if self.is_healing() { self.end_healed() } else { Vec::new() }
    }

    /// Returns true while all faults are being ended after the job.
    pub(crate) const fn is_healing(&self) -> bool {
        matches!(self.phase, Phase::Healing { .. })
    }

    /// Ends the rack after healing. A standing rack heals only on the way down.
    fn end_healed(&mut self) -> Vec<Step> {
        self.end(if self.kind == RackKind::Standing { Ending::TakenDown } else { Ending::Complete })
    }

    /// Waits for members that others have lost. `stopped_ns`: longest time for which faults stop a member.
    pub(crate) fn wait_for_lost(&mut self, stopped_ns: u64) {
        self.waits_for_lost = true;
        self.detection_ns = self.detection_ns.saturating_add(stopped_ns);
    }

    /// Makes it a standing rack, with vacant seats.
    pub(crate) fn stay(&mut self, vacant: &[usize]) {
        self.kind = RackKind::Standing;
        for member in vacant {
            let seat = &mut self.seats[*member];
            // A seat of another host stays that host's.
            if !seat.is_elsewhere() {
                seat.occupancy = Occupancy::Vacant;
            }
        }
    }

    /// Returns the members whose processes run.
    pub(crate) fn live(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().enumerate().filter(|(_, seat)| seat.is_alive()).map(|(member, _)| member)
    }

    /// Returns true if all links have been up and the rack does not end yet.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Marks members that other hosts run. Until more is known of those hosts, they need the members of this
    /// host.
    pub(crate) fn set_elsewhere(&mut self, members: &[usize]) {
        self.is_held = !members.is_empty();
        for member in members {
            self.seats[*member].occupancy = Occupancy::Elsewhere;
        }
    }

    /// Returns true if all members here have finished and wait for other hosts.
    pub(crate) fn has_finished(&self) -> bool {
        let some_are_awaited = || self.seats.iter().any(Seat::is_awaited);
        let is_settled = || {
            self.all_deaths_are_detected()
                && !(self.waits_for_lost && self.some_node_works())
                && !some_are_awaited()
        };
        // A member that others have lost through a fault continues until its own timeouts end.
        let is_waited_for =
            || self.waits_for_lost && self.some_node_works() && self.idle_ns < self.watchdog_ns;
        matches!(self.phase, Phase::Detecting { left_ns } if (left_ns == 0 && !is_waited_for()) || is_settled())
    }

    /// Returns true if links are not up yet.
    pub(crate) fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    /// Sets whether other hosts need the members that have finished here.
    pub(crate) fn set_held(&mut self, is_held: bool) -> Vec<Step> {
        self.is_held = is_held;
        self.settle()
    }

    /// Ends the wait without progress: requests the pending conditions of all seats.
    pub(crate) fn stall(&mut self) -> Vec<Step> {
        self.phase = Phase::Diagnosing { left_ns: ANSWER_NS };
        vec![Step::RequestWaiting]
    }

    /// Ends a rack whose other hosts run another rack of its name.
    pub(crate) fn refuse(&mut self, what: String) -> Vec<Step> {
        self.end(Ending::CouldNotStart(what))
    }

    /// Returns the progress of all GPU nodes.
    pub(crate) fn progress(&self) -> RunProgress {
        let nodes = self.seats.iter().filter(|seat| seat.is_endpoint);
        RunProgress::of(nodes.map(|seat| match seat.has(Stage::Finished) {
            true => NodeProgress::Finished(seat.portion),
            false if seat.is_alive() => NodeProgress::Working(seat.portion),
            false => NodeProgress::Lost,
        }))
    }

    /// Records a process that takes a vacant seat, or one whose process died. The seat begins anew and keeps
    /// the earlier deaths.
    pub(crate) fn taken(&mut self, member: usize, pid: u32, taken_at_ns: u64) {
        self.seats.iter_mut().for_each(|seat| seat.lost.retain(|lost| *lost != member));
        let seat = &mut self.seats[member];
        let successor = match seat.successor {
            Successor::None => Successor::None,
            _ => Successor::Starting { left_ns: self.detection_ns },
        };
        *seat = Seat { successor, pid, taken_at_ns, ..std::mem::take(seat).taken() };
    }

    /// Makes a seat vacant whose process has ended with its job. The end is no death of the rack.
    pub(crate) fn vacate(&mut self, member: usize) {
        let seat = &mut self.seats[member];
        if !seat.is_alive() && !seat.is_elsewhere() {
            *seat = std::mem::take(seat).vacated();
        }
    }

    /// Returns the record that ends the death of this member, if its successor may start now.
    pub(crate) fn due_successor(&self, member: usize) -> Option<EventRecord> {
        let seat = &self.seats[member];
        let Successor::Expected { ends, .. } = &seat.successor else { return None };
        let continues = matches!(self.phase, Phase::Opening | Phase::Running | Phase::Detecting { .. });
        (continues && seat.has_ended()).then(|| (**ends).clone())
    }

    /// Records that the successor of this member cannot start.
    pub(crate) fn successor_failed(&mut self, member: usize, reason: &str) -> Vec<Step> {
        let seat = &mut self.seats[member];
        seat.successor = Successor::None;
        let how = seat.death.take().unwrap_or_default();
        seat.death = Some(format!("{how}, and no successor could start: {reason}"));
        self.settle()
    }

    /// Handles a request for the status of all members. `known`: returns the present status of a live member, from its number and its latest answer,
    /// if it is known without a request.
    pub(crate) fn request_status(
        &mut self,
        mut known: impl FnMut(usize, Option<&SeatStatus>) -> Option<SeatStatus>,
    ) -> Vec<Step> {
        if self.survey_left_ns.is_some() {
            return Vec::new();
        }
        self.survey_left_ns = Some(SURVEY_NS);
        for (member, seat) in self.seats.iter_mut().enumerate() {
            let earlier = seat.status.take();
            if seat.is_alive() {
                seat.status = known(member, earlier.as_ref());
                seat.status.iter().for_each(|status| seat.usage.report(status));
            }
        }
        let must_request = self.live().any(|member| self.seats[member].status.is_none());
        let mut steps: Vec<_> = must_request.then_some(Step::RequestStatus).into_iter().collect();
        steps.extend(self.end_survey());
        steps
    }

    /// Handles a request to take a standing rack down. `healing_ns`: time for its members to come to rest
    /// before, once all faults are ended; `None` if that is not required.
    pub(crate) fn request_down(&mut self, healing_ns: Option<u64>) -> Vec<Step> {
        // During a job no member is at rest. Without a live member there is no answer to wait for.
        let can_rest = self.is_running() && self.is_finished() && self.live().next().is_some();
        if let Some(left_ns) = healing_ns.filter(|_| can_rest) {
            self.phase = Phase::Healing { left_ns };
            return self.request_rest();
        }
        match self.phase {
            Phase::Opening | Phase::Running | Phase::Diagnosing { .. } => self.end(Ending::TakenDown),
            _ => Vec::new(),
        }
    }

    /// Handles a request that this member leaves a standing rack.
    pub(crate) fn request_leave(&mut self, member: usize) -> Vec<Step> {
        let seat = &mut self.seats[member];
        match seat.occupancy {
            Occupancy::Leaving => return Vec::new(),
            Occupancy::Held => seat.occupancy = Occupancy::Leaving,
            Occupancy::Ended | Occupancy::Vacant | Occupancy::Elsewhere => {}
        }
        vec![Step::RequestLeave(member)]
    }

    /// Handles the end of a member that leaves, or of a process of a GPU node: its seat is vacant.
    fn has_left(&mut self, member: usize) -> Vec<Step> {
        self.seats[member] = std::mem::take(&mut self.seats[member]).vacated();
        let mut steps = vec![Step::Left(member), Step::SeatFreed];
        steps.extend(self.end_processes(member));
        steps.extend(self.end_survey());
        steps
    }

    /// Ends the processes of a GPU node whose own process has ended: no path leads to them any more.
    fn end_processes(&self, node: usize) -> Option<Step> {
        let processes: Vec<_> =
            self.live().filter(|member| self.seats[*member].process_of == Some(node)).collect();
        (!processes.is_empty()).then_some(Step::Kill(processes))
    }

    /// Handles a notice of a seat.
    pub(crate) fn handle_notice(&mut self, member: usize, notice: Notice) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        match notice {
            Notice::Ready => seat.stages.reach(Stage::Ready),
            Notice::LinksUp => seat.stages.reach(Stage::LinksUp),
            Notice::Mapped => seat.stages.reach(Stage::Mapped),
            Notice::Finished => seat.stages.reach(Stage::Finished),
            Notice::Lost { member } => seat.lost.push(usize::from(member)),
            Notice::Progress { count, .. } if count == seat.progress => return Vec::new(),
            Notice::Progress { count, portion } => {
                (seat.progress, seat.portion) = (count, portion);
                self.idle_ns = 0;
                return vec![Step::Progress];
            }
            Notice::LogFailed { what } => {
                seat.log_error = Some(what);
                return vec![Step::LogFailed(member)];
            }
            Notice::Waiting { lines } => seat.waiting = Some(lines),
            Notice::Status(status) => {
                seat.usage.report(&status);
                seat.status = Some(status);
                return self.end_survey();
            }
            Notice::Rested(rest) => {
                seat.rest = Some(rest);
                let is_known =
                    matches!(self.phase, Phase::Healing { .. }) && self.all_live(|seat| seat.rest.is_some());
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
                seat.successor = Successor::Expected { after_ns, ends: Box::new(ends) };
                return Vec::new();
            }
            Notice::Report(report)
                if seat.occupancy == Occupancy::Leaving && self.phase == Phase::Running =>
            {
                seat.report = Some(*report);
                return vec![Step::CloseSocket(member)];
            }
            Notice::Report(report) => seat.report = Some(*report),
            Notice::Failed { what } => {
                seat.death = Some(what.clone());
                let name = seat.name.clone();
                // A later process that cannot start does not end the rack.
                return if seat.has(Stage::Ready) || self.phase != Phase::Opening {
                    Vec::new()
                } else {
                    self.end(Ending::CouldNotStart(format!("{name}: {what}")))
                };
            }
        }
        self.idle_ns = 0;
        self.settle()
    }

    /// Handles the end of a seat's process. `how` describes it.
    pub(crate) fn ended(&mut self, member: usize, how: String) -> Vec<Step> {
        let Some(seat) = self.seats.get_mut(member) else { return Vec::new() };
        let is_free = seat.occupancy == Occupancy::Leaving || seat.process_of.is_some();
        if is_free && self.phase == Phase::Running {
            return self.has_left(member);
        }
        seat.occupancy = Occupancy::Ended;
        if seat.report.is_none() {
            seat.death.get_or_insert(how);
        }
        self.idle_ns = 0;
        let mut steps = self.end_survey();
        if self.phase == Phase::Running {
            steps.extend(self.end_processes(member));
        }
        if let Successor::Expected { after_ns, .. } = self.seats[member].successor {
            steps.push(Step::StartSuccessorAfter(member, after_ns));
            steps.extend(self.settle());
            return steps;
        }
        self.seats[member].successor = Successor::None;
        if self.kind == RackKind::Standing && self.phase == Phase::Opening {
            let seat = &self.seats[member];
            let what = format!("{}: {}", seat.name, seat.death.as_deref().unwrap_or("ended"));
            steps.extend(self.end(Ending::CouldNotStart(what)));
        } else if self.phase == Phase::Opening
            && !self.seats[member].has(Stage::LinksUp)
            && !self.seats[member].dies_by_script
        {
            // The rack cannot come up any more: the others can neither reach this member nor detect its
            // death. A member whose links have all been up may have died in its job before the notices of the
            // others. They detect its death.
            let seat = &self.seats[member];
            let how = seat.death.as_deref().unwrap_or("ended");
            let what = format!("{} ended before all links were up: {how}", seat.name);
            steps.extend(self.end(Ending::LostEarly(what)));
        } else {
            if self.kind == RackKind::Standing && self.phase == Phase::Running {
                steps.push(Step::SeatFreed);
            }
            steps.extend(self.settle());
        }
        steps
    }

    /// Returns the live members that have not been up since their processes started.
    pub(crate) fn starting(&self) -> impl Iterator<Item = usize> {
        self.live().filter(|member| !self.seats[*member].has(Stage::LinksUp))
    }

    /// Handles an interruption. The second one kills.
    pub(crate) fn interrupted(&mut self) -> Vec<Step> {
        match self.phase {
            Phase::Opening
            | Phase::Running
            | Phase::Detecting { .. }
            | Phase::Healing { .. }
            | Phase::Diagnosing { .. } => self.end(Ending::Interrupted),
            Phase::Reporting { .. } | Phase::Closing { .. } => self.kill(),
            Phase::Killing | Phase::Ended => Vec::new(),
        }
    }

    /// Returns true if ticks count now. A standing rack that is up counts none without a request.
    pub(crate) fn counts_time(&self) -> bool {
        !(self.kind == RackKind::Standing && self.phase == Phase::Running) || self.survey_left_ns.is_some()
    }

    /// Handles the passage of [`TICK_NS`] or more.
    pub(crate) fn tick(&mut self) -> Vec<Step> {
        if let Some(left_ns) = &mut self.survey_left_ns {
            *left_ns = left_ns.saturating_sub(TICK_NS);
        }
        let mut steps = self.end_survey();
        if self.tick_successors() {
            steps.extend(self.settle());
        }
        steps.extend(self.tick_phase());
        steps
    }

    /// Counts the wait for successors. Returns true if a wait has ended.
    fn tick_successors(&mut self) -> bool {
        let mut has_expired = false;
        for seat in &mut self.seats {
            if let Successor::Starting { left_ns } = &mut seat.successor {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 {
                    (seat.successor, has_expired) = (Successor::None, true);
                }
            }
        }
        has_expired
    }

    fn tick_phase(&mut self) -> Vec<Step> {
        let has_successor = self
            .seats
            .iter()
            .any(|seat| seat.has_ended() && matches!(seat.successor, Successor::Expected { .. }));
        let is_empty = self.live().next().is_none() && !has_successor;
        match &mut self.phase {
            // A standing rack may run without progress.
            Phase::Running if self.kind == RackKind::Standing => Vec::new(),
            // If every seat is vacant, no seat reports that all links are up.
            Phase::Opening if is_empty => self.settle(),
            // A successor starts at the time of its script, however long that is.
            Phase::Opening | Phase::Running if has_successor => Vec::new(),
            Phase::Opening | Phase::Running => {
                self.idle_ns += TICK_NS;
                if self.idle_ns < self.watchdog_ns {
                    return Vec::new();
                }
                self.phase = Phase::Diagnosing { left_ns: ANSWER_NS };
                vec![Step::RequestWaiting]
            }
            Phase::Detecting { left_ns } => {
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
                if self.all_live(|seat| seat.rest.is_some()) { self.request_rest() } else { Vec::new() }
            }
            Phase::Diagnosing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                if *left_ns == 0 { self.end(Ending::Stalled) } else { Vec::new() }
            }
            Phase::Reporting { left_ns } | Phase::Closing { left_ns } => {
                *left_ns = left_ns.saturating_sub(TICK_NS);
                let left_ns = *left_ns;
                if left_ns == 0 {
                    self.kill()
                } else if left_ns == DEPARTURE_NS - LOST_REPORT_NS {
                    self.kill_hung()
                } else {
                    Vec::new()
                }
            }
            Phase::Killing | Phase::Ended => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
