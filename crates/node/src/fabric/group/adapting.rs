//! Re-choice of the algorithm of a group's collectives by the times of their calls.
//!
//! A call takes the algorithm of its size, and records its time. After the last call of an epoch the members agree on a time by an all-reduce of one number in the same lane.

use rackloom_collectives::adapt::Adaptation;
use rackloom_collectives::execute::Arithmetic;
use rackloom_collectives::{Buffer, Collective, ElementType, ReduceOperation};

use super::super::error::Error;
use super::adaptations::Rechoice;
use super::request::Call;
use super::running::Running;
use super::schedules::Size;
use super::shared::{Inner, LaneState};

/// Largest number of trials that a group keeps.
const RECHOICES_MAX: usize = 64;
/// Number of bytes of an agreed time.
const TIME_BYTES: usize = 8;

impl Call<'_> {
    /// Takes the algorithm of the call's size, if the group re-chooses and the collective permits it.
    pub(super) fn begin_adapting(&mut self, group: &Inner, state: &mut LaneState) {
        let members = group.membership.members.len();
        let is_fixed = self.prepared.is_some() || self.has_parts() || self.data.row_bytes == 0;
        if !group.options.adapts || is_fixed {
            return;
        }
        let columns = 0..self.data.row_bytes.min(self.piece);
        let Some(size) = self.size(&columns) else { return };
        if !size.collective.synchronizes(members, size.elements) {
            return;
        }
        let begin = || {
            let mut schedules = group.schedules();
            let choice = schedules.choice(&size).ok()?;
            let possible: Vec<_> = choice
                .estimates
                .iter()
                .map(|estimate| estimate.algorithm)
                .filter(|algorithm| schedules.is_possible(&size, *algorithm))
                .collect();
            Adaptation::new(&choice, |algorithm| possible.contains(&algorithm))
        };
        let Some(adaptation) = state.adaptations.of(&size, begin) else { return };
        self.adapted = Some(Size { algorithm: Some(adaptation.algorithm()), ..size });
    }

    /// Records the time of the call. Returns the run in which the members agree on a time, at the end of an epoch.
    pub(super) fn agreement(&mut self, group: &Inner, time_ns: u64) -> Result<Option<Running>, Error> {
        let Some(size) = &self.adapted else { return Ok(None) };
        let key = Size { algorithm: None, ..size.clone() };
        let mut state = group.lane(self.lane);
        let figure_ns = state.adaptations.of(&key, || None).and_then(|adaptation| adaptation.record(time_ns));
        let Some(figure_ns) = figure_ns else { return Ok(None) };
        let operation = match size.collective {
            // Members that called early have waited for the last one.
            Collective::AllReduce => ReduceOperation::Min,
            _ => ReduceOperation::Max,
        };
        let arithmetic = Arithmetic::Number(operation, ElementType::I64);
        let agreed = Size {
            collective: Collective::AllReduce,
            elements: 1,
            element_bytes: TIME_BYTES,
            ..Size::barrier()
        };
        let schedule = group.schedules().find(&agreed)?;
        let running = self.run_with_data(group, &mut state, schedule, arithmetic.clone());
        let input = running.buffer(&group.membership, Buffer::Input);
        group.membership.memory.arrays.write(input, &figure_ns.min(i64::MAX as u64).to_le_bytes())?;
        if let Some(blocks) = &mut self.blocks {
            blocks.set(&arithmetic);
        }
        Ok(Some(running))
    }

    /// Ends an epoch with the agreed time, which is at this offset of the region.
    pub(super) fn end_epoch(&mut self, group: &Inner, offset: u64) -> Result<(), Error> {
        let figure_ns = group.membership.memory.arrays.get::<u64>(offset)?;
        let Some(size) = self.adapted.take() else { return Ok(()) };
        let Size { collective, elements, element_bytes, .. } = size;
        let key = Size { algorithm: None, ..size };
        let outcome = {
            let mut state = group.lane(self.lane);
            state.adaptations.of(&key, || None).and_then(|adaptation| adaptation.agree(figure_ns))
        };
        let Some(outcome) = outcome else { return Ok(()) };
        let bytes = elements * element_bytes;
        tracing::info!(group.rank = group.membership.rank, bytes, "{collective}: {outcome}");
        let rechoice = Rechoice { collective, bytes, lane: self.lane, outcome };
        let rechoices = &mut group.common().rechoices;
        if rechoices.len() >= RECHOICES_MAX {
            rechoices.pop_front();
        }
        rechoices.push_back(rechoice);
        Ok(())
    }
}
