//! Tests of the sender alone: windows, replays, flushes.

use alloc::vec::Vec;

use super::super::tests::CONFIG;
use super::*;

const NOW: Instant = Instant(5_000);

fn advancing(config: RetryConfig) -> (Sender, RetryCounters) {
    let mut sender = Sender::new(config, 10_000, 500);
    assert!(!sender.admits(1), "numbers are not agreed on yet");
    sender.start(NOW);
    assert!(sender.init_is_due(NOW));
    let initialisation = sender.send_init(NOW);
    sender.receive_echo(initialisation + 1);
    assert_eq!(sender.state(), RetryState::Init, "an echo of other numbers");
    sender.receive_echo(initialisation);
    assert_eq!(sender.state(), RetryState::Advance);
    (sender, RetryCounters::default())
}

fn send(sender: &mut Sender, counters: &mut RetryCounters, count: u8) {
    for number in 0..count {
        assert!(sender.admits(100));
        let (_, passage) = sender.number(100, counters);
        assert_eq!(passage, Passage::Kept);
        sender.keep(NOW, &[number; 100], false);
    }
}

/// Returns the first bytes of the frames that are replayed.
fn replayed(sender: &mut Sender, counters: &mut RetryCounters, now: Instant) -> Vec<u8> {
    let mut out = [0; 500];
    let mut first = Vec::new();
    while sender.next_replayed(now, &mut out, counters).is_some() {
        first.push(out[0]);
    }
    first
}

#[test]
fn the_window_closes_by_frames_and_by_bytes_and_an_acknowledgement_opens_it() {
    let (mut sender, mut counters) = advancing(CONFIG);
    send(&mut sender, &mut counters, 10);
    assert!(!sender.admits(1), "ten frames");
    sender.receive_ack(NOW, 4);
    assert_eq!(sender.outstanding_frames(), 6);
    assert!(sender.admits(1_400) && !sender.admits(1_401), "2000 bytes, of which 600 are taken");
    sender.note_wait(1_401);
    assert!(!sender.has_space(), "a waiting frame needs more space than there is");
    sender.receive_ack(NOW, 5);
    assert!(sender.has_space());
}

// W-28
#[test]
fn an_acknowledgement_of_unsent_frames_is_ignored() {
    let (mut sender, mut counters) = advancing(CONFIG);
    send(&mut sender, &mut counters, 3);
    for forged in [4, 1000, u32::MAX] {
        sender.receive_ack(NOW, forged);
        assert!(sender.receive_nack(NOW, forged, &mut counters).is_none());
    }
    assert_eq!((sender.outstanding_frames(), sender.state()), (3, RetryState::Advance));
}

#[test]
fn a_refusal_replays_the_frame_and_all_later_ones_once() {
    let (mut sender, mut counters) = advancing(CONFIG);
    send(&mut sender, &mut counters, 6);
    sender.receive_nack(NOW, 2, &mut counters);
    assert_eq!(sender.state(), RetryState::Replay);
    assert!(!sender.admits(1), "new frames wait");
    assert_eq!(replayed(&mut sender, &mut counters, NOW), [2, 3, 4, 5]);
    assert_eq!(sender.state(), RetryState::Advance);
    sender.receive_nack(NOW, 2, &mut counters);
    assert_eq!(sender.state(), RetryState::Advance, "the same refusal again is a device's copy");
    assert_eq!((counters.replays, counters.tx_replay, counters.tx_ok), (1, 4, 6));
}

#[test]
fn frames_acknowledged_during_a_replay_are_not_replayed() {
    let (mut sender, mut counters) = advancing(CONFIG);
    send(&mut sender, &mut counters, 6);
    sender.receive_nack(NOW, 0, &mut counters);
    let mut out = [0; 500];
    sender.next_replayed(NOW, &mut out, &mut counters);
    sender.receive_ack(NOW, 4);
    assert_eq!(replayed(&mut sender, &mut counters, NOW), [4, 5]);
    sender.receive_nack(NOW, 4, &mut counters);
    sender.receive_ack(NOW, 6);
    assert_eq!(sender.state(), RetryState::Advance, "nothing is left to replay");
    assert_eq!(sender.deadline(), Instant::NEVER);
}

#[test]
fn the_timer_runs_from_the_oldest_frame_and_from_every_progress() {
    let (mut sender, mut counters) = advancing(CONFIG);
    assert_eq!(sender.deadline(), Instant::NEVER);
    send(&mut sender, &mut counters, 2);
    assert_eq!(sender.deadline(), NOW + 1_000);
    sender.receive_ack(NOW + 600, 1);
    assert_eq!(sender.deadline(), NOW + 1_600);
    assert!(sender.handle_time(NOW + 1_599, &mut counters).is_none());
    assert_eq!(sender.state(), RetryState::Advance);
    sender.handle_time(NOW + 1_600, &mut counters);
    assert_eq!(sender.state(), RetryState::Replay);
    assert_eq!(sender.deadline(), Instant::NEVER, "it runs again when the replay has left");
    assert_eq!(replayed(&mut sender, &mut counters, NOW + 2_000), [1]);
    assert_eq!(sender.deadline(), NOW + 3_000);
}

/// Runs until the replay limit is reached.
fn exhaust(sender: &mut Sender, counters: &mut RetryCounters) {
    for _ in 0..CONFIG.replay_count_max {
        assert!(sender.handle_time(sender.deadline(), counters).is_none());
        replayed(sender, counters, sender.deadline().min(NOW + 100_000));
    }
    assert_eq!(sender.handle_time(sender.deadline(), counters), Some(2));
    assert_eq!((sender.state(), sender.outstanding_frames()), (RetryState::Flush, 0));
    assert_eq!((counters.replays, counters.flushes, counters.tx_flushed), (3, 1, 2));
}

#[test]
fn a_flushed_link_blocks_discards_or_sends_unprotected_by_its_policy() {
    let policies = [
        (FlushPolicy::Block, None),
        (FlushPolicy::Discard, Some(Passage::Discarded)),
        (FlushPolicy::BestEffort, Some(Passage::Unprotected)),
    ];
    for (flush, expected) in policies {
        let (mut sender, mut counters) = advancing(RetryConfig { flush, ..CONFIG });
        send(&mut sender, &mut counters, 2);
        exhaust(&mut sender, &mut counters);
        assert_eq!(sender.has_space(), expected.is_some());
        if let Some(passage) = expected {
            assert_eq!(sender.number(100, &mut counters), (2, passage));
        }
        assert_eq!(counters.tx_discard, u64::from(expected == Some(Passage::Discarded)));
        let initialisation = sender.send_init(NOW);
        sender.receive_echo(initialisation);
        assert_eq!(sender.number(100, &mut counters), (3, Passage::Kept), "numbers go on");
    }
}

#[test]
fn replays_without_limit_never_flush() {
    let (mut sender, mut counters) =
        advancing(RetryConfig { replay_count_max: RetryConfig::REPLAYS_UNLIMITED, ..CONFIG });
    send(&mut sender, &mut counters, 1);
    for _ in 0..1_000 {
        let now = sender.deadline();
        assert!(sender.handle_time(now, &mut counters).is_none());
        replayed(&mut sender, &mut counters, now);
    }
    assert_eq!((counters.replays, counters.flushes), (1_000, 0));
}

#[test]
fn a_link_that_stops_discards_its_copies_and_restarts_with_other_numbers() {
    let (mut sender, mut counters) = advancing(CONFIG);
    send(&mut sender, &mut counters, 3);
    assert_eq!(sender.stop(), 3);
    assert_eq!((sender.state(), sender.deadline()), (RetryState::Init, Instant::NEVER));
    sender.start(NOW);
    assert_eq!(sender.send_init(NOW), 2);
    sender.receive_echo(1);
    assert_eq!(sender.state(), RetryState::Init);
}

#[test]
fn the_timer_doubles_with_each_failed_replay_up_to_its_bound_and_an_acknowledgement_resets_it() {
    let config = RetryConfig {
        replay_timer_max_ns: 4 * CONFIG.replay_timer_ns,
        replay_count_max: RetryConfig::REPLAYS_UNLIMITED,
        ..CONFIG
    };
    let (mut sender, mut counters) = advancing(config);
    send(&mut sender, &mut counters, 3);
    let mut now = NOW;
    // One measurement below the lower bound: the wait begins at the bound.
    sender.receive_ack(now, 1);
    for factor in [1, 2, 4, 4] {
        let due = now + factor * CONFIG.replay_timer_ns;
        assert_eq!(sender.deadline(), due, "after {factor} times the timer");
        assert_eq!(sender.handle_time(due, &mut counters), None);
        now = due;
        assert_eq!(replayed(&mut sender, &mut counters, now).len(), 2);
    }
    sender.receive_ack(now, 2);
    assert_eq!(sender.deadline(), now + CONFIG.replay_timer_ns);
}
