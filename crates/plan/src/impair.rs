//! What a link does to a frame: lose it, flip a bit, send it twice, let others overtake it.
//!
//! A [`Judge`] sits on one direction of one link and gives a [`Verdict`] for each frame in turn. It is pure: the
//! simulator and the wrapper around any real wire ask the same judge and hear the same verdicts. Its stream of random
//! numbers depends on the seed, the link's *name* and the direction only, so adding a link, or a rate to another link,
//! moves nothing here; and each kind of fault draws from a place of its own, so raising `loss` does not move which
//! frames are corrupted.
//!
//! A judge only says what shall happen. It holds no frame, knows no time, and models neither rate nor delay.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::plan::LinkProfile;
use crate::random::{Chance, Stream, below};

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From `edge.a` to `edge.b`.
    Forward,
    /// From `edge.b` to `edge.a`.
    Backward,
}

/// What shall happen to one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The frame is lost; nothing else happens to it.
    pub drop: bool,
    /// Flip this bit: bit `n % 8` (0 is the least significant) of byte `n / 8`. Any bit of the frame can be hit, its
    /// Ethernet header included: a receiver must survive that too.
    pub corrupt_bit: Option<u32>,
    /// Deliver the frame twice; both copies carry the flipped bit, if any.
    pub duplicate: bool,
    /// Hold the frame back until this many later frames of the same direction have overtaken it; 0 is none. If no
    /// later frame comes, let it go after a bounded time: a held frame is late, never lost.
    pub reorder_by: u8,
}

/// Most frames that may overtake one (ours).
pub const REORDER_FRAMES_MAX: u8 = 3;

/// Random numbers per frame: one place for each question that can be asked about it.
const DRAWS_PER_FRAME: u64 = 8;

/// The places within one frame's numbers.
#[derive(Clone, Copy)]
enum Draw {
    Loss = 0,
    Corrupt = 1,
    CorruptBit = 2,
    Duplicate = 3,
    Reorder = 4,
    ReorderBy = 5,
}

/// The judge of one direction of one link.
#[derive(Clone, Debug)]
pub struct Judge {
    stream: Stream,
    loss: Chance,
    corrupt: Chance,
    duplicate: Chance,
    reorder: Chance,
    /// Data frames to lose, ascending, from one.
    drop_frames: Vec<u64>,
    frames: u64,
    data_frames: u64,
}

impl Judge {
    /// The judge of the link with this name. The profile's own seed, if it has one, takes the place of the plan's.
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
            corrupt: Chance::new(profile.corrupt),
            duplicate: Chance::new(profile.duplicate),
            reorder: Chance::new(profile.reorder),
            drop_frames,
            frames: 0,
            data_frames: 0,
        }
    }

    /// What shall happen to the next frame. `is_data`: the frame carries operations (`drop_frames` counts only those;
    /// rates apply to every frame).
    pub fn judge(&mut self, frame_bytes: usize, is_data: bool) -> Verdict {
        let frame = self.frames;
        self.frames += 1;
        self.data_frames += u64::from(is_data);
        let listed = is_data && self.drop_frames.binary_search(&self.data_frames).is_ok();
        if listed || self.loss.hits(self.draw(frame, Draw::Loss)) {
            return Verdict { drop: true, ..Verdict::default() };
        }
        let bits = u64::try_from(frame_bytes).unwrap_or(u64::MAX).saturating_mul(8).min(u64::from(u32::MAX));
        let corrupt = bits > 0 && self.corrupt.hits(self.draw(frame, Draw::Corrupt));
        let overtaken = self.reorder.hits(self.draw(frame, Draw::Reorder));
        Verdict {
            drop: false,
            corrupt_bit: corrupt.then(|| below(self.draw(frame, Draw::CorruptBit), bits) as u32),
            duplicate: self.duplicate.hits(self.draw(frame, Draw::Duplicate)),
            reorder_by: if overtaken {
                1 + below(self.draw(frame, Draw::ReorderBy), u64::from(REORDER_FRAMES_MAX)) as u8
            } else {
                0
            },
        }
    }

    fn draw(&self, frame: u64, draw: Draw) -> u64 {
        self.stream.at(frame.wrapping_mul(DRAWS_PER_FRAME).wrapping_add(draw as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DropFrames;

    fn lossy(loss: f64) -> LinkProfile {
        LinkProfile { loss, corrupt: 0.1, duplicate: 0.1, reorder: 0.1, ..LinkProfile::default() }
    }

    fn verdicts(mut judge: Judge, count: usize) -> Vec<Verdict> {
        (0..count).map(|_| judge.judge(128, true)).collect()
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
    fn the_same_link_is_judged_alike_and_others_differ() {
        let profile = lossy(0.1);
        let first = forward(1, "n0--n1", &profile);
        assert_eq!(first, forward(1, "n0--n1", &profile));
        assert_ne!(first, forward(1, "n1--n2", &profile), "another link");
        assert_ne!(first, forward(2, "n0--n1", &profile), "another seed");
        assert_ne!(
            first,
            verdicts(Judge::new(1, "n0--n1", Direction::Backward, &profile), 10_000),
            "other way"
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
            let frames = [true, false, true, false, true, true];
            frames.map(|is_data| judge.judge(64, is_data).drop)
        };
        assert_eq!(dropped(Direction::Forward), [false, false, true, false, true, false]);
        assert_eq!(dropped(Direction::Backward), [false; 6]);
    }

    #[test]
    fn an_empty_frame_has_no_bit_to_flip() {
        let profile = LinkProfile { corrupt: 1.0, ..LinkProfile::default() };
        let mut judge = Judge::new(1, "n0--n1", Direction::Forward, &profile);
        assert_eq!(judge.judge(0, true).corrupt_bit, None);
        assert!(judge.judge(1, true).corrupt_bit.is_some_and(|bit| bit < 8));
    }
}
