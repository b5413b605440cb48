//! Texts of the comments: faults injected into a frame, and the reason why its receiver did not use it.
//!
//! One comment per fact, with texts that are readable and that a display filter finds (`frame.comment contains "dropped"`).

use rackloom_plan::impair::Verdict;
use rackloom_protocol::DropReason;

/// Prefix of every comment about an injected fault.
pub const INJECTED: &str = "injected: ";
/// Prefix of every comment about the capture itself.
pub const CAPTURE: &str = "capture: ";
/// Prefix of the comment on the last frame of a file that has reached its limit.
pub const FULL: &str = "capture: full at ";

/// Returns a comment per fault that a link injected into a frame. Most frames have none, and then nothing is allocated.
pub fn injected(verdict: &Verdict) -> Vec<String> {
    let mut comments = Vec::new();
    let mut add = |text: String| comments.push(format!("{INJECTED}{text}"));
    if verdict.drop {
        add("dropped".to_owned());
    }
    if let Some(bit) = verdict.corrupt_bit {
        add(format!("corrupted, bit {} of byte {}", bit % 8, bit / 8));
    }
    if verdict.duplicate {
        add("duplicated".to_owned());
    }
    if verdict.reorder_by > 0 {
        add(format!("delayed, to be overtaken by {}", verdict.reorder_by));
    }
    comments
}

/// Returns the comment that the receiving end did not use a frame.
#[must_use]
pub fn refused(end: &str, reason: DropReason) -> String {
    format!("dropped by {end}: {}", reason.name())
}

/// Returns the comment that the frame reached no receiver.
#[must_use]
pub fn lost(reason: &str) -> String {
    format!("lost: {reason}")
}

/// Returns the comment on the last frame of a file that has reached its limit.
#[must_use]
pub fn full(bytes_max: u64) -> String {
    format!("{FULL}{bytes_max} bytes, later frames are missing")
}

/// Returns the comment that `count` frames could not be written in time.
#[must_use]
pub fn missed(count: u64) -> String {
    format!("{CAPTURE}{count} frames before this one are missing, the disk was too slow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_own_comment_and_a_clean_frame_has_none() {
        assert!(injected(&Verdict::default()).is_empty());
        let verdict = Verdict { drop: true, corrupt_bit: Some(29), duplicate: true, reorder_by: 2 };
        let expected = [
            "injected: dropped",
            "injected: corrupted, bit 5 of byte 3",
            "injected: duplicated",
            "injected: delayed, to be overtaken by 2",
        ];
        assert_eq!(injected(&verdict), expected);
    }
}
