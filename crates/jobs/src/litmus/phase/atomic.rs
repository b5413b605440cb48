//! Atomics contended by all ranks: fetch-add storms, compare-swap loops, swap chains, on 4 and 8 bytes.
//!
//! Each owner has six words, and all others modify all of them at once. The result is known beforehand: sums are exact,
//! and the *old values* that the atomics returned must together match the word's history. Each contender adds up its
//! old values (mixed, so that different sets have different sums) and adds the sum to the word's ledger at the owner.
//! Only the owner compares.
//!
//! * fetch-add by 1, `n` times in all: the old values are `initial .. initial + n`, each once.
//! * compare-swap from `v` to `v + step`, repeated until it succeeds. Each contender has its own step; with equal
//!   steps, a swap that does not compare would often write the value that is there already. Over all, the replaced
//!   values minus the written values equal the initial value minus the final value.
//! * swap of tokens: the returned values and the final value together are the written tokens and the initial value.

use rackloom_protocol::{Atomic, AtomicKind, JobMemory, Width};

use super::super::findings::{Findings, read_word};
use super::super::layout::{ContendedWord, DATA};
use super::super::run_view::{RunView, width};
use super::{Phase, Poll};
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// Work of one rank on one word of one owner.
#[derive(Debug)]
struct Contest {
    owner: u16,
    word: ContendedWord,
    /// Number of atomics issued. For compare-swap: number that succeeded.
    issued: u32,
    in_flight: u32,
    /// Value that the next compare-swap expects.
    expected: u64,
    ledger: u64,
    has_ledger_sent: bool,
}

/// Contended atomics.
#[derive(Debug, Default)]
pub(crate) struct Atomics {
    contests: Vec<Contest>,
    is_set_up: bool,
    /// Index of the next contest, so that all words are served in rotation.
    next: usize,
}

const fn is_loop(word: ContendedWord) -> bool {
    matches!(word, ContendedWord::CompareSwapFour | ContendedWord::CompareSwapEight)
}

/// Returns the amount that a rank's compare-swaps add.
fn step(rank: u16) -> u64 {
    u64::from(rank) + 1
}

/// Returns the number of a contended word, for the items of requests.
fn number(word: ContendedWord) -> u32 {
    word as u32
}

impl Contest {
    fn new(view: &RunView, owner: u16, word: ContendedWord) -> Self {
        let expected = view.contended_initial(owner, word);
        Self { owner, word, issued: 0, in_flight: 0, expected, ledger: 0, has_ledger_sent: false }
    }

    fn is_over(&self) -> bool {
        self.has_ledger_sent && self.in_flight == 0
    }

    /// Returns the next atomic, if one can be issued now.
    fn next(&mut self, view: &RunView) -> Option<Body> {
        let (kind, operand, compare) = match self.word {
            _ if self.issued == view.atomics_per_word() => return self.next_ledger(view),
            word if is_loop(word) => {
                if self.in_flight > 0 {
                    return None;
                }
                (AtomicKind::CompareSwap, self.expected.wrapping_add(step(view.rank)), self.expected)
            }
            ContendedWord::FetchAddFour | ContendedWord::FetchAddEight => (AtomicKind::FetchAdd, 1, 0),
            word => (AtomicKind::Swap, view.token(view.rank, self.owner, word, self.issued), 0),
        };
        self.issued += u32::from(!is_loop(self.word));
        self.in_flight += 1;
        let target = view.address(self.owner, DATA, view.layout.contended_offset(self.word));
        let width = width(self.word);
        let atomic = Atomic { kind, width, operand: width.truncate(operand), compare };
        Some(Body::Atomic { target, atomic })
    }

    fn next_ledger(&mut self, view: &RunView) -> Option<Body> {
        if self.has_ledger_sent || self.in_flight > 0 {
            return None;
        }
        self.has_ledger_sent = true;
        self.in_flight += 1;
        let target = view.address(self.owner, DATA, view.layout.ledger_offset(self.word));
        let operand = self.ledger;
        let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand, compare: 0 };
        Some(Body::Atomic { target, atomic })
    }

    fn returned(&mut self, view: &RunView, old: u64) {
        self.in_flight -= 1;
        if self.has_ledger_sent {
            return;
        }
        if is_loop(self.word) {
            if old != self.expected {
                self.expected = old;
                return;
            }
            self.issued += 1;
            self.expected = width(self.word).truncate(old.wrapping_add(step(view.rank)));
            self.ledger = self.ledger.wrapping_sub(RunView::ledger_entry(self.expected));
        }
        self.ledger = self.ledger.wrapping_add(RunView::ledger_entry(old));
    }
}

impl Phase for Atomics {
    fn name(&self) -> &'static str {
        "atomics"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        if !self.is_set_up {
            self.is_set_up = true;
            let words = |owner: &u16| {
                let owner = *owner;
                let contended = move |word: &ContendedWord| view.contends(view.rank, owner, *word);
                ContendedWord::ALL
                    .into_iter()
                    .filter(contended)
                    .map(move |word| Contest::new(view, owner, word))
            };
            self.contests = view.peers.iter().flat_map(words).collect();
        }
        let mut idle = 0;
        while poll.issuer.has_space() && idle < self.contests.len() {
            let count = self.contests.len();
            let contest = &mut self.contests[self.next];
            self.next = (self.next + 1) % count;
            match contest.next(view) {
                Some(body) => {
                    let tag = Tag::Phase { peer: contest.owner, item: number(contest.word) };
                    poll.issuer.submit(Request::new(tag, body));
                    idle = 0;
                }
                None => idle += 1,
            }
        }
        self.contests.iter().all(Contest::is_over)
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, peer: u16, item: u32) {
        let contest =
            self.contests.iter_mut().find(|contest| contest.owner == peer && number(contest.word) == item);
        if let (Some(contest), Ok(old)) = (contest, outcome.result) {
            contest.returned(poll.view, old);
        }
    }
}

/// Returns the values that the owner's word and ledger must hold after all contenders are through. The final token of a
/// swap chain depends on the order, so the value `found` is used for it. The ledger then shows whether that token is
/// possible.
fn must_hold(view: &RunView, word: ContendedWord, found: u64) -> (u64, u64) {
    let owner = view.rank;
    let contenders: Vec<_> =
        view.peers.iter().copied().filter(|peer| view.contends(*peer, owner, word)).collect();
    let count = u64::from(view.atomics_per_word());
    let initial = view.contended_initial(owner, word);
    let sum = |values: &mut dyn Iterator<Item = u64>| {
        values.fold(0_u64, |sum, value| sum.wrapping_add(RunView::ledger_entry(value)))
    };
    match word {
        ContendedWord::SwapFour | ContendedWord::SwapEight => {
            let tokens = contenders.iter().flat_map(|contender| {
                (0..count as u32).map(|number| view.token(*contender, owner, word, number))
            });
            let put_in = sum(&mut tokens.chain([initial]));
            (found, put_in.wrapping_sub(RunView::ledger_entry(found)))
        }
        ContendedWord::CompareSwapFour | ContendedWord::CompareSwapEight => {
            let steps: u64 = contenders.iter().map(|contender| step(*contender)).sum();
            let last = width(word).truncate(initial.wrapping_add(count * steps));
            (last, RunView::ledger_entry(initial).wrapping_sub(RunView::ledger_entry(last)))
        }
        ContendedWord::FetchAddFour | ContendedWord::FetchAddEight => {
            let total = count * contenders.len() as u64;
            let after = |steps: u64| width(word).truncate(initial.wrapping_add(steps));
            (after(total), sum(&mut (0..total).map(after)))
        }
    }
}

/// Checks a contended word and its ledger at the owner.
pub(crate) fn check_contended(
    view: &RunView,
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    word: ContendedWord,
) {
    let (word_offset, ledger_offset) = (view.layout.contended_offset(word), view.layout.ledger_offset(word));
    let found = read_word(memory, DATA, word_offset, width(word).bytes());
    let (expected, expected_ledger) = must_hold(view, word, found);
    let location = |what: &str| format!("{what} of {word:?} after round {}", view.round);
    findings.check_word(DATA, word_offset, found, expected, || location("contended word"));
    let ledger = read_word(memory, DATA, ledger_offset, 8);
    findings.check_word(DATA, ledger_offset, ledger, expected_ledger, || location("ledger"));
}
