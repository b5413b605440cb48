//! Format of a snapshot file: names, identity, layout. This module opens no file.
//!
//! A file consists of `RLSNAP01`, the length of the header (4 bytes, little endian), the header as JSON, the
//! bytes of all regions in order, and the XXH3 of everything before it (8 bytes, little endian).

use rackloom_jobs::collective::snapshot::Head;
use rackloom_plan::Plan;
use serde::{Deserialize, Serialize};

/// First bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"RLSNAP01";
/// Length of the checksum at the end of a file.
pub(super) const CHECKSUM_BYTES: u64 = 8;
/// Maximum length of a header. A longer one is a damaged length.
pub(super) const HEADER_BYTES_MAX: u32 = 16 << 20;

/// Identity of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) rack: String,
    /// Hash of rack, job and options.
    pub(super) config_hash: String,
    pub(super) seed: u64,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Number of times that the job had been restored, plus one. Files of different epochs do not form a set.
    pub(super) epoch: u64,
}

impl Identity {
    pub(super) fn of(plan: &Plan, rank: usize, epoch: u64) -> Self {
        Self {
            rack: plan.name.clone(),
            config_hash: format!("{:016x}", plan.config_hash),
            seed: plan.settings.seed,
            rank,
            ranks: plan.endpoint_count(),
            epoch,
        }
    }

    /// Returns the first difference to the identity of a snapshot, as text. The epoch is not compared.
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

/// Header of a snapshot file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) identity: Identity,
    pub(super) head: Head,
}

/// Returns the name of a rank's snapshot. `number` is the number of runs before it.
pub(super) fn name(rank: usize, number: u64) -> String {
    format!("rank{rank}.{number}.snapshot")
}

/// Returns rank and number, if this is the name of a snapshot.
pub(super) fn parse(name: &str) -> Option<(usize, u64)> {
    let (rank, number) = name.strip_prefix("rank")?.strip_suffix(".snapshot")?.split_once('.')?;
    Some((rank.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_names_are_names_of_snapshots() {
        assert_eq!(parse(&name(3, 120)), Some((3, 120)));
        for other in
            ["rank3.snapshot", "rank3.npy", ".rank3.4.snapshot.77", "rank.4.snapshot", "rank3.4.snapshot.new"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
