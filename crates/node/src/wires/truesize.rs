//! What frames cost in the currency of a socket's receive buffer.
//!
//! The kernel does not count bytes of frames against a receive buffer but the memory that it took for them, their
//! *truesize*: the frame, room in front of it and bookkeeping behind it, all rounded up to a power of two, and a
//! descriptor. A frame of 4240 bytes counts as 8448. A packet or datagram socket has no back-pressure; what does not fit
//! is gone. So the buffer must hold what the link's credits admit, counted this way, and control frames on top, which take
//! no credits.
//!
//! This is a bound from above; a test holds it to what the kernel says.

use std::io;

use rackloom_protocol::CreditConfig;

/// The kernel's bookkeeping behind the bytes of every frame.
const BOOKKEEPING_BYTES: usize = 320;
/// Room in front of a frame, headers of a datagram included.
const HEADROOM_BYTES: usize = 128;
/// The descriptor of a frame.
const DESCRIPTOR_BYTES: usize = 256;
/// The least that the kernel takes for the bytes of a frame; it has smaller pieces, but not always.
const PIECE_BYTES_MIN: usize = 1024;
/// Shortest frame that there is a cost for.
const FRAME_BYTES_MIN: usize = 46;
/// Control frames that may wait beside what credits admit: acknowledgements, heartbeats, reports.
pub(super) const CONTROL_FRAMES_MAX: usize = 64;

/// At most this much of a receive buffer is taken by a frame.
pub(super) const fn truesize(frame_bytes: usize) -> usize {
    let piece = (HEADROOM_BYTES + frame_bytes + BOOKKEEPING_BYTES).next_power_of_two();
    DESCRIPTOR_BYTES + if piece < PIECE_BYTES_MIN { PIECE_BYTES_MIN } else { piece }
}

/// Frames that can be under way at once: as many as the credits admit of the cheapest ones, and control frames.
pub(super) fn frames_max(credits: &CreditConfig) -> usize {
    data_frames_max(credits, FRAME_BYTES_MIN) + CONTROL_FRAMES_MAX
}

/// Receive buffer that is enough for everything that may be under way on a link whose frames have these sizes at most.
pub(super) fn buffer_bytes(credits: &CreditConfig, frame_bytes_max: usize) -> usize {
    // A frame is dearest just above a power of two, so each size is tried; the kernel's steps are multiples of this.
    let sizes = (FRAME_BYTES_MIN..frame_bytes_max).step_by(16).chain([frame_bytes_max]);
    let data = sizes.map(|bytes| data_frames_max(credits, bytes).saturating_mul(truesize(bytes))).max();
    data.unwrap_or(0).saturating_add(CONTROL_FRAMES_MAX * truesize(FRAME_BYTES_MIN))
}

/// An error if a receive buffer is too small for what may be under way.
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

    /// What a rack on a wire with kernel buffers gets if its file says nothing.
    const DEFAULT: CreditConfig = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 };
    /// What Linux grants an ordinary user who asks for the most, on a machine where nobody has changed anything.
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
