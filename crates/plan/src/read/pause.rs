//! Reads `link.pfc`: pauses in place of credits.

use crate::model::pause::PausePlan;
use crate::read::fields::{Fields, Reader};
use crate::read::settings::bytes_as;
use crate::schema;
use crate::setting::quantity::{nanoseconds, whole};

/// Reads `on`, `off`, or a table over the pauses of the rack.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    base: Option<PausePlan>,
) -> Option<PausePlan> {
    if !fields.is_table("pfc") {
        let words = [("on", base.or(Some(PausePlan::default()))), ("off", None)];
        return reader.choice(fields, "pfc", base, &words);
    }
    let base = base.unwrap_or_default();
    let fields = reader.open_under(fields, "pfc", &schema::PFC);
    let size = |text: &str| bytes_as(text).map(Some);
    Some(PausePlan {
        xoff_bytes: reader.value(&fields, "xoff", base.xoff_bytes, bytes_as),
        xon_bytes: reader.value(&fields, "xon", base.xon_bytes, size),
        headroom_bytes: reader.value(&fields, "headroom", base.headroom_bytes, size),
        allows_short_headroom: reader.choice(
            &fields,
            "short_headroom",
            base.allows_short_headroom,
            &[("refuse", false), ("allow", true)],
        ),
        quanta: reader.value(&fields, "quanta", base.quanta, whole),
        response_delay_ns: reader.value(&fields, "response_delay", base.response_delay_ns, nanoseconds),
        watchdog_ns: reader.value(&fields, "watchdog", base.watchdog_ns, nanoseconds),
    })
}
