//! From arguments to the options of the runtime.

use std::ffi::OsString;

use clap::CommandFactory as _;
use rackloom_control::recorder::Recording;
use rackloom_control::source;
use rackloom_runtime::request::options::{
    CheckpointOptions, LogOptions, ProcessOptions, RunOptions, UpOptions,
};

use super::{Arguments, ArrayOptions, CaptureOptions, Logging, Processes, RunArguments, UpArguments};

/// Returns the command line of this process, quoted as a POSIX shell reads it. The path of the program is left out.
pub(crate) fn command_line() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| quoted(&argument));
    std::iter::once("rackloom".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns the command line of this process with this argument behind the command and its subcommands.
pub(crate) fn command_line_with(argument: &str) -> String {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (commands, rest) = arguments.split_at(command_words(&arguments).len());
    let words = commands.iter().map(quoted).chain([quoted(&argument.into())]).chain(rest.iter().map(quoted));
    std::iter::once("rackloom".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the names of the command and of its subcommands, with which these arguments begin. Commands without help have none.
pub(super) fn command_words(arguments: &[OsString]) -> Vec<String> {
    let (mut command, mut names) = (Arguments::command(), Vec::new());
    for argument in arguments {
        let found = command.find_subcommand(argument).filter(|command| !command.is_hide_set()).cloned();
        let Some(found) = found else { break };
        names.push(found.get_name().to_owned());
        command = found;
    }
    names
}

/// Returns the options of this process's command line that are passed on to `rackloom sim`: all but those of `own`, which have a value, and
/// of `own_flags`, which have none. Every option that is passed on has a value.
pub(crate) fn passed_on(own: &[&str], own_flags: &[&str]) -> Vec<String> {
    let arguments = std::env::args_os().skip(2).map(|argument| argument.to_string_lossy().into_owned());
    without(arguments, own, own_flags)
}

fn without(mut arguments: impl Iterator<Item = String>, own: &[&str], own_flags: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        // Anything else is the rack file.
        if !argument.starts_with("--") || own_flags.contains(&name) {
            continue;
        }
        let (is_own, has_value) = (own.contains(&name), argument.contains('='));
        let value = if has_value { None } else { arguments.next() };
        if !is_own {
            kept.push(argument);
            kept.extend(value);
        }
    }
    kept
}

fn quoted(argument: &OsString) -> String {
    let text = argument.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,%+@*".contains(&byte);
    let is_plain_text = !text.is_empty() && text.bytes().all(is_plain) && !text.contains('*');
    if is_plain_text { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

impl From<&RunArguments> for RunOptions {
    fn from(arguments: &RunArguments) -> Self {
        Self {
            file: arguments.file.clone(),
            overrides: (&arguments.overrides).into(),
            processes: (&arguments.processes).into(),
            checkpoints: CheckpointOptions {
                checkpoint: arguments.checkpoints.checkpoint.clone(),
                every: arguments.checkpoints.every,
                restore: arguments.checkpoints.restore.clone(),
            },
            // The command reads its files.
            workload: None,
            logs: (&arguments.logging).into(),
            command: command_line(),
        }
    }
}

impl From<&UpArguments> for UpOptions {
    fn from(arguments: &UpArguments) -> Self {
        Self {
            file: arguments.file.clone(),
            name: arguments.name.clone(),
            vacant: arguments.vacant.clone(),
            spare: arguments.spare.clone(),
            for_programs: arguments.seats.is_some(),
            process_seats: arguments.process_seats,
            overrides: (&arguments.overrides).into(),
            processes: (&arguments.processes).into(),
            metrics: arguments.metrics,
            logs: (&arguments.logging).into(),
            command: command_line(),
        }
    }
}

impl From<&Logging> for LogOptions {
    fn from(logging: &Logging) -> Self {
        Self { directory: logging.log_dir.clone(), level: logging.level().map(str::to_owned) }
    }
}

impl From<&Processes> for ProcessOptions {
    fn from(processes: &Processes) -> Self {
        Self {
            wire: processes.wire,
            force_wire: processes.force_wire,
            host: processes.host.clone(),
            netns_names: processes.netns_names,
            faults: processes.faults.faults.clone(),
            arrays: (&processes.arrays).into(),
            capture: (&processes.capture).into(),
            recording: Recording::default(),
        }
    }
}

impl From<&ArrayOptions> for source::ArrayOptions {
    fn from(ArrayOptions { input, output }: &ArrayOptions) -> Self {
        Self { input: input.clone(), output: output.clone() }
    }
}

impl From<&CaptureOptions> for source::CaptureOptions {
    fn from(CaptureOptions { directory, bytes_max }: &CaptureOptions) -> Self {
        Self { directory: directory.clone(), bytes_max: *bytes_max }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use rackloom_collectives::{CollectiveKind, ElementType, ReduceOperation};
    use rackloom_plan::{JobKind, Plan};
    use rackloom_protocol::NodeId;
    use rackloom_runtime::request::overrides::apply_to_job;

    use super::*;
    use crate::arguments::{Arguments, Command};
    use crate::exit::Exit;
    use crate::failure::Failure;

    fn applied(job_of_file: &str, options: &[&str]) -> Result<JobKind, Failure> {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\njob: {job_of_file}\n");
        let mut plan = Plan::parse(&text, "test").unwrap();
        let arguments = [&["rackloom", "sim", "r.yaml"][..], options].concat();
        let Command::Sim(arguments) = Arguments::try_parse_from(arguments).unwrap().command else { panic!() };
        apply_to_job(&arguments.overrides.job.into(), &mut plan)?;
        Ok(plan.job.kind)
    }

    #[test]
    fn what_is_not_said_stays_as_the_file_has_it() {
        let file = "{collective: {collective: reduce-scatter, type: f16, bytes: 64B, repetitions: 3}}";
        let JobKind::Collective(job) = applied(file, &["--job", "collective", "--op", "max"]).unwrap() else {
            panic!()
        };
        assert_eq!((job.collective, job.element), (CollectiveKind::ReduceScatter, ElementType::F16));
        assert_eq!((job.op, job.sweep.repetitions), (ReduceOperation::Max, 3));
    }

    #[test]
    fn a_collective_makes_a_job_of_it() {
        let options = ["--collective", "reduce", "--root", "n2", "--sizes", "8B..64B", "--warm-up", "0"];
        let JobKind::Collective(job) = applied("litmus", &options).unwrap() else { panic!() };
        assert_eq!((job.collective, job.root), (CollectiveKind::Reduce, NodeId(2)));
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
            let options = [&["--collective", collective][..], &option].concat();
            // The rule holds for a collective that the file names as well.
            let in_file = format!("{{collective: {{collective: {collective}}}}}");
            for refused in [applied("litmus", &options), applied(&in_file, &option)] {
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
            ("ring,two-shot,ring", "--algorithm: algorithm ring is listed twice"),
            ("auto,ring", "--algorithm: algorithm auto stands beside others"),
        ] {
            let message = applied("collective", &["--algorithm", list]).unwrap_err().to_string();
            assert!(message.contains(what) && message.contains("hint:"), "{message}");
        }
    }

    #[test]
    fn an_option_with_an_effect_is_accepted() {
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
            assert_eq!(applied(job, options).unwrap_err().exit, Exit::BadInput, "{job} {options:?}");
        }
    }

    #[test]
    fn options_of_the_job_are_passed_on_without_the_file() {
        let line = "ring.yaml --runs 5 --loss 1% --resume=ring.yaml --no-submit --collective=all-reduce --set a=ring.yaml";
        let arguments = line.split(' ').map(str::to_owned);
        let kept = without(arguments, &["--runs", "--resume"], &["--no-submit"]);
        assert_eq!(kept.join(" "), "--loss 1% --collective=all-reduce --set a=ring.yaml");
    }

    #[test]
    fn a_shell_reads_the_command_line_back() {
        for (argument, expected) in
            [("--loss", "--loss"), ("1%", "1%"), ("n0->n1", "'n0->n1'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quoted(&argument.into()), expected);
        }
    }
}
