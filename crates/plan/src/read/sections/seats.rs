//! Reads the settings of one entry of `defaults`, `groups` or `nodes`, before inheritance.
//!
//! All three have the same keys. [`SeatSettings`] holds the settings of one entry, and
//! [`SeatSettings::or`] fills unset ones from the entry that it inherits from.

use std::collections::BTreeSet;

use rackloom_protocol::Tenant;

use crate::model::members::device::DeviceModel;
use crate::model::members::member::MemoryOptions;
use crate::read::fields::{Fields, Reader};
use crate::schema::{self, MemorySize, SeatKeys};
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
    pub(crate) device: DeviceModel,
    /// Keys of `device` that are stated.
    pub(crate) device_stated: BTreeSet<&'static str>,
}

impl SeatSettings {
    /// Returns these settings, with unset ones taken from `other`.
    pub(crate) fn or(self, other: &Self) -> Self {
        let mut other = other.clone();
        let Self { mut memory, mut stated, mut device, mut device_stated, .. } = self;
        device.inherit(&other.device, |key| device_stated.contains(key));
        device_stated.append(&mut other.device_stated);
        memory.inherit(&other.memory, |key| stated.contains(key));
        stated.append(&mut other.stated);
        Self {
            server: self.server.or(other.server),
            tenant: self.tenant.or(other.tenant),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            memory,
            stated,
            device,
            device_stated,
        }
    }
}

/// Reads the settings of an entry. That of a switch has a server only.
pub(crate) fn settings(reader: &mut Reader<'_>, fields: &Fields<'_>) -> SeatSettings {
    if fields.table().find("memory").is_none() {
        return SeatSettings { server: reader.declared(fields, "server", None), ..SeatSettings::default() };
    }
    let SeatKeys { tenant, server, .. } = reader.section(fields, SeatKeys::default());
    let tenant = tenant.map(|number| (Tenant(number), fields.path_of("tenant")));
    let seat = SeatSettings { server, tenant, ..SeatSettings::default() };
    let seat = device(reader, fields, seat);
    memory(reader, fields, seat)
}

/// Reads `device`, which `defaults` does not have.
fn device(reader: &mut Reader<'_>, fields: &Fields<'_>, settings: SeatSettings) -> SeatSettings {
    if fields.table().find("device").is_none() || fields.find("device").is_none() {
        return settings;
    }
    let own = reader.open_under(fields, "device", &schema::DEVICE);
    SeatSettings {
        device: reader.section(&own, DeviceModel::default()),
        device_stated: own.named(|_| true).collect(),
        ..settings
    }
}

/// Reads `memory: 8MiB` or `memory: {bytes: 8MiB, locked: true}`.
fn memory(reader: &mut Reader<'_>, fields: &Fields<'_>, settings: SeatSettings) -> SeatSettings {
    if !fields.is_table("memory") {
        let bytes: Option<u64> = reader.declared(fields, "memory", None);
        let memory_bytes = bytes.map(|bytes| (bytes, fields.path_of("memory")));
        return SeatSettings { memory_bytes, ..settings };
    }
    let options = reader.open_under(fields, "memory", &schema::MEMORY);
    let MemorySize { bytes } = reader.section(&options, MemorySize::default());
    SeatSettings {
        memory_bytes: bytes.map(|bytes| (bytes, options.path_of("bytes"))),
        memory: reader.section(&options, MemoryOptions::default()),
        stated: options.named(|_| true).collect(),
        ..settings
    }
}
