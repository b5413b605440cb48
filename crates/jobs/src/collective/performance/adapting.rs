//! Re-choice of the algorithm while a collective job runs.

use rackloom_collectives::Algorithm;
use rackloom_collectives::adapt::{Adaptation, Cause, Outcome};

use super::{Current, Performance, Stage};
use crate::collective::check::Reference;
use crate::collective::exchange::Exchange;
use crate::report::{Rechoice, RechoiceCause, TriedAlgorithm};

/// Largest number of results of trials that a row of the report keeps.
const RECHOICES_MAX: usize = 64;

impl Current {
    /// Records the time of a completed run for the re-choice.
    pub(super) fn record(&mut self, time_ns: u64) {
        if let Some(adaptation) = &mut self.adaptation {
            self.figure_ns = adaptation.record(time_ns);
        }
    }
}

impl Performance {
    /// Begins the agreement on the figure of an epoch that has ended. Returns `false` if none has ended.
    pub(super) fn begin_agreement(&mut self) -> bool {
        let Some(figure_ns) = self.current.as_mut().and_then(|current| current.figure_ns.take()) else {
            return false;
        };
        self.exchange = Some(Exchange::new(vec![figure_ns]));
        self.stage = Stage::Publish;
        true
    }

    /// Ends an epoch with the figure on which the ranks have agreed. Makes the schedule of the next algorithm.
    pub(super) fn end_epoch(&mut self, figure_ns: u64) -> Result<(), String> {
        self.stage = Stage::Spoil { done: 0 };
        let Some(current) = &mut self.current else { return Ok(()) };
        let Some(adaptation) = &mut current.adaptation else { return Ok(()) };
        let outcome = adaptation.agree(figure_ns);
        let algorithm = adaptation.algorithm();
        let elements = current.prepared.schedule.elements;
        if algorithm != current.prepared.schedule.algorithm {
            let settings = &self.settings;
            current.prepared = settings.common().schedule(settings, self.ranks, algorithm, elements)?;
            current.reference = Reference::default();
        }
        if let Some(outcome) = outcome {
            let bytes = elements * self.settings.element.bytes();
            self.notes.push(format!("{} of {bytes} bytes: {outcome}", current.prepared.schedule.collective));
            if current.rechoices.len() < RECHOICES_MAX {
                current.rechoices.push(in_report(&outcome));
            }
        }
        Ok(())
    }

    /// Returns the state of the re-choice for a size, if the job re-chooses and several algorithms are possible.
    pub(super) fn adaptation(&self, elements: usize) -> Result<Option<Adaptation>, String> {
        let Some(measured) = self.fabric.filter(|_| self.settings.adapts) else { return Ok(None) };
        let choice = self.choice(measured, elements)?;
        Ok(Adaptation::new(&choice, |algorithm| self.fits(algorithm)))
    }

    /// Returns `true` if the memory has space for an algorithm of this name.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        self.memory_plan.algorithms.iter().any(|fitting| fitting.name() == algorithm.name())
    }
}

fn in_report(outcome: &Outcome) -> Rechoice {
    let us = |ns: u64| ns as f64 / 1000.0;
    let (cause, reference_us, now_us) = match outcome.cause {
        Cause::Deviated { reference_ns, now_ns } => {
            (RechoiceCause::Deviated, Some(us(reference_ns)), Some(us(now_ns)))
        }
        Cause::Review => (RechoiceCause::Review, None, None),
    };
    let tried = outcome.times.iter().map(|estimate| TriedAlgorithm {
        algorithm: estimate.algorithm.to_string(),
        time_us: estimate.time_ns / 1000.0,
    });
    Rechoice {
        run: outcome.runs + 1,
        from: outcome.from.to_string(),
        to: outcome.to.to_string(),
        cause,
        reference_us,
        now_us,
        tried: tried.collect(),
    }
}
