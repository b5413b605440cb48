//! Reads `security`: the path of the key file. The programs that need the key read the file itself.

use crate::model::members::member::SecurityPlan;
use crate::read::fields::{Fields, Reader};
use crate::schema;

/// Reads the path of the key file.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>) -> SecurityPlan {
    let fields = reader.open_under(rack, "security", &schema::SECURITY);
    reader.section(&fields, SecurityPlan::default())
}
