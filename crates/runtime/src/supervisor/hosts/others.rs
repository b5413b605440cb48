//! State of the other hosts at one host, as a pure state machine: no socket, no clock.
//!
//! Members detect deaths by themselves. This file concerns only the beginning and the end of the rack: hosts that never sent a message, hosts with
//! another rack file, pairs between which the longest frames are lost, and the time at which all have finished and members may end. A
//! silent host is not waited for. Time is counted in ticks of the supervisor.

use super::message::{Difference, HostMessage, HostState, Proof, Stage};

/// Time for which another configuration of this rack's name is accepted: it may be an earlier rack that ends.
const OTHER_RACK_PATIENCE_NS: u64 = 2_000_000_000;
/// Number of short messages without a long one after which long frames of a host count as lost. Every second message is long, so that many are
/// not lost by chance.
const SHORT_WORDS_MAX: u32 = 4;

/// State of all hosts.
#[derive(Debug)]
pub(super) struct Others {
    mine: usize,
    news: Vec<HostState>,
    /// Time since the last change of each host's state.
    silent_ns: Vec<u64>,
    /// Time since all others were known to have finished.
    all_finished_ns: u64,
    /// Time since this host has finished while others are silent.
    unheard_ns: u64,
    /// Latest host with another configuration, the difference, and the time for which it lasts.
    contradiction: Option<(usize, Difference, u64)>,
    /// Lengths of received messages, by host.
    heard: Vec<Heard>,
    /// Freshness checks, with a key.
    fresh: Option<Fresh>,
    /// Length of the rack's longest frame.
    frame_bytes_max: usize,
    /// Time of silence after which a host is lost.
    silence_max_ns: u64,
    /// Longest wait until all hosts have received that all have finished.
    departure_ns: u64,
}

/// Freshness of one host's messages, where these carry tags.
#[derive(Debug)]
struct Fresh {
    /// Largest incarnation that is not confirmed.
    candidates: Vec<u64>,
    /// Incarnation and number of the last accepted message.
    taken: Vec<(u64, u32)>,
    /// Number of refused messages.
    refused: u64,
}

/// Messages of a host that have arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    words: u32,
    any_long: bool,
}

impl Others {
    pub(super) fn new(
        mine: usize,
        hosts: usize,
        incarnation: u64,
        detection_ns: u64,
        frame_bytes_max: usize,
    ) -> Self {
        let mut news = vec![HostState::default(); hosts];
        news[mine].incarnation = incarnation;
        Self {
            mine,
            news,
            silent_ns: vec![0; hosts],
            all_finished_ns: 0,
            unheard_ns: 0,
            contradiction: None,
            heard: vec![Heard::default(); hosts],
            fresh: None,
            frame_bytes_max,
            // Members detect deaths on their links; a supervisor may be stopped for a moment without harm.
            silence_max_ns: 4 * detection_ns,
            // Less than what members take to notice that a host is gone.
            departure_ns: detection_ns / 2,
        }
    }

    /// Take only messages that show that they are of this run: their tags say who sent them, and not when.
    pub(super) fn sealed(mut self) -> Self {
        let hosts = self.news.len();
        self.fresh = Some(Fresh { candidates: vec![0; hosts], taken: vec![(0, 0); hosts], refused: 0 });
        self
    }

    /// Lives that are heard of and not confirmed, by host; none without a key.
    pub(super) fn candidates(&self) -> &[u64] {
        self.fresh.as_ref().map_or(&[], |fresh| &fresh.candidates)
    }

    /// Messages that were refused: no valid tag, or not new.
    pub(super) fn refused(&self) -> u64 {
        self.fresh.as_ref().map_or(0, |fresh| fresh.refused)
    }

    /// Whether a message is of this run and new. One of a speaker that has not heard our own life yet gives a candidate.
    // W-95
    fn is_fresh(&mut self, speaker: usize, proof: &Proof) -> bool {
        let Some(fresh) = &mut self.fresh else { return true };
        let mine = self.news[self.mine].incarnation;
        let (Some(candidate), Some(taken)) =
            (fresh.candidates.get_mut(speaker), fresh.taken.get_mut(speaker))
        else {
            return false;
        };
        *candidate = (*candidate).max(proof.own.incarnation);
        if proof.incarnations.get(self.mine) != Some(&mine) {
            return false;
        }
        let number = (proof.own.incarnation, proof.own.words);
        if number <= *taken {
            fresh.refused += 1;
            return false;
        }
        *taken = number;
        true
    }

    /// Returns the next message, and the minimum length of its frame.
    pub(super) fn speak(&mut self) -> (&[HostState], usize) {
        let words = &mut self.news[self.mine].words;
        *words = words.wrapping_add(1);
        // W-62: the first one is a long one.
        let frame_bytes = if *words % 2 == 1 { self.frame_bytes_max } else { 0 };
        (&self.news, frame_bytes)
    }

    /// Handles a received message.
    pub(super) fn hear(&mut self, word: HostMessage) {
        match word {
            HostMessage::Ours { speaker, news, proof, frame_bytes } => {
                if !self.is_fresh(speaker, &proof) {
                    return;
                }
                let heard = &mut self.heard[speaker];
                heard.any_long |= frame_bytes >= self.frame_bytes_max;
                heard.words = heard.words.saturating_add(1);
                for (host, new) in news.into_iter().enumerate().filter(|(host, _)| *host != self.mine) {
                    if new > self.news[host] {
                        (self.news[host], self.silent_ns[host]) = (new, 0);
                    }
                }
            }
            HostMessage::Other(speaker, difference, proof) => {
                if !self.is_fresh(speaker, &proof) {
                    return;
                }
                let since_ns = self.contradiction.map_or(0, |(.., since_ns)| since_ns);
                self.contradiction = Some((speaker, difference, since_ns));
            }
            HostMessage::Refused => self.fresh.iter_mut().for_each(|fresh| fresh.refused += 1),
            HostMessage::Foreign => {}
        }
    }

    /// Handles the passage of time, with the stage of this host.
    pub(super) fn pass(&mut self, time_ns: u64, stage: Stage) {
        for (host, silent_ns) in self.silent_ns.iter_mut().enumerate().filter(|(host, _)| *host != self.mine)
        {
            *silent_ns += if self.news[host].incarnation == 0 { 0 } else { time_ns };
        }
        if let Some((.., since_ns)) = &mut self.contradiction {
            *since_ns += time_ns;
        }
        let is_alone = stage == Stage::Finished && self.unheard().next().is_some();
        self.unheard_ns = if is_alone { self.unheard_ns + time_ns } else { 0 };
        let everybody = stage >= Stage::Finished && self.all(Stage::Finished);
        self.all_finished_ns = if everybody { self.all_finished_ns + time_ns } else { 0 };
        let stage = if stage == Stage::Finished && everybody { Stage::AllFinished } else { stage };
        let mine = &mut self.news[self.mine].stage;
        *mine = (*mine).max(stage);
    }

    /// Returns whether other hosts need the members here.
    pub(super) fn is_held(&self) -> bool {
        !self.all(Stage::Finished)
            || !self.all(Stage::AllFinished) && self.all_finished_ns < self.departure_ns
    }

    /// Returns the hosts without a message so far.
    pub(super) fn unheard(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| self.news[*host].incarnation == 0)
    }

    /// Returns the time for which all members here have waited for a silent host.
    pub(super) fn alone_ns(&self) -> u64 {
        self.unheard_ns
    }

    /// Returns the hosts that fell silent before they had finished.
    pub(super) fn lost(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| self.is_lost(*host))
    }

    /// Returns the hosts that have ended without waiting for the others.
    pub(super) fn gone(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| self.news[*host].stage == Stage::Gone)
    }

    /// Returns the host of another rack of this name, and the difference, if it has lasted too long.
    pub(super) fn contradiction(&self) -> Option<(usize, Difference)> {
        let is_whole = self.unheard().next().is_none();
        let (speaker, difference, since_ns) = self.contradiction?;
        (!is_whole && since_ns >= OTHER_RACK_PATIENCE_NS).then_some((speaker, difference))
    }

    /// Returns the length of the longest frame of the rack.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Returns a host of which short frames arrive and the longest ones do not.
    pub(super) fn narrow(&self) -> Option<usize> {
        self.heard.iter().position(|heard| !heard.any_long && heard.words >= SHORT_WORDS_MAX)
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.news.len()).filter(|host| *host != self.mine)
    }

    fn is_lost(&self, host: usize) -> bool {
        self.silent_ns[host] >= self.silence_max_ns && self.news[host].stage < Stage::AllFinished
    }

    /// Returns whether all other hosts that are not lost have this stage.
    fn all(&self, stage: Stage) -> bool {
        self.others().all(|host| self.news[host].stage >= stage || self.is_lost(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 50_000_000;
    const DETECTION_NS: u64 = 500_000_000;
    const LONGEST: usize = 4240;

    fn hosts<const N: usize>() -> [Others; N] {
        std::array::from_fn(|mine| Others::new(mine, N, 100 + mine as u64, DETECTION_NS, LONGEST))
    }

    /// Sends a message from `from` to `to`.
    fn tell(all: &mut [Others], from: usize, to: usize) {
        let (news, frame_bytes) = all[from].speak();
        let word = word(from, news, frame_bytes);
        all[to].hear(word);
    }

    fn word(speaker: usize, news: &[HostState], frame_bytes: usize) -> HostMessage {
        let proof =
            Proof { own: news[speaker], incarnations: news.iter().map(|news| news.incarnation).collect() };
        HostMessage::Ours { speaker, news: news.to_vec(), proof, frame_bytes: frame_bytes.max(60) }
    }

    #[test]
    fn nobody_goes_before_everybody_has_finished_and_knows_it() {
        let mut pair = hosts::<2>();
        pair[0].pass(TICK_NS, Stage::Finished);
        tell(&mut pair, 0, 1);
        assert!(pair[0].is_held(), "nothing heard of the other");
        pair[1].pass(TICK_NS, Stage::Working);
        tell(&mut pair, 1, 0);
        assert!(pair[0].is_held(), "the other works");
        pair[1].pass(TICK_NS, Stage::Finished);
        assert!(pair[1].is_held(), "the first one does not know");
        tell(&mut pair, 1, 0);
        pair[0].pass(TICK_NS, Stage::Finished);
        assert!(!pair[0].is_held(), "both know");
        tell(&mut pair, 0, 1);
        assert!(!pair[1].is_held());
    }

    #[test]
    fn a_lost_departure_delays_a_host_within_a_limit() {
        let mut pair = hosts::<2>();
        pair[0].pass(TICK_NS, Stage::Finished);
        tell(&mut pair, 0, 1);
        let ticks = (0..).take_while(|_| {
            pair[1].pass(TICK_NS, Stage::Finished);
            pair[1].is_held()
        });
        assert!((1..DETECTION_NS / TICK_NS).contains(&(ticks.count() as u64)));
    }

    #[test]
    fn news_reach_hosts_without_a_link_to_their_origin() {
        let mut row = hosts::<3>();
        row.iter_mut().for_each(|host| host.pass(TICK_NS, Stage::Finished));
        for _ in 0..3 {
            for (from, to) in [(0, 1), (1, 2), (2, 1), (1, 0)] {
                tell(&mut row, from, to);
                row.iter_mut().for_each(|host| host.pass(0, Stage::Finished));
            }
        }
        assert!(row.iter().all(|host| !host.is_held()));
    }

    #[test]
    fn a_host_that_falls_silent_is_lost_and_one_that_never_spoke_is_waited_for() {
        let mut pair = hosts::<2>();
        for _ in 0..1000 {
            pair[0].pass(TICK_NS, Stage::Finished);
        }
        assert!(pair[0].is_held() && pair[0].lost().next().is_none());
        assert_eq!(pair[0].alone_ns(), 1000 * TICK_NS);
        assert_eq!(pair[0].unheard().collect::<Vec<_>>(), [1]);
        tell(&mut pair, 1, 0);
        assert!(pair[0].unheard().next().is_none());
        pair[0].pass(0, Stage::Finished);
        assert_eq!(pair[0].alone_ns(), 0);
        for _ in 0..4 * DETECTION_NS / TICK_NS {
            assert!(pair[0].is_held());
            pair[0].pass(TICK_NS, Stage::Finished);
        }
        assert_eq!(pair[0].lost().collect::<Vec<_>>(), [1]);
        assert!(!pair[0].is_held());
    }

    #[test]
    fn an_old_word_of_a_host_counts_for_nothing() {
        let mut pair = hosts::<2>();
        let old = pair[1].speak().0.to_vec();
        pair[1].pass(TICK_NS, Stage::Finished);
        tell(&mut pair, 1, 0);
        pair[0].hear(word(1, &old, 0));
        pair[0].pass(TICK_NS, Stage::Finished);
        assert!(pair[0].all(Stage::Finished));
        let earlier_life =
            vec![HostState::default(), HostState { incarnation: 3, words: u32::MAX, stage: Stage::Gone }];
        pair[0].hear(word(1, &earlier_life, 0));
        assert!(pair[0].gone().next().is_none());
    }

    #[test]
    fn another_rack_is_told_only_if_the_right_one_does_not_come() {
        for difference in [Difference::Epoch(0xabcd), Difference::Version(9)] {
            let mut pair = hosts::<2>();
            pair[0].hear(HostMessage::Other(1, difference, Proof::default()));
            assert_eq!(pair[0].contradiction(), None, "it may be an earlier run that ends");
            pair[0].pass(OTHER_RACK_PATIENCE_NS, Stage::Working);
            assert_eq!(pair[0].contradiction(), Some((1, difference)));
            tell(&mut pair, 1, 0);
            assert_eq!(pair[0].contradiction(), None);
        }
    }

    // W-62
    #[test]
    fn a_way_that_loses_every_long_word_is_narrow_and_one_that_loses_most_is_not() {
        let hear = |every: u32| {
            let mut pair = hosts::<2>();
            let (mut long, mut ever) = (0, None);
            for _ in 0..100 * SHORT_WORDS_MAX {
                let (news, frame_bytes) = pair[1].speak();
                let word = word(1, news, frame_bytes);
                long += u32::from(frame_bytes == LONGEST);
                if frame_bytes < LONGEST || every > 0 && long % every == 0 {
                    pair[0].hear(word);
                }
                ever = ever.or(pair[0].narrow());
            }
            ever
        };
        assert_eq!(hear(0), Some(1));
        assert_eq!([1, 3, SHORT_WORDS_MAX / 2].map(hear), [None; 3]);
    }

    #[test]
    fn a_handful_of_words_says_nothing_about_the_way() {
        let mut pair = hosts::<2>();
        let news = pair[1].speak().0.to_vec();
        for _ in 1..SHORT_WORDS_MAX {
            pair[0].hear(word(1, &news, 0));
        }
        assert_eq!(pair[0].narrow(), None);
    }

    /// Sends a message from `from` to `to`, and returns it.
    fn say_sealed(all: &mut [Others], from: usize, to: usize) -> HostMessage {
        let candidates = all[from].candidates().to_vec();
        let (news, frame_bytes) = all[from].speak();
        let incarnations =
            news.iter().zip(candidates).map(|(news, candidate)| news.incarnation.max(candidate)).collect();
        let HostMessage::Ours { speaker, news, proof, frame_bytes } = word(from, news, frame_bytes) else {
            unreachable!()
        };
        let proof = Proof { incarnations, ..proof };
        let said = || HostMessage::Ours { speaker, news: news.clone(), proof: proof.clone(), frame_bytes };
        all[to].hear(said());
        said()
    }

    // W-95
    #[test]
    fn with_a_key_a_message_of_an_earlier_run_or_one_that_is_repeated_changes_nothing() {
        let sealed = |incarnations: [u64; 2]| -> [Others; 2] {
            [0, 1].map(|mine| Others::new(mine, 2, incarnations[mine], DETECTION_NS, LONGEST).sealed())
        };
        let mut earlier = sealed([50, 51]);
        let old: Vec<_> = (0..6)
            .flat_map(|_| {
                earlier[1].pass(TICK_NS, Stage::Gone);
                [say_sealed(&mut earlier, 1, 0), say_sealed(&mut earlier, 0, 1)]
            })
            .filter(|word| matches!(word, HostMessage::Ours { speaker: 1, .. }))
            .collect();
        let is_old_gone = earlier[0].gone().next().is_some();
        assert!(is_old_gone, "they counted in their own run");

        let mut pair = sealed([100, 101]);
        let replay = |pair: &mut [Others; 2], words: Vec<HostMessage>| {
            for word in words {
                pair[0].hear(word);
            }
        };
        let again = |words: &[HostMessage]| -> Vec<HostMessage> {
            let copy = |word: &HostMessage| match word {
                HostMessage::Ours { speaker, news, proof, frame_bytes } => HostMessage::Ours {
                    speaker: *speaker,
                    news: news.clone(),
                    proof: proof.clone(),
                    frame_bytes: (*frame_bytes).min(60),
                },
                _ => HostMessage::Foreign,
            };
            words.iter().map(copy).collect()
        };
        replay(&mut pair, again(&old));
        assert_eq!(pair[0].unheard().collect::<Vec<_>>(), [1], "an earlier run is not this one");
        assert!(pair[0].gone().next().is_none() && pair[0].narrow().is_none());

        let mut said = Vec::new();
        for _ in 0..3 {
            said.push(say_sealed(&mut pair, 1, 0));
            say_sealed(&mut pair, 0, 1);
        }
        assert!(pair.iter().all(|host| host.unheard().next().is_none()), "both have heard each other");
        let known = pair[0].news.clone();
        let refused = pair[0].refused();
        replay(&mut pair, again(&old));
        replay(&mut pair, again(&said));
        assert_eq!(pair[0].news, known);
        assert!(pair[0].narrow().is_none(), "repeated short messages are no narrow way");
        assert!(pair[0].refused() > refused);
        // Repeating the last message does not keep a silent host alive.
        for _ in 0..4 * DETECTION_NS / TICK_NS {
            pair[0].pass(TICK_NS, Stage::Working);
            replay(&mut pair, again(&said));
        }
        assert_eq!(pair[0].lost().collect::<Vec<_>>(), [1]);
    }

    // W-95
    #[test]
    fn with_a_key_another_configuration_is_believed_of_this_run_alone() {
        let mut host = Others::new(0, 2, 100, DETECTION_NS, LONGEST).sealed();
        let own = HostState { incarnation: 70, words: 3, stage: Stage::Working };
        let other =
            |echo| HostMessage::Other(1, Difference::Epoch(9), Proof { own, incarnations: vec![echo, 70] });
        host.hear(other(50));
        host.pass(OTHER_RACK_PATIENCE_NS, Stage::Working);
        assert_eq!((host.contradiction(), host.candidates()), (None, &[0, 70][..]));
        host.hear(other(100));
        host.pass(OTHER_RACK_PATIENCE_NS, Stage::Working);
        assert_eq!(host.contradiction(), Some((1, Difference::Epoch(9))));

        let mut late = Others::new(0, 2, 100, DETECTION_NS, LONGEST).sealed();
        late.hear(other(100));
        assert_eq!(
            late.candidates(),
            [0, 70],
            "the other host is answered, whichever of the two sends first"
        );
    }
}
