//! Cost of frames in a socket's receive buffer.
//!
//! The kernel charges a receive buffer not with the bytes of a frame but with the memory allocated for it, its *truesize*: the frame, headroom before
//! it and bookkeeping after it, all rounded up to a power of two, and a descriptor. A frame of 4240 bytes counts as 8448. A packet or datagram socket
//! has no back-pressure; frames that do not fit are lost. The buffer must therefore hold the frames that the link's credits admit, counted this way,
//! and control frames in addition, which take no credits.
//!
//! The result is an upper bound. A test compares it with the kernel's own count.

use std::io;

use rackloom_protocol::CreditConfig;

/// The kernel's bookkeeping after the bytes of every frame, in bytes.
const BOOKKEEPING_BYTES: usize = 320;
/// Headroom before a frame, in bytes, including the headers of a datagram.
const HEADROOM_BYTES: usize = 128;
/// Descriptor of a frame, in bytes.
const DESCRIPTOR_BYTES: usize = 256;
/// Smallest allocation of the kernel for the bytes of a frame, in bytes. It has smaller ones, but does not always use them.
const PIECE_BYTES_MIN: usize = 1024;
/// Shortest frame for which a cost is computed, in bytes.
const FRAME_BYTES_MIN: usize = 46;
/// Number of control frames that may wait in addition to what credits admit: acknowledgements, heartbeats, reports.
pub(super) const CONTROL_FRAMES_MAX: usize = 64;

/// Returns an upper bound of the space that a frame takes in a receive buffer, in bytes.
pub(super) const fn truesize(frame_bytes: usize) -> usize {
    let piece = (HEADROOM_BYTES + frame_bytes + BOOKKEEPING_BYTES).next_power_of_two();
    DESCRIPTOR_BYTES + if piece < PIECE_BYTES_MIN { PIECE_BYTES_MIN } else { piece }
}

/// Returns the number of frames that can be in flight at once: the cheapest data frames that the credits admit, and control frames.
pub(super) fn frames_max(credits: &CreditConfig) -> usize {
    data_frames_max(credits, FRAME_BYTES_MIN) + CONTROL_FRAMES_MAX
}

/// Returns the size in bytes of a receive buffer that holds everything that may be in flight on a link with frames of at most this size.
pub(super) fn buffer_bytes(credits: &CreditConfig, frame_bytes_max: usize) -> usize {
    // A frame is most expensive just above a power of two, so each size is tried. The kernel's steps are multiples of this step.
    let sizes = (FRAME_BYTES_MIN..frame_bytes_max).step_by(16).chain([frame_bytes_max]);
    let data = sizes.map(|bytes| data_frames_max(credits, bytes).saturating_mul(truesize(bytes))).max();
    data.unwrap_or(0).saturating_add(CONTROL_FRAMES_MAX * truesize(FRAME_BYTES_MIN))
}

/// Returns an error if a receive buffer is too small for the frames that may be in flight.
pub(super) fn check(granted_bytes: usize, credits: &CreditConfig, frame_bytes_max: usize) -> io::Result<()> {
    let needed_bytes = buffer_bytes(credits, frame_bytes_max);
    if granted_bytes >= needed_bytes {
        return Ok(());
    }
    let what = format!(
        "credits admit frames that fill {needed_bytes} bytes of the kernel's receive buffer, and the kernel grants {granted_bytes}\n\
         hint: a smaller `credits: {{limit: ...}}` in the rack file (it is {}), or a larger net.core.rmem_max",
        credits.limit
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn data_frames_max(credits: &CreditConfig, frame_bytes: usize) -> usize {
    (credits.limit / credits.cost(frame_bytes).max(1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Default credits of a rack on a wire with kernel buffers.
    const DEFAULT: CreditConfig = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 };
    /// Largest receive buffer that Linux grants an unprivileged user on a machine with default settings, in bytes.
    const GRANTED_BY_DEFAULT: usize = 2 * 212_992;

    #[test]
    fn frames_cost_what_the_kernel_rounds_them_to() {
        assert_eq!([64, 500, 600, 4240, 9014].map(truesize), [1280, 1280, 2304, 8448, 16640]);
    }

    #[test]
    fn default_credits_fit_the_least_buffer_with_frames_of_every_size() {
        for frame_bytes_max in [354, 1514, 4240, 9014] {
            check(GRANTED_BY_DEFAULT, &DEFAULT, frame_bytes_max).unwrap();
        }
        assert_eq!(frames_max(&DEFAULT), 128 + 64);
    }

    #[test]
    fn twice_the_credits_are_refused_with_the_numbers() {
        let credits = CreditConfig { limit: 1280, ..DEFAULT };
        let error = check(GRANTED_BY_DEFAULT, &credits, 4240).unwrap_err().to_string();
        assert!(error.contains("grants 425984") && error.contains("it is 1280"), "{error}");
    }
}
