//! Reads the settings of one entry of `defaults`, `groups` or `nodes`, before inheritance.
//!
//! All three have the same keys. [`SeatSettings`] holds the settings of one entry, and
//! [`SeatSettings::or`] fills unset ones from the entry that it inherits from.

use rackloom_protocol::Tenant;

use crate::model::member::{MemoryDevice, ShareBy};
use crate::read::fields::{Fields, Reader, in_range};
use crate::read::mistake::{Complaint, quoted};
use crate::read::topology::member_name;
use crate::schema;
use crate::setting::quantity::{bytes, whole};

/// Settings of one entry. `None` is unset.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeatSettings {
    pub(crate) server: Option<String>,
    /// Tenant, with the path at which it is written.
    pub(crate) tenant: Option<(Tenant, String)>,
    /// Size, with the path at which it is written.
    pub(crate) memory_bytes: Option<(u64, String)>,
    pub(crate) huge_pages: Option<bool>,
    pub(crate) locked: Option<bool>,
    pub(crate) numa_node: Option<u16>,
    pub(crate) device: Option<MemoryDevice>,
    pub(crate) share: Option<ShareBy>,
    pub(crate) mapped: Option<MemoryDevice>,
}

impl SeatSettings {
    /// Returns these settings, with unset ones taken from `other`.
    pub(crate) fn or(self, other: &Self) -> Self {
        let other = other.clone();
        Self {
            server: self.server.or(other.server),
            tenant: self.tenant.or(other.tenant),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            huge_pages: self.huge_pages.or(other.huge_pages),
            locked: self.locked.or(other.locked),
            numa_node: self.numa_node.or(other.numa_node),
            device: self.device.or(other.device),
            share: self.share.or(other.share),
            mapped: self.mapped.or(other.mapped),
        }
    }
}

/// Reads the settings of an entry. That of a switch has a server only.
pub(crate) fn settings(reader: &mut Reader<'_>, fields: &Fields<'_>) -> SeatSettings {
    let server = reader.value(fields, "server", None, |text| server_name(text).map(Some));
    if fields.table().find("memory").is_none() {
        return SeatSettings { server, ..SeatSettings::default() };
    }
    let tenant = reader.value(fields, "tenant", None, |text| whole(text).map(|number| Some(Tenant(number))));
    let tenant = tenant.map(|tenant| (tenant, fields.path_of("tenant")));
    memory(reader, fields, SeatSettings { server, tenant, ..SeatSettings::default() })
}

/// Reads `memory: 8MiB` or `memory: {bytes: 8MiB, locked: true}`.
fn memory(reader: &mut Reader<'_>, fields: &Fields<'_>, settings: SeatSettings) -> SeatSettings {
    let sized = |reader: &mut Reader<'_>, fields: &Fields<'_>, key| {
        let size =
            reader.value(fields, key, None, |text| in_range(fields.table(), key, bytes(text)?).map(Some))?;
        Some((size, fields.path_of(key)))
    };
    if !fields.is_table("memory") {
        return SeatSettings { memory_bytes: sized(reader, fields, "memory"), ..settings };
    }
    let options = reader.open_under(fields, "memory", &schema::MEMORY);
    let shares = [ShareBy::Handle, ShareBy::Pool].map(|share| (share.name(), Some(share)));
    SeatSettings {
        memory_bytes: sized(reader, &options, "bytes"),
        huge_pages: reader.flag(&options, "huge_pages", None),
        locked: reader.flag(&options, "locked", None),
        numa_node: reader.value(&options, "numa_node", None, numa_node),
        device: reader.value(&options, "device", None, |text| device(text).map(Some)),
        share: reader.choice(&options, "share", None, &shares),
        mapped: reader.value(&options, "mapped", None, |text| device(text).map(Some)),
        ..settings
    }
}

fn numa_node(text: &str) -> Result<Option<u16>, Complaint> {
    let (_, most, _) = schema::MEMORY.range_of("numa_node");
    let number: u16 = whole(text)?;
    if u64::from(number) <= most {
        return Ok(Some(number));
    }
    let hint = format!("the machine numbers its NUMA nodes from 0; write at most {most}");
    Err(Complaint::about(format!("{number} is more than {most}")).hint(hint))
}

/// Reads `cuda:0` or `fake:7`.
fn device(text: &str) -> Result<MemoryDevice, Complaint> {
    MemoryDevice::named(text).ok_or_else(|| {
        let hint = "write `cuda:0` for the first GPU (`rackloom gpu info` lists them), or `fake:7` for a fake one of seed 7";
        Complaint::about(format!("{} is not a device", quoted(text))).hint(hint)
    })
}

/// Reads the name of a server.
pub(crate) fn server_name(text: &str) -> Result<String, Complaint> {
    member_name(text)
        .map_err(|complaint| complaint.reworded(format!("{} is not a name of a server", quoted(text))))
}
