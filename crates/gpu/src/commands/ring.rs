//! The host's end: commands are taken in the order of their tickets, and ended in any.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command::{Command, Status, WORDS};
use super::host_kernel::HostKernel;
use super::words::{
    CLOSED, COMMAND_BYTES, CONTROL_BYTES, DONE, FREED, PUBLISHED, REPLY_BYTES, ROUND_SHIFT, SLOTS_MAX,
    STATUS_SHIFT, Words,
};
use crate::device::{Address, Device};
use crate::error::GpuError;

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
        HostKernel::new(Arc::clone(&self.words))
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
