//! Results of a workload: iteration time, exposed communication, phases, and the use of links.
//!
//! All times of one run are on one clock. A rank computes, or it does not: the time from the begin of the workload to the rank's end
//! in which it does not compute is its exposed communication. It includes waits for ranks that compute longer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workload of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadPart {
    /// Name of the workload.
    pub name: String,
    /// Ranks that the workload states, with those that have no operations.
    #[serde(default)]
    pub ranks_stated: u64,
    /// Operations of the rank.
    pub operations: u64,
    /// Operations that have ended.
    pub operations_over: u64,
    /// Time in nanoseconds in which the rank computed.
    pub compute_ns: u64,
    /// Messages, and transfers of collectives, that the rank sent.
    pub messages: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Begin of the workload in nanoseconds, on the run's clock; absent if the rank has no operation.
    pub began_ns: Option<u64>,
    /// End of the rank's last operation in nanoseconds.
    pub ended_ns: Option<u64>,
    /// Phases of the workload, in its order.
    pub phases: Vec<PhasePart>,
}

/// Phase of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePart {
    /// Name of the phase.
    pub name: String,
    /// Operations of the phase that have ended.
    pub operations: u64,
    /// Begin of the first operation in nanoseconds, on the run's clock; absent if there was none.
    pub began_ns: Option<u64>,
    /// End of the last operation in nanoseconds.
    pub ended_ns: Option<u64>,
    /// Time in nanoseconds in which the rank computed.
    pub compute_ns: u64,
    /// Bytes of messages and transfers that the rank sent.
    pub bytes: u64,
}

/// Workload of the whole rack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadReport {
    /// Name of the workload.
    pub name: String,
    /// Ranks that the workload states, with those that have no operations. 0 in reports that do not have it.
    #[serde(default)]
    pub ranks_stated: u64,
    /// Operations of all ranks that have ended.
    pub operations: u64,
    /// Messages, and transfers of collectives, of all ranks.
    pub messages: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Time from the first rank's begin to the last rank's end, in nanoseconds.
    pub iteration_ns: u64,
    /// Median of the ranks' exposed communication, in nanoseconds: the time from the rank's begin to its end in which it does not
    /// compute.
    pub exposed_median_ns: u64,
    /// Longest exposed communication of a rank, in nanoseconds.
    pub exposed_max_ns: u64,
    /// Longest time that a rank computed, in nanoseconds.
    pub compute_max_ns: u64,
    /// Phases, in the order of the workload.
    pub phases: Vec<PhaseReport>,
    /// Ranks that have operations, in order.
    pub ranks: Vec<RankReport>,
    /// Use of each direction of each link, in the order of the report's links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkUse>,
}

/// Phase of the whole rack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReport {
    /// Name of the phase.
    pub name: String,
    /// Operations of all ranks that have ended.
    pub operations: u64,
    /// Begin of the phase's first operation, in nanoseconds from the begin of the workload.
    pub began_ns: u64,
    /// End of the phase's last operation, in nanoseconds from the begin of the workload.
    pub ended_ns: u64,
    /// Longest time that a rank computed in the phase, in nanoseconds.
    pub compute_max_ns: u64,
    /// Bytes that all ranks sent in the phase.
    pub bytes: u64,
}

/// One rank of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankReport {
    /// Name of the node.
    pub name: String,
    /// Operations that have ended.
    pub operations: u64,
    /// Begin in nanoseconds after that of the first rank.
    pub began_ns: u64,
    /// End in nanoseconds after the begin of the first rank.
    pub ended_ns: u64,
    /// Time in nanoseconds in which the rank computed.
    pub compute_ns: u64,
    /// Time in nanoseconds from its begin to its end in which the rank did not compute.
    pub exposed_ns: u64,
    /// Messages, and transfers of collectives, that the rank sent.
    pub messages: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// Use of one direction of one link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkUse {
    /// Name of the direction, such as `n0->n1`.
    pub name: String,
    /// Bytes of its frames in the whole run, without preambles and gaps.
    pub bytes: u64,
    /// Share of the iteration time in which the link was busy with these frames, from 0 to 1. It counts the bytes that count against the
    /// rate: accounted bytes in virtual time, bytes with preambles and gaps in processes. Absent if the link states no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl WorkloadPart {
    /// Returns begin and end, if the rank has performed an operation.
    fn span(&self) -> Option<(u64, u64)> {
        Some((self.began_ns?, self.ended_ns?))
    }
}

impl WorkloadReport {
    /// Joins the parts of the ranks with the names of their nodes; `None` if no rank performed a workload.
    #[must_use]
    pub fn of<'a>(parts: impl Iterator<Item = (&'a str, &'a WorkloadPart)> + Clone) -> Option<Self> {
        let (_, first) = parts.clone().next()?;
        let spans = || parts.clone().filter_map(|(_, part)| part.span());
        let origin_ns = spans().map(|(began_ns, _)| began_ns).min().unwrap_or(0);
        let ended_ns = spans().map(|(_, ended_ns)| ended_ns).max().unwrap_or(0);
        let ranks: Vec<_> = parts.clone().filter_map(|(name, part)| rank(name, part, origin_ns)).collect();
        let mut exposed: Vec<_> = ranks.iter().map(|rank| rank.exposed_ns).collect();
        exposed.sort_unstable();
        Some(Self {
            name: first.name.clone(),
            ranks_stated: first.ranks_stated,
            operations: ranks.iter().map(|rank| rank.operations).sum(),
            messages: ranks.iter().map(|rank| rank.messages).sum(),
            bytes: ranks.iter().map(|rank| rank.bytes).sum(),
            iteration_ns: ended_ns.saturating_sub(origin_ns),
            exposed_median_ns: exposed.get(exposed.len() / 2).copied().unwrap_or(0),
            exposed_max_ns: exposed.last().copied().unwrap_or(0),
            compute_max_ns: ranks.iter().map(|rank| rank.compute_ns).max().unwrap_or(0),
            phases: phases(parts.map(|(_, part)| part), origin_ns),
            ranks,
            links: Vec::new(),
        })
    }

    /// Adds the use of links: both directions of each link with the bytes that count against its rate, and the rate of a link by its index.
    /// The shares of `links` are replaced.
    pub fn add_links(
        &mut self,
        links: impl IntoIterator<Item = (LinkUse, u64)>,
        rate_bits_per_s: impl Fn(usize) -> Option<u64>,
    ) {
        let iteration_s = self.iteration_ns as f64 / 1e9;
        let share = |index: usize, bytes: u64| {
            let rate = rate_bits_per_s(index / 2).filter(|_| iteration_s > 0.0)?;
            Some((bytes as f64 * 8.0 / (rate as f64 * iteration_s)).min(1.0))
        };
        let of_link = |(index, (link, load_bytes))| LinkUse { share: share(index, load_bytes), ..link };
        self.links = links.into_iter().enumerate().map(of_link).collect();
    }
}

fn rank(name: &str, part: &WorkloadPart, origin_ns: u64) -> Option<RankReport> {
    let (began_ns, ended_ns) = part.span()?;
    Some(RankReport {
        name: name.to_owned(),
        operations: part.operations_over,
        began_ns: began_ns.saturating_sub(origin_ns),
        ended_ns: ended_ns.saturating_sub(origin_ns),
        compute_ns: part.compute_ns,
        exposed_ns: ended_ns.saturating_sub(began_ns).saturating_sub(part.compute_ns),
        messages: part.messages,
        bytes: part.bytes,
    })
}

/// Joins the phases of all ranks. All ranks have the same list.
fn phases<'a>(parts: impl Iterator<Item = &'a WorkloadPart>, origin_ns: u64) -> Vec<PhaseReport> {
    let mut joined: Vec<(PhaseReport, Option<(u64, u64)>)> = Vec::new();
    for part in parts {
        for (index, phase) in part.phases.iter().enumerate() {
            if index == joined.len() {
                joined.push((PhaseReport { name: phase.name.clone(), ..PhaseReport::default() }, None));
            }
            let (report, span) = &mut joined[index];
            report.operations += phase.operations;
            report.bytes += phase.bytes;
            report.compute_max_ns = report.compute_max_ns.max(phase.compute_ns);
            if let (Some(began_ns), Some(ended_ns)) = (phase.began_ns, phase.ended_ns) {
                let (first_ns, last_ns) = span.unwrap_or((began_ns, ended_ns));
                *span = Some((first_ns.min(began_ns), last_ns.max(ended_ns)));
            }
        }
    }
    let finish = |(mut report, span): (PhaseReport, Option<(u64, u64)>)| {
        let (began_ns, ended_ns) = span.unwrap_or((origin_ns, origin_ns));
        report.began_ns = began_ns.saturating_sub(origin_ns);
        report.ended_ns = ended_ns.saturating_sub(origin_ns);
        report
    };
    joined.into_iter().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, began_ns: u64, ended_ns: u64, compute_ns: u64) -> PhasePart {
        let (began_ns, ended_ns) = (Some(began_ns), Some(ended_ns));
        PhasePart { name: name.to_owned(), operations: 2, began_ns, ended_ns, compute_ns, bytes: 5 }
    }

    fn part(began_ns: u64, ended_ns: u64, compute_ns: u64, phases: Vec<PhasePart>) -> WorkloadPart {
        WorkloadPart {
            name: "w".to_owned(),
            ranks_stated: 4,
            operations: 4,
            operations_over: 4,
            compute_ns,
            messages: 1,
            bytes: 10,
            began_ns: Some(began_ns),
            ended_ns: Some(ended_ns),
            phases,
        }
    }

    fn report() -> WorkloadReport {
        let idle = WorkloadPart {
            name: "w".to_owned(),
            phases: vec![
                PhasePart { name: "f".to_owned(), ..PhasePart::default() },
                PhasePart { name: "b".to_owned(), ..PhasePart::default() },
            ],
            ..WorkloadPart::default()
        };
        let parts = [
            ("n0", part(110, 200, 60, vec![phase("f", 110, 150, 40), phase("b", 150, 200, 20)])),
            ("n1", part(100, 190, 90, vec![phase("f", 105, 160, 60), phase("b", 165, 190, 30)])),
            ("n2", part(100, 180, 10, vec![phase("f", 100, 170, 10), phase("b", 170, 180, 0)])),
            ("n3", idle),
        ];
        WorkloadReport::of(parts.iter().map(|(name, part)| (*name, part))).unwrap()
    }

    #[test]
    fn an_iteration_goes_from_the_first_begin_to_the_last_end() {
        let report = report();
        assert_eq!((report.iteration_ns, report.compute_max_ns), (100, 90));
        let exposed: Vec<_> = report.ranks.iter().map(|rank| (&rank.name[..], rank.exposed_ns)).collect();
        assert_eq!(exposed, [("n0", 30), ("n1", 0), ("n2", 70)], "a rank without operations is left out");
        assert_eq!(report.ranks_stated, 4, "it is counted");
        assert_eq!((report.exposed_median_ns, report.exposed_max_ns), (30, 70));
        assert_eq!((report.operations, report.messages, report.bytes), (12, 3, 30));
        assert_eq!(WorkloadReport::of(std::iter::empty()), None);
    }

    #[test]
    fn a_link_is_used_for_a_share_of_the_iteration() {
        let mut report = report();
        let links = [("n0->n1", 5), ("n1->n0", 900), ("n1->n2", 7), ("n2->n1", 0)];
        let links = links.map(|(name, load_bytes)| {
            (LinkUse { name: name.to_owned(), bytes: 10 * load_bytes, share: None }, load_bytes)
        });
        // 100 ns of 8 Gbit/s are 100 bytes. The second link states no rate.
        let rate = |index| (index == 0).then_some(8_000_000_000);
        report.add_links(links, rate);
        assert_eq!(report.links[0].bytes, 50);
        let shares: Vec<_> = report.links.iter().map(|link| link.share).collect();
        assert_eq!(shares, [Some(0.05), Some(1.0), None, None]);
    }

    #[test]
    fn phases_are_joined_over_all_ranks() {
        let phases = report().phases;
        let spans: Vec<_> = phases.iter().map(|phase| (phase.began_ns, phase.ended_ns)).collect();
        assert_eq!(spans, [(0, 70), (50, 100)]);
        assert_eq!(phases[0].compute_max_ns, 60);
        assert_eq!((phases[1].operations, phases[1].bytes), (6, 15));
    }
}
