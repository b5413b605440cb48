//! Reads `link.llr`: link-level retry.

use crate::model::retry::RetryPlan;
use crate::read::fields::{Fields, Reader};
use crate::read::settings::bytes_as;
use crate::schema;
use crate::setting::quantity::{nanoseconds, whole};

/// Reads `on`, `off`, or a table over the retry of the rack.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    base: Option<RetryPlan>,
) -> Option<RetryPlan> {
    if !fields.is_table("llr") {
        let words = [("on", base.or(Some(RetryPlan::default()))), ("off", None)];
        return reader.choice(fields, "llr", base, &words);
    }
    let base = base.unwrap_or_default();
    let fields = reader.open_under(fields, "llr", &schema::LLR);
    let time = |text: &str| nanoseconds(text).map(Some);
    Some(RetryPlan {
        sequence_bits: reader.value(&fields, "sequence_bits", base.sequence_bits, whole),
        outstanding_frames: reader.value(&fields, "outstanding_frames", base.outstanding_frames, whole),
        outstanding_bytes: reader.value(&fields, "outstanding_bytes", base.outstanding_bytes, bytes_as),
        ack_spacing_bytes: reader.value(&fields, "ack_spacing", base.ack_spacing_bytes, bytes_as),
        ack_delay_ns: reader.value(&fields, "ack_delay", base.ack_delay_ns, time),
        replay_timer_ns: reader.value(&fields, "replay_timer", base.replay_timer_ns, time),
        replay_count_max: reader.value(&fields, "replay_count_max", base.replay_count_max, whole),
        flush: reader.word(&fields, "flush", base.flush),
    })
}
