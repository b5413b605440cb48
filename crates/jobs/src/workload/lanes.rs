//! Lanes: a lane is a group with one schedule, on which the group's collectives of one kind and size run again and again.
//!
//! A rank has one signal word per transfer that it receives on a lane, and the word counts the runs. The ranks of a group run its
//! collectives one after the other, and a rank ends a run only when its own puts are visible. So a word never gets a count of a
//! later run before that of an earlier one. Equal schedules of several groups are built once.

use std::collections::HashMap;
use std::sync::Arc;

use rackloom_collectives::{Algorithm, Collective, CollectiveKind, Refused, Request, Schedule, build};
use rackloom_workloads::Group;

use super::error::WorkloadError;

/// Choice of the algorithm of a collective. All processes must choose equally.
pub(crate) type Choose<'a> = &'a dyn Fn(&Request<'_>) -> Result<Algorithm, Refused>;

/// Schedule with the bytes of each rank of its group.
#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) schedule: Schedule,
    /// Bytes by position in the group.
    pub(super) flows: Vec<Flow>,
}

/// Transfers of one rank in one run of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) received_bytes: u64,
    /// Length of the longest transfer to the rank, in bytes.
    pub(super) received_max: u64,
    /// Length of the longest transfer of the rank, in bytes.
    pub(super) sent_max: u64,
}

/// Group with one schedule.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) group: u16,
    pub(super) scheduled: Arc<Scheduled>,
    /// Offset of the first signal word of each position, in bytes.
    pub(super) bases: Vec<u64>,
    /// Number of runs in the workload.
    pub(super) runs: u64,
}

/// Collective of a workload, as far as it decides about the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) group: u16,
    pub(super) kind: CollectiveKind,
    pub(super) bytes: u64,
    pub(super) root: u16,
}

/// Distinct request for a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Distinct {
    collective: Collective,
    bytes: u64,
    ranks: usize,
    servers: Vec<usize>,
}

/// All lanes of a workload, while they are found.
pub(super) struct Lanes<'a> {
    groups: &'a [Group],
    /// Server of each rank of the rack; empty if each has its own.
    servers: &'a [usize],
    choose: Choose<'a>,
    schedules: HashMap<Distinct, Arc<Scheduled>>,
    known: HashMap<Shape, u32>,
    pub(super) lanes: Vec<Lane>,
    /// Bytes of signal words that each rank of the rack has so far.
    pub(super) signal_bytes: Vec<u64>,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(groups: &'a [Group], ranks: usize, servers: &'a [usize], choose: Choose<'a>) -> Self {
        let (schedules, known, lanes) = Default::default();
        Self { groups, servers, choose, schedules, known, lanes, signal_bytes: vec![0; ranks] }
    }

    /// Returns the index of the lane of a collective.
    pub(super) fn lane(&mut self, shape: Shape) -> Result<u32, WorkloadError> {
        if let Some(index) = self.known.get(&shape) {
            return Ok(*index);
        }
        let scheduled = self.scheduled(shape)?;
        let ranks = &self.groups[usize::from(shape.group)].ranks;
        let mut bases = Vec::with_capacity(ranks.len());
        for (rank, program) in ranks.iter().zip(&scheduled.schedule.programs) {
            let bytes = &mut self.signal_bytes[usize::from(*rank)];
            bases.push(*bytes);
            *bytes += 8 * u64::from(program.arrivals);
        }
        let index = self.lanes.len() as u32;
        self.lanes.push(Lane { group: shape.group, scheduled, bases, runs: 0 });
        self.known.insert(shape, index);
        Ok(index)
    }

    fn scheduled(&mut self, shape: Shape) -> Result<Arc<Scheduled>, WorkloadError> {
        let ranks = &self.groups[usize::from(shape.group)].ranks;
        let distinct = Distinct {
            collective: shape.kind.at(shape.root.into()),
            bytes: if shape.kind.moves_data() { shape.bytes } else { 0 },
            ranks: ranks.len(),
            servers: servers_of(ranks, self.servers),
        };
        if let Some(scheduled) = self.schedules.get(&distinct) {
            return Ok(Arc::clone(scheduled));
        }
        let refused =
            |refused: Refused| WorkloadError::Refused { group: shape.group, reason: refused.reason() };
        let request = Request {
            collective: distinct.collective,
            ranks: distinct.ranks,
            // One element is one byte: the values have no meaning.
            elements: usize::try_from(distinct.bytes).unwrap_or(usize::MAX),
            servers: &distinct.servers,
            parts: &[],
        };
        let algorithm = (self.choose)(&request).map_err(refused)?;
        let scheduled = Arc::new(Scheduled::new(build(&request, algorithm).map_err(refused)?));
        self.schedules.insert(distinct, Arc::clone(&scheduled));
        Ok(scheduled)
    }
}

/// Returns the servers of the ranks of a group, numbered in the order of their first rank, so that equal groups are found equal.
fn servers_of(ranks: &[u16], servers: &[usize]) -> Vec<usize> {
    if servers.is_empty() {
        return Vec::new();
    }
    let mut numbers = HashMap::new();
    ranks
        .iter()
        .map(|rank| {
            let next = numbers.len();
            *numbers.entry(servers[usize::from(*rank)]).or_insert(next)
        })
        .collect()
}

impl Scheduled {
    fn new(schedule: Schedule) -> Self {
        let mut flows = vec![Flow::default(); schedule.ranks()];
        for transfer in &schedule.transfers {
            let bytes = transfer.source.length as u64;
            let sender = &mut flows[transfer.from];
            sender.sent_max = sender.sent_max.max(bytes);
            let receiver = &mut flows[transfer.to];
            receiver.received_bytes += bytes;
            receiver.received_max = receiver.received_max.max(bytes);
        }
        Self { schedule, flows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: Choose<'static> = &|_| Ok(Algorithm::Ring);

    fn groups(lists: &[&[u16]]) -> Vec<Group> {
        lists.iter().map(|ranks| Group { ranks: ranks.to_vec() }).collect()
    }

    fn all_reduce(group: u16, bytes: u64) -> Shape {
        Shape { group, kind: CollectiveKind::AllReduce, bytes, root: 0 }
    }

    #[test]
    fn groups_share_schedules_and_not_words() {
        let groups = groups(&[&[0, 1, 2], &[2, 4, 3]]);
        let mut lanes = Lanes::new(&groups, 5, &[], RING);
        let found = [all_reduce(0, 300), all_reduce(1, 300), all_reduce(0, 300), all_reduce(1, 60)];
        assert_eq!(found.map(|shape| lanes.lane(shape).unwrap()), [0, 1, 0, 2]);
        let [first, second, third] = &lanes.lanes[..] else { panic!("three lanes") };
        assert!(Arc::ptr_eq(&first.scheduled, &second.scheduled));
        assert!(!Arc::ptr_eq(&first.scheduled, &third.scheduled));
        // A ring of three receives twice in each of two halves: 4 words.
        assert_eq!((&first.bases[..], &second.bases[..]), (&[0, 0, 0][..], &[32, 0, 0][..]));
        assert_eq!(third.bases, [64, 32, 32]);
        assert_eq!(lanes.signal_bytes, [32, 32, 96, 64, 64]);
        let flow = Flow { received_bytes: 400, received_max: 100, sent_max: 100 };
        assert_eq!(first.scheduled.flows, [flow; 3]);
    }

    #[test]
    fn servers_of_a_group_are_counted_from_its_first_rank() {
        assert_eq!(servers_of(&[5, 2, 4, 3], &[0, 0, 1, 1, 2, 2]), [0, 1, 0, 1]);
        assert!(servers_of(&[1, 0], &[]).is_empty());
    }

    #[test]
    fn a_collective_that_no_schedule_performs_is_refused() {
        let groups = groups(&[&[0, 1]]);
        let mut lanes = Lanes::new(&groups, 2, &[], RING);
        let shape = Shape { kind: CollectiveKind::AllToAll, ..all_reduce(0, 8) };
        let error = lanes.lane(shape).unwrap_err().to_string();
        assert_eq!(
            error,
            "collective of group 0: ring cannot do all-to-all; hint: all-to-all is done by direct, pairwise"
        );
    }
}
