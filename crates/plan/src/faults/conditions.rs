//! What a link direction is like while faults are on, beyond what the rack file says of it.
//!
//! Conditions of several faults are joined by taking the worst of each: nothing is ever added and taken away again, so
//! what overlaps leaves nothing behind.

use rackloom_protocol::wire::layout::{LINK, OPERATIONS};

use crate::loss::LossByKind;
use crate::pick::Pick;
use crate::words::words;

words! {
    /// Where in a frame a bit is flipped.
    pub enum FramePart {
        /// Anywhere, the Ethernet header included.
        #[default]
        Any = "any",
        /// Between the Ethernet header and the operations: what the checks of each hop and of both ends are about.
        Header = "header",
        /// In the operations and their data; frames without them are spared.
        Payload = "payload",
    }
}

impl FramePart {
    /// The bytes of a frame of this length that it means.
    #[must_use]
    pub(crate) fn bytes(self, frame_bytes: usize) -> std::ops::Range<usize> {
        match self {
            Self::Any => 0..frame_bytes,
            Self::Header => LINK.min(frame_bytes)..OPERATIONS.min(frame_bytes),
            Self::Payload => OPERATIONS.min(frame_bytes)..frame_bytes,
        }
    }
}

/// Faults that hold on one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Probability that a frame is lost, if the profile's own is not larger.
    pub loss: f64,
    /// The same for frames of single kinds.
    pub loss_by_kind: LossByKind,
    /// Frames that are picked by what they carry, and the probability that one of them is lost.
    pub picked: Option<(Pick, f64)>,
    /// Probability that a bit is flipped.
    pub corrupt: f64,
    /// Where in the frame that bit is.
    pub corrupt_part: FramePart,
    /// Probability that a frame arrives twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken.
    pub reorder: f64,
    /// Nothing comes through.
    pub is_cut: bool,
    /// The sending device has no carrier.
    pub is_unplugged: bool,
    /// Time on top of the link's own.
    pub delay_ns: u64,
    /// Share of the link's rate that is left, above 0.
    pub rate_share: f64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            loss: 0.0,
            loss_by_kind: LossByKind::default(),
            picked: None,
            corrupt: 0.0,
            corrupt_part: FramePart::Any,
            duplicate: 0.0,
            reorder: 0.0,
            is_cut: false,
            is_unplugged: false,
            delay_ns: 0,
            rate_share: 1.0,
        }
    }
}

impl Conditions {
    /// The worst of both.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self {
            loss: self.loss.max(other.loss),
            loss_by_kind: self.loss_by_kind.joined(&other.loss_by_kind),
            picked: worse(self.picked, other.picked),
            corrupt: self.corrupt.max(other.corrupt),
            corrupt_part: if other.corrupt > self.corrupt { other.corrupt_part } else { self.corrupt_part },
            duplicate: self.duplicate.max(other.duplicate),
            reorder: self.reorder.max(other.reorder),
            is_cut: self.is_cut || other.is_cut,
            is_unplugged: self.is_unplugged || other.is_unplugged,
            delay_ns: self.delay_ns.max(other.delay_ns),
            rate_share: self.rate_share.min(other.rate_share),
        }
    }

    /// The same in part: on its way there from nothing.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self {
            loss: self.loss * share,
            loss_by_kind: self.loss_by_kind.scaled(share),
            picked: self.picked.map(|(pick, loss)| (pick, loss * share)),
            corrupt: self.corrupt * share,
            duplicate: self.duplicate * share,
            reorder: self.reorder * share,
            delay_ns: (self.delay_ns as f64 * share) as u64,
            rate_share: 1.0 - (1.0 - self.rate_share) * share,
            ..*self
        }
    }

    /// A time that is spent on the wire at the full rate, at the rate that is left.
    #[must_use]
    pub fn stretched(&self, time: u64) -> u64 {
        if self.rate_share >= 1.0 { time } else { (time as f64 / self.rate_share).ceil() as u64 }
    }
}

/// Of two picks the one that loses more: a direction has one at a time.
fn worse(one: Option<(Pick, f64)>, other: Option<(Pick, f64)>) -> Option<(Pick, f64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.1 > one.1 { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::wire::FrameKind;

    use super::*;

    #[test]
    fn the_worst_of_each_holds() {
        let mut acks = LossByKind::default();
        acks.set(FrameKind::Ack, Some(0.5));
        let slow = Conditions { rate_share: 0.25, loss: 0.1, ..Conditions::default() };
        let cut = Conditions { is_cut: true, loss_by_kind: acks, loss: 0.2, ..Conditions::default() };
        let both = slow.joined(&cut);
        assert_eq!((both.loss, both.rate_share, both.is_cut), (0.2, 0.25, true));
        assert_eq!(both.loss_by_kind.of(FrameKind::Ack), Some(0.5));
        assert_eq!(both, cut.joined(&slow));
        assert_eq!(both.joined(&Conditions::default()), both);
    }

    #[test]
    fn parts_of_a_frame_lie_side_by_side_and_short_frames_have_no_payload() {
        assert_eq!(FramePart::Header.bytes(1500), 14..86);
        assert_eq!(FramePart::Payload.bytes(1500), 86..1500);
        assert_eq!(FramePart::Header.bytes(60), 14..60);
        assert!(FramePart::Payload.bytes(60).is_empty());
        assert_eq!(FramePart::Any.bytes(60), 0..60);
    }

    #[test]
    fn half_of_a_quarter_rate_is_five_eighths() {
        let slow = Conditions { rate_share: 0.25, delay_ns: 100, ..Conditions::default() };
        let half = slow.scaled(0.5);
        assert_eq!((half.rate_share, half.delay_ns), (0.625, 50));
        assert_eq!(slow.stretched(100), 400);
        assert_eq!(Conditions::default().stretched(100), 100);
    }
}
