//! The file of one snapshot: names, identity, layout.
//!
//! `RLSNAP01`, the length of the header (4 bytes, little endian), the header as JSON, the bytes of the regions one behind the other,
//! and the XXH3 of everything before it (8 bytes, little endian). Nothing here opens a file.

use rackloom_jobs::collective::snapshot::Head;
use rackloom_plan::Plan;
use serde::{Deserialize, Serialize};

/// The first bytes.
pub(super) const MAGIC: &[u8; 8] = b"RLSNAP01";
/// Of the checksum, at the end.
pub(super) const CHECKSUM_BYTES: u64 = 8;
/// No header is longer; a longer one is a damaged length.
pub(super) const HEADER_BYTES_MAX: u32 = 16 << 20;

/// Identity of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) rack: String,
    /// Hash over rack, job and options.
    pub(super) config_hash: String,
    pub(super) seed: u64,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Number of times that the job had been restored, plus one. Files of different epochs never form a set.
    pub(super) epoch: u64,
}

impl Identity {
    pub(super) fn of(plan: &Plan, rank: usize, epoch: u64) -> Self {
        Self {
            rack: plan.name.clone(),
            config_hash: format!("{:016x}", plan.config_hash),
            seed: plan.seed,
            rank,
            ranks: plan.endpoint_count(),
            epoch,
        }
    }

    /// Why a snapshot with this identity is not the one that is looked for; the epoch is not looked at.
    pub(super) fn difference(&self, found: &Self) -> Option<String> {
        let pairs = [
            ("of the rack", self.rack.clone(), found.rack.clone()),
            ("for the configuration", self.config_hash.clone(), found.config_hash.clone()),
            ("with the seed", self.seed.to_string(), found.seed.to_string()),
            ("of a rack of", format!("{} nodes", self.ranks), format!("{} nodes", found.ranks)),
            ("of rank", self.rank.to_string(), found.rank.to_string()),
        ];
        let differs = pairs.into_iter().find(|(_, wanted, found)| wanted != found);
        differs.map(|(what, wanted, found)| {
            format!("it was written {what} {found}, this run is {what} {wanted}")
        })
    }
}

/// Everything before the bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) identity: Identity,
    pub(super) head: Head,
}

/// The name of a rank's snapshot after so many runs.
pub(super) fn name(rank: usize, number: u64) -> String {
    format!("rank{rank}.{number}.snapshot")
}

/// Rank and number of a file with this name, if it is a snapshot.
pub(super) fn parse(name: &str) -> Option<(usize, u64)> {
    let (rank, number) = name.strip_prefix("rank")?.strip_suffix(".snapshot")?.split_once('.')?;
    Some((rank.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_are_not() {
        assert_eq!(parse(&name(3, 120)), Some((3, 120)));
        for other in
            ["rank3.snapshot", "rank3.npy", ".rank3.4.snapshot.77", "rank.4.snapshot", "rank3.4.snapshot.new"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
