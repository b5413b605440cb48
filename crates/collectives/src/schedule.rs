//! A collective as data: for each rank an ordered list of steps, and between ranks numbered transfers.
//!
//! A step waits for arrivals, then does local work in order, then issues its sends. A send is a non-blocking put with
//! signal from the sender's memory to a fixed offset in the receiver's memory. A rank performs its steps strictly in order.
//! [`Cursor`] iterates over them, and the executor can perform each action as soon as the cursor yields it.
//!
//! Properties that an executor may rely on, because [`verify`](crate::verify::verify) proves it for a schedule:
//! - `Input` is only read. Every other span that is sent from is never written again in the same run, so a put may be
//!   retransmitted from it at any time before it completes. A unit in a switch ([`Algorithm::InSwitch`]) writes a span again after the put
//!   has arrived. A retransmission reads other bytes then, and the receiver drops it as a duplicate.
//! - A put lands only where no rank reads or writes until its arrival is awaited (one slot per transfer), so nothing needs
//!   flow control and the result does not depend on timing.
//! - Each transfer has its own index among its receiver's arrivals ([`Transfer::arrival`]): one signal word per
//!   arrival, set to the number of the run, works on any fabric, ordered or not. On a fabric that keeps order per pair
//!   one counting word per sender is enough: transfer [`Transfer::number`] has arrived when the count exceeds it.
//! - No rank waits for ever, if every put is delivered.
//!
//! *Running it again* on the same buffers: `Output` and `Scratch` may be written by a peer from the time when that peer
//! starts. So either a barrier separates two runs, or two sets of buffers alternate and the schedule is
//! synchronizing ([`Report::synchronizing`](crate::verify::Report)). In both cases a rank's own puts must have
//! completed before it returns.
//!
//! Positions and lengths are in elements; the element type and the reduction belong to the executor. Nothing here
//! decides which steps to take: that is [`algorithm`](crate::algorithm).

use core::fmt;
use core::ops::Range;

use smallvec::SmallVec;

use crate::algorithm::Algorithm;
use crate::collective::Collective;
use crate::partition::Parts;

/// Memory of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The rank's contribution. It is never written.
    Input,
    /// The rank's result. It shares no byte with the input.
    Output,
    /// Working space. Its content before and after a run has no meaning.
    Scratch,
}

impl Buffer {
    /// All buffers.
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Scratch => "scratch",
        }
    }
}

/// Consecutive elements of one buffer. Empty for a transfer that is only a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Buffer that holds the elements.
    pub buffer: Buffer,
    /// First element.
    pub start: usize,
    /// Number of elements.
    pub length: usize,
}

impl Span {
    /// Creates a span of these elements of a buffer.
    #[must_use]
    pub const fn new(buffer: Buffer, range: Range<usize>) -> Self {
        Self { buffer, start: range.start, length: range.end - range.start }
    }

    /// Returns the position after the last element.
    #[must_use]
    pub const fn end(self) -> usize {
        self.start + self.length
    }

    /// Returns the elements as a range of positions.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end()
    }

    /// Returns the range in bytes, for elements of this size.
    #[must_use]
    pub const fn bytes(self, element_bytes: usize) -> Range<usize> {
        self.start * element_bytes..self.end() * element_bytes
    }

    /// Returns whether both spans have an element in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.buffer == other.buffer && self.start.max(other.start) < self.end().min(other.end())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == 0 {
            return formatter.write_str("nothing");
        }
        write!(formatter, "{}[{}..{}]", self.buffer.name(), self.start, self.end())
    }
}

/// Index of a transfer in [`Schedule::transfers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransferId(pub u32);

impl TransferId {
    /// Returns the number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One put with signal from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Sending rank.
    pub from: usize,
    /// Receiving rank, never the sender.
    pub to: usize,
    /// Counts the transfers of this pair from 0, in the order in which the sender issues them.
    pub number: u32,
    /// Index of the receiver's signal word: counts the transfers of all senders to this receiver from 0, each once.
    pub arrival: u32,
    /// Elements that are sent, in the sender's memory.
    pub source: Span,
    /// Elements that are written, in the receiver's memory. They are as long as the source.
    pub target: Span,
}

/// Work that a rank does in its own memory. Sources and target have the same length; no source shares an element with the
/// target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// The target becomes the source.
    Copy {
        /// Elements that are read.
        source: Span,
        /// Elements that are written.
        target: Span,
    },
    /// The target becomes target *operation* source, element by element.
    Reduce {
        /// The right-hand operand.
        source: Span,
        /// The left-hand operand, and the result.
        target: Span,
    },
    /// The target becomes `((a op b) op c) ...` of the operands. Where all operands are at hand nothing forces a rounding to
    /// 16 bits between them: [`Accumulator`](crate::reduce::Accumulator) rounds once.
    Fold {
        /// Elements that are read, in this order.
        operands: Operands,
        /// Elements that are written.
        target: Span,
    },
}

/// Consecutive entries of [`Program::operands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// First entry.
    pub start: u32,
    /// Number of entries, at least one.
    pub count: u32,
}

impl Local {
    /// Returns the elements that are written.
    #[must_use]
    pub const fn target(self) -> Span {
        match self {
            Self::Copy { target, .. } | Self::Reduce { target, .. } | Self::Fold { target, .. } => target,
        }
    }
}

/// Transfers that one step waits for or issues. Most steps have one.
pub type Transfers = SmallVec<[TransferId; 4]>;

/// Local work of one step. Most steps have one piece.
pub type Pieces = SmallVec<[Local; 1]>;

/// One step of one rank: wait, then work, then send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Round of the algorithm, for reading; several steps of a rank may share one.
    pub round: u32,
    /// Transfers to this rank that must have arrived before the step starts.
    pub waits: Transfers,
    /// Local work, in this order.
    pub work: Pieces,
    /// Transfers from this rank, issued in this order without waiting for each other.
    pub sends: Transfers,
}

/// The program of one rank: its steps and the sizes of its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Elements of the input buffer.
    pub input: usize,
    /// Elements of the output buffer.
    pub output: usize,
    /// Elements of the scratch buffer.
    pub scratch: usize,
    /// Number of transfers to this rank, which is the number of its signal words.
    pub arrivals: u32,
    /// Operands of the folds of all steps, one list after the other.
    pub operands: Vec<Span>,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

impl Program {
    /// Returns the number of elements of a buffer.
    #[must_use]
    pub const fn elements(&self, buffer: Buffer) -> usize {
        match buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
        }
    }

    /// Returns the elements that a piece of this rank's work reads beside its target; empty if it names operands that do not exist.
    #[must_use]
    pub fn sources<'a>(&'a self, work: &'a Local) -> &'a [Span] {
        match work {
            Local::Copy { source, .. } | Local::Reduce { source, .. } => core::slice::from_ref(source),
            Local::Fold { operands: Operands { start, count }, .. } => {
                let (start, count) = (*start as usize, *count as usize);
                self.operands.get(start..start.saturating_add(count)).unwrap_or_default()
            }
        }
    }

    /// Returns how often each element of the target of a piece of work is read or written, and how often it is computed.
    #[must_use]
    pub fn amounts(&self, work: &Local) -> (usize, usize) {
        match work {
            Local::Copy { .. } => (2, 0),
            Local::Reduce { .. } => (3, 1),
            Local::Fold { .. } => {
                let operands = self.sources(work).len();
                (operands + 1, operands.saturating_sub(1))
            }
        }
    }
}

/// A collective as data. The header of the file defines the meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Collective that the schedule performs.
    pub collective: Collective,
    /// Algorithm that the schedule was built by.
    pub algorithm: Algorithm,
    /// Elements of the whole array, as [`Collective`] counts them.
    pub elements: usize,
    /// Parts of the array, by rank.
    pub parts: Parts,
    /// Every transfer between two ranks.
    pub transfers: Vec<Transfer>,
    /// Programs of the ranks, one per rank, and behind them those of units in switches.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// Returns the number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> usize {
        self.parts.ranks()
    }

    /// Returns the number of programs: ranks, and units in switches.
    #[must_use]
    pub const fn participants(&self) -> usize {
        self.programs.len()
    }

    /// Returns the program of a rank, or of a unit behind the ranks. A unit that takes no part in this schedule has an empty one.
    #[must_use]
    pub fn program(&self, participant: usize) -> &Program {
        static NOTHING: Program =
            Program { input: 0, output: 0, scratch: 0, arrivals: 0, operands: Vec::new(), steps: Vec::new() };
        self.programs.get(participant).unwrap_or(&NOTHING)
    }

    /// Returns the transfer with this index.
    #[must_use]
    pub fn transfer(&self, id: TransferId) -> &Transfer {
        &self.transfers[id.index()]
    }

    /// Returns the largest round number plus one, or 0 if there are no steps.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        let last = |program: &Program| program.steps.iter().map(|step| step.round + 1).max();
        self.programs.iter().filter_map(last).max().unwrap_or(0)
    }
}

/// Next action of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Continue only when this transfer has arrived.
    Await(TransferId),
    /// Do this work now.
    Work(Local),
    /// Issue this put, and continue without waiting for it.
    Send(TransferId),
}

/// A rank's position in its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    step: usize,
    index: usize,
}

impl Cursor {
    /// Creates a cursor at the beginning.
    #[must_use]
    pub const fn new() -> Self {
        Self { step: 0, index: 0 }
    }

    /// Returns the next action, or `None` at the end of the program. Steps forward only past empty steps.
    #[must_use]
    pub fn action(&mut self, program: &Program) -> Option<Action> {
        while let Some(step) = program.steps.get(self.step) {
            if let Some(action) = step.action(self.index) {
                return Some(action);
            }
            *self = Self { step: self.step + 1, index: 0 };
        }
        None
    }

    /// Steps past the current action, which was carried out (or, for a wait, has ended).
    pub const fn advance(&mut self) {
        self.index += 1;
    }

    /// Returns the index of the step in which the rank is.
    #[must_use]
    pub const fn step(&self) -> usize {
        self.step
    }
}

impl Step {
    /// Returns the action with this number, or `None` after the last one.
    #[must_use]
    pub fn action(&self, index: usize) -> Option<Action> {
        let (waits, work) = (self.waits.len(), self.work.len());
        if index < waits {
            Some(Action::Await(self.waits[index]))
        } else if index < waits + work {
            Some(Action::Work(self.work[index - waits]))
        } else {
            self.sends.get(index - waits - work).map(|&id| Action::Send(id))
        }
    }

    /// Returns all actions in order.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        (0..).map_while(|number| self.action(number))
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn span(range: Range<usize>) -> Span {
        Span::new(Buffer::Scratch, range)
    }

    #[test]
    fn a_cursor_waits_then_works_then_sends_and_passes_empty_steps() {
        let work = Local::Copy { source: span(0..1), target: span(1..2) };
        let step = Step {
            round: 0,
            waits: smallvec![TransferId(4)],
            work: smallvec![work],
            sends: smallvec![TransferId(7)],
        };
        let program = Program { steps: vec![Step::default(), step.clone(), step], ..Program::default() };
        let mut cursor = Cursor::default();
        let mut seen = Vec::new();
        while let Some(action) = cursor.action(&program) {
            seen.push(action);
            cursor.advance();
        }
        let once = [Action::Await(TransferId(4)), Action::Work(work), Action::Send(TransferId(7))];
        assert_eq!(seen, [once, once].concat());
    }

    #[test]
    fn spans_overlap_only_in_the_same_buffer_and_only_with_elements() {
        assert!(span(0..3).overlaps(span(2..5)));
        assert!(!span(0..3).overlaps(span(3..5)));
        assert!(!span(0..3).overlaps(span(1..1)));
        assert!(!span(0..3).overlaps(Span::new(Buffer::Output, 0..3)));
    }

    #[test]
    fn bytes_follow_the_element_size() {
        assert_eq!(span(3..5).bytes(8), 24..40);
    }
}
