//! Balance of a run's load over its links: in each phase, the busiest direction against the mean.
//!
//! A phase is a part of the job with its own use of the links, such as one algorithm at one size. The first phase is always the whole run.
//! A direction's share is the part of its rate that it used. In virtual time it counts the bytes by which the simulator divides the rate: frames
//! with the headers of the link's profile, checks, padding, preambles and gaps. Processes count frames with preambles and gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assemble::LinkReport;
use super::topology::Topology;

/// Bytes of preamble and gap of a frame, which the counters of a link leave out.
const BYTES_BESIDE_FRAME: u64 = 20;

/// Returns the bytes of frames with their preambles and gaps. `bytes` are those that the counters of a link have.
#[must_use]
pub const fn with_preambles(bytes: u64, frames: u64) -> u64 {
    bytes.saturating_add(frames.saturating_mul(BYTES_BESIDE_FRAME))
}

/// Name of the phase that is the whole run.
const WHOLE_RUN: &str = "whole run";

/// Balance of the load in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseBalance {
    /// Name of the phase, such as `all-reduce ring 1048576 B`.
    pub name: String,
    /// Begin in nanoseconds, on the run's clock.
    pub began_ns: u64,
    /// End in nanoseconds.
    pub ended_ns: u64,
    /// Bytes of each direction that count against its rate, in the order of the report's `links`: accounted bytes in virtual time, bytes with
    /// preambles and gaps in processes.
    pub bytes: Vec<u64>,
    /// Name of the direction that sent most; absent if none sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<String>,
    /// Bytes of the busiest direction divided by the mean over the directions that sent in the whole run; 1 is even, 0 is no load.
    pub imbalance: f64,
    /// Mean share of the rate over these directions, from 0 to 1. Absent if a link has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_mean: Option<f64>,
    /// Greatest share of the rate. Absent if a link has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_max: Option<f64>,
    /// Name of the direction with this share. With unequal rates it may be another one than `busiest`. Absent if a link has no rate, or if none
    /// sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest: Option<String>,
}

/// Bytes of each direction in one phase, before they are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseBytes {
    /// Name of the phase.
    pub name: String,
    /// Begin in nanoseconds, on the run's clock.
    pub began_ns: u64,
    /// End in nanoseconds.
    pub ended_ns: u64,
    /// Bytes of each direction that count against its rate, in the order of the report's `links`.
    pub bytes: Vec<u64>,
}

/// Returns the balance of the whole run and of its phases.
#[must_use]
pub fn balance(
    links: &[LinkReport],
    topology: Option<&Topology>,
    elapsed_ns: u64,
    phases: Vec<PhaseBytes>,
) -> Vec<PhaseBalance> {
    let bytes: Vec<u64> = links.iter().map(LinkReport::load_bytes).collect();
    let is_used: Vec<bool> = bytes.iter().map(|bytes| *bytes > 0).collect();
    let rate = |direction: usize| topology?.links.get(direction / 2)?.rate_bits_per_s;
    let rates: Option<Vec<u64>> = (0..links.len()).map(rate).collect();
    let whole = PhaseBytes { name: WHOLE_RUN.to_owned(), began_ns: 0, ended_ns: elapsed_ns, bytes };
    let of = |phase: PhaseBytes| one(phase, links, &is_used, rates.as_deref());
    std::iter::once(whole).chain(phases).map(of).collect()
}

fn one(phase: PhaseBytes, links: &[LinkReport], is_used: &[bool], rates: Option<&[u64]>) -> PhaseBalance {
    let used = || (0..phase.bytes.len()).filter(|direction| is_used[*direction]);
    let count = used().count().max(1) as f64;
    let mean = used().map(|direction| phase.bytes[direction] as f64).sum::<f64>() / count;
    let busiest = used().max_by_key(|direction| (phase.bytes[*direction], std::cmp::Reverse(*direction)));
    let busiest = busiest.filter(|direction| phase.bytes[*direction] > 0);
    let seconds = phase.ended_ns.saturating_sub(phase.began_ns) as f64 / 1e9;
    let share = |direction: usize, rates: &[u64]| {
        let possible = rates[direction] as f64 / 8.0 * seconds;
        if possible > 0.0 { phase.bytes[direction] as f64 / possible } else { 0.0 }
    };
    let shares: Option<Vec<f64>> =
        rates.map(|rates| used().map(|direction| share(direction, rates)).collect());
    // Of equal shares, that of the busiest direction counts, so that equal rates have one name.
    let rank = |direction: usize, share: f64| (share, Some(direction) == busiest);
    let fullest = shares.as_ref().and_then(|shares| {
        let known = used().zip(shares.iter().copied()).filter(|(_, share)| *share > 0.0);
        known.reduce(|best, one| if rank(one.0, one.1) > rank(best.0, best.1) { one } else { best })
    });
    PhaseBalance {
        fullest: fullest.map(|(direction, _)| links[direction].name.clone()),
        busiest: busiest.map(|direction| links[direction].name.clone()),
        imbalance: busiest.map_or(0.0, |direction| phase.bytes[direction] as f64 / mean),
        share_mean: shares.as_ref().map(|shares| shares.iter().sum::<f64>() / count),
        share_max: shares.as_ref().map(|shares| shares.iter().copied().fold(0.0, f64::max)),
        name: phase.name,
        began_ns: phase.began_ns,
        ended_ns: phase.ended_ns,
        bytes: phase.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Context, MemberReport, MemberSeat, MemberState, PortReport, Report, TopologyLink};

    /// Reports the links of two nodes that sent these numbers of bytes to each other in frames of 980 bytes.
    fn links(sent: [u64; 2]) -> Vec<LinkReport> {
        let members: Vec<MemberReport> = ["a", "b"]
            .iter()
            .zip(sent)
            .map(|(name, bytes)| MemberReport {
                ports: vec![PortReport {
                    frames_sent: bytes / 1000,
                    bytes_sent: bytes / 1000 * 980,
                    ..PortReport::default()
                }],
                ..MemberReport::silent(*name, None, MemberState::Finished)
            })
            .collect();
        let seat = |name: &str| MemberSeat { name: name.to_owned(), has_job: true };
        let context =
            Context { members: vec![seat("a"), seat("b")], links: vec![(0, 1)], ..Context::default() };
        Report::assemble(context, &members).links
    }

    fn topology(rate_bits_per_s: Option<u64>) -> Topology {
        let link = TopologyLink { name: "a--b".into(), b: 1, rate_bits_per_s, ..TopologyLink::default() };
        Topology { links: vec![link], ..Topology::default() }
    }

    #[test]
    fn the_share_is_the_part_of_the_rate_and_the_imbalance_is_the_greatest_over_the_mean() {
        // 8 Gbit/s are 1 byte per nanosecond.
        let phases = balance(&links([3000, 1000]), Some(&topology(Some(8_000_000_000))), 6000, Vec::new());
        let whole = &phases[0];
        assert_eq!((whole.busiest.as_deref(), whole.bytes.as_slice()), (Some("a->b"), &[3000, 1000][..]));
        assert_eq!((whole.imbalance, whole.share_max, whole.share_mean), (1.5, Some(0.5), Some(2.0 / 6.0)));
    }

    #[test]
    fn shares_and_imbalance_count_accounted_bytes_where_they_are_known() {
        let mut links = links([3000, 1000]);
        (links[0].accounted_bytes, links[1].accounted_bytes) = (1500, 900);
        let whole = balance(&links, Some(&topology(Some(8_000_000_000))), 3000, Vec::new()).remove(0);
        assert_eq!((whole.bytes.as_slice(), whole.imbalance), (&[1500, 900][..], 1.25));
        assert_eq!((whole.share_max, whole.share_mean), (Some(0.5), Some(0.4)));
    }

    #[test]
    fn a_phase_counts_the_directions_of_the_whole_run() {
        let phase = PhaseBytes { name: "p".into(), began_ns: 0, ended_ns: 1000, bytes: vec![0, 500] };
        let phases = balance(&links([3000, 1000]), None, 6000, vec![phase]);
        assert_eq!((phases[1].imbalance, phases[1].share_max), (2.0, None));
        assert_eq!(phases[1].busiest.as_deref(), Some("b->a"));
    }

    #[test]
    fn the_greatest_share_has_the_name_of_its_direction() {
        let mut links = links([3000, 1000]);
        links.extend(links.clone());
        links[2].name = "a->c".to_owned();
        links[3].name = "c->a".to_owned();
        let slow = TopologyLink { rate_bits_per_s: Some(800_000_000), ..topology(None).links[0].clone() };
        let fast = TopologyLink { rate_bits_per_s: Some(8_000_000_000), ..slow.clone() };
        let of = |links: &[LinkReport], rates: [&TopologyLink; 2]| {
            let topology = Topology { links: rates.map(Clone::clone).to_vec(), ..Topology::default() };
            balance(links, Some(&topology), 60_000, Vec::new()).remove(0)
        };
        let equal = of(&links, [&fast, &fast]);
        assert_eq!((equal.busiest, equal.fullest), (Some("a->b".into()), Some("a->b".into())));
        // The second link is ten times slower, and both carry equally much.
        let unequal = of(&links, [&fast, &slow]);
        assert_eq!((unequal.busiest.as_deref(), unequal.fullest.as_deref()), (Some("a->b"), Some("a->c")));
        assert_eq!(unequal.share_max, Some(0.5));
    }

    #[test]
    fn a_run_without_frames_has_no_load() {
        let phases = balance(&links([0, 0]), Some(&topology(Some(1))), 0, Vec::new());
        assert_eq!((phases[0].imbalance, phases[0].busiest.as_deref()), (0.0, None));
        assert_eq!((phases[0].share_max, phases[0].share_mean), (Some(0.0), Some(0.0)));
        assert_eq!(phases[0].fullest, None);
    }
}
