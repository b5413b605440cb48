//! Checks forwarding: shared buffers and marks.

use rackloom_protocol::SharedBufferConfig;

use crate::check::inspection::Inspection;
use crate::read::mistake::Complaint;

use crate::setting::quantity::{Unit, shown};

const BUFFER: &str = "forwarding.buffer";

pub(super) fn check(check: &mut Inspection<'_>) {
    let forwarding = check.plan.forwarding;
    check.ranges_of(&forwarding);
    let Some(buffer) = forwarding.buffer else { return };
    if check.intact_below(BUFFER) && check.intact(&["frame_bytes_max"]) {
        frame(check, buffer);
        credits_beside(check);
        ring(check, buffer);
    }
}

/// Returns the number of bytes that a single active channel may hold.
fn alone_bytes(buffer: SharedBufferConfig) -> u64 {
    let alpha = u128::from(buffer.alpha_thousandths);
    let share = u128::from(buffer.bytes) * alpha / (1_000 + alpha);
    share as u64 + u64::from(buffer.private_bytes)
}

fn frame(check: &mut Inspection<'_>, buffer: SharedBufferConfig) {
    let frame_bytes = u64::from(check.plan.settings.frame_bytes_max);
    if alone_bytes(buffer) >= frame_bytes {
        return;
    }
    let message = format!(
        "a channel that is alone may hold {} of `{BUFFER}`, less than one frame of {}: every frame would pause its link",
        shown(alone_bytes(buffer), Unit::Bytes),
        shown(frame_bytes, Unit::Bytes)
    );
    let hint = "raise `bytes`, `alpha` or `private`";
    check.complain(&["forwarding.buffer.bytes", BUFFER], Complaint::about(message).hint(hint));
}

/// Credits limit in advance how much a channel may hold.
fn credits_beside(check: &mut Inspection<'_>) {
    if check.plan.links.iter().any(|link| link.profile.pfc.is_some()) || !check.intact(&["link.pfc"]) {
        return;
    }
    let message = format!(
        "`{BUFFER}` means nothing: no link pauses, and credits are memory that is granted beforehand"
    );
    let hint = "write `link: {pfc: on}`, or leave `buffer` out";
    check.complain(&[BUFFER], Complaint::about(message).hint(hint));
}

/// Frames that wait for forwarding stay in the ring on which they arrived.
fn ring(check: &mut Inspection<'_>, buffer: SharedBufferConfig) {
    let plan = check.plan;
    if !plan.settings.wire.has_rings() || !check.intact(&["ring_bytes"]) {
        return;
    }
    let needs = plan.links.iter().filter_map(|link| {
        let capacity = plan.channel_capacity_bytes(&link.profile);
        let headroom =
            link.profile.pfc?.headroom_bytes(&link.profile, plan.settings.frame_bytes_max, capacity);
        Some((alone_bytes(buffer) + u64::from(headroom), capacity))
    });
    let Some((most, capacity)) = needs.filter(|(most, capacity)| most > capacity).max() else { return };
    let message = format!(
        "a channel may hold {} of `{BUFFER}` and of headroom, and a ring of {} has {} for it",
        shown(most, Unit::Bytes),
        shown(plan.settings.ring_bytes.into(), Unit::Bytes),
        shown(capacity, Unit::Bytes)
    );
    let hint = "make `ring_bytes` larger, or the buffer smaller";
    check.complain(&[BUFFER, "ring_bytes"], Complaint::about(message).hint(hint));
}
