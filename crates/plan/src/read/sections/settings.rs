//! Reads timers, transport, packing, forwarding and credits: tables of plain values over defaults.

use rackloom_protocol::{LinkTimers, PackingConfig, SharedBufferConfig, TransportConfig};

use crate::model::links::credits::CreditChoice;
use crate::model::members::device::DeviceModel;
use crate::model::members::paths::PathPlan;
use crate::model::times::stated::{Stated, TimingKey};
use crate::model::times::timers::TIMERS_DEFAULT;
use crate::model::times::timing::{BUFFER_DEFAULT, ForwardingPlan};
use crate::model::transport::{PACKING_DEFAULT, TRANSPORT_DEFAULT};
use crate::read::document::Content;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::Complaint;
use crate::schema;

pub(crate) fn timers(reader: &mut Reader<'_>, rack: &Fields<'_>) -> LinkTimers {
    if !rack.is_table("timers") {
        reader.choice(rack, "timers", (), &[("auto", ())]);
        return TIMERS_DEFAULT;
    }
    let fields = reader.open_under(rack, "timers", &schema::TIMERS);
    reader.section(&fields, TIMERS_DEFAULT)
}

pub(crate) fn transport(reader: &mut Reader<'_>, rack: &Fields<'_>) -> TransportConfig {
    let fields = reader.open_under(rack, "transport", &schema::TRANSPORT);
    reader.section(&fields, TRANSPORT_DEFAULT)
}

/// Returns the set of timing keys that the file states.
pub(crate) fn stated(rack: &Fields<'_>) -> Stated {
    let stands = |table: &'static str, key: &str| match rack.find(table).map(|value| &value.content) {
        Some(Content::Table(entries)) => entries.iter().any(|entry| entry.key == key),
        _ => false,
    };
    let is_stated = |key: &TimingKey| {
        let (table, name) = key.path();
        stands(table, name)
    };
    TimingKey::ALL.into_iter().filter(is_stated).collect()
}

pub(crate) fn paths(reader: &mut Reader<'_>, rack: &Fields<'_>) -> PathPlan {
    let fields = reader.open_under(rack, "paths", &schema::PATHS);
    reader.section(&fields, PathPlan::default())
}

pub(crate) fn packing(reader: &mut Reader<'_>, rack: &Fields<'_>) -> PackingConfig {
    let fields = reader.open_under(rack, "packing", &schema::PACKING);
    reader.section(&fields, PACKING_DEFAULT)
}

pub(crate) fn device(reader: &mut Reader<'_>, rack: &Fields<'_>) -> DeviceModel {
    let fields = reader.open_under(rack, "device", &schema::DEVICE);
    reader.section(&fields, DeviceModel::default())
}

pub(crate) fn forwarding(reader: &mut Reader<'_>, rack: &Fields<'_>) -> ForwardingPlan {
    let fields = reader.open_under(rack, "forwarding", &schema::FORWARDING);
    let buffer = shared_buffer(reader, &fields);
    ForwardingPlan { buffer, ..reader.section(&fields, ForwardingPlan::default()) }
}

fn shared_buffer(reader: &mut Reader<'_>, forwarding: &Fields<'_>) -> Option<SharedBufferConfig> {
    let position = forwarding.find("buffer")?.position;
    reader.positions.note(forwarding.path_of("buffer"), position);
    let fields = reader.open_under(forwarding, "buffer", &schema::BUFFER);
    if fields.find("bytes").is_none() {
        let message = format!("`{}` has no `bytes`", forwarding.path_of("buffer"));
        let hint = "write like `buffer: {bytes: 4MiB, alpha: 0.5}`";
        reader.complain(position, Complaint::about(message).hint(hint));
    }
    Some(reader.section(&fields, BUFFER_DEFAULT))
}

pub(crate) fn credits(reader: &mut Reader<'_>, rack: &Fields<'_>) -> CreditChoice {
    let fields = reader.open_under(rack, "credits", &schema::CREDITS);
    reader.section(&fields, CreditChoice::default())
}
