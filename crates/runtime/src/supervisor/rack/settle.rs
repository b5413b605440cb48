//! Consequences of the seats' states: end of the run, seats that are given up, and next steps.

use super::seat::Stage;
use super::{DEPARTURE_NS, Ending, Phase, Rack, RackKind, Seat, Step};

impl Rack {
    pub(super) fn end(&mut self, ending: Ending) -> Vec<Step> {
        self.ending.get_or_insert(ending);
        self.phase = Phase::Reporting { left_ns: DEPARTURE_NS };
        let mut steps = vec![Step::RequestReports];
        steps.extend(self.settle());
        steps
    }

    /// Requests the state of all members at rest. Discards earlier answers.
    pub(super) fn request_rest(&mut self) -> Vec<Step> {
        self.seats.iter_mut().for_each(|seat| seat.rest = None);
        vec![Step::Heal]
    }

    /// Ends a survey if all live seats have answered or the time is over.
    pub(super) fn end_survey(&mut self) -> Vec<Step> {
        let Some(left_ns) = self.survey_left_ns else { return Vec::new() };
        if left_ns > 0 && !self.all_live(|seat| seat.status.is_some()) {
            return Vec::new();
        }
        self.survey_left_ns = None;
        vec![Step::StatusKnown]
    }

    pub(super) fn kill(&mut self) -> Vec<Step> {
        self.phase = Phase::Killing;
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive() && seat.report.is_none()) {
            seat.death.get_or_insert_with(|| "sent no report in time".to_owned());
            seat.is_hung = true;
        }
        vec![Step::Kill(self.live().collect())]
    }

    /// Kills seats that others have lost and that have not reported. They do not get the whole time of a
    /// departure.
    pub(super) fn kill_hung(&mut self) -> Vec<Step> {
        let silent = |member: &usize| self.seats[*member].report.is_none();
        let hung: Vec<_> =
            self.live().filter(silent).filter(|member| self.is_presumed_dead(*member)).collect();
        for member in &hung {
            let what = "hung: lost by its neighbours, and sent no report";
            let seat = &mut self.seats[*member];
            seat.death.get_or_insert_with(|| what.to_owned());
            seat.is_hung = true;
        }
        if hung.is_empty() { Vec::new() } else { vec![Step::Kill(hung)] }
    }

    /// Returns true if a GPU node that has finished has lost this one.
    pub(super) fn is_presumed_dead(&self, member: usize) -> bool {
        self.seats
            .iter()
            .any(|seat| seat.has(Stage::Finished) && seat.is_alive() && seat.lost.contains(&member))
    }

    /// Returns true if a live GPU node has not finished.
    pub(super) fn some_node_works(&self) -> bool {
        self.seats.iter().any(|seat| seat.is_endpoint && seat.is_alive() && !seat.has(Stage::Finished))
    }

    /// Returns true if every live GPU node that has finished has detected every death.
    pub(super) fn all_deaths_are_detected(&self) -> bool {
        let dead = self.seats.iter().enumerate().filter(|(_, seat)| seat.is_endpoint && seat.has_ended());
        dead.map(|(member, _)| member).all(|member| {
            let mut witnesses = self
                .seats
                .iter()
                .filter(|seat| seat.is_endpoint && seat.is_alive() && seat.has(Stage::Finished));
            witnesses.all(|seat| seat.lost.contains(&member))
        })
    }

    /// Returns the steps that follow from the states of the seats.
    pub(super) fn settle(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let is_up = |seat: &Seat| {
            seat.is_vacant() || seat.has(Stage::LinksUp) || (seat.has_ended() && seat.dies_by_script)
        };
        if self.phase == Phase::Opening && self.seats.iter().all(is_up) {
            self.phase = Phase::Running;
            steps.push(Step::LinksUp);
        }
        if !self.all_mapped && self.all_live(|seat| seat.has(Stage::Mapped) || !seat.is_endpoint) {
            self.all_mapped = true;
            steps.push(Step::AllMapped);
        }
        if matches!(self.phase, Phase::Opening | Phase::Running)
            && self.kind == RackKind::Run
            && self.is_finished()
        {
            self.phase = Phase::Detecting { left_ns: self.detection_ns };
        }
        // The only finished member that had lost the others may die. They are no longer presumed dead then.
        if matches!(self.phase, Phase::Detecting { .. }) && !self.is_finished() {
            self.phase = Phase::Running;
        }
        if self.has_finished() && !self.is_held {
            match self.healing_ns {
                Some(left_ns) => {
                    self.phase = Phase::Healing { left_ns };
                    steps.extend(self.request_rest());
                }
                None => steps.extend(self.end(Ending::Complete)),
            }
        }
        if matches!(self.phase, Phase::Diagnosing { .. }) && self.all_live(|seat| seat.waiting.is_some()) {
            steps.extend(self.end(Ending::Stalled));
        }
        if matches!(self.phase, Phase::Reporting { .. }) && self.all_live(|seat| seat.report.is_some()) {
            self.phase = Phase::Closing { left_ns: DEPARTURE_NS };
            steps.push(Step::CloseSockets);
        }
        let leaving = matches!(self.phase, Phase::Closing { .. } | Phase::Killing);
        if leaving && !self.seats.iter().any(Seat::is_alive) {
            self.phase = Phase::Ended;
            steps.push(Step::Over);
        }
        steps
    }

    pub(super) fn all_live(&self, condition: impl Fn(&Seat) -> bool) -> bool {
        self.seats.iter().all(|seat| !seat.is_alive() || condition(seat))
    }

    /// Returns true if no live GPU node works and no successor is waited for. Switches have no job.
    pub(super) fn is_finished(&self) -> bool {
        let is_done = |(member, seat): (usize, &Seat)| {
            let is_over = seat.has_ended()
                || seat.has(Stage::Finished)
                || seat.is_elsewhere()
                || !seat.is_endpoint
                || self.is_presumed_dead(member);
            is_over && !seat.is_awaited()
        };
        self.seats.iter().enumerate().all(is_done)
    }
}
