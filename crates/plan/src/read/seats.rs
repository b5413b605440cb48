//! Reads the settings of one entry of `defaults`, `groups` or `nodes`, before inheritance.
//!
//! All three have the same keys. [`SeatSettings`] holds the settings of one entry, and
//! [`SeatSettings::or`] fills unset ones from the entry that it inherits from.

use std::collections::BTreeSet;

use rackloom_protocol::Tenant;

use crate::model::member::MemoryOptions;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::topology::member_name;
use crate::schema;
use crate::setting::section::Section;

/// Settings of one entry. `None` is unset.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeatSettings {
    pub(crate) server: Option<String>,
    /// Tenant, with the path at which it is written.
    pub(crate) tenant: Option<(Tenant, String)>,
    /// Size, with the path at which it is written.
    pub(crate) memory_bytes: Option<(u64, String)>,
    pub(crate) memory: MemoryOptions,
    /// Keys of `memory` that are stated.
    pub(crate) stated: BTreeSet<&'static str>,
}

impl SeatSettings {
    /// Returns these settings, with unset ones taken from `other`.
    pub(crate) fn or(self, other: &Self) -> Self {
        let mut other = other.clone();
        let Self { mut memory, mut stated, .. } = self;
        memory.inherit(&other.memory, |key| stated.contains(key));
        stated.append(&mut other.stated);
        Self {
            server: self.server.or(other.server),
            tenant: self.tenant.or(other.tenant),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            memory,
            stated,
        }
    }
}

/// Reads the settings of an entry. That of a switch has a server only.
pub(crate) fn settings(reader: &mut Reader<'_>, fields: &Fields<'_>) -> SeatSettings {
    let server = reader.value(fields, "server", None, |text| server_name(text).map(Some));
    if fields.table().find("memory").is_none() {
        return SeatSettings { server, ..SeatSettings::default() };
    }
    let tenant: Option<u16> = reader.declared(fields, "tenant", None);
    let tenant = tenant.map(|number| (Tenant(number), fields.path_of("tenant")));
    memory(reader, fields, SeatSettings { server, tenant, ..SeatSettings::default() })
}

/// Reads `memory: 8MiB` or `memory: {bytes: 8MiB, locked: true}`.
fn memory(reader: &mut Reader<'_>, fields: &Fields<'_>, settings: SeatSettings) -> SeatSettings {
    let sized = |reader: &mut Reader<'_>, fields: &Fields<'_>, key| {
        let size: Option<u64> = reader.declared(fields, key, None);
        size.map(|size| (size, fields.path_of(key)))
    };
    if !fields.is_table("memory") {
        return SeatSettings { memory_bytes: sized(reader, fields, "memory"), ..settings };
    }
    let options = reader.open_under(fields, "memory", &schema::MEMORY);
    SeatSettings {
        memory_bytes: sized(reader, &options, "bytes"),
        memory: reader.section(&options, MemoryOptions::default()),
        stated: options.named(|_| true).collect(),
        ..settings
    }
}

/// Reads the name of a server.
pub(crate) fn server_name(text: &str) -> Result<String, Complaint> {
    member_name(text)
        .map_err(|complaint| complaint.reworded(format!("{} is not a name of a server", quoted(text))))
}
