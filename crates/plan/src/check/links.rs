//! Links: profiles, retry, credits, and what the rings hold.

use rackloom_protocol::RetryConfig;

use crate::check::Inspection;
use crate::mistake::Complaint;
use crate::plan::{Checks, LinkPlan, WireKind};
use crate::quantity::{PROBABILITY_HINT, Unit, shown};
use crate::retry::{Clock, RetryPlan, loop_ns};
use crate::schema;

/// All rings of a rack together.
const RINGS_BYTES_MAX: u64 = 64 << 30;

pub(super) fn check(check: &mut Inspection<'_>) {
    for link in &check.plan.links {
        profile(check, link);
    }
    let count = check.plan.links.len() as u64;
    let bytes = count * 2 * u64::from(check.plan.ring_bytes);
    if check.plan.wire == WireKind::SharedMemory && check.intact(&["ring_bytes"]) && bytes > RINGS_BYTES_MAX {
        let message = format!(
            "{count} links with a ring of {} in each direction take {}, more than {}",
            shown(check.plan.ring_bytes.into(), Unit::Bytes),
            shown(bytes, Unit::Bytes),
            shown(RINGS_BYTES_MAX, Unit::Bytes)
        );
        check.complain(&["ring_bytes", "shape"], Complaint::about(message).hint("make `ring_bytes` smaller"));
    }
}

fn profile(check: &mut Inspection<'_>, link: &LinkPlan) {
    // Where the value comes from: the link's own entry, else the profile of all links.
    let path_of = |check: &Inspection<'_>, key: &str| {
        let own = format!("links.{}.{key}", link.name);
        if check.places.first_written(&[&own]).is_some() { own } else { format!("link.{key}") }
    };
    let profile = &link.profile;
    let faults = [
        ("loss", profile.loss),
        ("corrupt", profile.corrupt),
        ("duplicate", profile.duplicate),
        ("reorder", profile.reorder),
    ];
    for (key, rate) in faults {
        let path = path_of(check, key);
        if check.intact(&[&path]) && !(0.0..=1.0).contains(&rate) {
            let message = format!("`{path}` is {rate}, no probability");
            check.complain(&[&path], Complaint::about(message).hint(PROBABILITY_HINT));
        }
    }
    let path = path_of(check, "delay");
    check.within_at(&path, &schema::LINK, "delay", profile.delay_ns);
    if let Some(rate) = profile.rate_bits_per_s {
        let path = path_of(check, "rate");
        check.within_at(&path, &schema::LINK, "rate", rate);
    }
    retry(check, link, &path_of);
    if check.plan.checks == Checks::Never && profile.corrupt > 0.0 {
        let path = path_of(check, "corrupt");
        let message = format!("`{path}` flips bits and `checks: never` looks for none");
        let hint = "leave `checks` at `auto`, or take the corruption out";
        check.complain(&[&path, "checks"], Complaint::about(message).hint(hint));
    }
}

/// Link-level retry: windows that fit numbers and buffers, timers that fit the link.
fn retry(check: &mut Inspection<'_>, link: &LinkPlan, path_of: &dyn Fn(&Inspection<'_>, &str) -> String) {
    let Some(retry) = link.profile.retry else { return };
    let mut within = |key: &str, value: u64| {
        let path = path_of(check, &format!("llr.{key}"));
        check.within_at(&path, &schema::LLR, key, value) && check.intact(&[&path])
    };
    let mut fine = within("sequence_bits", retry.sequence_bits.into());
    fine &= within("outstanding_frames", retry.outstanding_frames.into());
    fine &= within("outstanding_bytes", retry.outstanding_bytes.into());
    fine &= within("ack_spacing", retry.ack_spacing_bytes.into());
    fine &= within("replay_timer", retry.replay_timer_ns.unwrap_or(1));
    fine &= within("ack_delay", retry.ack_delay_ns.unwrap_or(0));
    if fine && check.intact(&["frame_bytes_max"]) {
        retry_windows(check, link, retry, path_of);
        retry_times(check, link, retry, path_of);
    }
}

fn retry_windows(
    check: &mut Inspection<'_>,
    link: &LinkPlan,
    retry: RetryPlan,
    path_of: &dyn Fn(&Inspection<'_>, &str) -> String,
) {
    let [frames, bits, bytes, spacing] =
        ["outstanding_frames", "sequence_bits", "outstanding_bytes", "ack_spacing"]
            .map(|key| path_of(check, &format!("llr.{key}")));
    let limit = RetryConfig::outstanding_frames_limit(retry.sequence_bits);
    if u64::from(retry.outstanding_frames) > limit {
        let message = format!(
            "`{frames}` is {}, beyond half of the sequence numbers of {} bits: old could not be told from new",
            retry.outstanding_frames, retry.sequence_bits
        );
        let hint = format!("write at most {limit}, or more `sequence_bits`");
        check.complain(&[&frames, &bits], Complaint::about(message).hint(hint));
    }
    let frame_bytes = u32::from(check.plan.frame_bytes_max);
    if retry.outstanding_bytes < frame_bytes {
        let message = format!(
            "the replay buffer of {} has {}, less than one frame of {}",
            link.name,
            shown(retry.outstanding_bytes.into(), Unit::Bytes),
            shown(frame_bytes.into(), Unit::Bytes)
        );
        let hint = "raise `outstanding_bytes`, or lower `frame_bytes_max`";
        check.complain(&[&bytes, "frame_bytes_max"], Complaint::about(message).hint(hint));
    } else if retry.ack_spacing_bytes > retry.outstanding_bytes {
        let message = format!(
            "`{spacing}` is {}, more than the replay buffer of {}: every window would wait for the delay",
            shown(retry.ack_spacing_bytes.into(), Unit::Bytes),
            shown(retry.outstanding_bytes.into(), Unit::Bytes)
        );
        let hint = "acknowledge at least once per replay buffer";
        check.complain(&[&spacing, &bytes], Complaint::about(message).hint(hint));
    }
}

fn retry_times(
    check: &mut Inspection<'_>,
    link: &LinkPlan,
    retry: RetryPlan,
    path_of: &dyn Fn(&Inspection<'_>, &str) -> String,
) {
    let [timer_path, delay_path] =
        ["replay_timer", "ack_delay"].map(|key| path_of(check, &format!("llr.{key}")));
    let (profile, frame_bytes) = (&link.profile, check.plan.frame_bytes_max);
    let loop_ns = loop_ns(profile, frame_bytes);
    // The shorter of the two timers, where the file leaves it open.
    let timer_ns = retry.replay_timer_ns(profile, frame_bytes, Clock::Virtual);
    if timer_ns < loop_ns {
        let message = format!(
            "`{timer_path}` is {}, and an acknowledgement takes up to {} on {}: every frame would be sent twice",
            shown(timer_ns, Unit::Nanoseconds),
            shown(loop_ns, Unit::Nanoseconds),
            link.name
        );
        let hint = "leave the timer out, or write more than the loop of delay and rate";
        check.complain(&[&timer_path], Complaint::about(message).hint(hint));
    } else if retry.ack_delay_ns.is_some_and(|delay_ns| delay_ns >= timer_ns) {
        let message = format!(
            "`{delay_path}` is {}, not below the replay timer of {}",
            shown(retry.ack_delay_ns.unwrap_or(0), Unit::Nanoseconds),
            shown(timer_ns, Unit::Nanoseconds)
        );
        let hint = "acknowledge before the sender's patience ends; leave `ack_delay` out";
        check.complain(&[&delay_path, &timer_path], Complaint::about(message).hint(hint));
    }
}

/// Every link has the same credits, whatever the shape.
pub(super) fn credits(check: &mut Inspection<'_>) {
    let plan = check.plan;
    let credits = plan.credit_choice.resolve(plan.wire, plan.ring_bytes);
    let paths =
        ["credits.limit", "credits.unit_bytes", "credits.overhead_bytes", "ring_bytes", "frame_bytes_max"];
    let mut fine = check.within(&schema::CREDITS, "unit_bytes", credits.unit_bytes);
    fine &= check.within(&schema::CREDITS, "overhead_bytes", credits.overhead_bytes);
    if !fine || !check.intact(&paths) {
        return;
    }
    // A member's own frame leaves only if a second one would still fit, so that transit never stands still.
    let least = 2 * credits.cost(usize::from(plan.frame_bytes_max));
    if credits.limit < least {
        let message = format!(
            "{} credits of {} are room for fewer than two frames of {}",
            credits.limit,
            shown(credits.unit_bytes.into(), Unit::Bytes),
            shown(plan.frame_bytes_max.into(), Unit::Bytes)
        );
        let hint = format!("a link needs at least {least}: raise `credits.limit` or `ring_bytes`");
        check.complain(&paths, Complaint::about(message).hint(hint));
    }
    let bytes = u64::from(credits.limit) * u64::from(credits.unit_bytes);
    let most = u64::from(plan.ring_bytes) / 4 * 3;
    if plan.wire == WireKind::SharedMemory && bytes > most {
        let message = format!(
            "credits for {bytes} bytes leave less than a quarter of a ring of {} for control frames",
            shown(plan.ring_bytes.into(), Unit::Bytes)
        );
        let hint = format!("write `credits.limit` of at most {}", most / u64::from(credits.unit_bytes));
        check.complain(&paths, Complaint::about(message).hint(hint));
    }
}
