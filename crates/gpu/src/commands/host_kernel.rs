//! Threads of the host in the role of kernels: the functions of `crates/gpu/kernels/rackloom.cuh`, in Rust.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::command::{Command, Status};
use super::words::{CLOSED, DONE, FREED, PUBLISHED, ROUND_SHIFT, STATUS_SHIFT, Words};

/// Issues commands from threads of the host.
///
/// `Send` and `Sync`: any number of threads may issue commands. A ring has either kernels of the device or one of these.
#[derive(Debug)]
pub struct HostKernel {
    words: Arc<Words>,
    head: AtomicU64,
    /// For each slot, the round that may be written next.
    free_for: Vec<AtomicU64>,
}

impl HostKernel {
    pub(super) fn new(words: Arc<Words>) -> Self {
        let free_for = (0..words.slots).map(|_| AtomicU64::new(0)).collect();
        Self { words, head: AtomicU64::new(0), free_for }
    }

    /// Issues a command and returns its ticket. Waits for a free slot. One thread must wait for the end of a command that is not posted.
    ///
    /// # Errors
    /// [`Status::Closed`] if the ring is closed.
    pub fn issue(&self, command: &Command) -> Result<u64, Status> {
        let ticket = self.head.fetch_add(1, Ordering::Relaxed);
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket));
        while !self.is_free(slot, round)? {
            std::thread::yield_now();
        }
        self.publish(ticket, command)
    }

    /// Issues a command and returns its ticket, or `None` if no slot is free now.
    ///
    /// # Errors
    /// [`Status::Closed`] if the ring is closed.
    pub fn try_issue(&self, command: &Command) -> Result<Option<u64>, Status> {
        let mut ticket = self.head.load(Ordering::Relaxed);
        while self.is_free(self.words.slot(ticket), self.words.round(ticket))? {
            let (next, order) = (ticket + 1, Ordering::Relaxed);
            match self.head.compare_exchange_weak(ticket, next, order, order) {
                Ok(_) => return self.publish(ticket, command).map(Some),
                Err(found) => ticket = found,
            }
        }
        Ok(None)
    }

    /// Writes a command to the slot of its ticket, which is free.
    fn publish(&self, ticket: u64, command: &Command) -> Result<u64, Status> {
        let (slot, round) = (self.words.slot(ticket), self.words.round(ticket));
        for (target, word) in self.words.command_words(slot).zip(command.words()) {
            target.store(word, Ordering::Relaxed);
        }
        let known = self.words.state(slot).load(Ordering::Relaxed);
        let published = round << ROUND_SHIFT | PUBLISHED;
        // A ring that is closed stays closed.
        match self.words.state(slot).compare_exchange(known, published, Ordering::Release, Ordering::Relaxed)
        {
            Ok(_) if known != CLOSED => Ok(ticket),
            _ => Err(Status::Closed),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.words.is_closed()
    }

    pub(super) fn is_free(&self, slot: usize, round: u64) -> Result<bool, Status> {
        if self.words.is_closed() {
            return Err(Status::Closed);
        }
        let was_freed = || {
            let freed = (round.wrapping_sub(1)) << ROUND_SHIFT | FREED;
            self.words.state(slot).load(Ordering::Acquire) == freed
        };
        Ok(self.free_for[slot].load(Ordering::Acquire) == round || was_freed())
    }

    /// Returns the result of a command and its value, or `None` if it has not ended.
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
        Some((Status::of((state >> STATUS_SHIFT) as u8).unwrap_or(Status::Invalid), value))
    }

    /// Waits for the end of a command.
    pub fn wait(&self, ticket: u64) -> (Status, u64) {
        loop {
            if let Some(ended) = self.poll(ticket) {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    /// Issues a command and waits for its end.
    pub fn call(&self, command: &Command) -> (Status, u64) {
        self.issue(command).map_or_else(|closed| (closed, 0), |ticket| self.wait(ticket))
    }

    /// Returns the number of peers that were lost so far.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.words.word(8).load(Ordering::Acquire)
    }
}
