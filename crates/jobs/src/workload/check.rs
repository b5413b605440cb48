//! Check of one rank after the workload: how often each sender has reached it, and with how many bytes.
//!
//! Contents are compared only once at the end: all ranks send the same bytes, so the inbox holds them up to its longest
//! message, independent of the last sender. Where memory keeps no payload, it counts the bytes that arrived.

use rackloom_protocol::{Comparison, RegionId};

use super::layout::{COUNTS, INBOX, SIGNALS};
use super::prepared::{Prepared, RankTable};
use crate::ranks::ensemble::Poll;
use crate::ranks::pattern::Pattern;
use crate::report::Mismatch;

/// Bytes that are filled or compared at a time.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;

/// Checks of a rank whose memory keeps no payload.
pub(super) const CHECKS: &str = "each rank counted as many messages and transfers of each sender as it had to send, and as many bytes arrived";

const PURPOSE: u64 = 0x776f_726b_6c64;

/// Returns the bytes of all messages from `offset` on.
pub(super) fn content(seed: u64, offset: u64, length: u64) -> Vec<u8> {
    Pattern::new(seed, &[PURPOSE]).bytes(offset, length)
}

/// Compares the counts of messages and transfers with the workload.
pub(super) fn check_counts(
    poll: &mut Poll<'_>,
    prepared: &Prepared,
    table: &RankTable,
) -> Result<(), String> {
    let counted = words(poll, COUNTS, table.need.count_bytes)?;
    for (channel, counted) in table.incoming.iter().zip(counted) {
        if counted != channel.sent {
            let (name, tag, sent) = (poll.job_group.name(channel.from), channel.tag, channel.sent);
            return Err(format!("{counted} messages of {name} with tag {tag} have arrived, it sent {sent}"));
        }
    }
    let counted = words(poll, SIGNALS, table.need.signal_bytes)?;
    for own in &table.lanes {
        let lane = &prepared.lanes[own.lane as usize];
        let schedule = &lane.scheduled.schedule;
        let first = (lane.bases[own.position as usize] / 8) as usize;
        let arrivals = schedule.programs[own.position as usize].arrivals as usize;
        if let Some(found) = counted.iter().skip(first).take(arrivals).find(|found| **found != lane.runs) {
            let (collective, group, runs) = (schedule.collective, lane.group, lane.runs);
            return Err(format!(
                "a transfer of {collective} of group {group} has arrived {found} times in {runs} runs"
            ));
        }
    }
    Ok(())
}

fn words(poll: &mut Poll<'_>, region: RegionId, bytes: u64) -> Result<Vec<u64>, String> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let mut found = vec![0; bytes as usize];
    let read = poll.memory.read(region, 0, &mut found);
    read.map_err(|fault| format!("own memory failed: {fault:?}"))?;
    Ok(found.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Compares the number of bytes that have arrived. Returns false if memory does not count them.
pub(super) fn check_bytes(poll: &Poll<'_>, table: &RankTable) -> Result<bool, String> {
    match poll.memory.elided_bytes(INBOX) {
        None => Ok(false),
        Some(found) if found == table.due_bytes => Ok(true),
        Some(found) => Err(format!("{found} bytes have arrived, and {} are due", table.due_bytes)),
    }
}

/// Compares a block of the inbox with the bytes of all messages. Returns the first wrong byte, if there is one.
pub(super) fn check_block(
    poll: &mut Poll<'_>,
    seed: u64,
    offset: u64,
    length: u64,
) -> Result<Option<Mismatch>, String> {
    let wanted = content(seed, offset, length);
    let mut found = vec![0; wanted.len()];
    let compared = poll.memory.compare(INBOX, offset, &wanted, &mut found);
    match compared.map_err(|fault| format!("own memory failed: {fault:?}"))? {
        Comparison::Same | Comparison::NotKept => Ok(None),
        Comparison::Different => Ok(Some(mismatch(offset, &wanted, &found))),
    }
}

fn mismatch(offset: u64, wanted: &[u8], found: &[u8]) -> Mismatch {
    let wrong = wanted.iter().zip(found).enumerate().find(|(_, (wanted, found))| wanted != found);
    let (at, expected, found) = wrong.map_or((0, 0, 0), |(at, (wanted, found))| (at, *wanted, *found));
    let location = "inbox of all messages".to_owned();
    Mismatch { region: INBOX.0, offset: offset + at as u64, expected, found, location }
}
