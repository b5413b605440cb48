//! Traffic, losses and paths in the answer to `status`.
//!
//! Counters come from the members. Rates are differences of two answers, so a client computes them from two requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct LinkStatus {
    /// `n0->n1`; a second link between these two is `n0->n1#1`.
    pub name: String,
    /// Member at the sending end.
    pub from: String,
    /// Member at the receiving end.
    pub to: String,
    /// Index of the link in the plan, as in `links_down` of a member.
    #[serde(default)]
    pub link: u16,
    /// Plane of the link.
    pub plane: u8,
    /// Rate of the direction in the plan, in bits per second; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// Counters of the sending end; null if it did not answer.
    pub sent: Option<LinkCounters>,
    /// Rates over the time between two samples of `sent`; absent where there are no two samples of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// Frames that never arrived, by the gaps that the receiving end saw in the link's sequence; null if that end did not answer.
    pub missing: Option<u64>,
    /// Lost frames by reason: `injected` as the sending end counted them, all other reasons as the receiving end did. Null if neither
    /// end answered.
    pub dropped: Option<BTreeMap<String, u64>>,
    /// Ends that did not answer: their part of the counters is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

/// Counters of one sending end since its process took the seat.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// Time at which the member read them, on the rack's clock.
    pub at_ns: u64,
    /// All frames, control frames included.
    pub frames: u64,
    /// Bytes of all frames, Ethernet header included, without preamble and gap.
    pub bytes: u64,
    /// Frames that carry operations, forwarded ones included.
    pub data_frames: u64,
    /// Bytes of the frames that carry operations.
    pub data_bytes: u64,
    /// Packets that the sending end, as their source, sent again.
    pub retransmitted: u64,
    /// Frames that link-level retry sent again.
    pub replayed: u64,
    /// Times that sending stopped for lack of credits or because of a pause.
    #[serde(default)]
    pub credit_waits: u64,
}

/// Mean rates over an interval, rounded down.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct LinkRate {
    /// Time between the two samples.
    pub interval_ns: u64,
    /// All frames.
    pub frames_per_s: u64,
    /// Bytes of all frames.
    pub bytes_per_s: u64,
    /// Frames that carry operations.
    pub data_frames_per_s: u64,
    /// Bytes of the frames that carry operations.
    pub data_bytes_per_s: u64,
}

/// Live paths of a GPU node to another one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct PathStatus {
    /// The destination.
    pub to: String,
    /// Shortest live paths that begin at different ports; 0 if the destination cannot be reached.
    pub live: usize,
    /// Planes in which they begin.
    pub planes: Vec<u8>,
    /// Links with which they begin.
    pub links: Vec<String>,
}

impl LinkCounters {
    /// Returns the rates since an earlier sample; `None` if the samples are not of one process, or no time has passed.
    pub fn rate_since(&self, earlier: &Self) -> Option<LinkRate> {
        let interval_ns = self.at_ns.checked_sub(earlier.at_ns).filter(|interval_ns| *interval_ns > 0)?;
        let per_second = |later: u64, earlier: u64| {
            let count = u128::from(later.checked_sub(earlier)?) * 1_000_000_000;
            u64::try_from(count / u128::from(interval_ns)).ok()
        };
        Some(LinkRate {
            interval_ns,
            frames_per_s: per_second(self.frames, earlier.frames)?,
            bytes_per_s: per_second(self.bytes, earlier.bytes)?,
            data_frames_per_s: per_second(self.data_frames, earlier.data_frames)?,
            data_bytes_per_s: per_second(self.data_bytes, earlier.data_bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, frames: u64) -> LinkCounters {
        LinkCounters {
            at_ns,
            frames,
            bytes: 100 * frames,
            data_frames: frames / 2,
            ..LinkCounters::default()
        }
    }

    #[test]
    fn a_rate_is_the_difference_over_the_time_between() {
        let rate = sample(300_000_000, 50).rate_since(&sample(100_000_000, 10)).expect("two samples");
        let expected = LinkRate {
            interval_ns: 200_000_000,
            frames_per_s: 200,
            bytes_per_s: 20_000,
            data_frames_per_s: 100,
            data_bytes_per_s: 0,
        };
        assert_eq!(rate, expected);
    }

    #[test]
    fn counters_that_began_anew_and_samples_of_one_moment_have_no_rate() {
        assert_eq!(sample(2, 1).rate_since(&sample(1, 2)), None);
        assert_eq!(sample(1, 2).rate_since(&sample(1, 1)), None);
        assert_eq!(sample(1, 2).rate_since(&sample(2, 1)), None);
    }
}
