//! Impairments of a link: loss, bit flips, duplication and reordering.
//!
//! A [`Judge`] belongs to one direction of one link and returns a [`Verdict`] for each frame in order. It is pure: the
//! simulator and the wrapper around a real wire use the same type and get the same verdicts. Its stream of random
//! numbers depends on the seed, the link's *name* and the direction only. So a new link, or a new rate of another link,
//! changes nothing here. Each kind of fault has its own numbers, so a larger `loss` does not change which frames are
//! corrupted.
//!
//! A judge only decides. It holds no frame, reads no clock, and models neither rate nor delay.

use rackloom_protocol::wire::FrameKind;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::faults::{Conditions, FramePart};
use crate::model::links::bit_errors::BitErrors;
use crate::model::links::link::LinkProfile;
use crate::model::links::loss::LossByKind;
use crate::model::links::pick::Pick;
use crate::model::random::{Chance, Stream, below};

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From `edge.a` to `edge.b`.
    Forward,
    /// From `edge.b` to `edge.a`.
    Backward,
}

/// Decision about one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The frame is lost. The other fields are unused.
    pub drop: bool,
    /// Number of the bit to flip: bit `n % 8` (0 is the least significant) of byte `n / 8`. Any bit of the frame can be
    /// hit, Ethernet header included, because a receiver must survive that too.
    pub corrupt_bit: Option<u32>,
    /// The frame is delivered twice. Both copies carry the flipped bit, if any.
    pub duplicate: bool,
    /// Number of later frames of the same direction that overtake this frame; 0 is none. If no later frame follows, release
    /// the frame after a bounded time: a held frame is late, never lost.
    pub reorder_by: u8,
}

/// Largest number of frames that may overtake one (ours).
pub const REORDER_FRAMES_MAX: u8 = 3;

/// Random numbers per frame, one for each decision.
const DRAWS_PER_FRAME: u64 = 8;

/// Indices of the random numbers of one frame.
#[derive(Clone, Copy)]
enum Draw {
    Loss = 0,
    Corrupt = 1,
    CorruptBit = 2,
    Duplicate = 3,
    Reorder = 4,
    ReorderBy = 5,
    BurstState = 6,
    BurstLoss = 7,
}

/// State of a link under burst losses: good or bad.
#[derive(Clone, Debug)]
struct Bursts {
    enter: Chance,
    leave: Chance,
    loss: Chance,
    is_bad: bool,
}

impl Bursts {
    /// Changes the state at random, then returns true if the frame is lost.
    const fn lose(&mut self, state_draw: u64, loss: u64) -> bool {
        let change = if self.is_bad { self.leave } else { self.enter };
        if change.hits(state_draw) {
            self.is_bad = !self.is_bad;
        }
        self.is_bad && self.loss.hits(loss)
    }
}

/// Faults in addition to those of the profile. The larger chance of each pair is effective.
#[derive(Clone, Debug)]
struct ScriptedFaults {
    loss: Chance,
    loss_by_kind: Vec<(FrameKind, Chance)>,
    picked: Option<(Pick, Chance)>,
    corrupt: Chance,
    corrupt_part: FramePart,
    duplicate: Chance,
    reorder: Chance,
    is_cut: bool,
}

impl ScriptedFaults {
    fn of(conditions: &Conditions) -> Self {
        Self {
            loss: Chance::new(conditions.loss),
            loss_by_kind: chances(&conditions.loss_by_kind),
            picked: conditions.picked.map(|(pick, loss)| (pick, Chance::new(loss))),
            corrupt: Chance::new(conditions.corrupt),
            corrupt_part: conditions.corrupt_part,
            duplicate: Chance::new(conditions.duplicate),
            reorder: Chance::new(conditions.reorder),
            is_cut: conditions.is_cut,
        }
    }

    /// Returns true if a frame of this kind is lost.
    fn loses(&self, kind: Option<FrameKind>, random: u64) -> bool {
        let by_kind = self.loss_by_kind.iter().find(|(one, _)| Some(*one) == kind);
        self.is_cut || self.loss.hits(random) || by_kind.is_some_and(|(_, loss)| loss.hits(random))
    }
}

fn chances(loss_by_kind: &LossByKind) -> Vec<(FrameKind, Chance)> {
    LossByKind::kinds().filter_map(|(kind, _)| Some((kind, Chance::new(loss_by_kind.of(kind)?)))).collect()
}

/// Impairments of one direction of one link.
#[derive(Clone, Debug)]
pub struct Judge {
    stream: Stream,
    loss: Chance,
    /// Loss of frames of single kinds.
    loss_by_kind: Vec<(FrameKind, Chance)>,
    burst: Option<Bursts>,
    bit_errors: Option<BitErrors>,
    corrupt: Chance,
    duplicate: Chance,
    reorder: Chance,
    /// Numbers of data frames to lose, ascending, counted from one.
    drop_frames: Vec<u64>,
    /// Faults of a script, in addition to the profile.
    scripted: ScriptedFaults,
    frames: u64,
    data_frames: u64,
}

impl Judge {
    /// Returns the judge of the link with this name. The profile's seed, if any, replaces the plan's.
    #[must_use]
    pub fn new(plan_seed: u64, link_name: &str, direction: Direction, profile: &LinkProfile) -> Self {
        let (side, drop_frames) = match direction {
            Direction::Forward => (b'>', &profile.drop_frames.forward),
            Direction::Backward => (b'<', &profile.drop_frames.backward),
        };
        let mut named = link_name.as_bytes().to_vec();
        named.push(side);
        let mut drop_frames = drop_frames.clone();
        drop_frames.sort_unstable();
        Self {
            stream: Stream::new(xxh3_64_with_seed(&named, profile.seed.unwrap_or(plan_seed))),
            loss: Chance::new(profile.loss),
            loss_by_kind: chances(&profile.loss_by_kind),
            burst: profile.burst.map(|burst| Bursts {
                enter: Chance::new(burst.enter),
                leave: Chance::new(burst.leave),
                loss: Chance::new(burst.loss),
                is_bad: false,
            }),
            bit_errors: (profile.bit_error_rate > 0.0).then(|| {
                let seed = profile.seed.unwrap_or(plan_seed);
                BitErrors::new(profile.bit_error_rate, Stream::new(xxh3_64_with_seed(&named, !seed)))
            }),
            corrupt: Chance::new(profile.corrupt),
            duplicate: Chance::new(profile.duplicate),
            reorder: Chance::new(profile.reorder),
            drop_frames,
            scripted: ScriptedFaults::of(&Conditions::default()),
            frames: 0,
            data_frames: 0,
        }
    }

    /// Sets conditions in addition to the profile. A larger rate affects more frames, and those affected before remain.
    pub fn set(&mut self, conditions: &Conditions) {
        self.scripted = ScriptedFaults::of(conditions);
    }

    /// Adds data frames to lose. Numbers count from one, which is the next data frame.
    pub fn drop_from_now(&mut self, numbers: &[u64]) {
        self.drop_frames.extend(numbers.iter().map(|number| self.data_frames.saturating_add(*number)));
        self.drop_frames.sort_unstable();
    }

    /// Returns the number of data frames so far.
    #[must_use]
    pub const fn data_frames(&self) -> u64 {
        self.data_frames
    }

    /// Decides about the next frame, given all its bytes.
    pub fn judge_frame(&mut self, frame: &[u8]) -> Verdict {
        let picked = self.scripted.picked.filter(|(pick, _)| pick.meets(frame)).map(|(_, loss)| loss);
        let loses = picked.is_some_and(|loss| loss.hits(self.draw(self.frames, Draw::Loss)));
        let verdict = self.judge(frame.len(), FrameKind::peek(frame));
        if loses { Verdict { drop: true, ..Verdict::default() } } else { verdict }
    }

    /// Decides about the next frame, given its length and kind. `drop_frames` counts data frames only. Rates apply to every
    /// frame whose kind has no rate of its own.
    pub fn judge(&mut self, frame_bytes: usize, kind: Option<FrameKind>) -> Verdict {
        let frame = self.frames;
        self.frames += 1;
        let is_data = kind == Some(FrameKind::Data);
        self.data_frames += u64::from(is_data);
        let listed = is_data && self.drop_frames.binary_search(&self.data_frames).is_ok();
        let by_kind = self.loss_by_kind.iter().find(|(one, _)| Some(*one) == kind);
        let loss = by_kind.map_or(self.loss, |(_, loss)| *loss);
        let (state_draw, in_burst) = (self.draw(frame, Draw::BurstState), self.draw(frame, Draw::BurstLoss));
        let burst = self.burst.as_mut().is_some_and(|burst| burst.lose(state_draw, in_burst));
        let draw = self.draw(frame, Draw::Loss);
        let is_wrong = self.bit_errors.is_some_and(|errors| errors.lose(frame, frame_bytes));
        if listed || burst || is_wrong || loss.hits(draw) || self.scripted.loses(kind, draw) {
            return Verdict { drop: true, ..Verdict::default() };
        }
        let either = |one: Chance, other: Chance, random| one.hits(random) || other.hits(random);
        let overtaken = either(self.reorder, self.scripted.reorder, self.draw(frame, Draw::Reorder));
        Verdict {
            drop: false,
            corrupt_bit: self.corrupt_bit(frame, frame_bytes),
            duplicate: either(self.duplicate, self.scripted.duplicate, self.draw(frame, Draw::Duplicate)),
            reorder_by: if overtaken {
                1 + below(self.draw(frame, Draw::ReorderBy), u64::from(REORDER_FRAMES_MAX)) as u8
            } else {
                0
            },
        }
    }

    /// Returns the bit of this frame to flip, or `None`. The profile flips any bit, a script bits of the part that it states.
    fn corrupt_bit(&self, frame: u64, frame_bytes: usize) -> Option<u32> {
        let random = self.draw(frame, Draw::Corrupt);
        let part = match (self.corrupt.hits(random), self.scripted.corrupt.hits(random)) {
            (true, _) => FramePart::Any,
            (false, true) => self.scripted.corrupt_part,
            (false, false) => return None,
        };
        let bytes = part.bytes(frame_bytes);
        let bits = (bytes.len() as u64).saturating_mul(8).min(u64::from(u32::MAX));
        let first = bytes.start as u32 * 8;
        (bits > 0).then(|| first + below(self.draw(frame, Draw::CorruptBit), bits) as u32)
    }

    fn draw(&self, frame: u64, draw: Draw) -> u64 {
        self.stream.at(frame.wrapping_mul(DRAWS_PER_FRAME).wrapping_add(draw as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::links::link::DropFrames;
    use crate::model::links::loss::Burst;

    const DATA: Option<FrameKind> = Some(FrameKind::Data);
    const OTHER: Option<FrameKind> = Some(FrameKind::Heartbeat);

    fn lossy(loss: f64) -> LinkProfile {
        LinkProfile { loss, corrupt: 0.1, duplicate: 0.1, reorder: 0.1, ..LinkProfile::default() }
    }

    fn verdicts(mut judge: Judge, count: usize) -> Vec<Verdict> {
        (0..count).map(|_| judge.judge(128, DATA)).collect()
    }

    fn forward(seed: u64, name: &str, profile: &LinkProfile) -> Vec<Verdict> {
        verdicts(Judge::new(seed, name, Direction::Forward, profile), 10_000)
    }

    #[test]
    fn a_clean_link_touches_nothing() {
        let clean = forward(1, "n0--n1", &LinkProfile::default());
        assert!(clean.iter().all(|verdict| *verdict == Verdict::default()));
    }

    #[test]
    fn equal_links_get_equal_verdicts_and_others_differ() {
        let profile = lossy(0.1);
        let first = forward(1, "n0--n1", &profile);
        assert_eq!(first, forward(1, "n0--n1", &profile));
        assert_ne!(first, forward(1, "n1--n2", &profile), "another link");
        assert_ne!(first, forward(2, "n0--n1", &profile), "another seed");
        assert_ne!(
            first,
            verdicts(Judge::new(1, "n0--n1", Direction::Backward, &profile), 10_000),
            "other direction"
        );
        let own = LinkProfile { seed: Some(2), ..profile };
        assert_eq!(
            forward(1, "n0--n1", &own),
            forward(9, "n0--n1", &own),
            "its own seed replaces the plan's"
        );
    }

    #[test]
    fn more_loss_keeps_the_frames_that_were_lost_and_moves_no_other_fault() {
        let (some, more) = (forward(1, "n0--n1", &lossy(0.05)), forward(1, "n0--n1", &lossy(0.2)));
        for (some, more) in some.iter().zip(&more) {
            assert!(more.drop || (!some.drop && some == more));
        }
    }

    #[test]
    fn rates_are_met_and_details_stay_in_range() {
        let seen = forward(3, "n0--n1", &lossy(0.0));
        let share = |hit: fn(&Verdict) -> bool| seen.iter().filter(|verdict| hit(verdict)).count();
        // Five standard deviations of a binomial: sqrt(10000 * 0.1 * 0.9) = 30.
        for count in [share(|v| v.corrupt_bit.is_some()), share(|v| v.duplicate), share(|v| v.reorder_by > 0)]
        {
            assert!(count.abs_diff(1_000) < 150, "{count}");
        }
        let bits: Vec<u32> = seen.iter().filter_map(|verdict| verdict.corrupt_bit).collect();
        assert!(bits.iter().all(|bit| *bit < 128 * 8));
        assert!(bits.iter().any(|bit| *bit < 14 * 8), "the Ethernet header is hit as well");
        assert_eq!(seen.iter().map(|verdict| verdict.reorder_by).max(), Some(REORDER_FRAMES_MAX));
    }

    #[test]
    fn listed_frames_are_dropped_once_and_control_frames_are_not_counted() {
        let drop_frames = DropFrames { forward: vec![3, 2], backward: vec![] };
        let profile = LinkProfile { drop_frames, ..LinkProfile::default() };
        let dropped = |direction| {
            let mut judge = Judge::new(1, "n0--n1", direction, &profile);
            let frames = [DATA, OTHER, DATA, None, DATA, DATA];
            frames.map(|kind| judge.judge(64, kind).drop)
        };
        assert_eq!(dropped(Direction::Forward), [false, false, true, false, true, false]);
        assert_eq!(dropped(Direction::Backward), [false; 6]);
    }

    #[test]
    fn conditions_apply_from_their_setting_and_leave_no_residue() {
        let profile = lossy(0.05);
        let (mut touched, mut alone) = (
            Judge::new(1, "n0--n1", Direction::Forward, &profile),
            Judge::new(1, "n0--n1", Direction::Forward, &profile),
        );
        let mut both = |count| -> Vec<(Verdict, Verdict)> {
            (0..count).map(|_| (touched.judge(64, DATA), alone.judge(64, DATA))).collect()
        };
        assert!(both(1_000).iter().all(|(one, other)| one == other));
        touched.set(&Conditions { is_cut: true, ..Conditions::default() });
        let mut both = |count| -> Vec<(Verdict, Verdict)> {
            (0..count).map(|_| (touched.judge(64, DATA), alone.judge(64, DATA))).collect()
        };
        assert!(both(1_000).iter().all(|(one, _)| one.drop));
        touched.set(&Conditions { loss: 0.2, ..Conditions::default() });
        let lost = (0..1_000).filter(|_| touched.judge(64, DATA).drop).count();
        let usual = (0..1_000).filter(|_| alone.judge(64, DATA).drop).count();
        assert!(lost > 150 && usual < 100, "{lost} against {usual}");
        touched.set(&Conditions::default());
        assert!((0..1_000).all(|_| touched.judge(64, DATA) == alone.judge(64, DATA)));
    }

    #[test]
    fn frames_to_lose_are_counted_from_now() {
        let mut judge = Judge::new(1, "n0--n1", Direction::Forward, &LinkProfile::default());
        (0..5).for_each(|_| assert!(!judge.judge(64, DATA).drop));
        judge.drop_from_now(&[2, 3]);
        let dropped = [DATA, OTHER, DATA, DATA, DATA].map(|kind| judge.judge(64, kind).drop);
        assert_eq!(dropped, [false, false, true, true, false]);
        assert_eq!(judge.data_frames(), 9);
    }

    #[test]
    fn an_empty_frame_has_no_bit_to_flip() {
        let profile = LinkProfile { corrupt: 1.0, ..LinkProfile::default() };
        let mut judge = Judge::new(1, "n0--n1", Direction::Forward, &profile);
        assert_eq!(judge.judge(0, DATA).corrupt_bit, None);
        assert!(judge.judge(1, DATA).corrupt_bit.is_some_and(|bit| bit < 8));
    }

    #[test]
    fn a_script_may_select_the_part_of_a_frame_in_which_bits_are_flipped() {
        let bits_of = |corrupt_part, frame_bytes| {
            let mut judge = Judge::new(1, "n0--n1", Direction::Forward, &LinkProfile::default());
            judge.set(&Conditions { corrupt: 1.0, corrupt_part, ..Conditions::default() });
            (0..2_000).filter_map(|_| judge.judge(frame_bytes, DATA).corrupt_bit).collect::<Vec<_>>()
        };
        let header = bits_of(FramePart::Header, 200);
        assert_eq!((header.iter().min(), header.iter().max()), (Some(&(14 * 8)), Some(&(86 * 8 - 1))));
        let payload = bits_of(FramePart::Payload, 200);
        assert_eq!((payload.iter().min(), payload.iter().max()), (Some(&(86 * 8)), Some(&(200 * 8 - 1))));
        assert!(bits_of(FramePart::Payload, 62).is_empty(), "a heartbeat has none");
        assert_eq!(bits_of(FramePart::Any, 200).len(), 2_000);
    }

    #[test]
    fn bursts_have_the_configured_length_and_frequency() {
        let burst = Burst { enter: 0.01, leave: 0.1, loss: 1.0 };
        let profile = LinkProfile { burst: Some(burst), ..LinkProfile::default() };
        let lost: Vec<bool> = forward(5, "n0--n1", &profile).iter().map(|verdict| verdict.drop).collect();
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let begun = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // About 90 bursts of 10 frames: a deviation of a tenth of the one, of a seventh of the other, three times.
        assert!((count / begun - 10.0).abs() < 3.5, "{} frames in a burst", count / begun);
        assert!((count - 10_000.0 * burst.mean_loss()).abs() < 400.0, "{count} lost");
        let single = forward(5, "n0--n1", &LinkProfile { loss: burst.mean_loss(), ..LinkProfile::default() });
        let alone = single.windows(2).filter(|pair| !pair[0].drop && pair[1].drop).count() as f64;
        assert!(alone > 5.0 * begun, "{alone} independent losses, {begun} bursts");
    }

    #[test]
    fn a_kind_has_its_own_loss_and_takes_nothing_from_the_others() {
        let mut profile = LinkProfile { loss: 0.1, ..LinkProfile::default() };
        let dropped = |profile: &LinkProfile, kind| {
            let mut judge = Judge::new(1, "n0--n1", Direction::Forward, profile);
            (0..10_000).filter(|_| judge.judge(64, kind).drop).count()
        };
        let before = dropped(&profile, DATA);
        profile.loss_by_kind.set(FrameKind::Heartbeat, Some(1.0));
        profile.loss_by_kind.set(FrameKind::Ack, Some(0.0));
        assert_eq!(dropped(&profile, DATA), before);
        assert_eq!((dropped(&profile, OTHER), dropped(&profile, Some(FrameKind::Ack))), (10_000, 0));
    }
}
