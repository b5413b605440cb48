//! Receive ring of a packet socket (version 2): the kernel writes frames straight into pages shared with this process.
//!
//! Taking a frame needs no system call: its slot has a status that marks it as full. A ring holds a number of frames, independent of their length. It
//! does not count the kernel's cost per frame, unlike a receive buffer (`truesize`). The core reads each frame in place and releases slots in any
//! order. The kernel fills slots in order, and drops frames while the next slot is in use. A frame that is held while half of the ring passes
//! therefore moves to the heap, and its slot is released. The last frame moves at the end of a poll. As long as its slot is in use, `poll` reports
//! the socket as readable, and no thread could sleep.
//!
//! Version 3 would deliver frames at its block timer, a thousand times later than a frame takes. It is not used.

use std::collections::VecDeque;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::socket::Arrival;
use crate::wires::DeviceLease;
use crate::wires::socket::set_option;

/// Size of a block of pages, in bytes. No slot crosses the end of a block.
const BLOCK_BYTES: usize = 64 << 10;
/// Distance from a slot's start to its frame, in bytes: the kernel's header, an address, and alignment for network headers.
const SLOT_HEADER_BYTES: usize = 66;
const SLOT_ALIGNMENT: usize = 16;
/// Maximum size of one ring, in bytes.
const RING_BYTES_MAX: usize = 256 << 20;
/// Offset of the address within a slot. The address follows the kernel's header and is aligned.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(SLOT_ALIGNMENT);
/// Value of `PACKET_VERSION` for version 2.
const VERSION_2: libc::c_int = 1;

/// Position of a leased frame.
#[derive(Debug)]
enum LeasedFrame {
    Free,
    /// In the ring: the number of the frame since the start, and the offset and length of its bytes.
    Slot {
        number: u64,
        at: usize,
        length: usize,
    },
    Heap(Vec<u8>),
}

/// The shared pages and the leases on their frames.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    pages: Pages,
    slot_bytes: usize,
    slots_per_block: usize,
    slot_count: u64,
    /// Number of frames taken since the start. The slot of the next frame is this number modulo `slot_count`.
    taken: u64,
    leased: Vec<LeasedFrame>,
    free: Vec<u32>,
    /// Leases in the order of their frames. Entries of released leases are skipped.
    order: VecDeque<(u64, u32)>,
    spare: Vec<Vec<u8>>,
    copied_out: u64,
}

/// Pages shared with the kernel, unmapped on drop.
#[derive(Debug)]
struct Pages {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: needed because a device moves to the thread that drives it. Pages are an address and a length that belong to the process. Every reader
// borrows the ring.
unsafe impl Send for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: needed to unmap the pages. They were mapped with this address and length by `ReceiveRing::attach`, and nothing that borrows them
        // outlives the ring.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Returns the size in bytes of a ring for this many frames of this length, and the number of slots per block. The latter is 0 if the frames are too
/// long for a block.
pub(super) const fn ring_bytes(frames: usize, frame_bytes_max: usize) -> (usize, usize) {
    let slots_per_block = BLOCK_BYTES / slot_bytes(frame_bytes_max);
    let blocks =
        if frames < 2 { 2 } else { frames }.div_ceil(if slots_per_block == 0 { 1 } else { slots_per_block });
    (blocks * BLOCK_BYTES, slots_per_block)
}

const fn slot_bytes(frame_bytes_max: usize) -> usize {
    (SLOT_HEADER_BYTES + frame_bytes_max).next_multiple_of(SLOT_ALIGNMENT)
}

impl ReceiveRing {
    /// Attaches a ring for `frames` frames of `frame_bytes_max` bytes to an unbound socket.
    pub(super) fn attach(socket: &OwnedFd, frames: usize, frame_bytes_max: usize) -> io::Result<Self> {
        let slot_bytes = slot_bytes(frame_bytes_max);
        let (length, slots_per_block) = ring_bytes(frames, frame_bytes_max);
        let blocks = length / BLOCK_BYTES;
        if slots_per_block == 0 || length > RING_BYTES_MAX {
            let what = format!(
                "credits admit {frames} frames, and a receive ring for so many takes {length} bytes, at most {RING_BYTES_MAX} are possible\n\
                 hint: a smaller `credits: {{limit: ...}}` in the rack file"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let slot_count = blocks * slots_per_block;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, VERSION_2)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as _,
            tp_block_nr: blocks as _,
            tp_frame_size: slot_bytes as _,
            tp_frame_nr: slot_count as _,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: needed to access the ring at all. A null hint lets the kernel choose a free range, so no existing memory is touched.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, socket.as_fd(), 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let (leased, free, order, spare) = Default::default();
        Ok(Self {
            pages: Pages { base, length },
            slot_bytes,
            slots_per_block,
            slot_count: slot_count as u64,
            taken: 0,
            leased,
            free,
            order,
            spare,
            copied_out: 0,
        })
    }

    /// Returns whether a frame has been received.
    pub(super) fn ready(&self) -> bool {
        self.status(self.taken).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Takes the next frame that is complete and wanted.
    pub(super) fn take(&mut self, mut wanted: impl FnMut(Arrival, &[u8]) -> bool) -> Option<DeviceLease> {
        while self.ready() {
            let number = self.taken;
            let (arrival, at) = self.look(number);
            self.taken += 1;
            if wanted(arrival, self.range(at, arrival.length)) {
                return Some(self.lease(number, at, arrival.length));
            }
            self.hand_back(number);
        }
        None
    }

    fn lease(&mut self, number: u64, at: usize, length: usize) -> DeviceLease {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.leased.push(LeasedFrame::Free);
            (self.leased.len() - 1) as u32
        });
        self.leased[slot as usize] = LeasedFrame::Slot { number, at, length };
        self.order.push_back((number, slot));
        self.evacuate(self.slot_count / 2);
        DeviceLease(slot)
    }

    /// Returns the bytes of a lease, or an empty slice if there is no such lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        match self.leased.get(lease.0 as usize) {
            Some(LeasedFrame::Slot { at, length, .. }) => self.range(*at, *length),
            Some(LeasedFrame::Heap(bytes)) => bytes,
            Some(LeasedFrame::Free) | None => &[],
        }
    }

    /// Releases a lease. Does nothing if the lease does not exist.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        let Some(entry) = self.leased.get_mut(lease.0 as usize) else { return };
        match std::mem::replace(entry, LeasedFrame::Free) {
            LeasedFrame::Free => return,
            LeasedFrame::Slot { number, .. } => self.hand_back(number),
            LeasedFrame::Heap(bytes) => self.spare.push(bytes),
        }
        self.free.push(lease.0);
    }

    /// Moves the last frame out of the ring at the end of a poll, if it is still held. Otherwise it would keep the socket readable.
    pub(super) fn settle(&mut self) {
        let last = self.taken.wrapping_sub(1);
        if let Some(&(number, slot)) = self.order.back()
            && number == last
        {
            self.order.pop_back();
            self.move_out(number, slot);
        }
        while let Some(&(number, slot)) = self.order.front()
            && !self.is_held(number, slot)
        {
            self.order.pop_front();
        }
    }

    /// Returns the number of frames moved to the heap.
    pub(super) const fn copied_out(&self) -> u64 {
        self.copied_out
    }

    /// Moves out the frames that are `frames` or more behind the next one.
    fn evacuate(&mut self, frames: u64) {
        while let Some(&(number, slot)) = self.order.front()
            && (number + frames <= self.taken || !self.is_held(number, slot))
        {
            self.order.pop_front();
            self.move_out(number, slot);
        }
    }

    fn is_held(&self, number: u64, slot: u32) -> bool {
        matches!(self.leased[slot as usize], LeasedFrame::Slot { number: held, .. } if held == number)
    }

    /// Copies a frame that is still in the ring to the heap, and releases its slot.
    fn move_out(&mut self, number: u64, slot: u32) {
        if !self.is_held(number, slot) {
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(self.bytes(DeviceLease(slot)));
        self.leased[slot as usize] = LeasedFrame::Heap(bytes);
        self.copied_out += 1;
        self.hand_back(number);
    }

    fn hand_back(&mut self, number: u64) {
        self.status(number).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Returns the offset of a frame's slot, in bytes.
    fn slot_at(&self, number: u64) -> usize {
        let slot = (number % self.slot_count) as usize;
        slot / self.slots_per_block * BLOCK_BYTES + slot % self.slots_per_block * self.slot_bytes
    }

    fn status(&self, number: u64) -> &AtomicU32 {
        let at = self.slot_at(number) + offset_of!(libc::tpacket2_hdr, tp_status);
        // SAFETY: needed because kernel and process pass slots to each other through this word. It lies within the mapping, slots are aligned to 16
        // bytes, and it is only accessed atomically.
        unsafe { AtomicU32::from_ptr(self.pages.base.as_ptr().add(at).cast()) }
    }

    /// Returns the bytes of a slot that belongs to this process.
    fn range(&self, at: usize, length: usize) -> &[u8] {
        // SAFETY: needed because the ring is mapped memory. `look` has limited the range to its slot. The slot belongs to this process until its
        // status goes back to the kernel, which takes `&mut self` and so cannot happen while this borrow exists.
        unsafe { std::slice::from_raw_parts(self.pages.base.as_ptr().add(at), length) }
    }

    /// Reads the header of a slot that belongs to this process. Returns the description of its frame, and the frame's offset in the pages.
    fn look(&self, number: u64) -> (Arrival, usize) {
        let slot = self.slot_at(number);
        // SAFETY: needed because the kernel's header is plain memory. Header and address lie within the slot, the status was acquired, so the kernel
        // has finished writing, and both types are integers of which every pattern is valid.
        let (header, address) = unsafe {
            let base = self.pages.base.as_ptr().add(slot);
            let address: libc::sockaddr_ll = ptr::read_unaligned(base.add(ADDRESS_AT).cast());
            (ptr::read(base.cast::<libc::tpacket2_hdr>()), address)
        };
        let mac = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - mac);
        let is_whole = length == header.tp_len as usize;
        let for_others = address.sll_pkttype == libc::PACKET_OTHERHOST;
        (Arrival { length, is_whole, for_others }, slot + mac)
    }
}
