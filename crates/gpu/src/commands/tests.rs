use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::fake::{Fake, FakePlan};

const WORDS: HostWords = HostWords { region: 1, offset: 0, key: 7 };

fn ring(slots: u32) -> CommandRing {
    CommandRing::new(&mut Fake::new(FakePlan::new(1)), slots).unwrap()
}

fn numbered(number: u64) -> Command {
    Command { kind: CommandKind::FetchAdd as u32, operand: number, ..Command::default() }
}

#[test]
fn the_command_layout_matches_the_kernels() {
    assert_eq!((size_of::<Command>(), size_of::<QueueArgument>()), (96, 40));
    let command = Command {
        kind: 3,
        peer: 4,
        region: 5,
        flags: 6 | 8 << 16,
        offset: 7,
        key: 8,
        local_region: 9,
        signal_region: 10,
        local_offset: 11,
        length: 12,
        operand: 13,
        compare: 14,
        signal_offset: 15,
        signal_key: 16,
        signal_value: 17,
    };
    assert_eq!(Command::from_words(command.words()), command);
    assert_eq!((command.kind(), command.width(), command.is_posted()), (Some(CommandKind::Put), 8, false));
    assert_eq!(numbered(0).kind(), Some(CommandKind::FetchAdd));
    assert_eq!(Command::default().kind(), None);
}

#[test]
fn a_command_that_finds_no_free_slot_is_not_issued() {
    let mut ring = ring(2);
    let kernel = ring.host_kernel();
    assert_eq!(
        [0, 1, 2].map(|number| kernel.try_issue(&numbered(number))),
        [Ok(Some(0)), Ok(Some(1)), Ok(None)]
    );
    assert_eq!(ring.poll(), Some((0, numbered(0))));
    ring.complete(0, false, Status::Done, 0);
    assert_eq!(kernel.try_issue(&numbered(2)), Ok(None), "its thread has not seen the end");
    assert_eq!(kernel.poll(0), Some((Status::Done, 0)));
    assert_eq!(kernel.try_issue(&numbered(2)), Ok(Some(2)));
    assert_eq!((ring.poll(), ring.poll()), (Some((1, numbered(1))), Some((2, numbered(2)))));
    ring.close();
    assert_eq!(kernel.try_issue(&numbered(3)), Err(Status::Closed));
}

#[test]
fn commands_are_read_after_publication_and_slots_reused_after_the_end_is_seen() {
    let mut ring = ring(2);
    let kernel = ring.host_kernel();
    assert_eq!(ring.poll(), None);
    let (first, second) = (kernel.issue(&numbered(10)).unwrap(), kernel.issue(&numbered(11)).unwrap());
    assert_eq!((first, second), (0, 1));
    assert_eq!(ring.poll(), Some((0, numbered(10))));
    assert_eq!(ring.poll(), Some((1, numbered(11))));
    assert_eq!((ring.poll(), kernel.poll(first)), (None, None));
    // Ended in another order than issued.
    ring.complete(second, false, Status::Refused, 0);
    assert_eq!((kernel.poll(first), kernel.poll(second)), (None, Some((Status::Refused, 0))));
    ring.complete(first, false, Status::Done, 77);
    assert!(!kernel.is_free(0, 1).unwrap(), "its thread has not seen the end");
    assert_eq!(kernel.poll(first), Some((Status::Done, 77)));
    assert!(kernel.is_free(0, 1).unwrap());
    // A posted command frees its slot by itself.
    let posted = kernel.issue(&Command { flags: POSTED, ..numbered(12) }).unwrap();
    assert!(!kernel.is_free(0, 2).unwrap());
    assert_eq!(ring.poll().map(|(ticket, _)| ticket), Some(posted));
    ring.complete(posted, true, Status::Done, 0);
    assert!(kernel.is_free(0, 2).unwrap());
}

#[test]
fn many_threads_lose_no_command_when_the_host_ends_in_any_order() {
    const EACH: u64 = 3000;
    let mut ring = ring(8);
    let kernel = ring.host_kernel();
    let threads = 4_u64;
    let sums: Vec<u64> = std::thread::scope(|scope| {
        let give = |thread: u64| {
            let kernel = &kernel;
            move || {
                let numbers = (0..EACH).map(|at| thread * EACH + at);
                numbers
                    .map(|number| {
                        if number % 7 == 0 {
                            kernel.issue(&Command { flags: POSTED, ..numbered(number) }).unwrap();
                            return 0;
                        }
                        let (status, value) = kernel.call(&numbered(number));
                        assert_eq!((status, value), (Status::Done, number * 3));
                        1
                    })
                    .sum()
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(give(thread))).collect();
        let (mut seen, mut out) = (BTreeMap::new(), VecDeque::new());
        while seen.len() < (threads * EACH) as usize || !out.is_empty() {
            if let Some((ticket, command)) = ring.poll() {
                assert_eq!(seen.insert(command.operand, ticket), None, "taken once");
                out.push_back((ticket, command));
            }
            // Alternates between the newest and the oldest.
            let ended = if seen.len() % 3 == 0 { out.pop_back() } else { out.pop_front() };
            if let Some((ticket, command)) = ended {
                ring.complete(ticket, command.is_posted(), Status::Done, command.operand * 3);
            }
            std::thread::yield_now();
        }
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let posted = (0..threads * EACH).filter(|number| number % 7 == 0).count() as u64;
    assert_eq!(sums.iter().sum::<u64>(), threads * EACH - posted);
}

#[test]
fn closing_the_ring_ends_every_wait() {
    let mut ring = ring(1);
    let kernel = ring.host_kernel();
    let waiting = kernel.issue(&numbered(1)).unwrap();
    ring.set_losses(3);
    assert_eq!(kernel.losses(), 3);
    std::thread::scope(|scope| {
        let when_full = scope.spawn(|| kernel.issue(&numbered(2)));
        let without_end = scope.spawn(|| kernel.wait(waiting));
        drop(ring);
        assert_eq!(when_full.join().unwrap(), Err(Status::Closed));
        assert_eq!(without_end.join().unwrap().0, Status::Closed);
    });
}

/// Two nodes whose kernels meet in barriers: the words of each, written by the server of the other's ring.
struct Meeting {
    words: [[AtomicU64; 2]; 2],
    counters: [AtomicU64; 2],
    is_over: AtomicBool,
}

impl Meeting {
    fn new() -> Self {
        let zeros = || [(); 2].map(|()| AtomicU64::new(0));
        Self { words: [zeros(), zeros()], counters: zeros(), is_over: AtomicBool::new(false) }
    }

    fn team(rank: usize, blocks: u64) -> HostTeam {
        HostTeam::new(vec![0, 1], rank, WORDS, 0, blocks)
    }

    /// Serves a ring as the fabric does: stores to a peer in the order of their tickets.
    fn serve(&self, mut ring: CommandRing) {
        while !self.is_over.load(Ordering::Acquire) {
            let Some((ticket, command)) = ring.poll() else {
                std::thread::yield_now();
                continue;
            };
            if command.kind() == Some(CommandKind::Store) {
                let word = &self.words[command.peer as usize][(command.offset / 8) as usize];
                word.store(command.operand, Ordering::Release);
            }
            ring.complete(ticket, command.is_posted(), Status::Done, 0);
        }
    }
}

#[test]
fn blocks_of_two_nodes_meet_in_a_barrier_round_after_round() {
    const BLOCKS: u64 = 3;
    const ROUNDS: u64 = 200;
    let (meeting, rings) = (Meeting::new(), [ring(4), ring(4)]);
    let kernels = [0, 1].map(|rank: usize| rings[rank].host_kernel());
    let teams = [0, 1].map(|rank| Meeting::team(rank, BLOCKS));
    let play = |rank: usize| {
        for round in 1..=ROUNDS {
            meeting.counters[rank].fetch_add(1, Ordering::AcqRel);
            let look = |other: usize| meeting.words[rank][other].load(Ordering::Acquire);
            assert_eq!(kernels[rank].barrier(&teams[rank], look), Status::Done);
            for counter in &meeting.counters {
                assert_eq!(
                    counter.load(Ordering::Acquire),
                    round * BLOCKS,
                    "all blocks have arrived, and none continues"
                );
            }
            assert_eq!(kernels[rank].barrier(&teams[rank], look), Status::Done);
        }
    };
    std::thread::scope(|scope| {
        let serving: Vec<_> = rings.into_iter().map(|ring| scope.spawn(|| meeting.serve(ring))).collect();
        let blocks: Vec<_> = (0..2 * BLOCKS)
            .map(|block| {
                scope.spawn({
                    let play = &play;
                    move || play((block % 2) as usize)
                })
            })
            .collect();
        let ended: Vec<_> = blocks.into_iter().map(|block| block.join()).collect();
        meeting.is_over.store(true, Ordering::Release);
        serving.into_iter().for_each(|served| served.join().unwrap());
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
}

#[test]
fn a_loss_or_a_closed_ring_ends_waits_and_barriers() {
    let mut ring = ring(4);
    let kernel = ring.host_kernel();
    let word = AtomicU64::new(3);
    let look = || word.load(Ordering::Acquire);
    assert_eq!(kernel.wait_until(look, 3, 0), Status::Done);
    ring.set_losses(1);
    assert_eq!(kernel.wait_until(look, 4, 0), Status::Lost);
    assert_eq!(kernel.wait_until(look, 3, 0), Status::Done, "the value had arrived before the loss");
    let team = Meeting::team(0, 2);
    std::thread::scope(|scope| {
        // The other node never arrives. It is lost, and every block of this node gets that status.
        let blocks = [(); 2].map(|()| scope.spawn(|| kernel.barrier(&team, |_| 0)));
        blocks.into_iter().for_each(|block| assert_eq!(block.join().unwrap(), Status::Lost));
    });
    let team = HostTeam::new(vec![0, 1], 0, WORDS, kernel.losses(), 1);
    std::thread::scope(|scope| {
        let block = scope.spawn(|| kernel.barrier(&team, |_| 0));
        drop(ring);
        assert_eq!(block.join().unwrap(), Status::Closed);
    });
}
