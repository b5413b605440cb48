//! Locally administered MAC addresses from member and plane (wire-format section 1).

use crate::ids::{NodeId, Plane};

/// Returns the address of `member` on `plane`: `02:52:4c:PP:NN:NN`.
#[must_use]
pub const fn mac(member: NodeId, plane: Plane) -> [u8; 6] {
    [0x02, 0x52, 0x4c, plane.0, (member.0 >> 8) as u8, member.0 as u8]
}
