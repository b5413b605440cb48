//! State of the other hosts at one host, as a pure state machine: no socket, no clock.
//!
//! Members detect deaths by themselves. This file concerns only the beginning and the end of the rack: hosts
//! that never sent a message, hosts with another rack file, pairs between which the longest frames are lost,
//! and the time at which all have finished and members may end. A host that falls silent is not waited for.
//! Time is counted in ticks of the supervisor.

use super::message::{Difference, HostMessage, HostState, Proof, Stage};

/// Time for which another configuration of this rack's name is accepted: it may be an earlier rack that ends.
const OTHER_RACK_TIMEOUT_NS: u64 = 2_000_000_000;
/// Number of short messages without a long one after which long frames of a host count as lost. Every second
/// message is long, so this many are not lost by chance.
const SHORT_MESSAGES_MAX: u32 = 4;

/// State of all hosts.
#[derive(Debug)]
pub(super) struct Others {
    mine: usize,
    states: Vec<HostState>,
    /// Time since the last change of each host's state.
    silent_ns: Vec<u64>,
    /// Time since all other hosts were known to have finished.
    all_finished_ns: u64,
    /// Time for which this host has finished and others have never sent a message.
    alone_ns: u64,
    /// Hosts with a member that members of this host have lost.
    with_lost_member: Vec<bool>,
    /// Latest host with another configuration, the difference, and the time for which it has lasted.
    contradiction: Option<(usize, Difference, u64)>,
    /// Received messages, by host.
    received: Vec<Received>,
    /// Freshness checks, with a key.
    fresh: Option<Fresh>,
    /// Length of the rack's longest frame.
    frame_bytes_max: usize,
    /// Time of silence after which a host is lost.
    silence_max_ns: u64,
    /// Longest wait until all hosts know that all have finished.
    departure_ns: u64,
}

/// Freshness of the hosts' messages, if these carry tags.
#[derive(Debug)]
struct Fresh {
    /// Largest unconfirmed incarnation of each host.
    candidates: Vec<u64>,
    /// Incarnation and number of the last accepted message.
    accepted: Vec<(u64, u32)>,
    /// Number of refused messages.
    refused: u64,
}

/// Messages that have arrived from one host.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    count: u32,
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
        let mut states = vec![HostState::default(); hosts];
        states[mine].incarnation = incarnation;
        Self {
            mine,
            states,
            silent_ns: vec![0; hosts],
            all_finished_ns: 0,
            alone_ns: 0,
            with_lost_member: vec![false; hosts],
            contradiction: None,
            received: vec![Received::default(); hosts],
            fresh: None,
            frame_bytes_max,
            // Members detect deaths on their links, so a supervisor may be stopped for a moment without harm.
            silence_max_ns: 4 * detection_ns,
            // Shorter than the time in which members detect the end of a host.
            departure_ns: detection_ns / 2,
        }
    }

    /// Accepts only messages that prove that they belong to this run. Their tags prove the sender, and not
    /// the time.
    pub(super) fn sealed(mut self) -> Self {
        let hosts = self.states.len();
        self.fresh = Some(Fresh { candidates: vec![0; hosts], accepted: vec![(0, 0); hosts], refused: 0 });
        self
    }

    /// Returns the incarnations that were received and are not confirmed, by host; none without a key.
    pub(super) fn candidates(&self) -> &[u64] {
        self.fresh.as_ref().map_or(&[], |fresh| &fresh.candidates)
    }

    /// Returns the number of refused messages: without a valid tag, or not new.
    pub(super) fn refused(&self) -> u64 {
        self.fresh.as_ref().map_or(0, |fresh| fresh.refused)
    }

    /// Returns true if a message belongs to this run and is new. A message whose sender does not know this
    /// host's incarnation yet only adds a candidate.
    // W-95
    fn is_fresh(&mut self, sender: usize, proof: &Proof) -> bool {
        let Some(fresh) = &mut self.fresh else { return true };
        let mine = self.states[self.mine].incarnation;
        let (Some(candidate), Some(accepted)) =
            (fresh.candidates.get_mut(sender), fresh.accepted.get_mut(sender))
        else {
            return false;
        };
        *candidate = (*candidate).max(proof.own.incarnation);
        if proof.incarnations.get(self.mine) != Some(&mine) {
            return false;
        }
        let number = (proof.own.incarnation, proof.own.messages);
        if number <= *accepted {
            fresh.refused += 1;
            return false;
        }
        *accepted = number;
        true
    }

    /// Returns the next message, and the minimum length of its frame.
    pub(super) fn next_message(&mut self) -> (&[HostState], usize) {
        let messages = &mut self.states[self.mine].messages;
        *messages = messages.wrapping_add(1);
        // W-62: the first message is a long one.
        let frame_bytes = if *messages % 2 == 1 { self.frame_bytes_max } else { 0 };
        (&self.states, frame_bytes)
    }

    /// Handles a received message.
    pub(super) fn handle_message(&mut self, message: HostMessage) {
        match message {
            HostMessage::Ours { sender, states, proof, frame_bytes } => {
                if !self.is_fresh(sender, &proof) {
                    return;
                }
                let received = &mut self.received[sender];
                received.any_long |= frame_bytes >= self.frame_bytes_max;
                received.count = received.count.saturating_add(1);
                for (host, new) in states.into_iter().enumerate().filter(|(host, _)| *host != self.mine) {
                    if new > self.states[host] {
                        (self.states[host], self.silent_ns[host]) = (new, 0);
                    }
                }
            }
            HostMessage::Other(sender, difference, proof) => {
                if !self.is_fresh(sender, &proof) {
                    return;
                }
                let since_ns = self.contradiction.map_or(0, |(.., since_ns)| since_ns);
                self.contradiction = Some((sender, difference, since_ns));
            }
            HostMessage::Refused => self.fresh.iter_mut().for_each(|fresh| fresh.refused += 1),
            HostMessage::Foreign => {}
        }
    }

    /// Handles the loss of a member of another host. A host that has never sent a message is then lost too: its members were up.
    pub(super) fn handle_lost_member(&mut self, host: usize) {
        self.with_lost_member[host] = true;
    }

    /// Handles the passage of time, with the stage of this host.
    pub(super) fn pass(&mut self, time_ns: u64, stage: Stage) {
        for (host, silent_ns) in self.silent_ns.iter_mut().enumerate().filter(|(host, _)| *host != self.mine)
        {
            *silent_ns += if self.states[host].incarnation == 0 { 0 } else { time_ns };
        }
        if let Some((.., since_ns)) = &mut self.contradiction {
            *since_ns += time_ns;
        }
        let is_alone = stage == Stage::Finished && self.silent().next().is_some();
        self.alone_ns = if is_alone { self.alone_ns + time_ns } else { 0 };
        let all_finished = stage >= Stage::Finished && self.all(Stage::Finished);
        self.all_finished_ns = if all_finished { self.all_finished_ns + time_ns } else { 0 };
        let stage = if stage == Stage::Finished && all_finished { Stage::AllFinished } else { stage };
        let mine = &mut self.states[self.mine].stage;
        *mine = (*mine).max(stage);
    }

    /// Returns true if other hosts still need the members of this host.
    pub(super) fn is_held(&self) -> bool {
        !self.all(Stage::Finished)
            || !self.all(Stage::AllFinished) && self.all_finished_ns < self.departure_ns
    }

    /// Returns the hosts without a message so far that are not lost.
    pub(super) fn silent(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| !self.has_sent(*host) && !self.is_lost(*host))
    }

    /// Returns true if a message of this host has arrived, directly or through others.
    pub(super) fn has_sent(&self, host: usize) -> bool {
        self.states[host].incarnation != 0
    }

    /// Returns the time for which all members of this host have waited for a silent host.
    pub(super) fn alone_ns(&self) -> u64 {
        self.alone_ns
    }

    /// Returns the hosts that fell silent before they had finished.
    pub(super) fn lost(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| self.is_lost(*host))
    }

    /// Returns the hosts that have ended without waiting for the others.
    pub(super) fn gone(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|host| self.states[*host].stage == Stage::Gone)
    }

    /// Returns the host of another rack of this name, and the difference, once it has lasted too long.
    pub(super) fn contradiction(&self) -> Option<(usize, Difference)> {
        let is_complete = self.silent().next().is_none();
        let (sender, difference, since_ns) = self.contradiction?;
        (!is_complete && since_ns >= OTHER_RACK_TIMEOUT_NS).then_some((sender, difference))
    }

    /// Returns the length of the longest frame of the rack.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Returns a host from which short frames arrive and the longest ones do not.
    pub(super) fn without_long_frames(&self) -> Option<usize> {
        self.received.iter().position(|received| !received.any_long && received.count >= SHORT_MESSAGES_MAX)
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.states.len()).filter(|host| *host != self.mine)
    }

    fn is_lost(&self, host: usize) -> bool {
        if !self.has_sent(host) {
            return self.with_lost_member[host];
        }
        self.silent_ns[host] >= self.silence_max_ns && self.states[host].stage < Stage::AllFinished
    }

    /// Returns true if all other hosts that are not lost have reached this stage.
    fn all(&self, stage: Stage) -> bool {
        self.others().all(|host| self.states[host].stage >= stage || self.is_lost(host))
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
    fn send(all: &mut [Others], from: usize, to: usize) {
        let (states, frame_bytes) = all[from].next_message();
        let message = message(from, states, frame_bytes);
        all[to].handle_message(message);
    }

    fn message(sender: usize, states: &[HostState], frame_bytes: usize) -> HostMessage {
        let proof = Proof {
            own: states[sender],
            incarnations: states.iter().map(|state| state.incarnation).collect(),
        };
        HostMessage::Ours { sender, states: states.to_vec(), proof, frame_bytes: frame_bytes.max(60) }
    }

    #[test]
    fn a_host_is_held_until_all_hosts_know_that_all_have_finished() {
        let mut pair = hosts::<2>();
        pair[0].pass(TICK_NS, Stage::Finished);
        send(&mut pair, 0, 1);
        assert!(pair[0].is_held(), "no message of the other host has arrived");
        pair[1].pass(TICK_NS, Stage::Working);
        send(&mut pair, 1, 0);
        assert!(pair[0].is_held(), "the other host works");
        pair[1].pass(TICK_NS, Stage::Finished);
        assert!(pair[1].is_held(), "the first host does not know it");
        send(&mut pair, 1, 0);
        pair[0].pass(TICK_NS, Stage::Finished);
        assert!(!pair[0].is_held(), "both know it");
        send(&mut pair, 0, 1);
        assert!(!pair[1].is_held());
    }

    #[test]
    fn a_lost_departure_delays_a_host_within_a_limit() {
        let mut pair = hosts::<2>();
        pair[0].pass(TICK_NS, Stage::Finished);
        send(&mut pair, 0, 1);
        let ticks = (0..).take_while(|_| {
            pair[1].pass(TICK_NS, Stage::Finished);
            pair[1].is_held()
        });
        assert!((1..DETECTION_NS / TICK_NS).contains(&(ticks.count() as u64)));
    }

    #[test]
    fn states_reach_hosts_without_a_link_to_their_origin() {
        let mut row = hosts::<3>();
        row.iter_mut().for_each(|host| host.pass(TICK_NS, Stage::Finished));
        for _ in 0..3 {
            for (from, to) in [(0, 1), (1, 2), (2, 1), (1, 0)] {
                send(&mut row, from, to);
                row.iter_mut().for_each(|host| host.pass(0, Stage::Finished));
            }
        }
        assert!(row.iter().all(|host| !host.is_held()));
    }

    #[test]
    fn a_host_that_falls_silent_is_lost_and_a_missing_host_is_waited_for() {
        let mut pair = hosts::<2>();
        for _ in 0..1000 {
            pair[0].pass(TICK_NS, Stage::Finished);
        }
        assert!(pair[0].is_held() && pair[0].lost().next().is_none());
        assert_eq!(pair[0].alone_ns(), 1000 * TICK_NS);
        assert_eq!(pair[0].silent().collect::<Vec<_>>(), [1]);
        send(&mut pair, 1, 0);
        assert!(pair[0].silent().next().is_none());
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
    fn a_host_that_ends_before_its_first_message_is_lost_with_its_members() {
        let mut pair = hosts::<2>();
        pair[0].pass(TICK_NS, Stage::Finished);
        pair[0].handle_lost_member(1);
        pair[0].pass(TICK_NS, Stage::Finished);
        assert_eq!(pair[0].lost().collect::<Vec<_>>(), [1]);
        assert_eq!((pair[0].alone_ns(), pair[0].silent().next(), pair[0].is_held()), (0, None, false));
    }

    #[test]
    fn a_host_that_sends_messages_is_not_lost_with_a_member() {
        let mut pair = hosts::<2>();
        pair[0].handle_lost_member(1);
        send(&mut pair, 1, 0);
        pair[0].pass(TICK_NS, Stage::Finished);
        assert!(pair[0].lost().next().is_none() && pair[0].is_held());
    }

    #[test]
    fn an_old_message_changes_nothing() {
        let mut pair = hosts::<2>();
        let old = pair[1].next_message().0.to_vec();
        pair[1].pass(TICK_NS, Stage::Finished);
        send(&mut pair, 1, 0);
        pair[0].handle_message(message(1, &old, 0));
        pair[0].pass(TICK_NS, Stage::Finished);
        assert!(pair[0].all(Stage::Finished));
        let earlier_incarnation =
            vec![HostState::default(), HostState { incarnation: 3, messages: u32::MAX, stage: Stage::Gone }];
        pair[0].handle_message(message(1, &earlier_incarnation, 0));
        assert!(pair[0].gone().next().is_none());
    }

    #[test]
    fn another_rack_is_reported_only_while_a_host_of_this_rack_is_missing() {
        for difference in [Difference::Epoch(0xabcd), Difference::Version(9)] {
            let mut pair = hosts::<2>();
            pair[0].handle_message(HostMessage::Other(1, difference, Proof::default()));
            assert_eq!(pair[0].contradiction(), None, "it may be an earlier run that ends");
            pair[0].pass(OTHER_RACK_TIMEOUT_NS, Stage::Working);
            assert_eq!(pair[0].contradiction(), Some((1, difference)));
            send(&mut pair, 1, 0);
            assert_eq!(pair[0].contradiction(), None);
        }
    }

    // W-62
    #[test]
    fn a_path_that_loses_every_long_message_is_reported_and_one_that_loses_most_is_not() {
        let receive = |every: u32| {
            let mut pair = hosts::<2>();
            let (mut long, mut ever) = (0, None);
            for _ in 0..100 * SHORT_MESSAGES_MAX {
                let (states, frame_bytes) = pair[1].next_message();
                let message = message(1, states, frame_bytes);
                long += u32::from(frame_bytes == LONGEST);
                if frame_bytes < LONGEST || every > 0 && long % every == 0 {
                    pair[0].handle_message(message);
                }
                ever = ever.or(pair[0].without_long_frames());
            }
            ever
        };
        assert_eq!(receive(0), Some(1));
        assert_eq!([1, 3, SHORT_MESSAGES_MAX / 2].map(receive), [None; 3]);
    }

    #[test]
    fn a_few_short_messages_prove_no_loss_of_long_ones() {
        let mut pair = hosts::<2>();
        let states = pair[1].next_message().0.to_vec();
        for _ in 1..SHORT_MESSAGES_MAX {
            pair[0].handle_message(message(1, &states, 0));
        }
        assert_eq!(pair[0].without_long_frames(), None);
    }

    /// Sends a message with a proof of freshness from `from` to `to`, and returns it.
    fn send_sealed(all: &mut [Others], from: usize, to: usize) -> HostMessage {
        let candidates = all[from].candidates().to_vec();
        let (states, frame_bytes) = all[from].next_message();
        let incarnations = states
            .iter()
            .zip(candidates)
            .map(|(state, candidate)| state.incarnation.max(candidate))
            .collect();
        let HostMessage::Ours { sender, states, proof, frame_bytes } = message(from, states, frame_bytes)
        else {
            unreachable!()
        };
        let proof = Proof { incarnations, ..proof };
        let copy = || HostMessage::Ours { sender, states: states.clone(), proof: proof.clone(), frame_bytes };
        all[to].handle_message(copy());
        copy()
    }

    // W-95
    #[test]
    fn with_a_key_messages_of_an_earlier_run_and_repeated_messages_change_nothing() {
        let sealed = |incarnations: [u64; 2]| -> [Others; 2] {
            [0, 1].map(|mine| Others::new(mine, 2, incarnations[mine], DETECTION_NS, LONGEST).sealed())
        };
        let mut earlier = sealed([50, 51]);
        let old: Vec<_> = (0..6)
            .flat_map(|_| {
                earlier[1].pass(TICK_NS, Stage::Gone);
                [send_sealed(&mut earlier, 1, 0), send_sealed(&mut earlier, 0, 1)]
            })
            .filter(|message| matches!(message, HostMessage::Ours { sender: 1, .. }))
            .collect();
        let is_old_gone = earlier[0].gone().next().is_some();
        assert!(is_old_gone, "the messages were accepted in their own run");

        let mut pair = sealed([100, 101]);
        let replay = |pair: &mut [Others; 2], messages: Vec<HostMessage>| {
            for message in messages {
                pair[0].handle_message(message);
            }
        };
        let again = |messages: &[HostMessage]| -> Vec<HostMessage> {
            let copy = |message: &HostMessage| match message {
                HostMessage::Ours { sender, states, proof, frame_bytes } => HostMessage::Ours {
                    sender: *sender,
                    states: states.clone(),
                    proof: proof.clone(),
                    frame_bytes: (*frame_bytes).min(60),
                },
                _ => HostMessage::Foreign,
            };
            messages.iter().map(copy).collect()
        };
        replay(&mut pair, again(&old));
        assert_eq!(pair[0].silent().collect::<Vec<_>>(), [1], "an earlier run is not this one");
        assert!(pair[0].gone().next().is_none() && pair[0].without_long_frames().is_none());

        let mut sent = Vec::new();
        for _ in 0..3 {
            sent.push(send_sealed(&mut pair, 1, 0));
            send_sealed(&mut pair, 0, 1);
        }
        assert!(pair.iter().all(|host| host.silent().next().is_none()), "each has a message of the other");
        let known = pair[0].states.clone();
        let refused = pair[0].refused();
        replay(&mut pair, again(&old));
        replay(&mut pair, again(&sent));
        assert_eq!(pair[0].states, known);
        assert!(pair[0].without_long_frames().is_none(), "repeated short messages prove no loss");
        assert!(pair[0].refused() > refused);
        // Repeating the last message does not keep a silent host alive.
        for _ in 0..4 * DETECTION_NS / TICK_NS {
            pair[0].pass(TICK_NS, Stage::Working);
            replay(&mut pair, again(&sent));
        }
        assert_eq!(pair[0].lost().collect::<Vec<_>>(), [1]);
    }

    // W-95
    #[test]
    fn with_a_key_a_difference_is_accepted_from_messages_of_this_run_only() {
        let mut host = Others::new(0, 2, 100, DETECTION_NS, LONGEST).sealed();
        let own = HostState { incarnation: 70, messages: 3, stage: Stage::Working };
        let other =
            |echo| HostMessage::Other(1, Difference::Epoch(9), Proof { own, incarnations: vec![echo, 70] });
        host.handle_message(other(50));
        host.pass(OTHER_RACK_TIMEOUT_NS, Stage::Working);
        assert_eq!((host.contradiction(), host.candidates()), (None, &[0, 70][..]));
        host.handle_message(other(100));
        host.pass(OTHER_RACK_TIMEOUT_NS, Stage::Working);
        assert_eq!(host.contradiction(), Some((1, Difference::Epoch(9))));

        let mut late = Others::new(0, 2, 100, DETECTION_NS, LONGEST).sealed();
        late.handle_message(other(100));
        assert_eq!(late.candidates(), [0, 70], "the other host is answered even if it sends first");
    }
}
