//! `security`: who may take part in the rack. The key file itself is read by those who need it.

use std::path::PathBuf;

use crate::mistake::Complaint;
use crate::plan::SecurityPlan;
use crate::read::fields::{Fields, Reader};
use crate::schema;

/// Read where the key is.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>) -> SecurityPlan {
    let fields = reader.open_under(rack, "security", &schema::SECURITY);
    let key_file = reader.value(&fields, "key_file", None, |text| {
        if text.is_empty() || text.contains('\0') {
            return Err(Complaint::about("this is no path").hint("write the path of a file, as `rack.key`"));
        }
        Ok(Some(PathBuf::from(text)))
    });
    SecurityPlan { key_file }
}
