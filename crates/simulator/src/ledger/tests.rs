//! Each promise is broken once, by hand, and the ledger reports it.

use super::*;
use rackloom_protocol::{Atomic, AtomicKind, Completion, Key, LocalRange, RemoteAddress, Signal, Width};

const REGION: RegionId = RegionId(1);
const INITIATOR: NodeId = NodeId(0);
const TARGET: NodeId = NodeId(1);
const NAME: OperationId = OperationId(7);
const NOW: Instant = Instant(5);

/// Two nodes and their bytes.
struct Nodes(Vec<VectorMemory>);

impl AllMemories for Nodes {
    fn bytes(&self, node: NodeId) -> &VectorMemory {
        &self.0[node.index()]
    }
}

fn setup() -> (Ledger, Nodes) {
    let mut memories = vec![VectorMemory::default(), VectorMemory::default()];
    memories.iter_mut().for_each(|memory| memory.add(REGION, 256));
    (Ledger::new(2, true), Nodes(memories))
}

fn at(offset: u64) -> RemoteAddress {
    RemoteAddress { node: TARGET, region: REGION, offset, key: Key(0) }
}

const fn store(data: &[u8]) -> Command<'_> {
    let target = RemoteAddress { node: TARGET, region: REGION, offset: 16, key: Key(0) };
    Command::Store { operation: NAME, target, data, completion: Completion::Visible }
}

fn end(ledger: &mut Ledger, memories: &Nodes, result: Result<u64, OperationError>) {
    ledger.handle_events(NOW, INITIATOR, &[Event::Completed { operation: NAME, result }], memories);
}

/// The oracles that found something, by name.
fn broken(ledger: &Ledger) -> Vec<&'static str> {
    let found = ledger.verdicts().iter().filter(|(_, tally)| tally.broken > 0);
    found.map(|(oracle, _)| oracle.name()).collect()
}

fn write(ledger: &mut Ledger, memories: &mut Nodes, data: &[u8]) {
    memories.0[1].bytes_mut(REGION)[16..16 + data.len()].copy_from_slice(data);
    ledger.note_write(TARGET, REGION, 16, data.len() as u64);
}

#[test]
fn correct_operations_violate_no_oracle() {
    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"data");
    end(&mut ledger, &memories, Ok(0));
    assert_eq!(broken(&ledger), [""; 0]);
    for oracle in [Oracle::Shadow, Oracle::ExactlyOnce, Oracle::OneEnd, Oracle::Untouched] {
        assert!(ledger.verdicts().of(oracle).is_some_and(|tally| tally.looked > 0), "{}", oracle.name());
    }
}

#[test]
fn wrong_bytes_violate_only_the_shadow_oracle() {
    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"dato");
    end(&mut ledger, &memories, Ok(0));
    assert_eq!(broken(&ledger), ["shadow"]);
}

#[test]
fn bytes_written_twice_violate_only_the_exactly_once_oracle() {
    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"data");
    write(&mut ledger, &mut memories, b"data");
    end(&mut ledger, &memories, Ok(0));
    assert_eq!(broken(&ledger), ["exactly-once"]);
}

#[test]
fn an_atomic_applied_twice_violates_only_the_exactly_once_oracle() {
    let (mut ledger, memories) = setup();
    let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
    ledger.note_command(INITIATOR, &Command::Atomic { operation: NAME, target: at(8), atomic });
    ledger.note_applied(TARGET, REGION, 8);
    end(&mut ledger, &memories, Ok(0));
    assert_eq!(broken(&ledger), [""; 0]);
    ledger.note_applied(TARGET, REGION, 8);
    assert_eq!(broken(&ledger), ["exactly-once"]);
}

#[test]
fn a_signal_before_its_data_violates_only_the_order_oracle() {
    let (mut ledger, mut memories) = setup();
    let source = LocalRange { region: REGION, offset: 32, length: 4 };
    let signal = Some(Signal::set(at(64), 1));
    ledger.note_command(INITIATOR, &Command::Put { operation: NAME, target: at(16), source, signal });
    ledger.note_applied(TARGET, REGION, 64);
    write(&mut ledger, &mut memories, &[0; 4]);
    end(&mut ledger, &memories, Ok(0));
    assert_eq!(broken(&ledger), ["order"]);
}

#[test]
fn a_second_end_violates_only_the_one_end_oracle() {
    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"data");
    end(&mut ledger, &memories, Ok(0));
    end(&mut ledger, &memories, Err(OperationError::OutcomeUnknown));
    assert_eq!(broken(&ledger), ["one-end"]);
}

#[test]
fn a_write_outside_all_extents_violates_only_the_untouched_oracle() {
    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"data");
    end(&mut ledger, &memories, Ok(0));
    write(&mut ledger, &mut memories, b"data");
    assert_eq!(broken(&ledger), ["untouched"]);
}

#[test]
fn an_outcome_is_unknown_only_if_the_target_was_lost_and_nothing_sent_is_nothing_written() {
    let unknown = Err(OperationError::OutcomeUnknown);
    let (mut ledger, memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    end(&mut ledger, &memories, unknown);
    assert_eq!(broken(&ledger), ["unknown-if-true"]);

    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    let events = [Event::Completed { operation: NAME, result: unknown }, Event::NodeLost { node: TARGET }];
    ledger.handle_events(NOW, INITIATOR, &events, &memories);
    // The data may still arrive.
    write(&mut ledger, &mut memories, b"data");
    assert_eq!(broken(&ledger), [""; 0]);

    let (mut ledger, mut memories) = setup();
    ledger.note_command(INITIATOR, &store(b"data"));
    write(&mut ledger, &mut memories, b"data");
    end(&mut ledger, &memories, Err(OperationError::Unreachable));
    assert_eq!(broken(&ledger), ["unknown-if-true"]);
}

/// A load, a get and a receive write the memory of the node that began them. When the peer is lost, a part of the data may be there.
#[test]
fn a_lost_load_or_receive_may_leave_a_part_in_its_own_buffer() {
    let into = LocalRange { region: REGION, offset: 16, length: 8 };
    for command in [
        Command::Load { operation: NAME, target: at(16), into },
        Command::Get { operation: NAME, target: at(16), into },
        Command::Receive { operation: NAME, source: Some(TARGET), tag: 1, ignore: 0, into },
    ] {
        let (mut ledger, memories) = setup();
        ledger.note_command(INITIATOR, &command);
        ledger.note_write(INITIATOR, REGION, 16, 4);
        end(&mut ledger, &memories, Err(OperationError::Unreachable));
        assert_eq!(broken(&ledger), [""; 0], "{command:?}");
    }
}

#[test]
fn a_used_stale_frame_violates_only_the_oracle_of_incarnations() {
    let (mut ledger, _) = setup();
    ledger.note_stale_frame(NOW, TARGET, false);
    assert_eq!(broken(&ledger), [""; 0]);
    ledger.note_stale_frame(NOW, TARGET, true);
    assert_eq!(broken(&ledger), ["incarnations"]);
}
