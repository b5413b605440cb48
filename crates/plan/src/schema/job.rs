//! Declares the choice of a job.

use crate::model::jobs::job::{BANDWIDTH, COLLECTIVE, JobName, LATENCY, LITMUS, TRAFFIC};
use crate::setting::table::{Choose, Key, Kind, Table, key};

pub(crate) static JOB: Table = Table { name: "job", keys: JOB_KEYS, choose: Choose::One };
/// Forms of `job`.
pub(crate) const JOB_FORMS: Kind = Kind::Either(&[Kind::Choice(JobName::NAMES), Kind::Table(&JOB)]);

const JOB_KEYS: &[Key] = &[
    of_job(JobName::Litmus, &LITMUS),
    of_job(JobName::Collective, &COLLECTIVE),
    of_job(JobName::Latency, &LATENCY),
    of_job(JobName::Bandwidth, &BANDWIDTH),
    of_job(JobName::Traffic, &TRAFFIC),
];

const fn of_job(name: JobName, table: &'static Table) -> Key {
    key(name.name(), Kind::Table(table), "", name.meaning())
}
