//! Loss that depends on the frame: bursts, and loss of frames of one kind.
//!
//! Bursts follow Gilbert and Elliott. A link is good or bad, it may change state before each frame, and only a bad link
//! loses frames by this model. The mean length of a burst is `1 / leave` frames, and the link is bad for `enter / (enter + leave)`
//! of the frames. Loss by kind replaces `loss` for frames of that kind. It shows the cost of losing acknowledgements or
//! credits alone.

use rackloom_protocol::wire::FrameKind;

use crate::setting::section::{Field, Text, Visit, section, visit_below};
use crate::setting::table::{Key, Kind, REQUIRED, Table, key, table};

/// Kinds of frames, in the order of their numbers, with names and descriptions.
const KINDS: [(FrameKind, &str, &str); 11] = [
    (FrameKind::Data, "data", "Frames that carry operations."),
    (FrameKind::Ack, "ack", "Acknowledgements in frames of their own."),
    (FrameKind::Hello, "hello", "Hellos."),
    (FrameKind::Heartbeat, "heartbeat", "Heartbeats."),
    (FrameKind::Report, "report", "Reports of links that went down or came up."),
    (FrameKind::Credit, "credit", "Credits in frames of their own."),
    (FrameKind::LinkAck, "link_ack", "Link-level retry: acknowledgements in frames of their own."),
    (FrameKind::LinkNack, "link_nack", "Link-level retry: negative acknowledgements."),
    (FrameKind::LinkInit, "link_init", "Link-level retry: offers of sequence numbers."),
    (FrameKind::LinkInitEcho, "link_init_echo", "Link-level retry: accepted sequence numbers."),
    (FrameKind::Pause, "pause", "Pauses, and messages that end them."),
];

/// Names of the kinds, in the order of [`KINDS`].
pub(crate) const KIND_NAMES: &[&str] = &{
    let mut names = [""; KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        names[index] = KINDS[index].1;
        index += 1;
    }
    names
};

static LOSS_KEYS: [Key; KINDS.len()] = {
    let mut keys = [key("", Kind::Probability, "as `loss`", ""); KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        keys[index] = key(KINDS[index].1, Kind::Probability, "as `loss`", KINDS[index].2);
        index += 1;
    }
    keys
};

pub(crate) static LOSS_BY_KIND: Table = table("link.loss_by_kind", &LOSS_KEYS);

section! {
    /// Parameters of burst losses.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Burst: BURST = "link.burst" {
        /// Probability that a good link turns bad before a frame.
        enter: f64 {
            form = Kind::Probability;
            default = 0.0;
            shown = REQUIRED;
        }
        /// Probability that a bad link turns good before a frame.
        leave: f64 {
            form = Kind::Probability;
            default = 1.0;
            shown = REQUIRED;
        }
        /// Probability that a bad link loses a frame.
        loss: f64 {
            form = Kind::Probability;
            default = 1.0;
        }
    }
}

impl Field for Option<Burst> {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        match self {
            Some(burst) => visit_below(burst, key, visit),
            None => visit.value(key, &Text("none"), true),
        }
    }
}

impl Field for LossByKind {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        visit.open(key);
        for (index, key) in LOSS_KEYS.iter().enumerate() {
            self.at(index).visit(key, &None, visit);
        }
        visit.close();
    }
}

impl Burst {
    /// Returns the share of all frames that such a link loses in the long run.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let sides = self.enter + self.leave;
        if sides > 0.0 { self.enter / sides * self.loss } else { 0.0 }
    }
}

/// Probability of loss for frames of single kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossByKind {
    /// Zero if not stated.
    by_kind: [f64; KINDS.len()],
    /// One bit for each kind that is stated.
    stated: u16,
}

impl LossByKind {
    /// Returns the kinds of frames with their names in files.
    pub fn kinds() -> impl Iterator<Item = (FrameKind, &'static str)> {
        KINDS.into_iter().map(|(kind, name, _)| (kind, name))
    }

    /// Returns the probability for this kind, or `None` if it is not stated.
    #[must_use]
    pub fn of(&self, kind: FrameKind) -> Option<f64> {
        index(kind).and_then(|index| self.at(index))
    }

    fn at(&self, index: usize) -> Option<f64> {
        (self.stated & 1 << index != 0).then_some(self.by_kind[index])
    }

    /// Sets the probability for this kind. `None` makes it unstated.
    pub fn set(&mut self, kind: FrameKind, probability: Option<f64>) {
        if let Some(index) = index(kind) {
            self.by_kind[index] = probability.unwrap_or(0.0);
            let bit = 1 << index;
            self.stated = if probability.is_some() { self.stated | bit } else { self.stated & !bit };
        }
    }

    /// Returns the larger probability of both for each kind.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        // Unstated probabilities are zero, so the larger one is the stated one.
        let larger = |index: usize| self.by_kind[index].max(other.by_kind[index]);
        Self { by_kind: std::array::from_fn(larger), stated: self.stated | other.stated }
    }

    /// Returns all probabilities multiplied by `share`.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self { by_kind: self.by_kind.map(|probability| probability * share), stated: self.stated }
    }

    /// Returns true if frames of any kind can be lost.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.by_kind.iter().any(|probability| *probability > 0.0)
    }
}

fn index(kind: FrameKind) -> Option<usize> {
    KINDS.iter().position(|(one, ..)| *one == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_bad_for_its_share_of_frames() {
        let burst = Burst { enter: 0.01, leave: 0.09, loss: 0.5 };
        assert!((burst.mean_loss() - 0.05).abs() < 1e-12);
        assert_eq!(Burst { enter: 0.0, leave: 0.0, loss: 1.0 }.mean_loss(), 0.0);
    }

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        let mut loss = LossByKind::default();
        assert!(!loss.loses());
        loss.set(FrameKind::Ack, Some(0.25));
        assert_eq!((loss.of(FrameKind::Ack), loss.of(FrameKind::Data)), (Some(0.25), None));
        assert!(loss.loses());
    }
}
