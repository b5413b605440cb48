//! Execution traces of Chakra, the format of ASTRA-sim: one file of protocol buffers per rank.
//!
//! Operations of processors, metadata and storage take no time; dependencies through them stay. Memory accesses are computations. A
//! file that ends with `.json` has the ranks of process groups.

mod groups;
mod messages;
mod records;
mod trace;

use crate::error::{WorkloadError, WorkloadErrors};
use crate::import::chakra::groups::Groups;
use crate::import::chakra::trace::{Shared, Trace, place};
use crate::import::imported::{Content, File, Imported, Options};
use crate::import::notes::Notes;
use crate::import::order::Ordered;
use crate::located::check_at;
use crate::model::{OPERATIONS_MAX, RANKS_MAX, Workload};

/// Reads the traces of all ranks.
pub(super) fn read(files: &[File<'_>], options: &Options) -> Result<Imported, WorkloadErrors> {
    let (names, traces): (Vec<&File<'_>>, Vec<&File<'_>>) = files.iter().partition(|file| file.is_json());
    if let [_, second, ..] = names.as_slice() {
        return Err(WorkloadError::whole("there are two files of groups", "name one of them").of(second.name));
    }
    let traces = by_rank(&traces)?;
    let mut notes = Notes::default();
    let mut groups = Groups::new(traces.len(), names.first().copied(), options)?;
    let mut workload = Workload { phases: vec!["main".to_owned()], ..Workload::default() };
    let (mut places, mut operations) = (Vec::new(), 0);
    for (rank, file) in traces.iter().enumerate() {
        let in_file = |error: WorkloadError| error.of(file.name);
        let mut shared = Shared { machine: &options.machine, groups: &mut groups, notes: &mut notes };
        let trace = Trace::read(file.bytes, rank as u16, &mut shared).map_err(in_file)?;
        let Ordered { operations: list, nodes } = trace.ordered(&mut notes).map_err(in_file)?;
        operations += nodes.len();
        if operations > OPERATIONS_MAX {
            let reason = format!("the traces have more than {OPERATIONS_MAX} operations");
            return Err(WorkloadError::whole(reason, "cut the traces").of(file.name));
        }
        places.push(nodes.iter().map(|node| place(*node)).collect());
        workload.ranks.push(list);
    }
    workload.name = title(&traces);
    workload.groups = groups.list;
    check_at(&workload, &places, |rank| traces[rank].name)?;
    Ok(Imported { content: Content::Workload(workload), notes: notes.finish() })
}

/// Returns the files in the order of their ranks, which their names end with, or else in the order in which they are named.
fn by_rank<'f>(files: &[&File<'f>]) -> Result<Vec<File<'f>>, WorkloadErrors> {
    let Some(first) = files.first() else {
        return Err(WorkloadError::whole("there is no trace", "name one file per rank").of("chakra"));
    };
    if files.len() > RANKS_MAX {
        let reason = format!("there are {} files", files.len());
        return Err(
            WorkloadError::whole(reason, format!("at most {RANKS_MAX} ranks are read")).of(first.name)
        );
    }
    if let Some(packed) = files.iter().find(|file| file.bytes.starts_with(&[0x1F, 0x8B])) {
        return Err(WorkloadError::whole("the file is compressed", "unpack it with gunzip").of(packed.name));
    }
    let mut ranked = Vec::new();
    for file in files {
        let Some(rank) = rank(file.name) else { return Ok(files.iter().map(|file| **file).collect()) };
        ranked.push((rank, **file));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    let wrong = (0..).zip(&ranked).find(|(expected, (rank, _))| rank != expected);
    if let Some((expected, (rank, file))) = wrong {
        let reason = if *rank < expected {
            format!("rank {rank} has two files")
        } else {
            format!("rank {expected} has no file, and this one is of rank {rank}")
        };
        return Err(WorkloadError::whole(reason, "name one file per rank, from 0").of(file.name));
    }
    Ok(ranked.into_iter().map(|(_, file)| file).collect())
}

/// Returns the rank in the name of a file, such as 3 in `trace.3.et`.
fn rank(name: &str) -> Option<u64> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let digits = stem.len() - stem.trim_end_matches(|one: char| one.is_ascii_digit()).len();
    stem[stem.len() - digits..].parse().ok()
}

/// Returns the name of the first file without its rank.
fn title(files: &[File<'_>]) -> String {
    let title = files.first().map_or_else(String::new, File::title);
    let short = title.trim_end_matches(|one: char| one.is_ascii_digit() || ".-_".contains(one));
    if short.is_empty() { "chakra".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests;
