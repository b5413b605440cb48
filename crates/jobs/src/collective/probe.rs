//! Measurement of the fabric: alpha and beta between rank 0 and a partner, and gamma at rank 0, which sends the results
//! to all ranks.
//!
//! Alpha is half the round trip of a put without data and its echo. Beta is the additional time of a large put, per
//! byte. Gamma is the time to reduce a byte into own memory, measured as the time between two polls. In virtual time it
//! is the time of the model of the device, and almost zero without one. Memory that reduces by itself does so here, too. Each value is the median of a few measurements, after two
//! that do not count. Every rank must choose by the same numbers, so rank 0 writes them into the memory of all ranks.
//! The partner is in another server if there is one: memory may be shared within a server, so its speed is not that of
//! the fabric. The two may still be closer to each other than other ranks are. Estimates count hops separately.

use rackloom_protocol::{
    Arithmetic, Combine, Condition, Instant, LocalRange, NodeId, Number, Signal, SignalKind,
};

use super::memory_plan::{PROBE, PROBE_BYTES};
use super::work::{Blocks, WORKED_BYTES_MAX, combine, read, write};
use crate::measure::OperationKind;
use crate::ranks::ensemble::Poll;
use crate::ranks::request::{Body, Outcome, Request, Tag};
use crate::ranks::{CONTROL, JobGroup, NOTHING};

const WARM_UP: u64 = 2;
const SMALL_PINGS: u64 = WARM_UP + 9;
const PINGS: u64 = SMALL_PINGS + 5;
const REDUCTIONS: usize = WARM_UP as usize + 5;
const NUMBERS_BYTES: usize = 24;

const PING: u64 = JobGroup::own_word(0);
const AGREED: u64 = JobGroup::own_word(1);
/// Offset of three words: bits of alpha, of beta, of gamma.
const NUMBERS: u64 = JobGroup::own_word(2);

/// Results of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Measured {
    pub(crate) alpha_ns: f64,
    pub(crate) ns_per_byte: f64,
    pub(crate) reduce_ns_per_byte: f64,
}

/// Result of one step of the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Probed {
    /// An outstanding operation must complete first.
    Waiting,
    /// There is more to reduce. Poll again at once.
    Again,
    /// The rank has the numbers that all ranks have.
    Agreed(Measured),
}

impl Measured {
    fn of(mut small_ns: Vec<u64>, mut large_ns: Vec<u64>, mut reduced_ns: Vec<u64>) -> Self {
        let small = median(&mut small_ns);
        let large = median(&mut large_ns);
        let ns_per_byte = (large - small).max(0.0) / PROBE_BYTES as f64;
        let reduce_ns_per_byte = median(&mut reduced_ns) / PROBE_BYTES as f64;
        Self { alpha_ns: small / 2.0, ns_per_byte, reduce_ns_per_byte }
    }

    fn to_bytes(self) -> [u8; NUMBERS_BYTES] {
        let mut bytes = [0; NUMBERS_BYTES];
        let numbers = [self.alpha_ns, self.ns_per_byte, self.reduce_ns_per_byte];
        for (word, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
            *word = number.to_bits().to_le_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: [u8; NUMBERS_BYTES]) -> Option<Self> {
        let (words, _) = bytes.as_chunks();
        let numbers = [0, 1, 2].map(|word: usize| f64::from_bits(u64::from_le_bytes(words[word])));
        let [alpha_ns, ns_per_byte, reduce_ns_per_byte] = numbers;
        let are_sane = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
        are_sane.then_some(Self { alpha_ns, ns_per_byte, reduce_ns_per_byte })
    }
}

fn median(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    values.get(values.len() / 2).map_or(0.0, |value| *value as f64)
}

/// One rank's part in the measurement and the agreement.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Rank that answers rank 0.
    partner: u16,
    /// Pings sent by rank 0, or echoed by its partner.
    pings: u64,
    begun: Instant,
    round_trips_ns: Vec<u64>,
    reduced_ns: Vec<u64>,
    is_reducing: bool,
    how: Option<(Arithmetic, Number)>,
    wait: WordWait,
    is_exchanged: bool,
}

/// Wait of a rank for a word of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordWait {
    /// No wait has been requested.
    Idle,
    /// The wait is outstanding.
    Outstanding,
    /// The wait has ended, and its end has not been handled.
    Ended,
}

/// Returns the rank that answers rank 0: the first rank of another server, or otherwise rank 1. `servers` contains the
/// server of each rank.
pub(crate) fn partner(servers: &[usize]) -> u16 {
    let elsewhere = servers.iter().position(|server| Some(server) != servers.first());
    elsewhere.map_or(1, |rank| rank as u16)
}

impl Probe {
    /// Returns a probe with `partner` as the partner of rank 0. `how` is the arithmetic of the reduction, if memory may
    /// reduce by itself.
    pub(crate) fn new(partner: u16, how: Option<(Arithmetic, Number)>) -> Self {
        Self {
            partner,
            pings: 0,
            begun: Instant::ZERO,
            round_trips_ns: Vec::new(),
            reduced_ns: Vec::new(),
            is_reducing: false,
            how,
            wait: WordWait::Idle,
            is_exchanged: false,
        }
    }

    /// Continues the measurement. Returns the numbers once this rank has them.
    pub(crate) fn advance(&mut self, poll: &mut Poll<'_>, blocks: &mut Blocks) -> Result<Probed, String> {
        match poll.job_group.rank {
            0 if self.pings < PINGS || self.wait != WordWait::Idle => self.ping(poll),
            0 if self.reduced_ns.len() < REDUCTIONS => return self.reduce(poll, blocks),
            0 => return self.send_measured(poll),
            rank if rank == self.partner && self.pings < PINGS => self.echo(poll),
            _ => return self.receive_measured(poll),
        }
        // The first poll after the last round trip begins to reduce.
        Ok(if poll.job_group.rank == 0 && self.wait == WordWait::Idle {
            Probed::Again
        } else {
            Probed::Waiting
        })
    }

    /// Records that a wait or a put succeeded.
    pub(crate) fn succeeded(&mut self, now: Instant, outcome: &Outcome) {
        if outcome.kind == OperationKind::WaitUntil {
            self.wait = WordWait::Ended;
            self.round_trips_ns.push(now.since(self.begun));
        }
    }

    pub(crate) fn position(&self) -> String {
        format!("measuring the fabric, {} of {PINGS} round trips", self.pings)
    }

    fn ping(&mut self, poll: &mut Poll<'_>) {
        if self.wait == WordWait::Outstanding {
            return;
        }
        if self.pings >= PINGS {
            self.wait = WordWait::Idle;
            return;
        }
        self.wait = WordWait::Outstanding;
        self.pings += 1;
        self.begun = poll.now;
        let is_large = self.pings > SMALL_PINGS;
        let source =
            if is_large { LocalRange { region: PROBE, offset: 0, length: PROBE_BYTES } } else { NOTHING };
        self.signal(poll, self.partner, source, PROBE);
        self.wait(poll, PING, self.pings, self.partner);
    }

    fn echo(&mut self, poll: &mut Poll<'_>) {
        if self.wait == WordWait::Ended {
            self.wait = WordWait::Idle;
            self.pings += 1;
            self.signal(poll, 0, NOTHING, CONTROL);
        }
        if self.wait == WordWait::Idle && self.pings < PINGS {
            self.wait = WordWait::Outstanding;
            self.wait(poll, PING, self.pings + 1, 0);
        }
    }

    /// Puts the number of pings into a peer's word, after the source's bytes.
    fn signal(
        &self,
        poll: &mut Poll<'_>,
        peer: u16,
        source: LocalRange,
        region: rackloom_protocol::RegionId,
    ) {
        let word = poll.job_group.address(peer, CONTROL, PING);
        let target = if source.length == 0 { word } else { poll.job_group.address(peer, region, 0) };
        let signal = set(word.offset, word.key, self.pings);
        let body = Body::Put { target, source, signal: Some(signal) };
        poll.issuer.submit(Request::new(Tag::Phase { peer, item: 0 }, body));
    }

    fn wait(&self, poll: &mut Poll<'_>, offset: u64, value: u64, peer: u16) {
        let depends_on = Some(NodeId(peer));
        let condition = Condition::AtLeast;
        let body = Body::WaitUntil { region: CONTROL, offset, condition, value, depends_on };
        poll.issuer.submit_urgent(Request::new(Tag::Phase { peer, item: 1 }, body));
    }

    /// Reduces the probe's memory into itself, once per poll.
    fn reduce(&mut self, poll: &mut Poll<'_>, blocks: &mut Blocks) -> Result<Probed, String> {
        if poll.memory.is_busy() {
            return Ok(Probed::Again);
        }
        if self.is_reducing {
            self.reduced_ns.push(poll.now.since(self.begun));
        }
        (self.is_reducing, self.begun) = (true, poll.now);
        // In virtual time this is the work of the device. Two reads and a write of each byte, as of a reduction in a run.
        poll.memory.note_work(3 * PROBE_BYTES, PROBE_BYTES);
        if self.is_combined(poll)? {
            return Ok(Probed::Again);
        }
        for offset in (0..PROBE_BYTES as usize).step_by(WORKED_BYTES_MAX) {
            read(poll.memory, PROBE, offset, &mut blocks.right[..WORKED_BYTES_MAX])?;
            read(poll.memory, PROBE, offset, &mut blocks.left[..WORKED_BYTES_MAX])?;
            let reduced = blocks.reduce(WORKED_BYTES_MAX).map_err(|error| error.to_string())?;
            write(poll.memory, PROBE, offset, reduced)?;
        }
        Ok(Probed::Again)
    }

    /// Lets memory reduce each half of the probe's region into the other one, as it would reduce the operands of a run.
    /// Returns `false` if memory leaves that to the host.
    fn is_combined(&self, poll: &mut Poll<'_>) -> Result<bool, String> {
        const HALF: u64 = PROBE_BYTES / 2;
        let Some(how) = self.how else { return Ok(false) };
        for (target, source) in [(0, HALF), (HALF, 0)] {
            let what =
                Combine { target: (PROBE, target), source: (PROBE, source), length: HALF, how: Some(how) };
            if !combine(poll.memory, &what)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send_measured(&mut self, poll: &mut Poll<'_>) -> Result<Probed, String> {
        let small = self.round_trips_ns[WARM_UP as usize..SMALL_PINGS as usize].to_vec();
        let large = self.round_trips_ns[SMALL_PINGS as usize..].to_vec();
        let measured = Measured::of(small, large, self.reduced_ns[WARM_UP as usize..].to_vec());
        if !self.is_exchanged {
            self.is_exchanged = true;
            write(poll.memory, CONTROL, NUMBERS as usize, &measured.to_bytes())?;
            let source = LocalRange { region: CONTROL, offset: NUMBERS, length: NUMBERS_BYTES as u64 };
            for peer in poll.job_group.others() {
                let target = poll.job_group.address(peer, CONTROL, NUMBERS);
                let signal = Some(set(AGREED, target.key, 1));
                let body = Body::Put { target, source, signal };
                poll.issuer.submit(Request::new(Tag::Phase { peer, item: 2 }, body));
            }
        }
        Ok(if poll.issuer.is_idle() { Probed::Agreed(measured) } else { Probed::Waiting })
    }

    fn receive_measured(&mut self, poll: &mut Poll<'_>) -> Result<Probed, String> {
        if !self.is_exchanged {
            self.is_exchanged = true;
            self.wait = WordWait::Outstanding;
            self.wait(poll, AGREED, 1, 0);
        }
        if self.wait != WordWait::Ended || !poll.issuer.is_idle() {
            return Ok(Probed::Waiting);
        }
        let mut bytes = [0; NUMBERS_BYTES];
        read(poll.memory, CONTROL, NUMBERS as usize, &mut bytes)?;
        let measured = Measured::from_bytes(bytes);
        measured.map(Probed::Agreed).ok_or_else(|| format!("alpha, beta and gamma came as {bytes:02x?}"))
    }
}

const fn set(offset: u64, key: rackloom_protocol::Key, value: u64) -> Signal {
    Signal { region: CONTROL, offset, key, kind: SignalKind::Set, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_half_a_round_trip_beta_what_the_bytes_add_and_gamma_what_reducing_them_takes() {
        let large_ns = vec![2_000 + 4 * PROBE_BYTES; 5];
        let measured = Measured::of(vec![9_000, 2_000, 2_100], large_ns, vec![PROBE_BYTES / 4; 5]);
        assert_eq!(measured.alpha_ns, 1_050.0);
        assert!((measured.ns_per_byte - 4.0).abs() < 0.01, "{measured:?}");
        assert_eq!(measured.reduce_ns_per_byte, 0.25);
        let noisy = Measured::of(vec![100], vec![50], Vec::new());
        assert_eq!((noisy.ns_per_byte, noisy.reduce_ns_per_byte), (0.0, 0.0), "noise is not a negative rate");
    }

    #[test]
    fn the_partner_sits_in_another_server_if_there_is_one() {
        assert_eq!(partner(&[]), 1, "each has its own");
        assert_eq!(partner(&[0, 1, 2]), 1);
        assert_eq!(partner(&[0, 0, 1, 1]), 2);
        assert_eq!(partner(&[3, 3, 3]), 1, "no rank is elsewhere");
    }

    #[test]
    fn numbers_survive_the_transfer_and_invalid_ones_are_refused() {
        let measured = Measured { alpha_ns: 1234.5, ns_per_byte: 0.02, reduce_ns_per_byte: 0.1 };
        assert_eq!(Measured::from_bytes(measured.to_bytes()), Some(measured));
        for invalid in
            [Measured { alpha_ns: f64::NAN, ..measured }, Measured { reduce_ns_per_byte: -1.0, ..measured }]
        {
            assert_eq!(Measured::from_bytes(invalid.to_bytes()), None);
        }
    }
}
