//! A command line that cannot be understood is refused as everything else is: what, and a hint in the last line.
//!
//! The parser finds the mistake, and the first paragraph of its text is kept; its suggestions become the hint.
//! A value's own parser may know better what to write: it says so behind `; hint: `.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::options::command_words;
use super::{Arguments, Command, SimArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::{self, Style};

/// Parses the command line of this process. A request for help or the version is answered, and the process ends.
pub(crate) fn parse() -> Result<Arguments, Failure> {
    let words = with_negative_values(with_link(std::env::args_os().collect()));
    Arguments::try_parse_from(words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => show_help(&error),
        ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => complaint(&error, &given_command()),
    })
}

/// Prints a help text, and ends the process. The parser wraps it except for the line of usage.
fn show_help(error: &clap::Error) -> ! {
    let Some(columns) = terminal::output_columns() else { error.exit() };
    let text = error.render();
    let text = match Style::for_stream(&io::stdout()) {
        Style::Colour => text.ansi().to_string(),
        Style::Plain => text.to_string(),
    };
    // A reader that has closed the pipe needs no help.
    let _ = io::stdout().write_all(terminal::wrap(&text, columns).as_bytes());
    std::process::exit(error.exit_code())
}

/// Parses options of `rackloom sim` that stand behind the rack file.
pub(crate) fn sim_arguments(file: &Path, options: &[String]) -> Result<SimArguments, Failure> {
    let words = ["rackloom".into(), "sim".into(), file.as_os_str().to_owned()].into_iter();
    let words = words.chain(options.iter().map(OsString::from));
    match Arguments::try_parse_from(words) {
        Ok(Arguments { command: Command::Sim(arguments) }) => Ok(arguments),
        Ok(_) => Err(Failure::bad_input("these are no options of `rackloom sim`")),
        Err(error) => Err(complaint(&error, "rackloom sim")),
    }
}

/// Adds the word `link` to a command line that has a place of links in its place: `rackloom inject 'plane 1' --down`.
fn with_link(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_inject = words.get(1).is_some_and(|word| word == "inject");
    let place = words.get(2).and_then(|word| word.to_str()).unwrap_or_default();
    let names_links =
        place == "all" || place.starts_with("plane ") || place.contains("--") || place.contains(':');
    if is_inject && names_links && !place.starts_with('-') {
        words.insert(2, "link".into());
    }
    words
}

/// Joins an option with a negative number behind it, `--loss -1` to `--loss=-1`. Without it the parser takes the number for an option, and the
/// mistake does not name the option whose value it is.
fn with_negative_values(words: Vec<OsString>) -> Vec<OsString> {
    let is_option = |word: &str| word.len() > 2 && word.starts_with("--") && !word.contains('=');
    let is_negative = |word: &str| {
        let number = word.strip_prefix('-').map(|rest| rest.strip_prefix('.').unwrap_or(rest));
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    // Behind `--` is the command line of a program.
    let mut is_own = true;
    for word in words {
        is_own &= word != "--";
        match joined.last_mut() {
            Some(last)
                if is_own
                    && word.to_str().is_some_and(is_negative)
                    && last.to_str().is_some_and(is_option) =>
            {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Returns the command and its subcommands for which there is help: `rackloom run`, or `rackloom`.
fn given_command() -> String {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    ["rackloom".to_owned()].into_iter().chain(command_words(&arguments)).collect::<Vec<_>>().join(" ")
}

fn complaint(error: &clap::Error, command: &str) -> Failure {
    let text = error.render().to_string();
    // Behind the first paragraph come suggestions, the usage and a pointer to the help, of which the hint is made.
    let first = text.split("\n\n").next().unwrap_or_default();
    // A value that is none of a list: the list is the hint.
    let what = first.split("\n  [possible values: ").next().unwrap_or(first);
    let failure = Failure::of_line(Exit::BadInput, &in_own_terms(what.trim_end()));
    if failure.has_hint() { failure } else { failure.hint(hint_for(error, command)) }
}

/// Returns a text about a number in the terms in which keys of rack files are refused, with a hint.
fn in_own_terms(what: &str) -> String {
    if let Some(before) = what.strip_suffix("invalid digit found in string") {
        return format!("{before}it is no whole number; hint: write digits without a unit");
    }
    if let Some(before) = what.strip_suffix("number too large to fit in target type") {
        return format!("{before}it is too large");
    }
    let Some((before, range)) = what.split_once(" is not in ") else { return what.to_owned() };
    match range.split_once("..=") {
        Some((least, most)) => {
            format!("{before} is outside {least} to {most}; hint: write {least} to {most}")
        }
        None => what.to_owned(),
    }
}

/// Returns advice for a mistake whose finder gave none.
fn hint_for(error: &clap::Error, command: &str) -> String {
    let suggested =
        [ContextKind::SuggestedValue, ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    if let Some(near) = suggested.into_iter().find_map(|kind| texts(error, kind).into_iter().next()) {
        return format!("did you mean {near}?");
    }
    let option = texts(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let option = option.split(' ').next().unwrap_or_default();
    let values = texts(error, ContextKind::ValidValue);
    match error.kind() {
        ErrorKind::InvalidValue if !values.is_empty() => format!("{option} is one of {}", values.join(", ")),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("`{command} --help` says what {option} takes")
        }
        ErrorKind::ArgumentConflict => "leave one of them out".to_owned(),
        ErrorKind::InvalidSubcommand => "`rackloom --help` lists the commands".to_owned(),
        _ => format!("`{command} --help` lists what it takes"),
    }
}

/// Returns the texts that the parser attached to the error under this heading.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> String {
        let error = Arguments::try_parse_from(arguments).expect_err("it is refused");
        complaint(&error, "rackloom run").to_string()
    }

    #[test]
    fn a_place_of_links_needs_no_word_before_it() {
        let words = |line: &str| line.split('|').map(OsString::from).collect::<Vec<_>>();
        for place in ["plane 1", "all", "n0--n1", "n0:n1"] {
            let line = words(&format!("rackloom|inject|{place}|--down"));
            assert_eq!(with_link(line), words(&format!("rackloom|inject|link|{place}|--down")));
        }
        for line in
            ["rackloom|inject|node|n0|--kill", "rackloom|inject|--help", "rackloom|down|all", "rackloom"]
        {
            assert_eq!(with_link(words(line)), words(line));
        }
    }

    #[test]
    fn a_negative_number_is_the_value_of_its_option() {
        let joined = |line: &str| with_negative_values(line.split(' ').map(OsString::from).collect());
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, expected) in [
            ("rackloom diff a b --rows -1 --fail-over -5%", "rackloom diff a b --rows=-1 --fail-over=-5%"),
            ("rackloom run r --loss -.5 -v", "rackloom run r --loss=-.5 -v"),
            ("rackloom run r --loss=1 -1", "rackloom run r --loss=1 -1"),
            ("rackloom exec -- make --jobs -2", "rackloom exec -- make --jobs -2"),
        ] {
            assert_eq!(joined(line), words(expected), "{line}");
        }
    }

    #[test]
    fn every_kind_of_mistake_ends_with_a_hint() {
        for (arguments, hint) in [
            (&["run", "r", "--loss", "1.5"][..], "a probability lies within 0 and 1, or 0% and 100%"),
            (&["run", "r", "--sizes", "8KiB..4KiB"], "write the smaller size first, as in 8B..1MiB"),
            (
                &["run", "r", "--job", "hope"],
                "--job is one of litmus, collective, latency, bandwidth, traffic, none",
            ),
            (&["run", "r", "--repetitions", "0"], "write 1 to 1000000"),
            (&["campaign", "r", "--threads", "0"], "write 1 to 1024"),
            (&["run", "r", "--seed", "x"], "write digits without a unit"),
            (&["run", "r", "--bytes", "8", "--sizes", "8..9"], "leave one of them out"),
            (&["run", "r", "--losss"], "did you mean --loss?"),
            (&["run", "r", "--job", "latencies"], "did you mean latency?"),
            (&["run", "r", "--seed"], "`rackloom run --help` says what --seed takes"),
            (&["runn"], "did you mean run?"),
            (&["schedule", "r", "--loss", "0.1"], "`rackloom run --help` lists what it takes"),
            (&["run"], "`rackloom run --help` lists what it takes"),
            (&["fly"], "`rackloom --help` lists the commands"),
        ] {
            let text = refused(&[&["rackloom"][..], arguments].concat());
            assert!(text.ends_with(&format!("\n  hint:  {hint}")), "{text}");
            assert_eq!(text.matches("hint").count(), 1, "{text}");
            assert!(!text.contains("--help'") && !text.contains("Usage"), "{text}");
        }
    }
}
