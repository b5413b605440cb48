//! Communicators of all processes: which GPU is which rank, and which ranks form a group.
//!
//! An address of a communicator is known in its process only. All its ranks write one name, or split one communicator by one color.
//! Logs of old versions have neither; then communicators of the same number of ranks match in their order.

use std::collections::{BTreeMap, HashMap};

use crate::import::nccl_log::line::{Ready, Split};
use crate::model::{Group, RANKS_MAX};

/// Communicator of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Index of the communicator.
    pub(super) communicator: usize,
    /// Index of the GPU.
    pub(super) gpu: usize,
}

/// Communicators that are ready so far.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    /// By process and address. A later one replaces an earlier one.
    members: HashMap<(String, String), Member>,
    /// Index of each GPU by process and device.
    gpus: HashMap<(String, String), usize>,
    /// Index of each communicator by its name.
    names: HashMap<String, usize>,
    list: Vec<Communicator>,
}

/// Communicator with its GPUs by rank.
#[derive(Debug)]
struct Communicator {
    name: String,
    ranks: u32,
    gpus: BTreeMap<u32, usize>,
}

/// Groups of a workload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// Rank of each GPU.
    pub(super) ranks: Vec<u16>,
    /// Ranks of each communicator.
    pub(super) list: Vec<Group>,
    /// For each communicator the number of earlier ones with several ranks.
    pub(super) indices: Vec<u16>,
}

impl Communicators {
    /// Adds a communicator of one process.
    pub(super) fn add(&mut self, ready: &Ready<'_>) -> Result<(), String> {
        let Ready { process, device, communicator, rank, ranks, .. } = *ready;
        if rank >= ranks || ranks as usize > RANKS_MAX {
            return Err(format!("rank {rank} of {ranks} is out of range"));
        }
        let next = self.gpus.len();
        let gpu = *self.gpus.entry((process.to_owned(), device.to_owned())).or_insert(next);
        let name = self.name(ready, gpu)?;
        let index = *self.names.entry(name.clone()).or_insert(self.list.len());
        if index == self.list.len() {
            self.list.push(Communicator { name, ranks, gpus: BTreeMap::new() });
        }
        let known = &mut self.list[index];
        if known.ranks != ranks {
            return Err(format!(
                "communicator {} has {} ranks elsewhere, and {ranks} here",
                known.name, known.ranks
            ));
        }
        if known.gpus.insert(rank, gpu).is_some_and(|other| other != gpu) {
            return Err(format!("two GPUs are rank {rank} of communicator {}", known.name));
        }
        self.members
            .insert((process.to_owned(), communicator.to_owned()), Member { communicator: index, gpu });
        Ok(())
    }

    /// Returns the name that all ranks of a communicator have in common.
    fn name(&self, ready: &Ready<'_>, gpu: usize) -> Result<String, String> {
        if let Some(Split { parent, count, color }) = ready.split {
            let parent = self.find(ready.process, parent).ok_or("its parent is not in the log")?;
            let parent = &self.list[parent.communicator].name;
            return Ok(format!("{parent}, split {count}, color {color}"));
        }
        if let Some(name) = ready.name {
            return Ok(name.to_owned());
        }
        let is_earlier =
            |one: &&Communicator| one.ranks == ready.ranks && one.gpus.values().any(|other| *other == gpu);
        let earlier = self.list.iter().filter(is_earlier).count();
        Ok(format!("number {earlier} of {} ranks", ready.ranks))
    }

    /// Returns the communicator with an address of a process.
    pub(super) fn find(&self, process: &str, address: &str) -> Option<Member> {
        self.members.get(&(process.to_owned(), address.to_owned())).copied()
    }

    /// Returns ranks and groups. The first communicator with the most ranks numbers them.
    pub(super) fn groups(&self) -> Result<Groups, String> {
        let most = self.list.iter().map(|one| one.ranks).max();
        let world = self
            .list
            .iter()
            .find(|one| Some(one.ranks) == most)
            .ok_or("the log has no line with `Init COMPLETE`")?;
        let mut ranks = vec![None; self.gpus.len()];
        for (rank, gpu) in &world.gpus {
            ranks[*gpu] = Some(*rank as u16);
        }
        for communicator in &self.list {
            communicator.check()?;
        }
        let ranks: Option<Vec<u16>> = ranks.into_iter().collect();
        let ranks =
            ranks.ok_or_else(|| format!("a GPU is no rank of the largest communicator, {}", world.name))?;
        let group = |one: &Communicator| Group { ranks: one.gpus.values().map(|gpu| ranks[*gpu]).collect() };
        let list: Vec<_> = self.list.iter().map(group).collect();
        let indices = indices(&list)?;
        Ok(Groups { ranks, list, indices })
    }

    /// Returns the number of GPUs.
    pub(super) fn gpus(&self) -> usize {
        self.gpus.len()
    }
}

/// Returns for each group the number of earlier ones with several ranks.
fn indices(groups: &[Group]) -> Result<Vec<u16>, String> {
    let mut next = 0_usize;
    let mut number = |group: &Group| {
        let index = u16::try_from(next).map_err(|_| "there are more than 65536 communicators".to_owned());
        next += usize::from(group.ranks.len() > 1);
        index
    };
    groups.iter().map(&mut number).collect()
}

impl Communicator {
    /// Checks that each rank has a GPU.
    fn check(&self) -> Result<(), String> {
        match (0..self.ranks).find(|rank| !self.gpus.contains_key(rank)) {
            Some(rank) => Err(format!(
                "rank {rank} of the {} ranks of communicator {} has no line",
                self.ranks, self.name
            )),
            None => Ok(()),
        }
    }
}
