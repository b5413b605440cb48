//! Size of a payload on the wire: headers, the smallest frame, preamble and gap.
//!
//! `frame(P) = max(64, H + P + T)`, `wire(P) = frame(P) + 20`, `efficiency = P / wire(P)` (IEEE 802.3 for the two constants).

/// Smallest Ethernet frame.
const FRAME_BYTES_MIN: u64 = 64;
/// Preamble, start delimiter and inter-frame gap.
const PREAMBLE_AND_GAP_BYTES: u64 = 20;

/// Headers of a published fabric, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Name of the profile in rack files.
    pub name: &'static str,
    /// Once per frame, before and behind the operations together.
    pub per_frame: u64,
    /// Before each operation's payload.
    pub per_operation: u64,
}

/// SUE-Lite: header 6, command 8, FCS 4.
pub const SUE_LITE: Headers = Headers { name: "sue-lite-like", per_frame: 6 + 4, per_operation: 8 };
/// SUE: Ethernet 14, reliability header 8, command 8, R-CRC 4, FCS 4.
pub const SUE: Headers = Headers { name: "sue-like", per_frame: 14 + 8 + 4 + 4, per_operation: 8 };
/// ESUN: as SUE, with its 4-byte header.
pub const ESUN: Headers = Headers { name: "esun-like", per_frame: 14 + 4 + 8 + 4 + 4, per_operation: 8 };
/// EthLink: Ethernet 14, forwarding 2, transport 12 (assumed), operation 16 (ours), two checks of 4.
pub const ETHLINK: Headers =
    Headers { name: "ethlink-like", per_frame: 14 + 2 + 12 + 4 + 4, per_operation: 16 };
/// RoCEv2: Ethernet 14, IPv4 20, UDP 8, base transport 12, RDMA 16, ICRC 4, FCS 4.
pub const ROCE: Headers =
    Headers { name: "roce-like", per_frame: 14 + 20 + 8 + 12 + 4 + 4, per_operation: 16 };

/// Our own frames: Ethernet 14, link header 32, fabric header 40, the choice of a region 16, FCS 4, and 12 per operation
/// (`docs/wire-format.md`).
pub const OWN: Headers = Headers { name: "own", per_frame: 14 + 32 + 40 + 16 + 4, per_operation: 12 };

/// All profiles.
pub const PROFILES: [Headers; 6] = [OWN, SUE_LITE, SUE, ESUN, ETHLINK, ROCE];

impl Headers {
    /// Returns the bytes on the wire of one frame with this many operations of `payload_bytes` each.
    #[must_use]
    pub fn wire_bytes(&self, operations: u64, payload_bytes: u64) -> u64 {
        let frame = self.per_frame + operations * (self.per_operation + payload_bytes);
        frame.max(FRAME_BYTES_MIN) + PREAMBLE_AND_GAP_BYTES
    }

    /// Returns the share of the wire that is payload.
    #[must_use]
    pub fn efficiency(&self, operations: u64, payload_bytes: u64) -> f64 {
        (operations * payload_bytes) as f64 / self.wire_bytes(operations, payload_bytes) as f64
    }
}

/// Returns the time that bytes take at a rate, in nanoseconds.
#[must_use]
pub fn serialisation_ns(wire_bytes: u64, rate_bits_per_s: f64) -> f64 {
    wire_bytes as f64 * 8e9 / rate_bits_per_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_of_efficiencies() {
        let per_cent = |headers: &Headers, payload| (headers.efficiency(1, payload) * 1000.0).round() / 10.0;
        let sizes = [32, 64, 128, 256, 512, 1024, 2048, 4096];
        for (headers, row) in PROFILES[1..].iter().zip([
            [38.1, 62.7, 77.1, 87.1, 93.1, 96.4, 98.2, 99.1],
            [35.6, 52.5, 68.8, 81.5, 89.8, 94.6, 97.2, 98.6],
            [34.0, 50.8, 67.4, 80.5, 89.2, 94.3, 97.1, 98.5],
            [30.8, 47.1, 64.0, 78.0, 87.7, 93.4, 96.6, 98.3],
            [24.6, 39.5, 56.6, 72.3, 83.9, 91.3, 95.4, 97.7],
        ]) {
            assert_eq!(sizes.map(|size| per_cent(headers, size)), row, "{}", headers.name);
        }
    }

    #[test]
    fn packed_operations_approach_their_own_share() {
        let per_cent = |count, payload| (SUE.efficiency(count, payload) * 1000.0).round() / 10.0;
        assert_eq!([1, 2, 4, 8, 56].map(|count| per_cent(count, 64)), [52.5, 66.0, 75.7, 81.8, 87.8]);
        assert_eq!([1, 2, 4, 8, 15].map(|count| per_cent(count, 256)), [81.5, 88.6, 92.6, 94.7, 95.8]);
    }
}
