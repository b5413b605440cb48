//! Sizes of frame headers on published fabrics, in place of those of Rackloom.
//!
//! Rackloom's frames carry large headers, because they must work on any Ethernet. A study of a fabric with 8-byte headers
//! needs *that fabric's* bytes on the link. For this reason a link may name a profile: the frame's operations and their
//! payload are counted, the profile's headers are added, and the sum is divided by the link's rate. The
//! profiles follow public descriptions. "Like" means that no conformance is claimed. Two of EthLink's numbers are not
//! published.
//!
//! Accounting changes no byte of any frame. Both counts are kept: bytes on the wire, and bytes accounted.

use rackloom_protocol::AtomicKind;
use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::layout::{FABRIC, OPERATIONS};
use rackloom_protocol::wire::packed::{Operation, Operations};

use crate::setting::named_value::named_values;

/// Ethernet header: two addresses and a type.
const ETHERNET_BYTES: usize = 14;
/// Frame check sequence.
const CHECK_BYTES: usize = 4;
/// Smallest Ethernet frame, check included.
const FRAME_BYTES_MIN: usize = 64;
/// Preamble, start delimiter and inter-frame gap.
const PREAMBLE_AND_GAP_BYTES: usize = 20;

named_values! {
    /// Fabric whose headers are counted.
    pub enum HeaderProfile {
        /// Rackloom's own headers, as on the wire.
        #[default]
        Own = "own",
        /// SUE-Lite-like: a 6-byte header in place of Ethernet's.
        SueLite = "sue-lite-like",
        /// SUE-like: Ethernet, 8 bytes of reliability header, an end-to-end check.
        Sue = "sue-like",
        /// ESUN-like: as SUE-like, with 4 bytes of forwarding header.
        Esun = "esun-like",
        /// EthLink-like: 2 bytes after Ethernet, 12 of transport (assumed), 16 per operation (ours).
        EthLink = "ethlink-like",
        /// RoCE-like: IPv4, UDP, base transport header, 16 bytes of RDMA header.
        Roce = "roce-like",
    }
}

/// Header sizes of one profile, in bytes.
#[derive(Clone, Copy, Debug)]
struct Headers {
    /// Once per frame, before the operations.
    frame: usize,
    /// Before each operation's payload.
    operation: usize,
    /// Once per frame, behind the operations.
    trailer: usize,
}

/// Returns the bytes that a frame of `frame_bytes` occupies on the wire, with check, padding, preamble and gap.
#[must_use]
pub const fn wire_bytes(frame_bytes: usize) -> usize {
    on_the_wire(frame_bytes + CHECK_BYTES)
}

const fn on_the_wire(checked_bytes: usize) -> usize {
    (if checked_bytes < FRAME_BYTES_MIN { FRAME_BYTES_MIN } else { checked_bytes }) + PREAMBLE_AND_GAP_BYTES
}

impl HeaderProfile {
    /// Returns the header sizes, or `None` for Rackloom's own. `docs/experiments.md` derives them, with sources.
    const fn headers(self) -> Option<Headers> {
        let (frame, operation, trailer) = match self {
            Self::Own => return None,
            Self::SueLite => (6, 8, 4),
            Self::Sue => (ETHERNET_BYTES + 8, 8, 4 + 4),
            Self::Esun => (ETHERNET_BYTES + 4 + 8, 8, 4 + 4),
            Self::EthLink => (ETHERNET_BYTES + 2 + 12, 16, 4 + 4),
            Self::Roce => (ETHERNET_BYTES + 20 + 8 + 12, 16, 4 + 4),
        };
        Some(Headers { frame, operation, trailer })
    }

    /// Returns the bytes that a frame would occupy on a wire of the profile, with padding, preamble and gap.
    ///
    /// A frame of operations has the profile's headers around them. An acknowledgement consists of headers alone. Frames between
    /// neighbours count as Ethernet frames with the same body, because the profiles do not describe them.
    #[must_use]
    pub fn wire_bytes(self, frame: &[u8]) -> usize {
        let Some(headers) = self.headers() else { return wire_bytes(frame.len()) };
        let bytes = match FrameKind::peek(frame) {
            Some(FrameKind::Data) => headers.frame + operations(frame, headers.operation) + headers.trailer,
            Some(FrameKind::Ack) => headers.frame + headers.trailer,
            _ => ETHERNET_BYTES + frame.len().saturating_sub(FABRIC) + CHECK_BYTES,
        };
        on_the_wire(bytes)
    }
}

/// Returns the bytes of a frame's operations, with `header` bytes before each.
fn operations(frame: &[u8], header: usize) -> usize {
    let operations = Operations::new(frame.get(OPERATIONS..).unwrap_or_default());
    operations.map_while(Result::ok).filter(Operation::is_numbered).map(|one| header + payload(&one)).sum()
}

/// Returns the bytes that an operation carries: data written or returned, and the operands of an atomic.
const fn payload(operation: &Operation<'_>) -> usize {
    match operation {
        Operation::Store { data, .. }
        | Operation::Put { data, .. }
        | Operation::Message { data, .. }
        | Operation::LoadReply { data, .. }
        | Operation::GetData { data, .. } => data.len(),
        Operation::Atomic { atomic, .. } => {
            let operands = if matches!(atomic.kind, AtomicKind::CompareSwap) { 2 } else { 1 };
            operands * atomic.width.bytes() as usize
        }
        Operation::Signal { .. } | Operation::AtomicReply { .. } => 8,
        Operation::Void { length, .. } => *length,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::wire::layout::VERSION_KIND;

    use super::*;

    /// Returns a frame with these operations.
    fn frame(kind: FrameKind, operations: &[Operation<'_>]) -> Vec<u8> {
        let mut frame = vec![0; OPERATIONS];
        frame[VERSION_KIND] = 0x10 | kind as u8;
        operations.iter().for_each(|operation| operation.encode(&mut frame));
        frame
    }

    fn stores(count: usize, bytes: usize) -> Vec<u8> {
        let data = vec![7; bytes];
        frame(FrameKind::Data, &vec![Operation::Store { offset: 0, data: &data }; count])
    }

    /// Returns the efficiency in per mille, rounded.
    fn efficiency(profile: HeaderProfile, count: usize, bytes: usize) -> usize {
        let wire = profile.wire_bytes(&stores(count, bytes));
        (count * bytes * 2_000 + wire) / (2 * wire)
    }

    #[test]
    fn one_store_per_frame_is_as_efficient_as_published_headers_make_it() {
        let sizes = [32, 64, 128, 256, 512, 1024, 2048, 4096];
        for (profile, per_mille) in [
            (HeaderProfile::SueLite, [381, 627, 771, 871, 931, 964, 982, 991]),
            (HeaderProfile::Sue, [356, 525, 688, 815, 898, 946, 972, 986]),
            (HeaderProfile::Esun, [340, 508, 674, 805, 892, 943, 971, 985]),
            (HeaderProfile::EthLink, [308, 471, 640, 780, 877, 934, 966, 983]),
            (HeaderProfile::Roce, [246, 395, 566, 723, 839, 913, 954, 977]),
        ] {
            assert_eq!(sizes.map(|bytes| efficiency(profile, 1, bytes)), per_mille, "{}", profile.name());
        }
    }

    #[test]
    fn packed_stores_share_the_headers_of_their_frame() {
        let per_mille =
            |bytes, counts: [usize; 5]| counts.map(|count| efficiency(HeaderProfile::Sue, count, bytes));
        assert_eq!(per_mille(64, [1, 2, 4, 8, 56]), [525, 660, 757, 818, 878]);
        assert_eq!(per_mille(256, [1, 2, 4, 8, 15]), [815, 886, 926, 947, 958]);
    }

    #[test]
    fn a_frame_without_operations_has_the_smallest_size() {
        for profile in HeaderProfile::ALL.iter().copied() {
            assert_eq!(
                profile.wire_bytes(&frame(FrameKind::Heartbeat, &[])[..FABRIC]),
                84,
                "{}",
                profile.name()
            );
        }
        assert_eq!(HeaderProfile::Sue.wire_bytes(&frame(FrameKind::Ack, &[])), 84);
        assert_eq!(HeaderProfile::Own.wire_bytes(&frame(FrameKind::Ack, &[])), OPERATIONS + 4 + 20);
    }

    #[test]
    fn invalid_frames_are_counted_too() {
        for profile in HeaderProfile::ALL.iter().copied() {
            for bytes in [&[][..], &[0xff; 15], &[0xff; 87], &[0x11; 200]] {
                assert!(profile.wire_bytes(bytes) >= 84, "{}", profile.name());
            }
        }
    }
}
