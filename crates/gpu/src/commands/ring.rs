//! The host's end of the ring: takes commands in the order of tickets, and ends them in any order.

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

/// The host's end of a ring.
///
/// `Send` and `Sync`. Methods that change it take `&mut self`, so one thread serves it at a time.
#[derive(Debug)]
pub struct CommandRing {
    words: Arc<Words>,
    /// Next ticket.
    next: u64,
    /// Device memory of the kernels: the counter of tickets and the state of slots.
    head: Address,
}

/// Argument of kernels, by value. `crates/gpu/kernels/rackloom.cuh` has the same structure.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct QueueArgument {
    /// Address of two words: closed, and the number of lost peers.
    pub control: u64,
    /// Address of state and value of each slot.
    pub replies: u64,
    /// Address of the commands.
    pub commands: u64,
    /// Address in device memory: the counter of tickets and, from the second cache line on, the round that each slot is free for.
    pub head: u64,
    /// Number of slots, a power of two.
    pub slots: u64,
}

impl CommandRing {
    /// Makes a ring of at least `slots` slots for the kernels of a device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], and any other error of the device.
    pub fn new(device: &mut dyn Device, slots: u32) -> Result<Self, GpuError> {
        let slots = slots.clamp(1, SLOTS_MAX).next_power_of_two();
        let memory = device.pin(CONTROL_BYTES + slots as usize * (REPLY_BYTES + COMMAND_BYTES))?;
        let head = device.allocate(CONTROL_BYTES as u64 + u64::from(slots) * 8)?;
        Ok(Self { words: Arc::new(Words { memory, slots }), next: 0, head })
    }

    /// Returns the argument for kernels.
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

    /// Returns the device memory of the ring. Free it when no kernel uses the ring any more.
    #[must_use]
    pub const fn device_memory(&self) -> Address {
        self.head
    }

    /// Returns an end for threads of the host, in place of kernels.
    #[must_use]
    pub fn host_kernel(&self) -> HostKernel {
        HostKernel::new(Arc::clone(&self.words))
    }

    /// Returns the next ticket and command, or `None` if it has not been issued.
    pub fn poll(&mut self) -> Option<(u64, Command)> {
        let (slot, round) = (self.words.slot(self.next), self.words.round(self.next));
        if self.words.state(slot).load(Ordering::Acquire) != round << ROUND_SHIFT | PUBLISHED {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, source) in words.iter_mut().zip(self.words.command_words(slot)) {
            *word = source.load(Ordering::Relaxed);
        }
        self.next += 1;
        Some((self.next - 1, Command::from_words(words)))
    }

    /// Ends a command. The slot of a posted one is free at once; otherwise its thread first reads the value.
    pub fn complete(&mut self, ticket: u64, is_posted: bool, status: Status, value: u64) {
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket) << ROUND_SHIFT);
        self.words.value(slot).store(value, Ordering::Relaxed);
        let state = if is_posted { FREED } else { (status as u64) << STATUS_SHIFT | DONE };
        self.words.state(slot).store(round | state, Ordering::Release);
    }

    /// Publishes the number of lost peers. Threads that wait for a word read it.
    pub fn set_losses(&mut self, losses: u64) {
        self.words.word(8).store(losses, Ordering::Release);
    }

    /// Closes the ring. All waits end with [`Status::Closed`].
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
