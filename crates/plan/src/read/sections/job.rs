//! Reads `job`: the name of a job with default settings, or a table with one job and its settings.

use rackloom_protocol::NodeId;

use crate::model::defaults;
use crate::model::jobs::algorithm::{AlgorithmChoice, AlgorithmList};
use crate::model::jobs::job::{CollectivePlan, JobKind, JobPlan, Sizes, Sweep, TrafficPlan};
use crate::model::members::shape::Shape;
use crate::model::objection::Objection;
use crate::read::document::Content;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::sections::topology::member_at;
use crate::schema;
use crate::setting::named_value::read_named;

/// Jobs that the file names.
pub(crate) struct Jobs {
    /// Job of the rack, or its default.
    pub(crate) job: JobPlan,
    /// All jobs. More than one is a mistake, but all of them are checked.
    pub(crate) all: Vec<JobPlan>,
}

impl Jobs {
    fn one(job: JobPlan) -> Self {
        Self { job, all: vec![job] }
    }
}

/// Reads the job: `job: none`, or `job: {litmus: {...}}`.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Jobs {
    let base = defaults::JOB;
    let Some(value) = rack.find("job") else { return Jobs::one(base) };
    reader.positions.note("job".to_owned(), value.position);
    if matches!(value.content, Content::Text(_)) {
        let name = reader.named(rack, "job", base.kind.job());
        return Jobs::one(JobPlan { kind: name.with_defaults(), ..base });
    }
    let jobs = reader.open_under(rack, "job", &schema::JOB);
    let chosen = reader.chosen(value, &jobs, "a rack has one job, found several");
    if chosen.is_none() {
        reader.positions.note_broken("job".to_owned());
    }
    let mut read = Jobs { job: base, all: Vec::new() };
    for name in jobs.named(|_| true) {
        let job = job(reader, &jobs, shape, name);
        read.all.push(job);
        if chosen == Some(name) {
            read.job = job;
        }
    }
    read
}

fn job(reader: &mut Reader<'_>, jobs: &Fields<'_>, shape: Option<&Shape>, name: &'static str) -> JobPlan {
    let base = defaults::JOB;
    let kind = match name {
        "collective" => JobKind::Collective(collective(reader, jobs, shape)),
        "latency" => {
            let fields = reader.open_under(jobs, name, &schema::LATENCY);
            JobKind::Latency(sweep(reader, &fields, Sweep::LATENCY))
        }
        "traffic" => JobKind::Traffic(traffic(reader, jobs)),
        "bandwidth" => {
            let fields = reader.open_under(jobs, name, &schema::BANDWIDTH);
            JobKind::Bandwidth(sweep(reader, &fields, Sweep::BANDWIDTH))
        }
        _ => {
            let fields = reader.open_under(jobs, "litmus", &schema::LITMUS);
            return JobPlan { kind: JobKind::Litmus, litmus: reader.section(&fields, base.litmus) };
        }
    };
    JobPlan { kind, ..base }
}

fn collective(reader: &mut Reader<'_>, jobs: &Fields<'_>, shape: Option<&Shape>) -> CollectivePlan {
    let fields = reader.open_under(jobs, "collective", &schema::COLLECTIVE);
    let base = CollectivePlan::default();
    CollectivePlan {
        algorithm: algorithms(reader, &fields),
        sweep: sweep(reader, &fields, base.sweep),
        root: root(reader, &fields, shape).unwrap_or(base.root),
        ..reader.section(&fields, base)
    }
}

/// Reads `algorithm: ring`, or `algorithm: [ring, two-shot]`.
fn algorithms(reader: &mut Reader<'_>, fields: &Fields<'_>) -> AlgorithmList {
    let Some(value) = fields.find("algorithm") else { return AlgorithmList::default() };
    let Content::List(items) = &value.content else {
        return reader.named(fields, "algorithm", AlgorithmChoice::AUTO).into();
    };
    let path = fields.path_of("algorithm");
    reader.positions.note(path.clone(), value.position);
    let before = reader.mistakes.len();
    let mut names = Vec::new();
    for item in items {
        match reader.scalar(item, &path).and_then(read_named::<AlgorithmChoice>) {
            Ok(name) => names.push(name),
            Err(complaint) => reader.complain(item.position, complaint.at(&path)),
        }
    }
    if reader.mistakes.len() == before {
        match AlgorithmList::new(&names) {
            Ok(list) => return list,
            Err(Objection { message, hint, .. }) => {
                let complaint = Complaint::about(format!("`{path}`: {message}"));
                reader.complain(value.position, complaint.hint(hint));
            }
        }
    }
    reader.positions.note_broken(path);
    AlgorithmList::default()
}

fn traffic(reader: &mut Reader<'_>, jobs: &Fields<'_>) -> TrafficPlan {
    let fields = reader.open_under(jobs, "traffic", &schema::TRAFFIC);
    reader.section(&fields, TrafficPlan::default())
}

fn root(reader: &mut Reader<'_>, fields: &Fields<'_>, shape: Option<&Shape>) -> Option<NodeId> {
    let value = fields.find("root")?;
    let path = fields.path_of("root");
    reader.positions.note(path.clone(), value.position);
    let shape = shape?;
    let root = member_at(reader, shape, value, &path)?;
    let (name, role) = &shape.members[root.index()];
    if role.is_switch() {
        let message = format!("the root {} is a switch, which has no memory", quoted(name));
        reader.complain(value.position, Complaint::about(message).hint("name a node"));
        return None;
    }
    Some(root)
}

/// Reads `bytes: 1MiB` or `sizes: {from: 8B, to: 64MiB, factor: 2}`, and the repetitions.
fn sweep(reader: &mut Reader<'_>, fields: &Fields<'_>, base: Sweep) -> Sweep {
    let one = reader.declared(fields, "bytes", None);
    let several = fields.find("sizes");
    if let Some(value) = several {
        reader.positions.note(fields.path_of("sizes"), value.position);
    }
    if let (Some(value), Some(_)) = (several, fields.find("bytes")) {
        let message = format!("`{}` and `{}` contradict", fields.path_of("bytes"), fields.path_of("sizes"));
        reader.complain(value.position, Complaint::about(message).hint("name one size, or several"));
    }
    let sizes = match (several, one) {
        (Some(_), _) => sizes(reader, fields).unwrap_or(base.sizes),
        (None, Some(bytes)) => Sizes::one(bytes),
        (None, None) => base.sizes,
    };
    Sweep { sizes, ..reader.section(fields, base) }
}

fn sizes(reader: &mut Reader<'_>, outer: &Fields<'_>) -> Option<Sizes> {
    let fields = reader.open_under(outer, "sizes", &schema::SIZES);
    for key in ["from", "to"] {
        if let (None, Some(value)) = (fields.find(key), outer.find("sizes")) {
            let message = format!("`{}` has no `{key}`", outer.path_of("sizes"));
            let hint = "write `{from: 8B, to: 64KiB, factor: 2}`";
            reader.complain(value.position, Complaint::about(message).hint(hint));
        }
    }
    let stated = reader.section(&fields, Sizes::default());
    let is_known = |key| fields.find(key).is_some() && reader.positions.is_intact(&fields.path_of(key));
    ["from", "to"].into_iter().all(is_known).then_some(stated)
}
