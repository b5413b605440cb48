//! Faults of one direction of a link, in addition to its profile.
//!
//! Conditions of several faults are joined by taking the worst of each value. Values are never added and subtracted again, so
//! overlapping faults leave no residue.

use super::exchange::{Pass, Stated};
use super::frame_part::FramePart;
use super::kind::FaultKind;
use crate::model::links::loss::LossByKind;
use crate::model::links::pick::Pick;
use crate::schema::EventKeys;

/// Active faults of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Probability that a frame is lost. Effective if it is larger than the profile's.
    pub loss: f64,
    /// Probability of loss for frames of single kinds.
    pub loss_by_kind: LossByKind,
    /// Selection of frames by their operations, and the probability that a selected frame is lost.
    pub picked: Option<(Pick, f64)>,
    /// Probability that a bit is flipped.
    pub corrupt: f64,
    /// Part of the frame in which the bit is flipped.
    pub corrupt_part: FramePart,
    /// Probability that a frame arrives twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken.
    pub reorder: f64,
    /// True if all frames are lost.
    pub is_cut: bool,
    /// True if the sending device has no carrier.
    pub is_unplugged: bool,
    /// Delay in addition to the link's own, in nanoseconds.
    pub delay_ns: u64,
    /// Remaining share of the link's rate, above 0 and at most 1.
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
    /// Returns the worst of both for each value.
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

    /// Returns the conditions at a share of their full strength, 0 to 1.
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

    /// Returns the time on the wire at the remaining rate, given the time at the full rate.
    #[must_use]
    pub fn stretched(&self, time: u64) -> u64 {
        if self.rate_share >= 1.0 { time } else { (time as f64 / self.rate_share).ceil() as u64 }
    }
}

impl Stated for Conditions {
    fn exchange(&mut self, keys: &mut EventKeys, pass: Pass) {
        match keys.what {
            FaultKind::Loss => self.exchange_loss(keys, pass),
            FaultKind::Corrupt => {
                pass.value(&mut keys.rate, &mut self.corrupt);
                pass.with_default(&mut keys.part, &mut self.corrupt_part);
            }
            FaultKind::Duplicate => pass.value(&mut keys.rate, &mut self.duplicate),
            FaultKind::Reorder => pass.value(&mut keys.rate, &mut self.reorder),
            FaultKind::Down | FaultKind::Partition => pass.state(&mut self.is_cut),
            FaultKind::Unplug => {
                pass.state(&mut self.is_cut);
                pass.state(&mut self.is_unplugged);
            }
            FaultKind::Delay => pass.value(&mut keys.by_ns, &mut self.delay_ns),
            FaultKind::Slow => pass.value(&mut keys.share, &mut self.rate_share),
            // The other kinds change no conditions of links.
            _ => {}
        }
    }
}

impl Conditions {
    /// Passes the rate of a loss and the selection of frames to which it applies.
    fn exchange_loss(&mut self, keys: &mut EventKeys, pass: Pass) {
        if pass == Pass::FromKeys {
            let rate = keys.rate.unwrap_or(0.0);
            let pick = Pick::named(&keys.operations, &keys.sequence);
            if pick.is_any() {
                self.picked = Some((pick, rate));
            } else if keys.kinds.is_empty() {
                self.loss = rate;
            } else {
                let kinds = LossByKind::kinds().filter(|(_, name)| keys.kinds.contains(name));
                kinds.for_each(|(kind, _)| self.loss_by_kind.set(kind, Some(rate)));
            }
        } else if let Some((pick, rate)) = self.picked {
            keys.rate = Some(rate);
            keys.operations = pick.operations().collect();
            keys.sequence = pick.sequence().map_or_else(Vec::new, |(first, last)| vec![first, last]);
        } else {
            let lost =
                LossByKind::kinds().filter_map(|(kind, name)| Some((name, self.loss_by_kind.of(kind)?)));
            let lost: Vec<_> = lost.collect();
            keys.rate = Some(lost.first().map_or(self.loss, |(_, rate)| *rate));
            keys.kinds = lost.iter().map(|(name, _)| *name).collect();
        }
    }
}

/// Returns the selection that loses more. A direction has at most one.
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
    fn joined_conditions_are_the_worst_of_each() {
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
    fn half_of_a_quarter_rate_is_five_eighths() {
        let slow = Conditions { rate_share: 0.25, delay_ns: 100, ..Conditions::default() };
        let half = slow.scaled(0.5);
        assert_eq!((half.rate_share, half.delay_ns), (0.625, 50));
        assert_eq!(slow.stretched(100), 400);
        assert_eq!(Conditions::default().stretched(100), 100);
    }
}
