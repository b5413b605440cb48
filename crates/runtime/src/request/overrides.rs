//! Options that replace values of the plan's job. The caller checks the changed plan.
//!
//! An option without effect on the job is an error.

use rackloom_collectives::CollectiveKind;
use rackloom_control::source::JobOptions;
use rackloom_plan::{
    AlgorithmList, CollectivePlan, JobKind, JobName, Objection, Plan, Sizes, Sweep, TrafficPlan,
};
use rackloom_protocol::{MemberRole, NodeId};

use crate::outcome::failure::Failure;

/// Replaces the values of the plan's job.
///
/// # Errors
/// An option has no effect on the job, or names a member that the plan does not have.
pub fn apply_to_job(options: &JobOptions, plan: &mut Plan) -> Result<(), Failure> {
    let kind = JobChanges(options).applied(plan)?;
    plan.change(|plan| plan.job.kind = kind);
    Ok(())
}

/// Returns whether the options change the amount of memory that the job takes.
#[must_use]
pub fn changes_size(options: &JobOptions) -> bool {
    let is_another = options.job.is_some() || options.collective.is_some() || options.pattern.is_some();
    is_another || options.bytes.is_some() || options.sizes.is_some()
}

/// Options about the job, to be applied to a plan's job.
struct JobChanges<'a>(&'a JobOptions);

impl std::ops::Deref for JobChanges<'_> {
    type Target = JobOptions;

    fn deref(&self) -> &JobOptions {
        self.0
    }
}

impl JobChanges<'_> {
    /// Returns the plan's job with the options applied.
    fn applied(&self, plan: &Plan) -> Result<JobKind, Failure> {
        self.refuse_two_jobs()?;
        let mut kind = self.kind(plan.job.kind);
        let name = kind.name();
        match &mut kind {
            JobKind::Collective(collective) => {
                self.change_collective(collective, plan)?;
                self.change_sweep(&mut collective.sweep);
            }
            JobKind::Latency(sweep) | JobKind::Bandwidth(sweep) => {
                self.refuse(name, &self.about_collectives())?;
                self.change_sweep(sweep);
            }
            JobKind::Traffic(traffic) => {
                self.refuse(name, &self.about_collectives())?;
                self.refuse(name, &self.about_sweeps()[1..])?;
                self.change_traffic(traffic);
                return Ok(kind);
            }
            JobKind::Litmus | JobKind::None => {
                self.refuse(name, &self.about_collectives())?;
                self.refuse(name, &self.about_sweeps())?;
            }
        }
        self.refuse(name, &self.about_traffic())?;
        Ok(kind)
    }

    /// Refuses options of traffic beside options of collectives: each of them implies another job.
    fn refuse_two_jobs(&self) -> Result<(), Failure> {
        let given = |options: &[(&'static str, bool)]| {
            options.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
        };
        let (traffic, collective) = (given(&self.about_traffic()), given(&self.about_collectives()));
        let (Some(traffic), Some(collective), None) = (traffic, collective, self.job) else { return Ok(()) };
        let what = format!(
            "{traffic} and {collective} exclude each other: they concern job traffic and job collective"
        );
        Err(Failure::bad_input(what).hint("leave one of them out"))
    }

    /// Returns the job that the options name or imply; without one the job of the rack file.
    fn kind(&self, of_file: JobKind) -> JobKind {
        let requested = match (self.job, &self.collective, &self.pattern) {
            (Some(job), ..) => job.with_defaults(),
            (None, Some(_), _) => JobName::Collective.with_defaults(),
            (None, None, Some(_)) => JobName::Traffic.with_defaults(),
            (None, None, None) => return of_file,
        };
        // The settings of the rack file remain if it names the same job.
        if requested.job() == of_file.job() { of_file } else { requested }
    }

    fn change_collective(&self, job: &mut CollectivePlan, plan: &Plan) -> Result<(), Failure> {
        job.collective = self.collective.unwrap_or(job.collective);
        job.algorithm = self.algorithms()?.unwrap_or(job.algorithm);
        job.op = self.op.unwrap_or(job.op);
        job.element = self.element.unwrap_or(job.element);
        job.on_loss = self.on_loss.unwrap_or(job.on_loss);
        job.adapt = self.adapt.unwrap_or(job.adapt);
        self.refuse_meaningless(job.collective)?;
        if let Some(root) = &self.root {
            job.root = endpoint_named(plan, "--root", root)?;
        }
        Ok(())
    }

    /// Returns the algorithms that the options name, if any.
    fn algorithms(&self) -> Result<Option<AlgorithmList>, Failure> {
        let Some(names) = &self.algorithm else { return Ok(None) };
        let refused = |Objection { message, hint, .. }: Objection| {
            Failure::bad_input(format!("--algorithm: {message}")).hint(hint)
        };
        AlgorithmList::new(names).map(Some).map_err(refused)
    }

    /// Refuses options about an operator, a root or data that the collective does not have.
    fn refuse_meaningless(&self, collective: CollectiveKind) -> Result<(), Failure> {
        type Takes = fn(CollectiveKind) -> bool;
        let operator: Takes = CollectiveKind::reduces;
        let root: Takes = CollectiveKind::has_root;
        let data: Takes = CollectiveKind::moves_data;
        let options = [
            ("--op", self.op.is_some(), operator),
            ("--root", self.root.is_some(), root),
            ("--type", self.element.is_some(), data),
            ("--bytes", self.bytes.is_some(), data),
            ("--sizes", self.sizes.is_some(), data),
            ("--adapt", self.adapt.is_some(), data),
        ];
        let mut meaningless = options.iter().filter(|(_, is_given, takes)| *is_given && !takes(collective));
        let Some((option, _, takes)) = meaningless.next() else { return Ok(()) };
        let others: String = meaningless.map(|(option, ..)| format!(", {option}")).collect();
        let (verb, them) = if others.is_empty() { ("means", "it") } else { ("mean", "them") };
        let hint = format!("leave {them} out; {option} belongs to {}", CollectiveKind::listed(takes));
        Err(Failure::bad_input(format!("{option}{others} {verb} nothing to {collective}")).hint(hint))
    }

    fn change_traffic(&self, traffic: &mut TrafficPlan) {
        traffic.pattern = self.pattern.unwrap_or(traffic.pattern);
        traffic.bytes = self.bytes.unwrap_or(traffic.bytes);
        traffic.messages = self.messages.unwrap_or(traffic.messages);
    }

    fn about_traffic(&self) -> [(&'static str, bool); 2] {
        [("--pattern", self.pattern.is_some()), ("--messages", self.messages.is_some())]
    }

    fn change_sweep(&self, sweep: &mut Sweep) {
        sweep.sizes = match (self.bytes, self.sizes) {
            (Some(bytes), _) => Sizes::one(bytes),
            (None, Some(sizes)) => sizes,
            (None, None) => sweep.sizes,
        };
        sweep.repetitions = self.repetitions.unwrap_or(sweep.repetitions);
        sweep.warm_up = self.warm_up.unwrap_or(sweep.warm_up);
    }

    fn about_collectives(&self) -> [(&'static str, bool); 7] {
        [
            ("--collective", self.collective.is_some()),
            ("--op", self.op.is_some()),
            ("--type", self.element.is_some()),
            ("--algorithm", self.algorithm.is_some()),
            ("--root", self.root.is_some()),
            ("--adapt", self.adapt.is_some()),
            ("--on-loss", self.on_loss.is_some()),
        ]
    }

    fn about_sweeps(&self) -> [(&'static str, bool); 4] {
        [
            ("--bytes", self.bytes.is_some()),
            ("--sizes", self.sizes.is_some()),
            ("--repetitions", self.repetitions.is_some()),
            ("--warm-up", self.warm_up.is_some()),
        ]
    }

    #[expect(clippy::unused_self, reason = "reads as a verb of the options that are refused")]
    fn refuse(&self, job: &str, options: &[(&str, bool)]) -> Result<(), Failure> {
        let given: Vec<_> =
            options.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option).collect();
        if given.is_empty() {
            return Ok(());
        }
        let verb = if given.len() == 1 { "means" } else { "mean" };
        let what = format!("{} {verb} nothing to job {job}", given.join(", "));
        Err(Failure::bad_input(what)
            .hint("use --job collective, latency, bandwidth or traffic, or name it in the file"))
    }
}

/// Maximum number of members that a hint names.
const NODES_NAMED: usize = 8;

/// Returns the GPU node that an option names.
fn endpoint_named(plan: &Plan, option: &str, name: &str) -> Result<NodeId, Failure> {
    named(plan, option, name, "GPU node", |role| role == MemberRole::Endpoint)
}

/// Returns the member that an option names.
///
/// # Errors
/// The plan has no such member. The failure names the option.
pub fn member_named(plan: &Plan, option: &str, name: &str) -> Result<NodeId, Failure> {
    named(plan, option, name, "member", |_| true)
}

fn named(
    plan: &Plan,
    option: &str,
    name: &str,
    what: &str,
    is_meant: impl Fn(MemberRole) -> bool,
) -> Result<NodeId, Failure> {
    let node = plan.node_named(name);
    let node = node.filter(|node| is_meant(plan.members[node.index()].role));
    node.ok_or_else(|| {
        let names = plan.members.iter().filter(|member| is_meant(member.role));
        let names: Vec<_> = names.map(|member| member.name.as_str()).collect();
        let (named, more) = names.split_at(names.len().min(NODES_NAMED));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        Failure::bad_input(format!("{option}: {name} is no {what} of rack {}", plan.name))
            .hint(format!("its {what}s are {}{more}", named.join(", ")))
    })
}
