//! Brief status of a seat as plain integers, for a page of shared memory.
//!
//! The number of words follows from the number of ports. Texts do not fit: the reader takes them from an earlier answer of the same process, and a hash
//! shows if they have changed since. The reader trusts no word: words that cannot be right are no status.
//!
//! | words | content |
//! |---|---|
//! | 0, 1 | version of this layout; flags: job finished, its verdict, and which groups are present |
//! | 2 to 5 | time of the counters, incarnation, processor time, bytes through mapped memory |
//! | 6 to 17 | memory: hash of its texts, numbers, NUMA node plus one or zero |
//! | 18 to 21 | pool on a device |
//! | 22 to 25 | operations of the job by path |
//! | 26 to 32 | frames of IP |
//! | then for each port | link and its state, counters, dropped frames by reason |
//!
//! Counters of ports that a brief status does not show are left out.

use std::collections::BTreeMap;

use rackloom_protocol::DropReason;
use rackloom_protocol::link::counters::PortCounters;

use crate::notice::{IpCounters, SeatStatus};
use crate::report::{DEVICE_DROPS, MemoryReport, PathReport, PoolReport, PortReport, Verdict};

/// Version of the layout. It grows when a word changes its meaning.
const VERSION: u64 = 1;

const FINISHED: u64 = 1;
const PASS: u64 = 1 << 1;
const FAIL: u64 = 1 << 2;
const HAS_MEMORY: u64 = 1 << 3;
const HAS_POOL: u64 = 1 << 4;
const HAS_CARRIED: u64 = 1 << 5;
const HAS_IP: u64 = 1 << 6;
const FLAGS: u64 = (HAS_IP << 1) - 1;

const HEAD_WORDS: usize = 33;
/// Bit beside the number of a link that carries no data.
const IS_DOWN: u64 = 1 << 16;
const COUNTERS: usize = 7;
const REASONS: usize = DropReason::ALL.len() + DEVICE_DROPS.len();
const PORT_WORDS: usize = 1 + COUNTERS + 2 + REASONS;

/// Counter of replayed frames among those of link-level retry.
const REPLAYED: &str = "tx_replay";
/// Counter of dropped frames among those of injected faults.
const INJECTED: &str = "dropped";

/// Returns the number of words of a member with this number of ports.
#[must_use]
pub const fn words_of(ports: usize) -> usize {
    HEAD_WORDS + ports * PORT_WORDS
}

/// Figures of one port.
#[derive(Clone, Copy, Debug)]
pub struct PortFigures<'a> {
    /// Index of the link in the plan.
    pub edge: u16,
    /// True if the link carries no data.
    pub is_down: bool,
    /// Counters of the core.
    pub counters: &'a PortCounters,
    /// Frames that injected faults dropped.
    pub injected_drops: u64,
    /// Frames that the wire or its device dropped, by the reasons of [`DEVICE_DROPS`].
    pub device_drops: [u64; DEVICE_DROPS.len()],
}

/// Writes a status as words, in place of those in `words`. The ports of the status are not read, so that a member need not collect them: `ports`
/// has their figures.
pub fn encode<'a>(
    mut status: SeatStatus,
    ports: impl IntoIterator<Item = PortFigures<'a>>,
    words: &mut Vec<u64>,
) {
    words.clear();
    words.extend([VERSION, flags_of(&status)]);
    words.extend(head_numbers(&mut status).map(|number| *number));
    words.push(texts_of(status.memory.as_deref()));
    let mut memory = status.memory.unwrap_or_default();
    words.extend(memory_numbers(&mut memory).map(|number| *number));
    words.push(memory.numa_node.map_or(0, |node| u64::from(node) + 1));
    words.extend(pool_numbers(&mut memory.pool.unwrap_or_default()).map(|number| *number));
    words.extend(carried_numbers(&mut status.carried.unwrap_or_default()).map(|number| *number));
    words.extend(ip_numbers(&mut status.ip.unwrap_or_default()).map(|number| *number));
    debug_assert_eq!(words.len(), HEAD_WORDS, "the groups fill the head");
    for port in ports {
        let PortFigures { edge, is_down, counters, injected_drops, device_drops } = port;
        words.push(u64::from(edge) | if is_down { IS_DOWN } else { 0 });
        words.extend([
            counters.frames_sent,
            counters.bytes_sent,
            counters.data_frames_sent,
            counters.data_bytes_sent,
            counters.retransmitted,
            counters.missing,
            counters.credit_stalls,
            counters.retry.tx_replay,
            injected_drops,
        ]);
        words.extend_from_slice(&counters.dropped);
        words.extend_from_slice(&device_drops);
    }
}

/// Reads a status. `edges`: links of the member, by port. `earlier`: an answer of the same process, which has the texts. `None` if the words are of
/// another version, cannot be right, or have other texts.
#[must_use]
pub fn decode(words: &[u64], edges: &[u16], earlier: &SeatStatus) -> Option<SeatStatus> {
    if words.len() != words_of(edges.len()) {
        return None;
    }
    let (head, ports) = words.split_at(HEAD_WORDS);
    let mut head = head.iter().copied();
    let mut next = || head.next().unwrap_or(0);
    let (version, flags) = (next(), next());
    let has = |flag: u64| flags & flag != 0;
    let is_possible = flags & !FLAGS == 0 && !(has(PASS) && has(FAIL)) && (has(HAS_MEMORY) || !has(HAS_POOL));
    if version != VERSION || !is_possible || has(HAS_MEMORY) != earlier.memory.is_some() {
        return None;
    }
    let mut status = SeatStatus { finished: has(FINISHED), ..SeatStatus::default() };
    status.verdict = if has(PASS) { Some(Verdict::Pass) } else { has(FAIL).then_some(Verdict::Fail) };
    head_numbers(&mut status).into_iter().for_each(|number| *number = next());
    if next() != texts_of(earlier.memory.as_deref()) {
        return None;
    }
    let mut memory = earlier.memory.clone().unwrap_or_default();
    memory_numbers(&mut memory).into_iter().for_each(|number| *number = next());
    memory.numa_node = next().checked_sub(1).map(u32::try_from).transpose().ok()?;
    let mut pool = PoolReport::default();
    pool_numbers(&mut pool).into_iter().for_each(|number| *number = next());
    memory.pool = has(HAS_POOL).then_some(pool);
    status.memory = has(HAS_MEMORY).then_some(memory);
    let mut carried = PathReport::default();
    carried_numbers(&mut carried).into_iter().for_each(|number| *number = next());
    status.carried = has(HAS_CARRIED).then_some(carried);
    let mut ip = IpCounters::default();
    ip_numbers(&mut ip).into_iter().for_each(|number| *number = next());
    status.ip = has(HAS_IP).then_some(ip);
    for (edge, words) in edges.iter().zip(ports.chunks_exact(PORT_WORDS)) {
        let (port, is_down) = decode_port(*edge, words)?;
        status.links_up += u16::from(!is_down);
        status.links_down.extend(is_down.then_some(*edge));
        status.ports.push(port);
    }
    Some(status)
}

/// Returns a port and whether its link carries no data; `None` if it is on another link.
fn decode_port(edge: u16, words: &[u64]) -> Option<(PortReport, bool)> {
    let mut words = words.iter().copied();
    let mut next = || words.next().unwrap_or(0);
    let link = next();
    if link & !IS_DOWN != u64::from(edge) {
        return None;
    }
    let mut port = PortReport { edge, ..PortReport::default() };
    port_numbers(&mut port).into_iter().for_each(|number| *number = next());
    port.retry = occurred(REPLAYED, next()).collect();
    port.injected = occurred(INJECTED, next()).collect();
    port.dropped = reasons().flat_map(|reason| occurred(reason, next())).collect::<BTreeMap<_, _>>();
    Some((port, link & IS_DOWN != 0))
}

fn occurred(name: &str, count: u64) -> impl Iterator<Item = (String, u64)> + use<> {
    (count > 0).then(|| (name.to_owned(), count)).into_iter()
}

fn flags_of(status: &SeatStatus) -> u64 {
    let memory = status.memory.as_ref();
    let flags = [
        (FINISHED, status.finished),
        (PASS, status.verdict == Some(Verdict::Pass)),
        (FAIL, status.verdict == Some(Verdict::Fail)),
        (HAS_MEMORY, memory.is_some()),
        (HAS_POOL, memory.is_some_and(|memory| memory.pool.is_some())),
        (HAS_CARRIED, status.carried.is_some()),
        (HAS_IP, status.ip.is_some()),
    ];
    flags.into_iter().filter(|(_, is_set)| *is_set).fold(0, |all, (flag, _)| all | flag)
}

/// Returns the reasons of dropped frames, in the order of their words.
fn reasons() -> impl Iterator<Item = &'static str> {
    DropReason::ALL.iter().map(|reason| reason.name()).chain(DEVICE_DROPS)
}

const fn head_numbers(status: &mut SeatStatus) -> [&mut u64; 4] {
    [&mut status.at_ns, &mut status.incarnation, &mut status.processor_ns, &mut status.direct_bytes]
}

const fn memory_numbers(memory: &mut MemoryReport) -> [&mut u64; 10] {
    [
        &mut memory.limit_bytes,
        &mut memory.reserved_bytes.current,
        &mut memory.reserved_bytes.high,
        &mut memory.used_bytes.current,
        &mut memory.used_bytes.high,
        &mut memory.allocations,
        &mut memory.frees,
        &mut memory.huge_bytes,
        &mut memory.advised_bytes,
        &mut memory.locked_bytes,
    ]
}

const fn pool_numbers(pool: &mut PoolReport) -> [&mut u64; 4] {
    [
        &mut pool.reserved_bytes.current,
        &mut pool.reserved_bytes.high,
        &mut pool.used_bytes.current,
        &mut pool.used_bytes.high,
    ]
}

const fn carried_numbers(carried: &mut PathReport) -> [&mut u64; 4] {
    [
        &mut carried.direct.operations,
        &mut carried.direct.bytes,
        &mut carried.frames.operations,
        &mut carried.frames.bytes,
    ]
}

const fn ip_numbers(ip: &mut IpCounters) -> [&mut u64; 7] {
    [
        &mut ip.frames_sent,
        &mut ip.bytes_sent,
        &mut ip.frames_received,
        &mut ip.bytes_received,
        &mut ip.queue_full,
        &mut ip.unreached,
        &mut ip.refused,
    ]
}

const fn port_numbers(port: &mut PortReport) -> [&mut u64; COUNTERS] {
    [
        &mut port.frames_sent,
        &mut port.bytes_sent,
        &mut port.data_frames_sent,
        &mut port.data_bytes_sent,
        &mut port.retransmitted,
        &mut port.missing,
        &mut port.credit_stalls,
    ]
}

/// Returns a hash of the texts of a memory, or 0 if it has none.
fn texts_of(memory: Option<&MemoryReport>) -> u64 {
    let Some(MemoryReport { device, tiers, mapped_by, ungranted, leaks, .. }) = memory else { return 0 };
    if (device, tiers, mapped_by) == (&None, &None, &None) && ungranted.is_empty() && leaks.is_empty() {
        return 0;
    }
    // These types serialise without errors. The hash is FNV-1a: it protects from changes, not from an attack.
    let texts = serde_json::to_vec(&(device, tiers, mapped_by, ungranted, leaks)).unwrap_or_default();
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    texts.iter().fold(0xcbf2_9ce4_8422_2325, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Level, PathCount};

    /// Returns counters of which no two are equal.
    fn counters() -> PortCounters {
        let mut counters = PortCounters {
            frames_sent: 11,
            bytes_sent: 12,
            data_frames_sent: 13,
            data_bytes_sent: 14,
            retransmitted: 15,
            missing: 16,
            credit_stalls: 17,
            ..PortCounters::default()
        };
        counters.retry.tx_replay = 5;
        counters.dropped[DropReason::HopCheck as usize] = 7;
        counters
    }

    /// Returns the port of an answer, as far as a brief status shows it.
    fn port(edge: u16) -> PortReport {
        let mut port = PortReport::new(edge, &counters());
        port.retry.retain(|name, _| name == REPLAYED);
        port.injected.insert(INJECTED.to_owned(), 6);
        port.dropped.insert("replayed".to_owned(), 8);
        port
    }

    /// Returns a status with every group, and no number twice in a group.
    fn full() -> SeatStatus {
        let mut memory = MemoryReport {
            numa_node: Some(0),
            device: Some("gpu0".to_owned()),
            ungranted: vec!["no huge pages".to_owned()],
            pool: Some(PoolReport {
                reserved_bytes: Level { current: 1, high: 2 },
                used_bytes: Level { current: 3, high: 4 },
            }),
            ..MemoryReport::default()
        };
        memory_numbers(&mut memory).into_iter().zip(21..).for_each(|(number, value)| *number = value);
        let mut ip = IpCounters::default();
        ip_numbers(&mut ip).into_iter().zip(41..).for_each(|(number, value)| *number = value);
        SeatStatus {
            links_up: 1,
            links_down: vec![9],
            memory: Some(Box::new(memory)),
            finished: true,
            verdict: Some(Verdict::Fail),
            at_ns: 51,
            ports: vec![port(4), port(9)],
            paths: Vec::new(),
            carried: Some(PathReport {
                direct: PathCount { operations: 61, bytes: 62 },
                frames: PathCount { operations: 63, bytes: 64 },
            }),
            ip: Some(ip),
            processor_ns: 52,
            incarnation: u64::MAX,
            direct_bytes: 53,
        }
    }

    fn words(status: SeatStatus) -> Vec<u64> {
        let (mut words, counters, down) = (vec![77; 3], counters(), status.links_down.clone());
        let figures = |edge: u16| PortFigures {
            edge,
            is_down: down.contains(&edge),
            counters: &counters,
            injected_drops: 6,
            device_drops: [0, 0, 0, 0, 0, 8],
        };
        encode(status, EDGES.map(figures), &mut words);
        words
    }

    const EDGES: [u16; 2] = [4, 9];

    #[test]
    fn a_status_is_read_as_it_was_written() {
        let words = words(full());
        assert_eq!(words.len(), words_of(2));
        assert_eq!(decode(&words, &EDGES, &full()), Some(full()));
    }

    #[test]
    fn numbers_are_those_of_the_page_and_texts_those_of_the_earlier_answer() {
        let mut earlier = full();
        (earlier.at_ns, earlier.finished, earlier.verdict) = (1, false, None);
        memory_numbers(earlier.memory.as_mut().expect("memory")).into_iter().for_each(|number| *number = 0);
        assert_eq!(decode(&words(full()), &EDGES, &earlier), Some(full()));
        earlier.memory.as_mut().expect("memory").device = Some("gpu1".to_owned());
        assert_eq!(decode(&words(full()), &EDGES, &earlier), None, "the texts have changed");
        earlier.memory = None;
        assert_eq!(decode(&words(full()), &EDGES, &earlier), None, "there were none");
    }

    #[test]
    fn a_switch_has_ports_alone() {
        let switch = SeatStatus {
            links_up: 2,
            finished: true,
            ports: vec![port(4), port(9)],
            ..SeatStatus::default()
        };
        assert_eq!(decode(&words(switch.clone()), &EDGES, &SeatStatus::default()), Some(switch));
    }

    #[test]
    fn words_of_another_version_length_or_link_are_no_status() {
        let good = words(full());
        let changed = |index: usize, value: u64| {
            let mut words = good.clone();
            words[index] = value;
            decode(&words, &EDGES, &full())
        };
        assert_eq!(changed(0, VERSION + 1), None, "a later version");
        assert_eq!(changed(0, 0), None, "a page that was never written");
        assert_eq!(changed(1, good[1] | PASS), None, "two verdicts");
        assert_eq!(changed(1, good[1] | (FLAGS + 1)), None, "an unknown flag");
        assert_eq!(changed(1, good[1] & !HAS_MEMORY), None, "a pool without memory");
        assert_eq!(changed(17, u64::MAX), None, "an impossible NUMA node");
        assert_eq!(changed(HEAD_WORDS, 5), None, "a link of another member");
        assert_eq!(decode(&good[1..], &EDGES, &full()), None);
        assert_eq!(decode(&good, &EDGES[..1], &full()), None);
        assert_eq!(decode(&[], &[], &full()), None);
    }

    #[test]
    fn any_words_are_a_status_or_none() {
        let good = words(full());
        for index in 0..good.len() {
            for value in [0, 1, 1 << 16, 1 << 32, u64::MAX - 1, u64::MAX] {
                let mut words = good.clone();
                words[index] = value;
                let Some(status) = decode(&words, &EDGES, &full()) else { continue };
                assert_eq!(
                    (status.ports.len(), usize::from(status.links_up) + status.links_down.len()),
                    (2, 2)
                );
                assert!(status.moved_bytes() >= status.direct_bytes);
            }
        }
    }
}
