//! Trial stage of a collective job, and the choice of an algorithm from the trials.

use rackloom_collectives::choose::{Choice, Fabric};
use rackloom_plan::LocalPath;
use rackloom_protocol::Instant;

use super::{Performance, Stage};
use crate::collective::check::Check;
use crate::collective::exchange::Exchange;
use crate::collective::probe::Measured;
use crate::collective::run::{Run, RunState};
use crate::collective::trials::{Trials, Tried};
use crate::ranks::ensemble::{Poll, Step};

impl Performance {
    /// Begins the trials if computing takes time. Otherwise the closed forms hold.
    pub(super) fn begin_trials(&mut self, measured: Measured) -> Result<(), String> {
        self.stage = Stage::NextLeg;
        if measured.reduce_ns_per_byte == 0.0 {
            return Ok(());
        }
        let fabric = self.fabric_of(measured);
        self.trials = Trials::new(&self.settings, self.ranks, &self.memory_plan.algorithms, &fabric)?;
        if self.trials.is_some() {
            self.go_on_trying(true);
        }
        Ok(())
    }

    /// Goes on to the next trial run, or to the agreement on the times.
    fn go_on_trying(&mut self, has_more: bool) {
        self.stage = match &self.trials {
            Some(trials) if has_more && (self.is_elided || trials.is_checked()) => Stage::Spoil { done: 0 },
            Some(_) if has_more => Stage::BeforeTrial,
            trials => {
                let times = trials.as_ref().map_or_else(Vec::new, |trials| trials.times().to_vec());
                self.exchange = Some(Exchange::new(times));
                Stage::Publish
            }
        };
    }

    pub(super) fn begin_trial(&mut self, now: Instant) {
        let number = self.trials.as_ref().map_or(1, Trials::number);
        self.stage = Stage::Trial(Run::new(self.rank, number, now));
    }

    /// Records the time of a completed trial run, and goes on.
    fn end_trial_run(&mut self, time_ns: u64) -> Result<(), String> {
        let Some(trials) = &mut self.trials else { return Ok(()) };
        let has_more = trials.record(&self.settings, self.ranks, time_ns)?;
        self.go_on_trying(has_more);
        Ok(())
    }

    /// Continues the check of a trial run, then records the time of the run.
    pub(super) fn check_trial(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let symbols = self.symbols.take();
        let (Stage::CheckTrial { check, time_ns }, Some(trials)) = (&mut self.stage, &mut self.trials) else {
            return Ok(None);
        };
        if let (Some(symbols), Some(prepared)) = (symbols, trials.prepared()) {
            symbols.check(poll.memory, prepared, &self.given, self.rank)?;
            let time_ns = *time_ns;
            self.end_trial_run(time_ns)?;
            return Ok(None);
        }
        let Some((prepared, reference)) = trials.expected() else { return Ok(None) };
        let is_over = check.advance(
            poll.memory,
            prepared,
            &self.given,
            reference,
            &mut self.findings,
            &mut self.blocks,
        )?;
        if !is_over {
            return Ok(Some(Step::Again));
        }
        let time_ns = *time_ns;
        self.end_trial_run(time_ns)?;
        Ok(None)
    }

    /// Continues a trial run.
    pub(super) fn try_on(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let (Stage::Trial(run), Some(trials)) = (&mut self.stage, &self.trials) else { return Ok(None) };
        let Some(prepared) = trials.prepared() else { return Ok(None) };
        let (element, blocks) = (self.settings.element, &mut self.blocks);
        let state = match &mut self.symbols {
            Some(symbols) => run.advance_with(symbols, poll, prepared, element, blocks),
            None => run.advance(poll, &prepared.schedule, element, blocks),
        };
        match state {
            RunState::Waiting => return Ok(Some(Step::Waiting)),
            RunState::Again => return Ok(Some(Step::Again)),
            RunState::Failed(fault) => return Err(fault.0),
            RunState::Through => {}
        }
        let time_ns = poll.now.since(run.begun);
        if self.symbols.is_some() || trials.is_checked() {
            self.stage = Stage::CheckTrial { check: Check::new(self.rank), time_ns };
        } else {
            self.end_trial_run(time_ns)?;
        }
        Ok(None)
    }

    /// Continues an agreement on times: of the trials before the first size, or of an epoch of runs.
    pub(super) fn agree(&mut self, poll: &mut Poll<'_>) -> Result<Option<Step>, String> {
        let Some(exchange) = &mut self.exchange else { return Ok(None) };
        let (is_through, next) = match &self.stage {
            Stage::Publish => (exchange.publish(poll)?, Stage::BeforeSpread),
            Stage::Spread => (exchange.spread(poll)?, Stage::BeforeAgreed),
            _ => {
                let times_ns = exchange.agreed(poll)?;
                self.exchange = None;
                match self.trials.take() {
                    Some(trials) => self.end_trials(trials.agreed(&times_ns)),
                    None => self.end_epoch(times_ns.first().copied().unwrap_or(0))?,
                }
                return Ok(None);
            }
        };
        if !is_through {
            return Ok(Some(Step::Waiting));
        }
        self.stage = next;
        Ok(None)
    }

    fn end_trials(&mut self, tried: Tried) {
        let sizes = tried.sizes();
        let bytes = sizes.iter().map(|elements| (elements * self.settings.element.bytes()).to_string());
        self.notes.push(format!(
            "every algorithm that may be chosen was tried at {} bytes, and estimates follow from these times (the slowest rank's median)",
            bytes.collect::<Vec<_>>().join(", ")
        ));
        self.tried = Some(tried);
        self.stage = Stage::NextLeg;
    }

    fn fabric_of(&self, measured: Measured) -> Fabric {
        let LocalPath { latency_ns, rate_bits_per_s } = self.settings.local;
        Fabric {
            kind: self.settings.topology,
            planes: self.settings.planes,
            spread: self.settings.spread,
            alpha_ns: measured.alpha_ns,
            link_ns_per_byte: measured.ns_per_byte,
            local_alpha_ns: latency_ns as f64,
            local_ns_per_byte: rate_bits_per_s.map_or(0.0, |rate| 8e9 / rate as f64),
            reduce_ns_per_byte: measured.reduce_ns_per_byte,
            memory_ns_per_byte: 0.0,
            begin_ns: 0.0,
            transfer_limit: None,
        }
    }

    /// Returns the choice for a size, by the trials or by the closed forms.
    pub(super) fn choice(&self, measured: Measured, elements: usize) -> Result<Choice, String> {
        let fabric = self.fabric_of(measured);
        let common = self.settings.common();
        let closed_form = |elements| common.choice(&self.settings, self.ranks, elements, &fabric);
        match &self.tried {
            Some(tried) => tried.choose(elements, closed_form),
            None => closed_form(elements),
        }
    }
}
