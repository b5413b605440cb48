//! What the command line says, put in place of what the file says. Judged afterwards by the plan itself.
//!
//! An option that means nothing to the job is a mistake, and not a wish that nobody heard.

use rackloom_plan::{
    AlgorithmList, AlgorithmName, CollectiveName, CollectivePlan, ElementName, JobKind, Objection, OnLoss,
    OperatorName, PatternName, PayloadMode, Plan, RetryPlan, Sizes, Sweep, TrafficPlan,
};
use rackloom_protocol::{MemberRole, NodeId, RetransmissionMode};

use crate::arguments::{JobOptions, OnOff, Overrides};
use crate::failure::Failure;

impl Overrides {
    /// Put everything that is said in its place.
    pub(crate) fn apply(&self, plan: &mut Plan) -> Result<(), Failure> {
        let kind = self.job.applied(plan)?;
        plan.change(|plan| {
            plan.job.kind = kind;
            plan.seed = self.seed.unwrap_or(plan.seed);
            plan.payload = self.payload.as_deref().and_then(PayloadMode::from_name).unwrap_or(plan.payload);
            plan.transport.mode = self.transport.map_or(plan.transport.mode, RetransmissionMode::from);
        });
        plan.override_links(|profile| {
            profile.loss = self.loss.unwrap_or(profile.loss);
            profile.corrupt = self.corrupt.unwrap_or(profile.corrupt);
            profile.duplicate = self.duplicate.unwrap_or(profile.duplicate);
            profile.reorder = self.reorder.unwrap_or(profile.reorder);
            profile.retry = match self.llr {
                // What the file says of it stays.
                Some(OnOff::On) => profile.retry.or(Some(RetryPlan::default())),
                Some(OnOff::Off) => None,
                None => profile.retry,
            };
        });
        Ok(())
    }
}

impl JobOptions {
    /// The plan's job with what is said about it.
    fn applied(&self, plan: &Plan) -> Result<JobKind, Failure> {
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

    /// Whether the job takes more or less memory than the file's.
    pub(crate) fn changes_size(&self) -> bool {
        let is_another = self.job.is_some() || self.collective.is_some() || self.pattern.is_some();
        is_another || self.bytes.is_some() || self.sizes.is_some()
    }

    /// Which job: the one that is named, or the one that `--collective` means, or the file's.
    fn kind(&self, of_file: JobKind) -> JobKind {
        let asked = match (self.job, &self.collective, &self.pattern) {
            (Some(job), ..) => job.kind(),
            (None, Some(_), _) => JobKind::Collective(CollectivePlan::default()),
            (None, None, Some(_)) => JobKind::Traffic(TrafficPlan::default()),
            (None, None, None) => return of_file,
        };
        // The file's own settings stay if it names the same job.
        if asked.name() == of_file.name() { of_file } else { asked }
    }

    fn change_collective(&self, job: &mut CollectivePlan, plan: &Plan) -> Result<(), Failure> {
        // Names are those of the plan: the command line takes no others.
        let name = |said: &Option<String>| said.clone().unwrap_or_default();
        job.collective = CollectiveName::from_name(&name(&self.collective)).unwrap_or(job.collective);
        job.algorithm = self.algorithms()?.unwrap_or(job.algorithm);
        job.op = OperatorName::from_name(&name(&self.op)).unwrap_or(job.op);
        job.element = ElementName::from_name(&name(&self.element)).unwrap_or(job.element);
        job.on_loss = OnLoss::from_name(&name(&self.on_loss)).unwrap_or(job.on_loss);
        self.refuse_meaningless(job.collective)?;
        if let Some(root) = &self.root {
            job.root = endpoint_named(plan, "--root", root)?;
        }
        Ok(())
    }

    /// The algorithms that the command line names, if it names any.
    fn algorithms(&self) -> Result<Option<AlgorithmList>, Failure> {
        let Some(said) = &self.algorithm else { return Ok(None) };
        let names: Vec<_> = said.iter().filter_map(|name| AlgorithmName::from_name(name)).collect();
        let refused = |Objection { message, hint, .. }: Objection| {
            Failure::bad_input(format!("--algorithm: {message}")).hint(hint)
        };
        AlgorithmList::new(&names).map(Some).map_err(refused)
    }

    /// An option about what this collective does not have: operator, root, data.
    fn refuse_meaningless(&self, collective: CollectiveName) -> Result<(), Failure> {
        type Takes = fn(CollectiveName) -> bool;
        let operator: Takes = CollectiveName::takes_operator;
        let root: Takes = CollectiveName::takes_root;
        let data: Takes = CollectiveName::moves_data;
        let options = [
            ("--op", self.op.is_some(), operator),
            ("--root", self.root.is_some(), root),
            ("--type", self.element.is_some(), data),
            ("--bytes", self.bytes.is_some(), data),
            ("--sizes", self.sizes.is_some(), data),
        ];
        let mut meaningless = options.iter().filter(|(_, said, takes)| *said && !takes(collective));
        let Some((option, _, takes)) = meaningless.next() else { return Ok(()) };
        let others: String = meaningless.map(|(option, ..)| format!(", {option}")).collect();
        let (verb, them) = if others.is_empty() { ("means", "it") } else { ("mean", "them") };
        let hint = format!("leave {them} out; {option} belongs to {}", CollectiveName::listed(takes));
        Err(Failure::bad_input(format!("{option}{others} {verb} nothing to {collective}")).hint(hint))
    }

    fn change_traffic(&self, traffic: &mut TrafficPlan) {
        let pattern = self.pattern.as_deref().and_then(PatternName::from_name);
        traffic.pattern = pattern.unwrap_or(traffic.pattern);
        traffic.bytes = self.bytes.unwrap_or(traffic.bytes);
        traffic.messages = self.messages.unwrap_or(traffic.messages);
    }

    fn about_traffic(&self) -> [(&'static str, bool); 2] {
        [("--pattern", self.pattern.is_some()), ("--messages", self.messages.is_some())]
    }

    fn change_sweep(&self, sweep: &mut Sweep) {
        sweep.sizes = match (self.bytes, self.sizes) {
            (Some(bytes), _) => Sizes::one(bytes),
            (None, Some(range)) => range.into(),
            (None, None) => sweep.sizes,
        };
        sweep.repetitions = self.repetitions.unwrap_or(sweep.repetitions);
        sweep.warm_up = self.warm_up.unwrap_or(sweep.warm_up);
    }

    fn about_collectives(&self) -> [(&'static str, bool); 6] {
        [
            ("--collective", self.collective.is_some()),
            ("--op", self.op.is_some()),
            ("--type", self.element.is_some()),
            ("--algorithm", self.algorithm.is_some()),
            ("--root", self.root.is_some()),
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
        let said: Vec<_> = options.iter().filter(|(_, said)| *said).map(|(option, _)| *option).collect();
        if said.is_empty() {
            return Ok(());
        }
        let verb = if said.len() == 1 { "means" } else { "mean" };
        let what = format!("{} {verb} nothing to job {job}", said.join(", "));
        Err(Failure::bad_input(what)
            .hint("say --job collective, latency, bandwidth or traffic, or name it in the file"))
    }
}

/// So many nodes a hint names.
const NODES_NAMED: usize = 8;

/// The GPU node that an option names.
pub(crate) fn endpoint_named(plan: &Plan, option: &str, name: &str) -> Result<NodeId, Failure> {
    named(plan, option, name, "GPU node", |role| role == MemberRole::Endpoint)
}

/// The GPU node or switch that an option names.
pub(crate) fn member_named(plan: &Plan, option: &str, name: &str) -> Result<NodeId, Failure> {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn applied(job_of_file: &str, options: &[&str]) -> Result<JobKind, Failure> {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\njob: {job_of_file}\n");
        let mut plan = Plan::parse(&text, "test").unwrap();
        let arguments = [&["rackloom", "sim", "r.yaml"][..], options].concat();
        let Command::Sim(arguments) = Arguments::try_parse_from(arguments).unwrap().command else { panic!() };
        arguments.overrides.apply(&mut plan)?;
        Ok(plan.job.kind)
    }

    #[test]
    fn what_is_not_said_stays_as_the_file_has_it() {
        let file = "{collective: {collective: reduce-scatter, type: f16, bytes: 64B, repetitions: 3}}";
        let JobKind::Collective(job) = applied(file, &["--job", "collective", "--op", "max"]).unwrap() else {
            panic!()
        };
        assert_eq!((job.collective, job.element), (CollectiveName::ReduceScatter, ElementName::F16));
        assert_eq!((job.op, job.sweep.repetitions), (OperatorName::Max, 3));
    }

    #[test]
    fn a_collective_makes_a_job_of_it() {
        let options = ["--collective", "reduce", "--root", "n2", "--sizes", "8B..64B", "--warm-up", "0"];
        let JobKind::Collective(job) = applied("litmus", &options).unwrap() else { panic!() };
        assert_eq!((job.collective, job.root), (CollectiveName::Reduce, NodeId(2)));
        assert_eq!(job.sweep.sizes.iter().collect::<Vec<_>>(), [8, 16, 32, 64]);
        assert_eq!(job.sweep.warm_up, 0);
    }

    #[test]
    fn an_option_that_means_nothing_to_the_collective_is_refused_with_a_hint() {
        let without_operator = ["all-gather", "broadcast", "all-to-all", "gather", "scatter", "barrier"];
        let without_root = ["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "barrier"];
        let cases = without_operator.into_iter().map(|name| (name, ["--op", "sum"]));
        let cases = cases.chain(without_root.into_iter().map(|name| (name, ["--root", "n1"])));
        let of_data = [["--bytes", "8B"], ["--sizes", "8B..16B"], ["--type", "f16"]];
        for (collective, option) in cases.chain(of_data.map(|option| ("barrier", option))) {
            let asked = [&["--collective", collective][..], &option].concat();
            // The rule holds for a collective that the file names as well.
            let in_file = format!("{{collective: {{collective: {collective}}}}}");
            for refused in [applied("litmus", &asked), applied(&in_file, &option)] {
                let message = refused.unwrap_err().to_string();
                let what = format!("{} means nothing to {collective}", option[0]);
                assert!(message.contains(&what) && message.contains("hint:"), "{message}");
            }
        }
        let several = applied("litmus", &["--collective", "barrier", "--op", "sum", "--bytes", "8B"]);
        let message = several.unwrap_err().to_string();
        assert!(message.contains("--op, --bytes mean nothing to barrier"), "{message}");
    }

    #[test]
    fn several_algorithms_are_taken_in_their_order_and_each_once() {
        let file = "{collective: {algorithm: [ring, one-shot]}}";
        let names = |options: &[&str]| {
            let JobKind::Collective(job) = applied(file, options).unwrap() else { panic!() };
            job.algorithm.to_string()
        };
        assert_eq!(names(&[]), "ring,one-shot", "the file's list stays");
        assert_eq!(names(&["--algorithm", "two-shot,ring"]), "two-shot,ring");
        assert_eq!(names(&["--algorithm", "auto"]), "auto");
        for (list, what) in [
            ("ring,two-shot,ring", "--algorithm: algorithm ring stands twice"),
            ("auto,ring", "--algorithm: algorithm auto stands beside others"),
        ] {
            let message = applied("collective", &["--algorithm", list]).unwrap_err().to_string();
            assert!(message.contains(what) && message.contains("hint:"), "{message}");
        }
    }

    #[test]
    fn an_option_that_means_something_is_heard() {
        for collective in ["broadcast", "reduce", "gather", "scatter"] {
            assert!(applied("litmus", &["--collective", collective, "--root", "n3"]).is_ok(), "{collective}");
        }
        for collective in ["all-reduce", "reduce-scatter", "reduce"] {
            assert!(applied("litmus", &["--collective", collective, "--op", "min"]).is_ok(), "{collective}");
        }
    }

    #[test]
    fn an_option_that_means_nothing_to_the_job_is_refused() {
        for (job, options) in [
            ("litmus", &["--bytes", "8B"][..]),
            ("none", &["--repetitions", "2"]),
            ("latency", &["--op", "sum"]),
            ("litmus", &["--job", "bandwidth", "--algorithm", "ring"]),
            ("collective", &["--root", "n9"]),
        ] {
            assert_eq!(
                applied(job, options).unwrap_err().exit,
                crate::exit::Exit::BadInput,
                "{job} {options:?}"
            );
        }
    }
}
