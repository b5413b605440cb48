//! Checks link-level retry: windows that fit sequence numbers and buffers, and timers that fit the link.

use rackloom_protocol::RetryConfig;

use crate::check::inspection::Inspection;
use crate::model::links::link::LinkPlan;
use crate::model::links::retry::RetryPlan;
use crate::model::links::retry_timers::loop_ns;
use crate::model::times::clock::Clock;
use crate::read::mistake::Complaint;
use crate::schema;
use crate::setting::quantity::{Unit, shown};

/// Checks the retry settings of one link.
pub(super) fn check(
    check: &mut Inspection<'_>,
    link: &LinkPlan,
    path_of: &dyn Fn(&Inspection<'_>, &str) -> String,
) {
    let Some(retry) = link.profile.llr else { return };
    let keys = schema::LLR.names().filter(|key| *key != "replay_count_max" && *key != "flush");
    let paths: Vec<_> = keys.map(|key| path_of(check, &format!("llr.{key}"))).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    if check.intact(&paths) && check.intact(&["frame_bytes_max"]) {
        windows(check, retry, path_of);
        times(check, link, retry, path_of);
    }
}

fn windows(check: &mut Inspection<'_>, retry: RetryPlan, path_of: &dyn Fn(&Inspection<'_>, &str) -> String) {
    let [frames, bits, bytes, spacing] =
        ["outstanding_frames", "sequence_bits", "outstanding_bytes", "ack_spacing"]
            .map(|key| path_of(check, &format!("llr.{key}")));
    let limit = RetryConfig::outstanding_frames_limit(retry.sequence_bits);
    if u64::from(retry.outstanding_frames) > limit {
        let message = format!(
            "`{frames}` is {}, beyond half of the sequence numbers of {} bits: old and new ones could not be distinguished",
            retry.outstanding_frames, retry.sequence_bits
        );
        let hint = format!("write at most {limit}, or more `sequence_bits`");
        check.complain(&[&frames, &bits], Complaint::about(message).hint(hint));
    }
    let frame_bytes = u32::from(check.plan.settings.frame_bytes_max);
    if retry.outstanding_bytes < frame_bytes {
        let message = format!(
            "`{bytes}` is {}, a replay buffer for less than one frame of {}",
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

fn times(
    check: &mut Inspection<'_>,
    link: &LinkPlan,
    retry: RetryPlan,
    path_of: &dyn Fn(&Inspection<'_>, &str) -> String,
) {
    let [timer_path, delay_path] =
        ["replay_timer", "ack_delay"].map(|key| path_of(check, &format!("llr.{key}")));
    let (profile, frame_bytes) = (&link.profile, check.plan.settings.frame_bytes_max);
    let loop_ns = loop_ns(profile, frame_bytes);
    // The shorter of the two timers, if the file states none.
    let timer_ns = retry.replay_timer_ns(profile, frame_bytes, Clock::Virtual);
    if timer_ns < loop_ns {
        let message = format!(
            "`{timer_path}` is {}, and an acknowledgement takes up to {}: every frame would be sent twice",
            shown(timer_ns, Unit::Nanoseconds),
            shown(loop_ns, Unit::Nanoseconds)
        );
        let hint = "leave the timer out, or write more than the loop of delay and rate";
        check.complain(&[&timer_path], Complaint::about(message).hint(hint));
    } else if retry.ack_delay_ns.is_some_and(|delay_ns| delay_ns >= timer_ns) {
        let message = format!(
            "`{delay_path}` is {}, not below the replay timer of {}",
            shown(retry.ack_delay_ns.unwrap_or(0), Unit::Nanoseconds),
            shown(timer_ns, Unit::Nanoseconds)
        );
        let hint = "acknowledge before the sender's timeout ends; leave `ack_delay` out";
        check.complain(&[&delay_path, &timer_path], Complaint::about(message).hint(hint));
    }
}
