//! Reads `link.pfc`: pauses in place of credits.

use crate::model::links::pause::PausePlan;
use crate::read::fields::{Fields, Reader};
use crate::schema;

/// Reads `on`, `off`, or a table over the pauses of the rack.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    base: Option<PausePlan>,
) -> Option<PausePlan> {
    if !fields.is_table("pfc") {
        let names = [("on", base.or(Some(PausePlan::default()))), ("off", None)];
        return reader.choice(fields, "pfc", base, &names);
    }
    let fields = reader.open_under(fields, "pfc", &schema::PFC);
    Some(reader.section(&fields, base.unwrap_or_default()))
}
