//! Declares authentication.

use crate::schema::{Key, Kind, Table, key, table};

pub(crate) static SECURITY: Table = table("security", KEYS);

const KEYS: &[Key] = &[key(
    "key_file",
    Kind::Path,
    "what `RACKLOOM_KEY_FILE` names",
    "File with a secret of 32 bytes or more, which its user alone can read. A relative path starts at the folder of the rack file. Every \
     process of the rack needs the same content; the path may differ by host. It is not part of the configuration hash.",
)];
