//! Completions of shells: commands and options from the arguments, and the names of racks that are up, of their members and links,
//! and of experiments.
//!
//! `rackloom completions SHELL` prints a script. The shell then calls this program with [`VARIABLE`] for each completion, so names
//! are those of the moment. A rack that does not answer in time is left out, because a shell that waits cannot be used.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use rackloom_control::request::{MemberStatus, RackStatus};
use rackloom_runtime::standing::StandingRack;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting;

/// Variable that a shell sets to request completions. It names the shell.
const VARIABLE: &str = "RACKLOOM_COMPLETE";
/// Name of the command in scripts.
const PROGRAM: &str = "rackloom";
/// Longest time in which racks answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// State of a member whose seat is free.
const VACANT: &str = "vacant";

/// Names that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// Racks that are up.
    Racks,
    /// GPU nodes and switches of racks that are up.
    Members,
    /// Members with a process.
    TakenSeats,
    /// Members without a process.
    VacantSeats,
    /// Members without a process, behind the name of their rack.
    VacantSeatsOfRacks,
    /// Links, and members, which stand for all of their links.
    Links,
    /// Links, as they stand directly behind `inject`.
    LinksAlone,
    /// Links of racks that record frames.
    CapturedLinks,
    Experiments,
}

/// Answers a request of a shell, after which the process ends. Returns if this is none.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Returns the names of the shells for which there are completions.
pub(crate) fn shells() -> impl Iterator<Item = &'static str> {
    const SHELLS: Shells<'static> = Shells::builtins();
    SHELLS.names()
}

/// Prints the script of a shell.
pub(crate) fn print(shell: &str) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(shell)
        .ok_or_else(|| Failure::bad_input(format!("there are no completions for {shell}")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, PROGRAM, PROGRAM, &program(), &mut script)
        .map_err(|error| Failure::could_not_start("cannot make the script", error))?;
    reporting::print_data(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Pass)
}

/// Returns the program that completes: the name if the shell found it by its name, else its path.
fn program() -> String {
    let given = std::env::args_os().next().unwrap_or_default();
    let path = std::env::current_exe().ok().filter(|_| given != PROGRAM);
    path.map_or_else(|| PROGRAM.to_owned(), |path| path.display().to_string())
}

/// Returns the command line with the sources of its names.
fn command() -> Command {
    with_names(Arguments::command().mut_subcommand("inject", with_link_arguments))
}

/// Adds the arguments of `inject link` to `inject`: the word `link` may be left out.
fn with_link_arguments(inject: Command) -> Command {
    let link = inject.find_subcommand("link");
    let arguments: Vec<Arg> = link.into_iter().flat_map(Command::get_arguments).cloned().collect();
    inject.args(arguments.into_iter().map(|argument| argument.required(false)))
}

fn with_names(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|argument| with_candidates(&name, argument)).mut_subcommands(with_names)
}

fn with_candidates(command: &str, argument: Arg) -> Arg {
    match names_of(command, argument.get_id().as_str()) {
        Some(names) => argument.add(ArgValueCandidates::new(move || candidates(names))),
        None => argument,
    }
}

/// Returns the names that an argument of a command takes; `None` if it takes others.
fn names_of(command: &str, argument: &str) -> Option<Names> {
    match (command, argument) {
        (_, "rack") | ("status" | "down" | "top" | "events" | "heal", "name") => Some(Names::Racks),
        ("exec" | "env", "seat") | ("exec", "seats") => Some(Names::VacantSeats),
        ("down", "seat") => Some(Names::TakenSeats),
        ("seat", "join") => Some(Names::VacantSeatsOfRacks),
        ("node" | "add-node", "node") | ("partition", "members") => Some(Names::Members),
        ("link", "place") => Some(Names::Links),
        ("inject", "place") => Some(Names::LinksAlone),
        ("capture", "link") => Some(Names::CapturedLinks),
        ("experiment", "name") => Some(Names::Experiments),
        _ => None,
    }
}

/// Returns the candidates for an argument. Racks may have members of one name, which is listed once.
fn candidates(names: Names) -> Vec<CompletionCandidate> {
    let mut known = HashSet::new();
    let mut candidates = all_candidates(names);
    candidates.retain(|candidate| known.insert(candidate.get_value().to_owned()));
    candidates
}

fn all_candidates(names: Names) -> Vec<CompletionCandidate> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    match names {
        Names::Experiments => {
            let all = rackloom_experiments::all().iter();
            let experiments = all.map(|experiment| candidate(experiment.name, experiment.question));
            let others = [("all", "every experiment"), ("list", "a list of the experiments")];
            others.into_iter().map(|(name, meaning)| candidate(name, meaning)).chain(experiments).collect()
        }
        Names::Racks => racks(deadline).iter().map(|rack| CompletionCandidate::new(rack.name())).collect(),
        Names::Members => members(deadline, |_| true),
        Names::TakenSeats => members(deadline, |member| member.state != VACANT),
        Names::VacantSeats => members(deadline, |member| member.state == VACANT),
        Names::VacantSeatsOfRacks => {
            let of_rack = |rack: &RackStatus| {
                let vacant = rack.members.iter().filter(|member| member.state == VACANT);
                let seats = vacant.map(|member| format!("{}/{}", rack.name, member.name));
                seats.map(CompletionCandidate::new).collect::<Vec<_>>()
            };
            statuses(deadline).iter().flat_map(of_rack).collect()
        }
        Names::CapturedLinks => {
            let statuses = statuses(deadline);
            let recording = statuses.iter().filter(|rack| rack.captures.is_some());
            recording.flat_map(link_names).map(CompletionCandidate::new).collect()
        }
        Names::Links => {
            let statuses = statuses(deadline);
            let members = statuses.iter().flat_map(|rack| described(rack, |_| true));
            links(&statuses).into_iter().chain(members).collect()
        }
        Names::LinksAlone => links(&statuses(deadline)),
    }
}

/// Returns the links of racks, and the word for all links.
fn links(statuses: &[RackStatus]) -> Vec<CompletionCandidate> {
    let names = statuses.iter().flat_map(link_names).chain(["all".to_owned()]);
    names.map(|link| candidate(&link, "link")).collect()
}

fn candidate(name: &str, meaning: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(meaning.to_owned().into()))
}

fn members(deadline: Instant, is_chosen: fn(&MemberStatus) -> bool) -> Vec<CompletionCandidate> {
    statuses(deadline).iter().flat_map(|rack| described(rack, is_chosen)).collect()
}

fn described(rack: &RackStatus, is_chosen: fn(&MemberStatus) -> bool) -> Vec<CompletionCandidate> {
    let chosen = rack.members.iter().filter(|member| is_chosen(member));
    chosen.map(|member| candidate(&member.name, &format!("{}, {}", member.role, member.state))).collect()
}

/// Returns the links of a rack as a user writes them: `n0--n1`, and `n0--n1#1` for a parallel one.
fn link_names(rack: &RackStatus) -> Vec<String> {
    let mut names: Vec<_> = rack.links.iter().map(|link| (link.link, &link.name)).collect();
    // The first direction of each link has the order of the plan.
    names.sort_by_key(|(link, _)| *link);
    names.dedup_by_key(|(link, _)| *link);
    names.into_iter().map(|(_, name)| name.replacen("->", "--", 1)).collect()
}

/// Returns the status of the racks that the command line names, or of all racks if it names none.
fn statuses(deadline: Instant) -> Vec<RackStatus> {
    let mut racks = racks(deadline);
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(2).collect();
    let is_named = |rack: &StandingRack| {
        let option = format!("--rack={}", rack.name());
        words.iter().any(|word| word == rack.name() || *word == *option)
    };
    if racks.iter().any(is_named) {
        racks.retain(is_named);
    }
    let (sender, answers) = channel();
    let expected = racks.len();
    for (index, rack) in racks.into_iter().enumerate() {
        detached(&sender, move || rack.status().ok().map(|status| (index, status)));
    }
    drop(sender);
    let mut known: Vec<_> = received(&answers, expected, deadline).into_iter().flatten().collect();
    known.sort_by_key(|(index, _)| *index);
    known.into_iter().map(|(_, status)| status).collect()
}

/// Returns connections to the racks that are up.
fn racks(deadline: Instant) -> Vec<StandingRack> {
    let (sender, answers) = channel();
    detached(&sender, || StandingRack::all().unwrap_or_default());
    received(&answers, 1, deadline).into_iter().flatten().collect()
}

/// Computes something in a thread that ends with the process, because no call of it may delay the answer.
fn detached<T: Send + 'static>(sender: &Sender<T>, compute: impl FnOnce() -> T + Send + 'static) {
    let sender = sender.clone();
    // Without a thread there is no answer, and the caller goes on without it.
    let _ = std::thread::Builder::new().spawn(move || sender.send(compute()));
}

/// Returns the answers until the deadline, at most `expected`.
fn received<T>(answers: &Receiver<T>, expected: usize, deadline: Instant) -> Vec<T> {
    let next = || answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).take(expected).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `command argument` for each argument with names, of all commands.
    fn with_sources(command: &Command, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            if argument.get::<ArgValueCandidates>().is_some() {
                found.push(format!("{} {}", command.get_name(), argument.get_id()));
            }
        }
        command.get_subcommands().for_each(|command| with_sources(command, found));
    }

    #[test]
    fn arguments_that_take_names_have_sources() {
        let mut found = Vec::new();
        with_sources(&command(), &mut found);
        for expected in [
            "status name",
            "down name",
            "down seat",
            "inject rack",
            "link place",
            "inject place",
            "node node",
            "partition members",
            "submit rack",
            "add-node node",
            "exec rack",
            "exec seat",
            "exec seats",
            "env seat",
            "seat join",
            "capture rack",
            "capture link",
            "experiment name",
        ] {
            assert!(found.iter().any(|one| one == expected), "{expected} is not among {found:?}");
        }
    }

    #[test]
    fn an_answer_that_is_late_is_left_out() {
        let (sender, answers) = channel();
        detached(&sender, || 1);
        detached(&sender, || {
            std::thread::park();
            2
        });
        let begin = Instant::now();
        let found = received(&answers, 2, begin + Duration::from_millis(200));
        assert_eq!(found, [1]);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
