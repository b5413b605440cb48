//! Frame devices of one member, and what some devices do better than one copied frame at a time.

use super::member::Write;
use crate::ids::PortId;
use crate::memory::LeaseId;

/// Frame devices of one member. A device may drop, duplicate, reorder and corrupt frames; it never blocks and never
/// invents frames.
pub trait Wires {
    /// Returns a buffer for one frame of the largest size on `port`, or `None` while the device is full. Repeated
    /// calls without a commit return the same buffer.
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]>;
    /// Copies `length` bytes at `at` of a leased frame to the same offset in the buffer of [`Wires::slot`]. The frame
    /// is not read again under this lease, so a device may move its bytes instead.
    fn copy_lease(&mut self, port: PortId, lease: LeaseId, at: usize, length: usize);
    /// Sends the first `length` bytes of the buffer. `doorbell` wakes a sleeping receiver.
    fn commit(&mut self, port: PortId, length: usize, doorbell: bool);
    /// Returns the bytes of a leased frame.
    fn leased(&self, lease: LeaseId) -> &[u8];
    /// Releases a frame to which the member no longer refers.
    fn release(&mut self, lease: LeaseId);
}

/// Optional: several frames per call. The defaults send one frame after another.
pub trait BatchedWires: Wires {
    /// Sends frames as `write` writes them, until it writes none or there is no buffer.
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        while let Some(length) = self.slot(port).and_then(&mut *write) {
            self.commit(port, length, true);
        }
    }
    /// Ends a sequence of commits on this port: makes them visible to the neighbour, for devices that delay that.
    fn show(&mut self, port: PortId) {
        let _ = port;
    }
}

/// Optional: the device keeps copies of sent frames, which link-level retry sends again. With the defaults the member
/// keeps them.
pub trait KeptFrames: Wires {
    /// Keeps a copy of the frame in the buffer of [`Wires::slot`], in addition to the last `others` kept frames of
    /// this port; older ones may be discarded. Returns false if the device never keeps frames, so that the member
    /// does. A device that is only a model need not copy them.
    fn keep(&mut self, port: PortId, length: usize, others: usize) -> bool {
        let _ = (port, length, others);
        false
    }
    /// Writes a kept frame into the buffer of [`Wires::slot`]: the one after which `behind` were kept on this port.
    fn load_kept(&mut self, port: PortId, behind: usize) {
        let _ = (port, behind);
    }
}

/// Optional: hardware other than the processor reads received frames in place.
pub trait PinnedFrames: Wires {
    /// Keeps a leased frame at its address until it is released, because memory is about to read it.
    fn pin(&mut self, lease: LeaseId) {
        let _ = lease;
    }
}
