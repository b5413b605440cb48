//! One run of a schedule on one rank: its actions as puts with signal, waits, and work on own memory.
//!
//! The owner of memory and fabric implements [`Surroundings`]; [`Run::advance`] requests one action after another and never
//! waits. Memory may be shared with other processes, so it is never borrowed: work uses private blocks. A poll does a
//! bounded amount of work, because the same thread may have to keep links alive.
//!
//! The loss of a peer is not handled here. Surroundings detect it, and drop the run.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use crate::array::ElementType;
use crate::reduce::{Accumulator, ReduceError, ReduceOperation, reduce};
use crate::schedule::{Action, Buffer, Cursor, Local, Program, Schedule, Span, Transfer, TransferId};

/// Size of a block, in bytes.
pub const BLOCK_BYTES: usize = 64 << 10;
/// Bytes that are reduced at a time: both blocks, and the data that passes through them, stay in the first-level
/// cache, so that only the rank's own memory is waited for.
pub const WORKED_BYTES_MAX: usize = 8 << 10;
/// Maximum number of bytes of work in one poll.
pub const POLL_BYTES_MAX: usize = 1 << 20;

/// Memory and fabric of a run.
pub trait Surroundings {
    /// Reason why a run cannot continue.
    type Fault: From<ReduceError>;

    /// Returns true if another put may be issued now.
    fn has_space(&self) -> bool;
    /// Returns true if all issued puts are visible at their targets.
    fn is_idle(&self) -> bool;
    /// Puts the transfer's elements from this rank's memory into the receiver's, then sets the receiver's signal word
    /// [`Transfer::arrival`] to `number`.
    ///
    /// # Errors
    /// If that is known to be impossible.
    fn send(&mut self, id: TransferId, transfer: &Transfer, number: u64) -> Result<(), Self::Fault>;
    /// Requests a call of [`Run::arrived`] once this rank's signal word [`Transfer::arrival`] is at least
    /// `number`. Returns the word if it is already.
    ///
    /// # Errors
    /// If that is known to be impossible.
    fn expect(
        &mut self,
        id: TransferId,
        transfer: &Transfer,
        number: u64,
    ) -> Result<Option<u64>, Self::Fault>;
    /// Reads memory of this rank, from `offset` in bytes.
    ///
    /// # Errors
    /// If there is no such memory.
    fn read(&mut self, buffer: Buffer, offset: usize, out: &mut [u8]) -> Result<(), Self::Fault>;
    /// Combines `length` bytes of `source` with those of `target` within this rank's memory, or copies them if there is no
    /// operation, in the order of reads and writes. The ranges are equal or do not overlap. Returns false if the
    /// memory does not support that.
    ///
    /// # Errors
    /// If there is no such memory.
    fn combine(
        &mut self,
        how: Option<(ReduceOperation, ElementType)>,
        target: (Buffer, usize),
        source: (Buffer, usize),
        length: usize,
    ) -> Result<bool, Self::Fault> {
        let _ = (how, target, source, length);
        Ok(false)
    }
    /// Notes work that was done: it has read and written `moved` bytes together, and computed `reduced` bytes of results.
    fn note_work(&mut self, moved: usize, reduced: usize) {
        let _ = (moved, reduced);
    }
    /// Returns true if several calls of [`Self::combine`] for the operands of a fold keep as much of a value as an accumulator does.
    fn folds_exactly(&self) -> bool {
        false
    }
    /// Writes memory of this rank, from `offset` in bytes.
    ///
    /// # Errors
    /// If there is no such memory.
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Self::Fault>;
}

/// Minimum size of a block of a fold, for any number of operands, in bytes.
const FOLDED_BYTES_MIN: usize = 512;

/// Reduction that the caller defines, on elements of a size that the caller states.
#[derive(Clone)]
pub struct CustomReduction {
    element_bytes: usize,
    is_ordered: bool,
    function: Arc<CustomFunction>,
}

/// Replaces the left operands by the results. Both sides have the same length, which is a whole number of elements.
pub type CustomFunction = dyn Fn(&mut [u8], &[u8]) -> Result<(), ReduceError> + Send + Sync;

impl CustomReduction {
    /// Size of the largest element, in bytes.
    pub const ELEMENT_BYTES_MAX: usize = FOLDED_BYTES_MIN;

    /// Creates a reduction of elements of `element_bytes` bytes each. `is_ordered`: its operands must be in ascending order of rank.
    ///
    /// # Panics
    /// If the size is 0 or exceeds [`CustomReduction::ELEMENT_BYTES_MAX`].
    #[must_use]
    pub fn new(element_bytes: usize, is_ordered: bool, function: Arc<CustomFunction>) -> Self {
        assert!((1..=Self::ELEMENT_BYTES_MAX).contains(&element_bytes), "elements of {element_bytes} bytes");
        Self { element_bytes, is_ordered, function }
    }

    /// Returns the size of one element in bytes.
    #[must_use]
    pub const fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Returns true if the operands must be in ascending order of rank.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        self.is_ordered
    }
}

/// Arithmetic of a collective.
#[derive(Clone, Debug)]
pub enum Arithmetic {
    /// Operation and element type that every memory may support.
    Number(ReduceOperation, ElementType),
    /// Reduction of the caller.
    Custom(CustomReduction),
}

impl Arithmetic {
    /// Returns the size of one element in bytes.
    #[must_use]
    pub const fn element_bytes(&self) -> usize {
        match self {
            Self::Number(_, element) => element.bytes(),
            Self::Custom(reduction) => reduction.element_bytes,
        }
    }

    /// Returns true if the operands must be in ascending order of rank.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        matches!(self, Self::Custom(reduction) if reduction.is_ordered)
    }
}

impl fmt::Debug for CustomReduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("CustomReduction");
        fields.field("element_bytes", &self.element_bytes).finish_non_exhaustive()
    }
}

/// Arithmetic of a run.
#[derive(Debug)]
enum Kernel {
    Number { operation: ReduceOperation, element: ElementType, folded: Accumulator },
    Custom(CustomReduction),
}

impl Kernel {
    const fn number(operation: ReduceOperation, element: ElementType) -> Self {
        Self::Number { operation, element, folded: Accumulator::new(operation, element) }
    }

    const fn element_bytes(&self) -> usize {
        match self {
            Self::Number { element, .. } => element.bytes(),
            Self::Custom(custom) => custom.element_bytes,
        }
    }

    /// Replaces the left operands by the results.
    fn reduce(&self, left: &mut [u8], right: &[u8]) -> Result<(), ReduceError> {
        match self {
            Self::Number { operation, element, .. } => reduce(*operation, *element, left, right),
            Self::Custom(custom) => (custom.function)(left, right),
        }
    }

    /// Returns the accumulator of all operands of an element, if it keeps more of a value than the elements' type does.
    fn wider(&mut self) -> Option<&mut Accumulator> {
        match self {
            Self::Number { folded, .. } if folded.is_wider() => Some(folded),
            _ => None,
        }
    }
}

/// Private buffers of a reduction, with its arithmetic.
pub struct Blocks {
    /// Left-hand operands and results.
    pub left: Vec<u8>,
    /// Right-hand operands.
    pub right: Vec<u8>,
    kernel: Kernel,
}

impl fmt::Debug for Blocks {
    /// Omits the bytes, which are tens of thousands.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Blocks").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl Blocks {
    /// Creates buffers for this operation on elements of this type.
    #[must_use]
    pub fn new(operation: ReduceOperation, element: ElementType) -> Self {
        let (left, right) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
        Self { left, right, kernel: Kernel::number(operation, element) }
    }

    /// Reduces the first `length` bytes of both operands. Returns the result, which replaces the left operand.
    ///
    /// # Errors
    /// If they are no whole number of elements.
    pub fn reduce(&mut self, length: usize) -> Result<&[u8], ReduceError> {
        let left = &mut self.left[..length];
        self.kernel.reduce(left, &self.right[..length])?;
        Ok(left)
    }

    /// Creates buffers for any arithmetic.
    #[must_use]
    pub fn of(arithmetic: &Arithmetic) -> Self {
        let mut blocks = Self::new(ReduceOperation::Sum, ElementType::U8);
        blocks.set(arithmetic);
        blocks
    }

    /// Sets the arithmetic of the reductions to come. The memory is kept.
    pub fn set(&mut self, arithmetic: &Arithmetic) {
        self.kernel = match arithmetic {
            Arithmetic::Number(operation, element) => Kernel::number(*operation, *element),
            Arithmetic::Custom(reduction) => Kernel::Custom(reduction.clone()),
        };
    }
}

/// State of a run after a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState<F> {
    /// The run waits for an outstanding action.
    Waiting,
    /// The run has done the work of one poll and can continue.
    Again,
    /// The run is over; all its puts are visible at their targets.
    Through,
    /// The run cannot continue.
    Failed(F),
}

/// Position of one rank in one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    rank: usize,
    number: u64,
    cursor: Cursor,
    /// True if the wait of the current action has been requested.
    is_waiting: bool,
    /// Number of bytes of the current work that are done.
    worked: usize,
}

impl Run {
    /// Creates a run at its beginning. `number`: value of the signals; larger than that of any run before on the same words.
    #[must_use]
    pub const fn new(rank: usize, number: u64) -> Self {
        Self { rank, number, cursor: Cursor::new(), is_waiting: false, worked: 0 }
    }

    /// Returns the value of the signals.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the index of the step in which the rank is.
    #[must_use]
    pub const fn step(&self) -> usize {
        self.cursor.step()
    }

    /// Returns the rank whose signal is awaited.
    #[must_use]
    pub fn waits_for(&self, schedule: &Schedule) -> Option<usize> {
        self.awaited(schedule).map(|id| schedule.transfer(id).from)
    }

    /// Returns the transfer whose signal is awaited.
    #[must_use]
    pub fn awaited(&self, schedule: &Schedule) -> Option<TransferId> {
        let mut cursor = self.cursor;
        match cursor.action(schedule.program(self.rank)) {
            Some(Action::Await(id)) if self.is_waiting => Some(id),
            _ => None,
        }
    }

    /// Notes that the expected signal has arrived.
    ///
    /// # Panics
    /// If no signal is awaited. The caller's wait has ended then without having been requested, which no peer can cause.
    pub const fn arrived(&mut self) {
        assert!(self.is_waiting, "a signal arrives that is not awaited");
        self.is_waiting = false;
        self.cursor.advance();
    }

    /// Continues as far as possible.
    pub fn advance<S: Surroundings>(
        &mut self,
        around: &mut S,
        schedule: &Schedule,
        blocks: &mut Blocks,
    ) -> RunState<S::Fault> {
        self.try_advance(around, schedule, blocks).unwrap_or_else(RunState::Failed)
    }

    fn try_advance<S: Surroundings>(
        &mut self,
        around: &mut S,
        schedule: &Schedule,
        blocks: &mut Blocks,
    ) -> Result<RunState<S::Fault>, S::Fault> {
        let program = schedule.program(self.rank);
        let mut budget = POLL_BYTES_MAX;
        loop {
            match self.cursor.action(program) {
                None if !around.is_idle() => return Ok(RunState::Waiting),
                // The work of this poll has taken time that the caller's clock does not include.
                None if budget < POLL_BYTES_MAX => return Ok(RunState::Again),
                None => return Ok(RunState::Through),
                Some(Action::Await(_)) if self.is_waiting => return Ok(RunState::Waiting),
                Some(Action::Await(id)) => {
                    self.is_waiting = true;
                    if around.expect(id, schedule.transfer(id), self.number)?.is_none() {
                        return Ok(RunState::Waiting);
                    }
                    self.arrived();
                }
                Some(Action::Work(_)) if budget == 0 => return Ok(RunState::Again),
                Some(Action::Work(piece)) => {
                    let before = self.worked;
                    let moved = work(around, program, piece, &mut self.worked, blocks, budget)?;
                    budget = budget.saturating_sub(moved);
                    let (moves, reductions) = program.amounts(&piece);
                    let done = self.worked - before;
                    around.note_work(done * moves, done * reductions);
                    let target_bytes = piece.target().bytes(blocks.kernel.element_bytes()).len();
                    assert!(self.worked <= target_bytes, "more work is done than there is");
                    if self.worked == target_bytes {
                        self.worked = 0;
                        self.cursor.advance();
                    }
                }
                Some(Action::Send(_)) if !around.has_space() => return Ok(RunState::Waiting),
                Some(Action::Send(id)) => {
                    around.send(id, schedule.transfer(id), self.number)?;
                    self.cursor.advance();
                }
            }
        }
    }
}

/// Continues a piece of work of which `worked` bytes are done, for about `budget` bytes. Returns how many were read.
fn work<S: Surroundings>(
    around: &mut S,
    program: &Program,
    piece: Local,
    worked: &mut usize,
    blocks: &mut Blocks,
    budget: usize,
) -> Result<usize, S::Fault> {
    let target_bytes = piece.target().bytes(blocks.kernel.element_bytes()).len();
    if *worked == 0 && combine(around, program, piece, blocks)? {
        *worked = target_bytes;
        return Ok(0);
    }
    let operands = program.sources(&piece).len().max(1);
    // Each block of a fold reads a block from every operand, and the time of a poll is limited.
    let block_bytes =
        (POLL_BYTES_MAX / operands).clamp(FOLDED_BYTES_MIN, WORKED_BYTES_MAX) & !(FOLDED_BYTES_MIN - 1);
    // Elements of a caller may have any size.
    let block_bytes = block_bytes - block_bytes % blocks.kernel.element_bytes();
    let mut moved = 0;
    while *worked < target_bytes && moved < budget {
        let length = (target_bytes - *worked).min(block_bytes);
        work_block(around, program, piece, *worked..*worked + length, blocks)?;
        *worked += length;
        moved += length * operands;
    }
    Ok(moved)
}

/// Lets memory do a whole piece of work, if it supports that.
fn combine<S: Surroundings>(
    around: &mut S,
    program: &Program,
    piece: Local,
    blocks: &Blocks,
) -> Result<bool, S::Fault> {
    let how = match &blocks.kernel {
        Kernel::Number { operation, element, folded } => Some((*operation, *element, folded.is_wider())),
        Kernel::Custom(_) => None,
    };
    let bytes = |span: Span| span.bytes(blocks.kernel.element_bytes());
    let start = |span: Span| (span.buffer, bytes(span).start);
    let target = piece.target();
    let length = bytes(target).len();
    let are_apart = |source: Span| {
        let (source_bytes, target_bytes) = (bytes(source), bytes(target));
        source.buffer != target.buffer
            || source_bytes.end <= target_bytes.start
            || target_bytes.end <= source_bytes.start
    };
    if let Local::Copy { source, .. } = piece {
        return if are_apart(source) {
            around.combine(None, start(target), start(source), length)
        } else {
            Ok(false)
        };
    }
    // Memory knows no reductions of callers.
    let Some((operation, element, is_wider)) = how else { return Ok(false) };
    let how = Some((operation, element));
    match piece {
        Local::Reduce { source, .. } if are_apart(source) => {
            around.combine(how, start(target), start(source), length)
        }
        Local::Fold { .. } if !is_wider || around.folds_exactly() => {
            let Some((&first, rest)) = program.sources(&piece).split_first() else { return Ok(false) };
            if !rest.iter().all(|source| are_apart(*source))
                || !(start(first) == start(target) || are_apart(first))
            {
                return Ok(false);
            }
            let is_begun =
                start(first) == start(target) || around.combine(None, start(target), start(first), length)?;
            for source in rest {
                // Memory that supports one of these calls supports all, so no work is left half done.
                if !is_begun || !around.combine(how, start(target), start(*source), length)? {
                    return Ok(false);
                }
            }
            Ok(is_begun)
        }
        _ => Ok(false),
    }
}

/// Does a part of a piece of work, counted in bytes from the beginning of its target.
fn work_block<S: Surroundings>(
    around: &mut S,
    program: &Program,
    piece: Local,
    part: Range<usize>,
    blocks: &mut Blocks,
) -> Result<(), S::Fault> {
    let element_bytes = blocks.kernel.element_bytes();
    let at = |span: Span| span.bytes(element_bytes).start + part.start;
    let target = piece.target();
    let (left, right) = (&mut blocks.left[..part.len()], &mut blocks.right[..part.len()]);
    match piece {
        Local::Copy { source, .. } => around.read(source.buffer, at(source), left)?,
        Local::Reduce { source, .. } => {
            around.read(source.buffer, at(source), right)?;
            around.read(target.buffer, at(target), left)?;
            blocks.kernel.reduce(left, right)?;
        }
        Local::Fold { .. } => {
            let sources = program.sources(&piece);
            if let Some(folded) = blocks.kernel.wider() {
                for &source in sources {
                    around.read(source.buffer, at(source), right)?;
                    folded.take(right)?;
                }
                folded.finish(left)?;
            } else {
                for (index, &source) in sources.iter().enumerate() {
                    if index == 0 {
                        around.read(source.buffer, at(source), left)?;
                        continue;
                    }
                    around.read(source.buffer, at(source), right)?;
                    blocks.kernel.reduce(left, right)?;
                }
            }
        }
    }
    around.write(target.buffer, at(target), left)
}
