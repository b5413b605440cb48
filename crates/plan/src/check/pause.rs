//! Checks pauses: marks that leave headroom, and no credits beside them.

use crate::check::inspection::Inspection;
use crate::model::links::link::LinkPlan;
use crate::model::links::pause::{PausePlan, ShortHeadroom};
use crate::read::mistake::Complaint;

use crate::setting::quantity::{Unit, shown};

type PathOf<'f> = &'f dyn Fn(&Inspection<'_>, &str) -> String;

pub(super) fn check(check: &mut Inspection<'_>, link: &LinkPlan, path_of: PathOf<'_>) {
    let Some(pause) = link.profile.pfc else { return };
    let keys = ["xoff", "xon", "headroom", "quanta", "response_delay", "watchdog"];
    let paths = keys.map(|key| path_of(check, &format!("pfc.{key}")));
    if check.intact(&paths.each_ref().map(String::as_str)) && check.intact(&["frame_bytes_max"]) {
        marks(check, pause, path_of);
        headroom(check, link, pause, path_of);
        ring(check, link, pause, path_of);
    }
    credits_beside(check);
}

fn marks(check: &mut Inspection<'_>, pause: PausePlan, path_of: PathOf<'_>) {
    let [xoff, xon] = ["xoff", "xon"].map(|key| path_of(check, &format!("pfc.{key}")));
    if pause.xon_bytes() >= pause.xoff_bytes {
        let message = format!(
            "`{xon}` is {}, not below `xoff` of {}: a neighbour that is paused would be let go at once",
            shown(pause.xon_bytes().into(), Unit::Bytes),
            shown(pause.xoff_bytes.into(), Unit::Bytes)
        );
        let hint = "leave `xon` out for half of `xoff`, or write less";
        check.complain(&[&xon, &xoff], Complaint::about(message).hint(hint));
    }
}

fn headroom(check: &mut Inspection<'_>, link: &LinkPlan, pause: PausePlan, path_of: PathOf<'_>) {
    let frame_bytes = check.plan.settings.frame_bytes_max;
    let Some(in_flight) = pause.in_flight_bytes(&link.profile, frame_bytes) else { return };
    let headroom =
        pause.headroom_bytes(&link.profile, frame_bytes, check.plan.channel_capacity_bytes(&link.profile));
    if u64::from(headroom) >= in_flight || pause.short_headroom == ShortHeadroom::Allow {
        return;
    }
    let path = path_of(check, "pfc.headroom");
    let message = format!(
        "`{path}` is {}, and {} can be in flight when a pause is sent: frames beyond the headroom are lost",
        shown(headroom.into(), Unit::Bytes),
        shown(in_flight, Unit::Bytes)
    );
    let hint = format!(
        "leave `headroom` out, or write {} at least; `short_headroom: allow` to see what is lost",
        shown(in_flight, Unit::Bytes)
    );
    check.complain(&[&path, "frame_bytes_max"], Complaint::about(message).hint(hint));
}

/// Frames that wait for forwarding stay in the ring on which they arrived.
fn ring(check: &mut Inspection<'_>, link: &LinkPlan, pause: PausePlan, path_of: PathOf<'_>) {
    let plan = check.plan;
    if !plan.wire_of(&link.edge).has_rings() || !check.intact(&["ring_bytes"]) {
        return;
    }
    let capacity = plan.channel_capacity_bytes(&link.profile);
    let headroom = pause.headroom_bytes(&link.profile, plan.settings.frame_bytes_max, capacity);
    let of_channel = u64::from(pause.xoff_bytes) + u64::from(headroom);
    let channels = plan.channels.count_of(&link.profile);
    if of_channel <= capacity {
        return;
    }
    let [xoff, headroom] = ["xoff", "headroom"].map(|key| path_of(check, &format!("pfc.{key}")));
    let message = format!(
        "`xoff` and `headroom` of {} for each of {channels} channels leave less than a quarter of a ring of {} for control frames",
        shown(of_channel, Unit::Bytes),
        shown(plan.settings.ring_bytes.into(), Unit::Bytes)
    );
    let hint = "make them smaller, or `ring_bytes` larger";
    check.complain(&[&xoff, &headroom, "link.pfc", "ring_bytes"], Complaint::about(message).hint(hint));
}

/// Keys of credits, which have no effect if every link pauses, under `credits` or under `link`. If one link has credits, they have an
/// effect. Entries of single links are checked for that link alone.
const OF_CREDITS: [&str; 12] = [
    "credits.unit_bytes",
    "credits.overhead_bytes",
    "credits.limit",
    "credits.update_spacing",
    "credits.resync",
    "credits.counter_bits",
    "channels.limits",
    "link.credits",
    "link.credits.limit",
    "link.credits.update_spacing",
    "link.credits.resync",
    "link.channels.limits",
];

fn credits_beside(check: &mut Inspection<'_>) {
    if check.plan.links.iter().any(|link| link.profile.pfc.is_none()) {
        return;
    }
    for path in OF_CREDITS {
        if check.positions.first_written(&[path]).is_some() && check.intact(&[path]) {
            let message = format!("`{path}` means nothing: every link has `pfc` in place of credits");
            let hint = "a link has one of the two: leave this out, or write `pfc: off` for some links";
            check.complain(&[path], Complaint::about(message).hint(hint));
        }
    }
}
