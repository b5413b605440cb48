//! A collective on memory that keeps no payload (`payload: elided`): fingerprints in place of bytes.
//!
//! Each rank computes with the fingerprints of its memory what it would compute with bytes. A transfer's fingerprints are read where its put is
//! issued, and written where its signal arrives. They pass through [`Prepared`], which the ranks of one process share, so a rack in several processes
//! cannot do this. That the bytes themselves have arrived is checked by their number: memory counts them ([`JobMemory::elided_bytes`]).

use rackloom_collectives::fingerprint::{Fingerprints, Line};
use rackloom_collectives::{Buffer, Program, Span, Transfer, TransferId};
use rackloom_protocol::JobMemory;

use super::inputs::Given;
use super::prepared::Prepared;
use super::work::region_of;
use crate::ranks::pattern::mix;

/// Checks of each run, for the report.
pub(super) const CHECKS: &str = "fingerprints show that each element of each result contains each contribution once, and as many bytes arrived at \
                                 each rank as its peers had to send";

/// Fingerprints of one rank in one run.
#[derive(Debug)]
pub(crate) struct Symbols {
    number: u64,
    memory: Fingerprints,
    /// Bytes that had arrived in each buffer before the run.
    before: [u64; Buffer::ALL.len()],
    /// Bytes of the transfers whose signals have arrived in the run, by buffer.
    due: [u64; Buffer::ALL.len()],
    /// Rank whose signal arrived before its data, if any.
    early: Option<usize>,
}

/// Returns true if the memory keeps no payload.
pub(super) fn are_needed(memory: &dyn JobMemory) -> bool {
    memory.elided_bytes(region_of(Buffer::Input)).is_some()
}

impl Symbols {
    /// Returns the fingerprints of a rank before run `number`. No transfer of the run is in flight.
    pub(super) fn new(
        memory: &dyn JobMemory,
        program: &Program,
        given: &Given,
        rank: usize,
        number: u64,
    ) -> Self {
        Self {
            number,
            memory: Fingerprints::new(program, line(given, rank, number)),
            before: Buffer::ALL.map(|buffer| arrived(memory, buffer)),
            due: Default::default(),
            early: None,
        }
    }

    /// Handles the issue of a put.
    pub(super) fn send(&self, prepared: &Prepared, id: TransferId, transfer: &Transfer) {
        if transfer.source.length > 0 {
            prepared.send(id, self.number, self.memory.read(transfer.source));
        }
    }

    /// Handles the arrival of a signal.
    pub(super) fn receive(
        &mut self,
        memory: &dyn JobMemory,
        prepared: &Prepared,
        id: TransferId,
        element_bytes: usize,
    ) {
        let Transfer { target, from, .. } = *prepared.schedule.transfer(id);
        if target.length == 0 {
            return;
        }
        let due = &mut self.due[target.buffer as usize];
        *due += target.bytes(element_bytes).len() as u64;
        if arrived(memory, target.buffer) - self.before[target.buffer as usize] < *due {
            self.early = self.early.or(Some(from));
        }
        if let Some(values) = prepared.receive(id, self.number) {
            self.memory.write(target, &values);
        }
    }

    /// Copies elements within the rank's memory, or combines them with those at the target. Positions and length are in elements.
    pub(super) fn combine(
        &mut self,
        is_copy: bool,
        target: (Buffer, usize),
        source: (Buffer, usize),
        length: usize,
    ) {
        let span = |(buffer, start)| Span { buffer, start, length };
        let values = self.memory.read(span(source));
        if is_copy {
            self.memory.write(span(target), &values);
        } else {
            self.memory.add(span(target), &values);
        }
    }

    /// Checks the result of the run, after its end.
    ///
    /// # Errors
    /// Text that names the first wrong element, or the buffer in which another number of bytes has arrived.
    pub(super) fn check(
        &self,
        memory: &dyn JobMemory,
        prepared: &Prepared,
        given: &Given,
        rank: usize,
    ) -> Result<(), String> {
        let schedule = &prepared.schedule;
        let (what, elements) = (schedule.collective, schedule.program(rank).output);
        let sums = prepared.sums(self.number, |rank| line(given, rank, self.number));
        if let Some((wrong, first)) = self.memory.wrong(what, &schedule.parts, rank, elements, &sums) {
            return Err(format!(
                "{wrong} of {elements} elements of the result of {what} do not contain each contribution once, first element {first}"
            ));
        }
        if let Some(from) = self.early {
            return Err(format!("a signal of rank {from} in {what} arrived before its data"));
        }
        for buffer in Buffer::ALL {
            let (found, due) =
                (arrived(memory, buffer) - self.before[buffer as usize], self.due[buffer as usize]);
            if found != due {
                let buffer = buffer.name();
                return Err(format!(
                    "{found} bytes of {what} arrived in the {buffer} of a rank, and {due} are due"
                ));
            }
        }
        Ok(())
    }
}

fn arrived(memory: &dyn JobMemory, buffer: Buffer) -> u64 {
    memory.elided_bytes(region_of(buffer)).unwrap_or(0)
}

/// Returns the fingerprints of a rank's input in a run. They differ between runs, so that a result of the run before is not accepted.
fn line(given: &Given, rank: usize, number: u64) -> Line {
    let member = given.members.get(rank).map_or(rank as u64, |member| u64::from(*member));
    let base = mix(mix(mix(given.seed) ^ number) ^ member);
    Line { base, slope: mix(base) }
}
