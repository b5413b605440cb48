//! Reads `security`: the path of the key file. The programs that need the key read the file itself.

use std::path::PathBuf;

use crate::model::member::SecurityPlan;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::Complaint;
use crate::schema;

/// Reads the path of the key file.
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
