//! Groups of ranks that perform collectives: from a file of names, from dimensions, or all ranks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{WorkloadError, WorkloadErrors};
use crate::import::chakra::messages::Node;
use crate::import::imported::{File, Options};
use crate::import::notes::Notes;
use crate::model::Group;

/// Groups that nodes have named so far.
#[derive(Debug)]
pub(super) struct Groups<'o> {
    ranks: usize,
    /// Dimensions of the topology, the fastest first.
    dimensions: &'o [u32],
    /// Ranks by the name of a process group; `None` without such a file.
    named: Option<BTreeMap<String, Vec<u16>>>,
    /// Groups that are used.
    known: BTreeMap<Key, Known>,
    /// Groups of several ranks that are used.
    pub(super) list: Vec<Group>,
}

/// Identity of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// All ranks.
    All,
    /// Name of a process group.
    Named(String),
    /// Involved dimensions, and the rank with coordinate 0 in them.
    Along(Vec<bool>, u32),
}

/// Group that is used.
#[derive(Debug)]
struct Known {
    /// Ranks in ascending order.
    sorted: Vec<u16>,
    /// Index of the group; `None` if it has one rank.
    index: Option<u16>,
}

/// Reason and hint.
type Refused = (String, &'static str);

const DIMENSIONS: &str = "state the ranks of each dimension of the topology, the fastest first";

impl<'o> Groups<'o> {
    /// Returns the groups of a trace with `ranks` ranks. `file` has the names of process groups.
    pub(super) fn new(
        ranks: usize,
        file: Option<&File<'_>>,
        options: &'o Options,
    ) -> Result<Self, WorkloadErrors> {
        let named = file.map(|file| read(file, ranks)).transpose()?;
        let dimensions = options.dimensions.as_slice();
        let product =
            dimensions.iter().try_fold(1_usize, |product, size| product.checked_mul(*size as usize));
        if !dimensions.is_empty() && product != Some(ranks) {
            let reason = format!("the dimensions {dimensions:?} do not make {ranks} ranks");
            return Err(WorkloadError::whole(reason, DIMENSIONS).of("dimensions"));
        }
        Ok(Self { ranks, dimensions, named, known: BTreeMap::new(), list: Vec::new() })
    }

    /// Returns the group of a node of a rank, or `None` if the rank is alone in it.
    pub(super) fn of(&mut self, node: &Node, rank: u16, notes: &mut Notes) -> Result<Option<u16>, Refused> {
        let key = self.key(node, rank, notes)?;
        if !self.known.contains_key(&key) {
            self.insert(key.clone())?;
        }
        let known = self.known.get(&key).filter(|known| known.sorted.binary_search(&rank).is_ok());
        let Some(known) = known else {
            return Err((format!("rank {rank} is no member of its group"), "correct the file of groups"));
        };
        if known.index.is_none() {
            notes.count("collectives of a single rank that are left out");
        }
        Ok(known.index)
    }

    /// Returns the identity of the group of a node.
    fn key(&self, node: &Node, rank: u16, notes: &mut Notes) -> Result<Key, Refused> {
        let name = node.text("pg_name").or_else(|| node.text("comm_group")).filter(|name| !name.is_empty());
        match name {
            Some(name) if self.named.is_some() => return Ok(Key::Named(name)),
            Some(_) => notes.count(
                "collectives of a named group without a file of groups, which use dimensions or all ranks",
            ),
            None => {}
        }
        let involved = node.booleans("involved_dim").unwrap_or_default();
        if involved.iter().all(|is_involved| *is_involved) {
            return Ok(Key::All);
        }
        if involved.len() != self.dimensions.len() {
            let (stated, used) = (self.dimensions.len(), involved.len());
            return Err((
                format!("it involves some of {used} dimensions, and {stated} are stated"),
                DIMENSIONS,
            ));
        }
        Ok(Key::Along(involved.to_vec(), self.first(involved, rank)))
    }

    fn insert(&mut self, key: Key) -> Result<(), Refused> {
        let ranks = match &key {
            Key::All => (0..self.ranks).map(|rank| rank as u16).collect(),
            Key::Named(name) => match self.named.as_ref().and_then(|named| named.get(name)) {
                Some(ranks) => ranks.clone(),
                None => {
                    let reason = format!("there is no process group {name}");
                    return Err((reason, "add it to the file of groups: {\"0\": [0, 1, 2, 3]}"));
                }
            },
            Key::Along(involved, first) => self.along(involved, *first),
        };
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let mut index = None;
        if ranks.len() > 1 {
            let next = u16::try_from(self.list.len());
            index = Some(
                next.map_err(|_| ("the trace has more than 65536 groups".to_owned(), "use fewer groups"))?,
            );
            self.list.push(Group { ranks });
        }
        self.known.insert(key, Known { sorted, index });
        Ok(())
    }

    /// Returns the ranks that differ from `first` in the involved dimensions only.
    fn along(&self, involved: &[bool], first: u32) -> Vec<u16> {
        let mut ranks = vec![first];
        let mut stride = 1;
        for (size, is_involved) in self.dimensions.iter().zip(involved) {
            if *is_involved {
                let steps = (0..*size).map(|step| step * stride);
                ranks = steps.flat_map(|step| ranks.iter().map(move |rank| rank + step)).collect();
            }
            stride *= size;
        }
        ranks.into_iter().map(|rank| rank as u16).collect()
    }

    /// Returns the rank with coordinate 0 in the involved dimensions.
    fn first(&self, involved: &[bool], rank: u16) -> u32 {
        let (mut first, mut stride, mut rest) = (0, 1, u32::from(rank));
        for (size, is_involved) in self.dimensions.iter().zip(involved) {
            first += if *is_involved { 0 } else { rest % size * stride };
            (rest, stride) = (rest / size, stride * size);
        }
        first
    }

    /// Returns the position of a rank in a group.
    pub(super) fn position(&self, group: u16, rank: u64) -> Option<u16> {
        let ranks = &self.list.get(usize::from(group))?.ranks;
        ranks.iter().position(|member| u64::from(*member) == rank).map(|position| position as u16)
    }
}

/// Reads a file of groups.
fn read(file: &File<'_>, ranks: usize) -> Result<BTreeMap<String, Vec<u16>>, WorkloadErrors> {
    const HINT: &str = "write {\"0\": [0, 1, 2, 3]}";
    let value: Value = serde_json::from_slice(file.bytes).map_err(|error| {
        let reason = format!("the file is no JSON: {error}");
        WorkloadError::line(error.line().max(1), error.column().max(1), reason, HINT).of(file.name)
    })?;
    let Value::Object(entries) = value else {
        return Err(WorkloadError::whole("the file is no table of groups", HINT).of(file.name));
    };
    let mut groups = BTreeMap::new();
    for (name, members) in entries {
        let rank = |value: &Value| {
            let rank = value.as_u64().filter(|rank| *rank < ranks as u64);
            rank.map(|rank| rank as u16)
        };
        let members = members.as_array().and_then(|list| list.iter().map(rank).collect::<Option<Vec<_>>>());
        let Some(members) = members.filter(|members| !members.is_empty()) else {
            let reason = format!("group {name} is no list of ranks below {ranks}");
            return Err(WorkloadError::whole(reason, HINT).of(file.name));
        };
        groups.insert(name, members);
    }
    Ok(groups)
}
