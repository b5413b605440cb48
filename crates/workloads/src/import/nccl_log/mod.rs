//! Logs of NCCL with `NCCL_DEBUG=INFO` and `NCCL_DEBUG_SUBSYS=INIT,COLL`, of all ranks in one or several files.
//!
//! Calls of one stream run one after the other; messages that one group of calls sends and receives run together. The log has no
//! times, so nothing is computed between calls.

mod communicators;
mod line;

use std::collections::HashMap;

use rackloom_collectives::CollectiveKind;

use crate::error::{Place, WorkloadError, WorkloadErrors};
use crate::import::imported::{Content, File, Imported};
use crate::import::nccl_log::communicators::{Communicators, Groups, Member};
use crate::import::nccl_log::line::{Call, Event, Kind};
use crate::import::notes::Notes;
use crate::located::check_at;
use crate::model::{OPERATIONS_MAX, RankOperations, Work, Workload};

const SETTINGS: &str = "run all ranks with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL";

/// Call with its place.
#[derive(Debug)]
struct Called<'f> {
    call: Call<'f>,
    member: Member,
    file: &'f str,
    line: usize,
}

/// Reads the logs of all ranks.
pub(super) fn read(files: &[File<'_>]) -> Result<Imported, WorkloadErrors> {
    let (communicators, calls) = events(files)?;
    let first = files.first().map_or("", |file| file.name);
    let groups = communicators.groups().map_err(|reason| WorkloadError::whole(reason, SETTINGS).of(first))?;
    let mut notes = Notes::default();
    let mut gpus = vec![Gpu::default(); communicators.gpus()];
    for called in &calls {
        let gpu = &mut gpus[called.member.gpu];
        gpu.file = called.file;
        let added = gpu.add(called, &groups, &mut notes);
        added.map_err(|reason| refused(called.line, reason, "correct the line").of(called.file))?;
    }
    if !calls.is_empty() {
        notes.count("logs without times, so that no rank computes between its calls");
    }
    let files: Vec<_> = in_order(&groups.ranks, gpus.iter().map(|gpu| gpu.file));
    let places = in_order(&groups.ranks, gpus.iter().map(|gpu| gpu.places.as_slice().into()));
    let ranks = in_order(&groups.ranks, gpus.into_iter().map(|gpu| gpu.operations));
    let workload = Workload {
        name: files_title(first),
        phases: vec!["main".to_owned()],
        groups: groups.list.into_iter().filter(|group| group.ranks.len() > 1).collect(),
        ranks,
    };
    check_at(&workload, &places, |rank| files[rank])?;
    Ok(Imported { content: Content::Workload(workload), notes: notes.finish() })
}

fn files_title(name: &str) -> String {
    File { name, bytes: &[] }.title()
}

/// Returns the values of GPUs in the order of their ranks.
fn in_order<T>(ranks: &[u16], values: impl Iterator<Item = T>) -> Vec<T> {
    let mut ranked: Vec<_> = ranks.iter().zip(values).collect();
    ranked.sort_by_key(|(rank, _)| **rank);
    ranked.into_iter().map(|(_, value)| value).collect()
}

fn refused(line: usize, reason: String, hint: &str) -> WorkloadError {
    WorkloadError::line(line, 1, reason, hint)
}

/// Returns the communicators and calls of all files.
fn events<'f>(files: &[File<'f>]) -> Result<(Communicators, Vec<Called<'f>>), WorkloadErrors> {
    let mut communicators = Communicators::default();
    let mut calls = Vec::new();
    for file in files {
        for (line, text) in (1..).zip(file.text()?.lines()) {
            let at = |reason: String| refused(line, reason, SETTINGS).of(file.name);
            match line::read(text).map_err(at)? {
                Some(Event::Ready(ready)) => communicators.add(&ready).map_err(at)?,
                Some(Event::Call(call)) => {
                    let member = communicators.find(call.process, call.communicator).ok_or_else(|| {
                        at(format!("no line before states the ranks of communicator {}", call.communicator))
                    })?;
                    calls.push(Called { call, member, file: file.name, line });
                }
                None => {}
            }
            if calls.len() > OPERATIONS_MAX {
                return Err(at(format!("the logs have more than {OPERATIONS_MAX} calls")));
            }
        }
    }
    Ok((communicators, calls))
}

/// Operations of one GPU.
#[derive(Clone, Debug, Default)]
struct Gpu<'f> {
    operations: RankOperations,
    places: Vec<Place>,
    streams: HashMap<&'f str, Stream>,
    file: &'f str,
}

/// Order of the calls of a stream.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Operations that the next one waits for.
    before: Vec<u32>,
    /// Messages of the last group of calls.
    group: Vec<u32>,
    /// Number of that group.
    number: u64,
}

impl<'f> Gpu<'f> {
    fn add(&mut self, called: &Called<'f>, groups: &Groups, notes: &mut Notes) -> Result<(), String> {
        let Called { call, member, line, .. } = called;
        let Some(work) = work(call, *member, groups, notes)? else { return Ok(()) };
        let stream = self.streams.entry(call.stream).or_default();
        let is_message = matches!(call.kind, Kind::Send | Kind::Receive);
        let continues = is_message && !stream.group.is_empty() && stream.number == call.number;
        if !continues && !stream.group.is_empty() {
            stream.before = core::mem::take(&mut stream.group);
        }
        let index = self.operations.add(0, work, stream.before.iter().copied());
        self.places.push(Place::Line { line: *line, column: 1 });
        if is_message {
            stream.group.push(index);
            stream.number = call.number;
        } else {
            stream.before = vec![index];
        }
        Ok(())
    }
}

/// Returns the work of a call, or `None` if it moves nothing between ranks.
fn work(call: &Call<'_>, member: Member, groups: &Groups, notes: &mut Notes) -> Result<Option<Work>, String> {
    let members = &groups.list[member.communicator].ranks;
    let Some(peer) = members.get(call.root as usize) else {
        return Err(format!("there is no rank {} in a communicator of {}", call.root, members.len()));
    };
    let bytes = |parts: u64| {
        let bytes = call.count.checked_mul(call.element_bytes).and_then(|bytes| bytes.checked_mul(parts));
        bytes.ok_or_else(|| format!("{} elements do not fit in 64 bits", call.count))
    };
    let tag = member.communicator as u32;
    let own = groups.ranks[member.gpu];
    match call.kind {
        Kind::Send | Kind::Receive if *peer == own => {
            notes.count("messages of a rank to itself that are left out");
            Ok(None)
        }
        Kind::Send => Ok(Some(Work::Send { to: *peer, bytes: bytes(1)?, tag })),
        Kind::Receive => Ok(Some(Work::Receive { from: *peer, bytes: bytes(1)?, tag })),
        Kind::Collective(_) if members.len() < 2 => {
            notes.count("collectives of a single rank that are left out");
            Ok(None)
        }
        Kind::Collective(kind) => {
            let bytes = bytes(if counts_a_part(kind) { members.len() as u64 } else { 1 })?;
            let root = if kind.has_root() { call.root as u16 } else { 0 };
            Ok(Some(Work::Collective { group: groups.indices[member.communicator], kind, bytes, root }))
        }
    }
}

/// Returns true if NCCL counts the elements of one part, and not those of the whole array.
const fn counts_a_part(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter
    )
}

#[cfg(test)]
mod tests;
