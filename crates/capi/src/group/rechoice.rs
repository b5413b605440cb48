//! Trials of algorithms of an adaptive group.

use std::sync::Arc;

use rackloom::fabric::{Algorithm, Group, Rechoice, RechoiceCause};

use super::membership::GroupHandle;
use super::options::numbers_of;
use super::record::kind_of;
use crate::codes::ErrorCode;
use crate::guard::with_pointers;
use crate::handles;
use crate::pointers::{Out, array_mut};

/// Cause of a trial: calls took another time than the reference.
pub const RACKLOOM_CAUSE_DEVIATED: u32 = 1;
/// Cause of a trial: an algorithm that replaced the first choice was due for a review.
pub const RACKLOOM_CAUSE_REVIEW: u32 = 2;

/// Number of entries for the algorithms of a trial. The library tries fewer, so that later versions may try more.
pub const RACKLOOM_CANDIDATES_MAX: usize = 8;

/// Algorithm of a trial with its time. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CandidateRecord {
    /// One of `RACKLOOM_ALGORITHM_...`.
    pub algorithm: u32,
    /// Number of segments of `RACKLOOM_ALGORITHM_RING_PIPELINE`, else 0.
    pub segments: u32,
    /// Time of a call that the members agreed on, in nanoseconds.
    pub time_ns: u64,
}

/// Trial of the suitable algorithms for a collective of one size, and its result. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RechoiceRecord {
    /// Kind of collective, such as `RACKLOOM_ALL_REDUCE`.
    pub collective: u32,
    /// Lane of the calls.
    pub lane: u32,
    /// Number of bytes of the whole array, or of its first piece if the array does not fit into the staging.
    pub bytes: u64,
    /// Number of calls of this collective and size before the next one.
    pub calls: u64,
    /// Algorithm before the trial. `time_ns` is 0.
    pub from: CandidateRecord,
    /// Algorithm of the following calls, which equals `from` if no other one was fast enough. `time_ns` is 0.
    pub to: CandidateRecord,
    /// One of `RACKLOOM_CAUSE_...`.
    pub cause: u32,
    /// Number of algorithms in `candidates`.
    pub candidate_count: u32,
    /// For `RACKLOOM_CAUSE_DEVIATED`: time of a call when the algorithm was chosen, in nanoseconds.
    pub reference_ns: u64,
    /// For `RACKLOOM_CAUSE_DEVIATED`: time of a call before the trial, in nanoseconds.
    pub now_ns: u64,
    /// Algorithms of the trial with their times, the fastest first.
    pub candidates: [CandidateRecord; RACKLOOM_CANDIDATES_MAX],
    /// 0.
    pub reserved: [u64; 2],
}

impl CandidateRecord {
    fn new(algorithm: Algorithm, time_ns: u64) -> Self {
        let [algorithm, segments] = numbers_of(algorithm);
        Self { algorithm, segments, time_ns }
    }
}

impl From<&Rechoice> for RechoiceRecord {
    fn from(rechoice: &Rechoice) -> Self {
        let Rechoice { collective, bytes, lane, outcome, .. } = rechoice;
        let (cause, reference_ns, now_ns) = match outcome.cause {
            RechoiceCause::Deviated { reference_ns, now_ns } => {
                (RACKLOOM_CAUSE_DEVIATED, reference_ns, now_ns)
            }
            RechoiceCause::Review => (RACKLOOM_CAUSE_REVIEW, 0, 0),
        };
        let mut candidates = [CandidateRecord::default(); RACKLOOM_CANDIDATES_MAX];
        for (place, time) in candidates.iter_mut().zip(&outcome.times) {
            *place = CandidateRecord::new(time.algorithm, time.time_ns as u64);
        }
        Self {
            collective: kind_of(*collective),
            lane: *lane as u32,
            bytes: *bytes as u64,
            calls: outcome.runs,
            from: CandidateRecord::new(outcome.from, 0),
            to: CandidateRecord::new(outcome.to, 0),
            cause,
            candidate_count: outcome.times.len().min(RACKLOOM_CANDIDATES_MAX) as u32,
            reference_ns,
            now_ns,
            candidates,
            reserved: [0; 2],
        }
    }
}

/// Writes the last trials of a group whose option `adaptive` is 1, in the order of their ends, to an array of `capacity` entries, and their number to
/// `count`. The group keeps the last 64; if the array is shorter, it gets the newest of them. A group that is not adaptive has none.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_rechoices(
    group: GroupHandle,
    rechoices: *mut RechoiceRecord,
    capacity: u64,
    count: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let count = Out::new(count)?;
        let group = handles::get::<Arc<Group>>(group)?;
        let places = array_mut(rechoices, capacity)?;
        let known = group.rechoices();
        let newest = &known[known.len().saturating_sub(places.len())..];
        places.iter_mut().zip(newest).for_each(|(place, one)| *place = one.into());
        count.set(newest.len() as u64);
        Ok(())
    })
}
