use super::*;

const CONFIG: PauseConfig = PauseConfig {
    xoff_bytes: 1_000,
    xon_bytes: 400,
    headroom_bytes: 500,
    quanta: 100,
    quantum_ps: 10_000,
    response_delay_ns: 30,
    watchdog_ns: 5_000,
};
const FIRST: Channel = Channel(0);
const SECOND: Channel = Channel(1);

fn fresh(config: PauseConfig) -> (Pauses, PauseCounters) {
    (Pauses::new(config, 2), PauseCounters::default())
}

fn state_at(pauses: &mut Pauses, at: u64, data_waits: bool, counters: &mut PauseCounters) -> PauseState {
    while pauses.handle_time(Instant(at), |_| data_waits, counters).is_some() {}
    pauses.state(FIRST)
}

// W-71
#[test]
fn a_receiver_pauses_above_xoff_repeats_the_pause_before_it_expires_and_resumes_at_xon() {
    let (mut pauses, mut counters) = fresh(CONFIG);
    pauses.hold(FIRST, 1_000, 1_000, &mut counters);
    assert!(!pauses.is_due(Instant(0)), "full up to xoff is not above it");
    pauses.hold(FIRST, 1, 1_000, &mut counters);
    assert_eq!(pauses.next_message(Instant(7), &mut counters), Some((FIRST, 100)));
    // A pause lasts 100 quanta of 10 ns and is repeated after half of that time.
    assert_eq!(pauses.deadline(), Instant(507));
    assert!(!pauses.is_due(Instant(506)) && pauses.is_due(Instant(507)));
    assert_eq!(pauses.next_message(Instant(507), &mut counters), Some((FIRST, 100)));
    pauses.end_hold(FIRST, 600, 400);
    assert!(!pauses.is_due(Instant(508)), "401 bytes are above xon");
    pauses.end_hold(FIRST, 1, 400);
    assert_eq!(pauses.next_message(Instant(508), &mut counters), Some((FIRST, 0)));
    assert_eq!(pauses.deadline(), Instant::NEVER);
    assert_eq!((counters.tx_pause, counters.tx_resume, counters.held_bytes_max), (2, 1, 1_001));
}

// W-72
#[test]
fn headroom_holds_what_arrives_after_the_pause_and_not_a_byte_more() {
    let (mut pauses, mut counters) = fresh(CONFIG);
    pauses.hold(FIRST, 1_400, 1_000, &mut counters);
    assert!(pauses.has_space(FIRST, 100, 1_000) && !pauses.has_space(FIRST, 101, 1_000));
    assert!(pauses.has_space(SECOND, 1_500, 1_000), "each channel has space of its own");
}

// W-70
#[test]
fn a_sender_stops_after_the_response_delay_until_the_pause_expires_or_a_resume_arrives() {
    let (mut pauses, mut counters) = fresh(CONFIG);
    let change = pauses.receive(Instant(1_000), FIRST, 100, &mut counters);
    assert_eq!(change, Some(GateChange { channel: FIRST, state: PauseState::Yielding }));
    assert_eq!(state_at(&mut pauses, 1_029, true, &mut counters), PauseState::Yielding);
    assert_eq!(state_at(&mut pauses, 1_030, true, &mut counters), PauseState::Paused);
    assert_eq!(pauses.state(SECOND), PauseState::Open);
    assert_eq!(state_at(&mut pauses, 1_999, true, &mut counters), PauseState::Paused);
    assert_eq!(state_at(&mut pauses, 2_000, true, &mut counters), PauseState::Open, "1000 ns after the word");
    assert_eq!(
        state_at(&mut pauses, 2_000, true, &mut counters),
        PauseState::Open,
        "1000 ns after the pause"
    );
    pauses.receive(Instant(3_000), FIRST, 100, &mut counters);
    assert_eq!(state_at(&mut pauses, 3_030, true, &mut counters), PauseState::Paused);
    // A second pause prolongs the first.
    assert_eq!(pauses.receive(Instant(3_500), FIRST, 100, &mut counters), None);
    assert_eq!(state_at(&mut pauses, 4_400, true, &mut counters), PauseState::Paused);
    let change = pauses.receive(Instant(4_400), FIRST, 0, &mut counters);
    assert_eq!(change, Some(GateChange { channel: FIRST, state: PauseState::Open }));
    assert_eq!((counters.rx_pause, counters.rx_resume, counters.paused_ns), (3, 1, 970 + 1_370));
}

#[test]
fn without_a_response_delay_a_pause_takes_effect_at_once() {
    let (mut pauses, mut counters) = fresh(PauseConfig { response_delay_ns: 0, ..CONFIG });
    let change = pauses.receive(Instant(5), SECOND, 1, &mut counters);
    assert_eq!(change, Some(GateChange { channel: SECOND, state: PauseState::Paused }));
}

// W-73
#[test]
fn the_watchdog_overrides_a_pause_only_while_data_waits_and_only_for_a_limited_time() {
    let (mut pauses, mut counters) = fresh(PauseConfig { quanta: u16::MAX, ..CONFIG });
    pauses.receive(Instant(0), FIRST, u16::MAX, &mut counters);
    assert_eq!(state_at(&mut pauses, 30, true, &mut counters), PauseState::Paused);
    assert_eq!(state_at(&mut pauses, 5_030, false, &mut counters), PauseState::Paused);
    assert_eq!(state_at(&mut pauses, 10_029, true, &mut counters), PauseState::Paused);
    assert_eq!(state_at(&mut pauses, 10_030, true, &mut counters), PauseState::Overridden);
    pauses.receive(Instant(10_031), FIRST, u16::MAX, &mut counters);
    assert_eq!(pauses.state(FIRST), PauseState::Overridden);
    assert_eq!(state_at(&mut pauses, 15_030, true, &mut counters), PauseState::Open);
    assert_eq!((counters.watchdog, counters.paused_ns), (1, 10_000));
    // Without a watchdog a pause is never overridden.
    let (mut patient, mut counters) = fresh(PauseConfig { watchdog_ns: 0, quanta: u16::MAX, ..CONFIG });
    patient.receive(Instant(0), FIRST, u16::MAX, &mut counters);
    assert_eq!(state_at(&mut patient, 600_000, true, &mut counters), PauseState::Paused);
}

#[test]
fn a_lost_link_ends_all_pauses_and_discards_due_messages() {
    let (mut pauses, mut counters) = fresh(CONFIG);
    pauses.hold(FIRST, 1_200, 1_000, &mut counters);
    pauses.receive(Instant(0), FIRST, 100, &mut counters);
    assert_eq!(state_at(&mut pauses, 50, true, &mut counters), PauseState::Paused);
    pauses.stop(Instant(60), &mut counters);
    assert_eq!((pauses.state(FIRST), pauses.deadline()), (PauseState::Open, Instant::NEVER));
    assert!(!pauses.is_due(Instant(10_000)) && counters.paused_ns == 10);
    // Bytes stay held; the next frame makes a pause due again.
    pauses.hold(FIRST, 1, 1_000, &mut counters);
    assert!(pauses.is_pausing(FIRST) && pauses.is_due(Instant(0)));
}
