//! Reads `link.llr`: link-level retry.

use crate::model::links::retry::RetryPlan;
use crate::read::fields::{Fields, Reader};
use crate::schema;

/// Reads `on`, `off`, or a table over the retry of the rack.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    base: Option<RetryPlan>,
) -> Option<RetryPlan> {
    if !fields.is_table("llr") {
        let names = [("on", base.or(Some(RetryPlan::default()))), ("off", None)];
        return reader.choice(fields, "llr", base, &names);
    }
    let fields = reader.open_under(fields, "llr", &schema::LLR);
    Some(reader.section(&fields, base.unwrap_or_default()))
}
