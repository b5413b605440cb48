//! Commands that kernels give: a ring in pinned memory, which kernels fill and somebody on the host carries out.
//!
//! A thread of a kernel takes a *ticket* (a counter in device memory, which the host never sees). The ticket names a slot and a round:
//! slot `ticket % slots`, round `ticket / slots`. Each slot has one state word, which says everything:
//!
//! | state | set by | what it means | followed by |
//! |---|---|---|---|
//! | empty | nobody | never used | published(0) |
//! | published(r) | the thread with the ticket | the command of round r can be read | done(r) or freed(r) |
//! | done(r, status) | the host | it has ended; the value can be read | published(r + 1), once the thread has seen it |
//! | freed(r) | the host | it was posted, and nobody waits for its end | published(r + 1) |
//! | closed | the host | nobody serves the ring any more | nothing |
//!
//! Whoever writes a state has written before it, visibly for both sides, what the state speaks of. So a command is never read half-written,
//! and a slot is never written over before its end was seen. The host takes commands in the order of tickets; it may end them in any.
//!
//! Nothing in here is a GPU's: every word of the ring is an atomic of 8 bytes, and [`HostKernel`] does in Rust what
//! `kernels/rackloom.cuh` does on a device. What commands mean to whom, and who has which memory, is not known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::{Address, Device};
use crate::error::GpuError;
use crate::pinned::Pinned;

/// Bytes of a command.
const COMMAND_BYTES: usize = 128;
/// Bytes of a slot's state and value, a line of its own.
const REPLY_BYTES: usize = 64;
/// Bytes before the first reply: two words that hold for the whole ring.
const CONTROL_BYTES: usize = 64;
/// Most slots of a ring.
pub const SLOTS_MAX: u32 = 1 << 16;

const PUBLISHED: u64 = 1;
const DONE: u64 = 2;
const FREED: u64 = 3;
const CLOSED: u64 = u64::MAX;
const ROUND_SHIFT: u32 = 16;
const STATUS_SHIFT: u32 = 8;

/// What a kernel wants.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CommandKind {
    /// Write a word of 4 or 8 bytes: the operand.
    Store = 1,
    /// Read bytes into a region of one's own.
    Load = 2,
    /// Copy bytes of a region of one's own to the peer, and perhaps signal it.
    Put = 3,
    /// The same the other way, of any length.
    Get = 4,
    /// Add to a word; the old value.
    FetchAdd = 5,
    /// Replace a word that equals `compare`; the old value.
    CompareSwap = 6,
    /// Replace a word; the old value.
    Swap = 7,
    /// Ends when everything before it is visible.
    Flush = 8,
    /// What comes later becomes visible later.
    Fence = 9,
}

impl CommandKind {
    const ALL: [Self; 9] = [
        Self::Store,
        Self::Load,
        Self::Put,
        Self::Get,
        Self::FetchAdd,
        Self::CompareSwap,
        Self::Swap,
        Self::Flush,
        Self::Fence,
    ];
}

/// No peer in particular.
pub const ANYBODY: u32 = u32::MAX;
/// Nobody waits for the end.
pub const POSTED: u32 = 1;
/// A put ends with a signal.
pub const SIGNAL: u32 = 2;
/// The signal is added to its word instead of replacing it.
pub const SIGNAL_ADDS: u32 = 4;

/// A command as it lies in its slot. `kernels/rackloom.cuh` has the same structure.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Command {
    /// A [`CommandKind`].
    pub kind: u32,
    /// Whom it concerns, or [`ANYBODY`].
    pub peer: u32,
    /// The peer's region.
    pub region: u32,
    /// [`POSTED`], [`SIGNAL`], [`SIGNAL_ADDS`]; bytes of a word in the upper half.
    pub flags: u32,
    /// First byte in the peer's region.
    pub offset: u64,
    /// What the peer wants to see.
    pub key: u64,
    /// A region of one's own.
    pub local_region: u32,
    /// The peer's region that has the signal.
    pub signal_region: u32,
    /// First byte in one's own region.
    pub local_offset: u64,
    /// Bytes.
    pub length: u64,
    /// What is stored, added or put in place.
    pub operand: u64,
    /// What a compare-and-swap expects.
    pub compare: u64,
    /// Where the signal is.
    pub signal_offset: u64,
    /// What the peer wants to see for it.
    pub signal_key: u64,
    /// The signal.
    pub signal_value: u64,
}

const WORDS: usize = size_of::<Command>() / 8;

impl Command {
    /// What it wants, if that is anything known.
    #[must_use]
    pub fn kind(&self) -> Option<CommandKind> {
        CommandKind::ALL.into_iter().find(|kind| *kind as u32 == self.kind)
    }

    /// Whether nobody waits for the end.
    #[must_use]
    pub const fn is_posted(&self) -> bool {
        self.flags & POSTED != 0
    }

    /// Bytes of the word that it is about: 4 or 8.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.flags >> 16
    }

    fn words(&self) -> [u64; WORDS] {
        let pair = |low: u32, high: u32| low as u64 | (high as u64) << 32;
        [
            pair(self.kind, self.peer),
            pair(self.region, self.flags),
            self.offset,
            self.key,
            pair(self.local_region, self.signal_region),
            self.local_offset,
            self.length,
            self.operand,
            self.compare,
            self.signal_offset,
            self.signal_key,
            self.signal_value,
        ]
    }

    const fn from_words(words: [u64; WORDS]) -> Self {
        let (low, high) = (0xffff_ffff, 32);
        Self {
            kind: (words[0] & low) as u32,
            peer: (words[0] >> high) as u32,
            region: (words[1] & low) as u32,
            flags: (words[1] >> high) as u32,
            offset: words[2],
            key: words[3],
            local_region: (words[4] & low) as u32,
            signal_region: (words[4] >> high) as u32,
            local_offset: words[5],
            length: words[6],
            operand: words[7],
            compare: words[8],
            signal_offset: words[9],
            signal_key: words[10],
            signal_value: words[11],
        }
    }
}

/// How a command ended, as kernels see it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It is done and visible.
    Done = 0,
    /// It makes no sense to anybody.
    Invalid = 1,
    /// The peer said no.
    Refused = 2,
    /// The peer is gone; nothing was done.
    Lost = 3,
    /// The peer is gone; it may have been done.
    OutcomeUnknown = 4,
    /// Nobody serves the ring any more.
    Closed = 5,
}

impl Status {
    const ALL: [Self; 6] =
        [Self::Done, Self::Invalid, Self::Refused, Self::Lost, Self::OutcomeUnknown, Self::Closed];

    fn of(code: u64) -> Self {
        Self::ALL.into_iter().find(|status| *status as u64 == code).unwrap_or(Self::Invalid)
    }
}

/// The words of a ring, touched by both sides.
#[derive(Debug)]
struct Words {
    memory: Pinned,
    slots: u32,
}

// SAFETY: needed because both sides hold them. Every access goes through `word`, which is an atomic; the memory stays as long as the value.
unsafe impl Sync for Words {}

impl Words {
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.memory.word(offset)
    }

    const fn slot(&self, ticket: u64) -> usize {
        (ticket % self.slots as u64) as usize
    }

    const fn round(&self, ticket: u64) -> u64 {
        ticket / self.slots as u64
    }

    fn state(&self, slot: usize) -> &AtomicU64 {
        self.word(CONTROL_BYTES + slot * REPLY_BYTES)
    }

    fn value(&self, slot: usize) -> &AtomicU64 {
        self.word(CONTROL_BYTES + slot * REPLY_BYTES + 8)
    }

    const fn commands(&self) -> usize {
        CONTROL_BYTES + self.slots as usize * REPLY_BYTES
    }

    fn command_words(&self, slot: usize) -> impl Iterator<Item = &AtomicU64> {
        let first = self.commands() + slot * COMMAND_BYTES;
        (0..WORDS).map(move |place| self.word(first + place * 8))
    }

    /// Whether the host has closed the ring.
    fn is_closed(&self) -> bool {
        self.word(0).load(Ordering::Acquire) != 0
    }
}

/// The host's end.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread serves it at a time.
#[derive(Debug)]
pub struct CommandRing {
    words: Arc<Words>,
    /// The next ticket to be looked for.
    next: u64,
    /// Where kernels keep their counter and what they know of slots.
    head: Address,
}

/// What kernels take as an argument, by value. `kernels/rackloom.cuh` has the same structure.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct QueueArgument {
    /// Two words: closed, and how many peers were lost so far.
    pub control: u64,
    /// State and value of each slot.
    pub replies: u64,
    /// The commands.
    pub commands: u64,
    /// In the device's memory: the counter of tickets, and from the second line on the round that each slot is free for.
    pub head: u64,
    /// Slots, a power of two.
    pub slots: u64,
}

impl CommandRing {
    /// A ring of at least so many slots for the kernels of a device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], and what else the device refuses.
    pub fn new(device: &mut dyn Device, slots: u32) -> Result<Self, GpuError> {
        let slots = slots.clamp(1, SLOTS_MAX).next_power_of_two();
        let memory = device.pin(CONTROL_BYTES + slots as usize * (REPLY_BYTES + COMMAND_BYTES))?;
        let head = device.allocate(CONTROL_BYTES as u64 + u64::from(slots) * 8)?;
        Ok(Self { words: Arc::new(Words { memory, slots }), next: 0, head })
    }

    /// What kernels take.
    #[must_use]
    pub fn argument(&self) -> QueueArgument {
        let at = |offset| self.words.memory.address(offset).0;
        QueueArgument {
            control: at(0),
            replies: at(CONTROL_BYTES),
            commands: at(self.words.commands()),
            head: self.head.0,
            slots: u64::from(self.words.slots),
        }
    }

    /// Memory of the device that was taken for the ring, to be given back when no kernel uses it any more.
    #[must_use]
    pub const fn device_memory(&self) -> Address {
        self.head
    }

    /// A kernel on the host.
    #[must_use]
    pub fn host_kernel(&self) -> HostKernel {
        let free_for = (0..self.words.slots).map(|_| AtomicU64::new(0)).collect();
        HostKernel { words: Arc::clone(&self.words), head: AtomicU64::new(0), free_for }
    }

    /// The next command, if it has been given.
    pub fn poll(&mut self) -> Option<(u64, Command)> {
        let (slot, round) = (self.words.slot(self.next), self.words.round(self.next));
        if self.words.state(slot).load(Ordering::Acquire) != round << ROUND_SHIFT | PUBLISHED {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(self.words.command_words(slot)) {
            *word = place.load(Ordering::Relaxed);
        }
        self.next += 1;
        Some((self.next - 1, Command::from_words(words)))
    }

    /// A command has ended. The slot of a posted one is free; else its thread reads the value first.
    pub fn complete(&mut self, ticket: u64, is_posted: bool, status: Status, value: u64) {
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket) << ROUND_SHIFT);
        self.words.value(slot).store(value, Ordering::Relaxed);
        let state = if is_posted { FREED } else { (status as u64) << STATUS_SHIFT | DONE };
        self.words.state(slot).store(round | state, Ordering::Release);
    }

    /// How many peers were lost so far: who waits for a word looks at it.
    pub fn set_losses(&mut self, losses: u64) {
        self.words.word(8).store(losses, Ordering::Release);
    }

    /// Nobody serves the ring any more. Whoever waits is told.
    pub fn close(&mut self) {
        self.words.word(0).store(1, Ordering::Release);
        for slot in 0..self.words.slots as usize {
            self.words.state(slot).store(CLOSED, Ordering::Release);
        }
    }
}

impl Drop for CommandRing {
    fn drop(&mut self) {
        self.close();
    }
}

/// What threads of a kernel do, done by threads of the host.
///
/// `Send` and `Sync`: any number of threads may give commands. A ring has kernels of one kind: of the device, or one of these.
#[derive(Debug)]
pub struct HostKernel {
    words: Arc<Words>,
    head: AtomicU64,
    /// By slot: the round that may be written.
    free_for: Vec<AtomicU64>,
}

impl HostKernel {
    /// Give a command. Waits for room. The ticket of one that is not posted must be waited for, by one thread.
    ///
    /// # Errors
    /// [`Status::Closed`].
    pub fn issue(&self, command: &Command) -> Result<u64, Status> {
        let ticket = self.head.fetch_add(1, Ordering::Relaxed);
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket));
        while !self.is_free(slot, round)? {
            std::thread::yield_now();
        }
        for (place, word) in self.words.command_words(slot).zip(command.words()) {
            place.store(word, Ordering::Relaxed);
        }
        let known = self.words.state(slot).load(Ordering::Relaxed);
        let published = round << ROUND_SHIFT | PUBLISHED;
        // A ring that is closed stays so.
        match self.words.state(slot).compare_exchange(known, published, Ordering::Release, Ordering::Relaxed)
        {
            Ok(_) if known != CLOSED => Ok(ticket),
            _ => Err(Status::Closed),
        }
    }

    fn is_free(&self, slot: usize, round: u64) -> Result<bool, Status> {
        if self.words.is_closed() {
            return Err(Status::Closed);
        }
        let was_freed = || {
            let freed = (round.wrapping_sub(1)) << ROUND_SHIFT | FREED;
            self.words.state(slot).load(Ordering::Acquire) == freed
        };
        Ok(self.free_for[slot].load(Ordering::Acquire) == round || was_freed())
    }

    /// How a command has ended, and its value; `None` while it has not.
    pub fn poll(&self, ticket: u64) -> Option<(Status, u64)> {
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket));
        let state = self.words.state(slot).load(Ordering::Acquire);
        if state == CLOSED {
            return Some((Status::Closed, 0));
        }
        if state & 0xff != DONE || state >> ROUND_SHIFT != round {
            return None;
        }
        let value = self.words.value(slot).load(Ordering::Relaxed);
        self.free_for[slot].store(round + 1, Ordering::Release);
        Some((Status::of(state >> STATUS_SHIFT & 0xff), value))
    }

    /// Wait for the end of a command.
    pub fn wait(&self, ticket: u64) -> (Status, u64) {
        loop {
            if let Some(ended) = self.poll(ticket) {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    /// Give a command and wait for its end.
    pub fn call(&self, command: &Command) -> (Status, u64) {
        self.issue(command).map_or_else(|closed| (closed, 0), |ticket| self.wait(ticket))
    }

    /// How many peers were lost so far.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.words.word(8).load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;
    use crate::fake::{Fake, FakePlan};

    fn ring(slots: u32) -> CommandRing {
        CommandRing::new(&mut Fake::new(FakePlan::new(1)), slots).unwrap()
    }

    fn numbered(number: u64) -> Command {
        Command { kind: CommandKind::FetchAdd as u32, operand: number, ..Command::default() }
    }

    #[test]
    fn a_command_is_as_long_as_the_kernels_have_it() {
        assert_eq!((size_of::<Command>(), size_of::<QueueArgument>()), (96, 40));
        let command = Command {
            kind: 3,
            peer: 4,
            region: 5,
            flags: 6 | 8 << 16,
            offset: 7,
            key: 8,
            local_region: 9,
            signal_region: 10,
            local_offset: 11,
            length: 12,
            operand: 13,
            compare: 14,
            signal_offset: 15,
            signal_key: 16,
            signal_value: 17,
        };
        assert_eq!(Command::from_words(command.words()), command);
        assert_eq!(
            (command.kind(), command.width(), command.is_posted()),
            (Some(CommandKind::Put), 8, false)
        );
        assert_eq!(numbered(0).kind(), Some(CommandKind::FetchAdd));
        assert_eq!(Command::default().kind(), None);
    }

    #[test]
    fn nothing_is_read_before_it_is_published_nor_written_over_before_it_was_seen() {
        let mut ring = ring(2);
        let kernel = ring.host_kernel();
        assert_eq!(ring.poll(), None);
        let (first, second) = (kernel.issue(&numbered(10)).unwrap(), kernel.issue(&numbered(11)).unwrap());
        assert_eq!((first, second), (0, 1));
        assert_eq!(ring.poll(), Some((0, numbered(10))));
        assert_eq!(ring.poll(), Some((1, numbered(11))));
        assert_eq!((ring.poll(), kernel.poll(first)), (None, None));
        // Ended in another order than begun.
        ring.complete(second, false, Status::Refused, 0);
        assert_eq!((kernel.poll(first), kernel.poll(second)), (None, Some((Status::Refused, 0))));
        ring.complete(first, false, Status::Done, 77);
        assert!(!kernel.is_free(0, 1).unwrap(), "its thread has not seen the end");
        assert_eq!(kernel.poll(first), Some((Status::Done, 77)));
        assert!(kernel.is_free(0, 1).unwrap());
        // A posted one frees its slot without anybody.
        let posted = kernel.issue(&Command { flags: POSTED, ..numbered(12) }).unwrap();
        assert!(!kernel.is_free(0, 2).unwrap());
        assert_eq!(ring.poll().map(|(ticket, _)| ticket), Some(posted));
        ring.complete(posted, true, Status::Done, 0);
        assert!(kernel.is_free(0, 2).unwrap());
    }

    #[test]
    fn many_threads_and_a_host_that_ends_in_any_order_lose_nothing() {
        const EACH: u64 = 3000;
        let mut ring = ring(8);
        let kernel = ring.host_kernel();
        let threads = 4_u64;
        let sums: Vec<u64> = std::thread::scope(|scope| {
            let give = |thread: u64| {
                let kernel = &kernel;
                move || {
                    let numbers = (0..EACH).map(|at| thread * EACH + at);
                    numbers
                        .map(|number| {
                            if number % 7 == 0 {
                                kernel.issue(&Command { flags: POSTED, ..numbered(number) }).unwrap();
                                return 0;
                            }
                            let (status, value) = kernel.call(&numbered(number));
                            assert_eq!((status, value), (Status::Done, number * 3));
                            1
                        })
                        .sum()
                }
            };
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(give(thread))).collect();
            let (mut seen, mut out) = (BTreeMap::new(), VecDeque::new());
            while seen.len() < (threads * EACH) as usize || !out.is_empty() {
                if let Some((ticket, command)) = ring.poll() {
                    assert_eq!(seen.insert(command.operand, ticket), None, "taken once");
                    out.push_back((ticket, command));
                }
                // Now the oldest, now the youngest.
                let ended = if seen.len() % 3 == 0 { out.pop_back() } else { out.pop_front() };
                if let Some((ticket, command)) = ended {
                    ring.complete(ticket, command.is_posted(), Status::Done, command.operand * 3);
                }
                std::thread::yield_now();
            }
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let posted = (0..threads * EACH).filter(|number| number % 7 == 0).count() as u64;
        assert_eq!(sums.iter().sum::<u64>(), threads * EACH - posted);
    }

    #[test]
    fn whoever_waits_is_told_when_the_ring_is_closed() {
        let mut ring = ring(1);
        let kernel = ring.host_kernel();
        let waiting = kernel.issue(&numbered(1)).unwrap();
        ring.set_losses(3);
        assert_eq!(kernel.losses(), 3);
        std::thread::scope(|scope| {
            let without_room = scope.spawn(|| kernel.issue(&numbered(2)));
            let without_end = scope.spawn(|| kernel.wait(waiting));
            drop(ring);
            assert_eq!(without_room.join().unwrap(), Err(Status::Closed));
            assert_eq!(without_end.join().unwrap().0, Status::Closed);
        });
    }
}
