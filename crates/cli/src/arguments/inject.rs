//! Arguments of `rackloom inject`: one fault as options, or a fault script.
//!
//! The options for kinds of faults are declared with the kinds ([`INJECT_OPTIONS`]). Options become the text of a fault script. The rack reads that text like a file and reports mistakes like those of a file.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use rackloom_plan::faults::{FaultKind, FaultScript, INJECT_OPTIONS, InjectOption};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct InjectArguments {
    #[command(subcommand)]
    pub(crate) what: Injected,
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) rack: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Injected {
    /// Inject faults into links: n0--n1, n0:n1 or n0--n1/forward for one direction, a member for all of its links, "plane 0", or all
    Link(Box<LinkFaults>),
    /// Inject faults into a GPU node, a switch, or the memory of a GPU node
    Node(NodeFaults),
    /// Drop every frame between these members and all other members, in both directions
    Partition(Partition),
    /// Inject all faults of a script; times count from now, and its expectations are ignored
    Script {
        /// The fault script
        file: PathBuf,
    },
}

impl Injected {
    /// Returns a message about the script of the options with the names of the options in place of keys.
    pub(crate) fn in_options(&self, message: &str) -> String {
        let kinds = match self {
            Self::Link(faults) => faults.faults.kinds(),
            Self::Node(faults) => faults.faults.kinds(),
            Self::Partition(_) => vec![FaultKind::Partition],
            Self::Script { .. } => return message.to_owned(),
        };
        // Every second part is between backticks.
        let parts = message.split('`').enumerate().map(|(index, part)| match option_of(&kinds, part) {
            Some(option) if index % 2 == 1 => option,
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    }
}

/// Returns the option that stands for a key of a script whose events have these kinds: `events[1].rate` or `for`.
fn option_of(kinds: &[FaultKind], key: &str) -> Option<String> {
    if let Some(what) = key.strip_prefix("what: ") {
        let option = INJECT_OPTIONS.iter().find(|option| option.name == what && option.value.is_none())?;
        return Some(format!("--{}", option.name));
    }
    let (kind, key) = match key.strip_prefix("events[").and_then(|rest| rest.split_once("].")) {
        Some((number, key)) => (kinds.get(number.parse::<usize>().ok()?.checked_sub(1)?), key),
        None => (kinds.first().filter(|_| kinds.len() == 1), key),
    };
    let key = key.split(['[', '.']).next().unwrap_or(key);
    let of_kind = |option: &&InjectOption| Some(&option.kind) == kind;
    let mut options = INJECT_OPTIONS.iter().filter(of_kind);
    let is_key = |option: &&InjectOption| option.value.is_some_and(|(name, _)| name == key);
    let name = options.find(is_key).map(|option| option.name);
    let name = name.or_else(|| Timing::KEYS.into_iter().find(|name| *name == key))?;
    Some(format!("--{name}"))
}

#[derive(Debug, Args)]
pub(crate) struct LinkFaults {
    /// The links
    #[arg(value_name = "WHERE")]
    place: String,
    #[command(flatten)]
    faults: FaultOptions<true>,
    #[command(flatten)]
    timing: Timing,
}

#[derive(Debug, Args)]
pub(crate) struct NodeFaults {
    /// The member
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    faults: FaultOptions<false>,
    #[command(flatten)]
    timing: Timing,
}

#[derive(Debug, Args)]
pub(crate) struct Partition {
    /// The members of one side
    #[arg(value_name = "MEMBER", required = true)]
    members: Vec<String>,
    #[command(flatten)]
    timing: Timing,
}

/// Times and repetitions of a fault.
#[derive(Debug, Args)]
pub(crate) struct Timing {
    /// Time from now to the start of the fault; zero if absent
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Duration of the fault; if absent, until the rack goes down
    #[arg(id = "for", long, value_name = "TIME")]
    duration: Option<String>,
    /// Time in which the fault grows to its full strength
    #[arg(long, value_name = "TIME")]
    ramp: Option<String>,
    /// Time between the starts of repetitions
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// Number of repetitions
    #[arg(long, value_name = "N", requires = "every")]
    times: Option<String>,
}

/// Options of [`INJECT_OPTIONS`] for faults of links (`OF_LINKS`), or for faults of members, as far as they are given.
#[derive(Clone, Debug)]
struct FaultOptions<const OF_LINKS: bool> {
    given: Vec<GivenOption>,
}

/// Option with its value. The value is empty if the option takes none.
#[derive(Clone, Debug)]
struct GivenOption {
    option: &'static InjectOption,
    value: String,
}

impl<const OF_LINKS: bool> FaultOptions<OF_LINKS> {
    fn all() -> impl Iterator<Item = &'static InjectOption> {
        INJECT_OPTIONS.iter().filter(|option| option.is_of_links() == OF_LINKS)
    }

    /// Returns the value of an option, or `None` if the option is not given.
    fn given(option: &InjectOption, matches: &ArgMatches) -> Option<String> {
        match option.value {
            Some(_) => matches.get_one::<String>(option.name).cloned(),
            None => matches.get_flag(option.name).then(String::new),
        }
    }

    /// Returns the events of a fault script that the options stand for, without places and times, in the order of the kinds.
    fn events(&self) -> Result<Vec<String>, Failure> {
        let event = |kind: FaultKind| {
            let of_kind = self.given.iter().filter(|given| given.option.kind == kind);
            let keys = of_kind.map(GivenOption::key).collect::<Result<String, _>>()?;
            Ok(format!("what: {kind}{keys}"))
        };
        self.kinds().into_iter().map(event).collect()
    }

    /// Returns the kind of each event.
    fn kinds(&self) -> Vec<FaultKind> {
        let is_given = |kind: &&FaultKind| self.given.iter().any(|given| given.option.kind == **kind);
        FaultKind::ALL.iter().filter(is_given).copied().collect()
    }

    /// Returns the hint for a command without a fault.
    fn hint() -> String {
        let names = Self::all().filter(|option| option.requires.is_none());
        let names: Vec<_> = names.map(|option| format!("--{}", option.name)).collect();
        let (last, first) = names.split_last().map_or(("", &[][..]), |(last, first)| (last, first));
        format!("use {} or {last}", first.join(", "))
    }
}

impl GivenOption {
    /// Returns the key of the event that the option states, or nothing if its kind says all.
    fn key(&self) -> Result<String, Failure> {
        match self.option.value {
            Some((key, _)) => said(key, Some(&self.value), self.option.is_list()),
            None => Ok(String::new()),
        }
    }
}

impl<const OF_LINKS: bool> Args for FaultOptions<OF_LINKS> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::all().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const OF_LINKS: bool> FromArgMatches for FaultOptions<OF_LINKS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |option| Some(GivenOption { option, value: Self::given(option, matches)? });
        Ok(Self { given: Self::all().filter_map(given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the argument of the command line for an option.
fn argument(option: &'static InjectOption) -> Arg {
    let argument =
        Arg::new(option.name).long(option.name).help(option.help).conflicts_with_all(option.conflicts);
    let argument = match option.requires {
        Some(required) => argument.requires(required),
        None => argument,
    };
    match option.value {
        Some((_, name)) => argument.value_name(name).action(ArgAction::Set),
        None => argument.action(ArgAction::SetTrue),
    }
}

impl LinkFaults {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        script(&self.faults.events()?, plain(&self.place)?, &self.timing, &FaultOptions::<true>::hint())
    }
}

impl NodeFaults {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        script(&self.faults.events()?, plain(&self.node)?, &self.timing, &FaultOptions::<false>::hint())
    }
}

impl Partition {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let members = self.members.iter().flat_map(|names| names.split(','));
        let members = members.map(plain).collect::<Result<Vec<_>, _>>()?.join(", ");
        script(&["what: partition".to_owned()], &format!("[{members}]"), &self.timing, "")
    }
}

impl Timing {
    /// Keys of an event, which are the names of the options.
    const KEYS: [&'static str; 5] = ["at", "for", "ramp", "every", "times"];

    fn said(&self) -> Result<String, Failure> {
        let values = [&self.at, &self.duration, &self.ramp, &self.every, &self.times];
        Self::KEYS.iter().zip(values).map(|(key, value)| said(key, value.as_deref(), false)).collect()
    }
}

/// Returns a key with its value, or nothing if there is no value.
fn said(key: &str, value: Option<&str>, is_list: bool) -> Result<String, Failure> {
    let Some(value) = value else { return Ok(String::new()) };
    let value = plain(value)?;
    Ok(if is_list { format!(", {key}: [{value}]") } else { format!(", {key}: {value}") })
}

/// Returns the value, or an error if it holds a character that could end a value in a file.
fn plain(value: &str) -> Result<&str, Failure> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || " ,:.%->#_/".contains(character);
    match value.chars().find(|character| !is_plain(*character)) {
        None => Ok(value),
        Some(odd) => Err(Failure::bad_input(format!("{odd:?} is in no name, rate or time"))
            .hint("write like `n0--n1`, `1e-3` or `20ms`")),
    }
}

/// Returns the events as the text of a fault script, all at one place and time. `hint` is the hint of the error for an empty list.
fn script(events: &[String], place: &str, timing: &Timing, hint: &str) -> Result<String, Failure> {
    if events.is_empty() {
        return Err(Failure::bad_input("no fault is named").hint(hint));
    }
    let timing = timing.said()?;
    let lines = events.iter().map(|event| format!("  - {{{event}, where: {place}{timing}}}\n"));
    Ok(format!("name: {}\nevents:\n", FaultScript::INJECTED) + &lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Arguments, Command as Chosen};
    use super::*;

    fn script_of(line: &str) -> Result<String, Failure> {
        let arguments = Arguments::try_parse_from(line.split(' ')).expect(line);
        let Chosen::Inject(InjectArguments { what, .. }) = arguments.command else { panic!("{line}") };
        match what {
            Injected::Link(faults) => faults.script(),
            Injected::Node(fault) => fault.script(),
            Injected::Partition(partition) => partition.script(),
            Injected::Script { .. } => panic!("{line}"),
        }
    }

    #[test]
    fn options_become_a_script() {
        let text = script_of("rackloom inject link n0--n1 --loss 1e-3 --down --for 20ms").expect("a script");
        assert_eq!(
            text,
            "name: injected\nevents:\n  - {what: loss, rate: 1e-3, where: n0--n1, for: 20ms}\n  \
             - {what: down, where: n0--n1, for: 20ms}\n"
        );
        assert!(
            script_of("rackloom inject node n3 --pause 5ms")
                .expect("one")
                .contains("what: pause, for: 5ms, where: n3")
        );
        assert!(script_of("rackloom inject node n3 --kill").expect("one").contains("what: kill, where: n3}"));
        let brief = script_of("rackloom inject node n3 --kill --for 5ms").expect("one");
        assert!(brief.contains("what: kill, where: n3, for: 5ms"));
    }

    /// Every kind of fault and every key of one has an option.
    #[test]
    fn every_fault_of_a_script_has_options() {
        for (line, event) in [
            (
                "link n0--n1 --loss 1% --kinds ack,credit",
                "what: loss, rate: 1%, kinds: [ack,credit], where: n0--n1",
            ),
            (
                "link n0:n1 --loss 1 --operations put,atomic --sequence 3,9 --ramp 1ms --for 2ms",
                "what: loss, rate: 1, operations: [put,atomic], sequence: [3,9], where: n0:n1, for: 2ms, ramp: 1ms",
            ),
            ("link all --corrupt 1% --part header", "what: corrupt, rate: 1%, part: header, where: all"),
            (
                "link n0--n1/forward --drop 1,5 --at 3ms",
                "what: drop, frames: [1,5], where: n0--n1/forward, at: 3ms",
            ),
            ("node n1 --slow-memory 1ms --for 2ms", "what: slow-memory, by: 1ms, where: n1, for: 2ms"),
            ("node n1 --fail-memory 50%", "what: fail-memory, rate: 50%, where: n1"),
            ("node n1 --revoke", "what: revoke, where: n1"),
            (
                "partition n0,n1 n2 --for 1s --every 3s --times 2",
                "what: partition, where: [n0, n1, n2], for: 1s, every: 3s, times: 2",
            ),
        ] {
            let text = script_of(&format!("rackloom inject {line}"))
                .unwrap_or_else(|reason| panic!("{line}: {reason}"));
            assert_eq!(text, format!("name: injected\nevents:\n  - {{{event}}}\n"), "{line}");
        }
    }

    #[test]
    fn messages_about_keys_name_the_options() {
        let line = "rackloom inject link n0--n1 --loss 7 --kinds x --down --delay 1";
        let arguments = Arguments::try_parse_from(line.split(' ')).expect(line);
        let Chosen::Inject(InjectArguments { what, .. }) = arguments.command else { panic!("{line}") };
        let kinds = [FaultKind::Loss, FaultKind::Delay, FaultKind::Down];
        let number = |kind: FaultKind| {
            let given = FaultKind::ALL.iter().filter(|kind| kinds.contains(kind));
            1 + given.into_iter().position(|given| *given == kind).expect("it is given")
        };
        let (loss, delay) = (number(FaultKind::Loss), number(FaultKind::Delay));
        for (message, expected) in [
            (format!("`events[{loss}].rate` is 7"), "`--loss` is 7"),
            (format!("`events[{loss}].kinds[2]` is x"), "`--kinds` is x"),
            (format!("`events[{delay}].by` is 1"), "`--delay` is 1"),
            (format!("`events[{delay}].for` is 1"), "`--for` is 1"),
            ("`every` without `for`: say `what: down`".to_owned(), "`--every` without `--for`: say `--down`"),
            ("no link `n0--n9`, and events[1].rate".to_owned(), "no link `n0--n9`, and events[1].rate"),
        ] {
            assert_eq!(what.in_options(&message), expected);
        }
    }

    #[test]
    fn an_empty_command_and_odd_characters_are_refused() {
        assert!(script_of("rackloom inject link n0--n1").is_err());
        assert!(script_of("rackloom inject link n0--n1} --down").is_err());
        assert!(script_of("rackloom inject node n3").is_err());
        assert!(script_of("rackloom inject partition n0] --for 1s").is_err());
        assert!(Arguments::try_parse_from("rackloom inject node n3 --kill --pause 1s".split(' ')).is_err());
        assert!(Arguments::try_parse_from("rackloom inject link all --kinds ack".split(' ')).is_err());
    }
}
