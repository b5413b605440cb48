//! `rackloom exec` and `rackloom env`: programs on seats of a rack that is up.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Mutex;

use rackloom_runtime::machine::interruption::Interruption;
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::standing::StandingRack;
use rackloom_runtime::standing::programs::{self, SeatOptions, SeatOutput, TakenSeat};

use crate::arguments::{EnvArguments, ExecArguments, Net};
use crate::exit::Exit;
use crate::failure::{self, Failure, cannot_print};
use crate::reporting;
use crate::standing::only_by_option;

/// Exit code of shells for a program that is not found.
const NOT_FOUND: u8 = 127;
/// Exit code of shells for a program that cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// `rackloom exec`: becomes the program, or waits for several of them.
pub(crate) fn run(arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let rack = only_by_option(arguments.rack.as_deref())?;
    let (program, rest) = arguments
        .program
        .split_first()
        .ok_or_else(|| Failure::bad_input("there is no program").hint("write it after `--`"))?;
    if !arguments.seats.is_empty() {
        return on_seats(&rack, arguments);
    }
    let seat = seat(&rack, arguments.seat.as_deref())?;
    let options = SeatOptions {
        holds: arguments.hold,
        joins_network: arguments.net == Net::Rack,
        has_device_files: !arguments.device_files.none,
    };
    let TakenSeat { environment, network } =
        programs::take_for_this_process(&rack, &seat, options, &Program::current())?;
    drop(rack);
    if let Some(network) = &network {
        let refused = rackloom::ip::enter(network).map_err(|error| {
            Failure::could_not_start(format!("cannot enter the network of seat {seat}"), error)
                .hint("leave out `--net rack`; verbs work all the same")
        })?;
        refused.iter().for_each(|refusal| reporting::print_to_stderr(&format!("note: {refusal}")));
    }
    if let Some(reason) = programs::loads_no_library(program) {
        let name = program.to_string_lossy();
        reporting::print_to_stderr(&format!("note: {name} cannot use the device rackloom0: {reason}"));
    }
    let error = Command::new(program).args(rest).envs(environment).exec();
    // A folder of PATH that cannot be searched is the error of the system, also if no folder has the program.
    let (code, hint) = if error.kind() == ErrorKind::NotFound
        || !programs::paths_of(program).iter().any(|path| path.exists())
    {
        (NOT_FOUND, "it is searched in PATH unless its name has a `/`")
    } else {
        (NOT_EXECUTABLE, "it must be an executable file")
    };
    let program = program.to_string_lossy();
    failure::print(&Failure::bad_input(format!("cannot run {program}: {error}")).hint(hint));
    Ok(ExitCode::from(code))
}

/// Returns the seat with this name, or that of the rank in the environment.
fn seat(rack: &StandingRack, seat: Option<&str>) -> Result<String, Failure> {
    match seat {
        Some(seat) => Ok(seat.to_owned()),
        None => programs::seat_of_rank(&rack.status()?, |name| std::env::var(name).ok()),
    }
}

fn on_seats(rack: &StandingRack, arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let seats = programs::chosen_seats(&rack.status()?, &arguments.seats)?;
    let command = |seat: &String| {
        let mut command = Program::current().exec();
        command.args(["--rack", rack.name(), "--seat", seat]);
        if arguments.hold {
            command.arg("--hold");
        }
        if arguments.net == Net::Rack {
            command.args(["--net", "rack"]);
        }
        if arguments.device_files.none {
            command.arg("--no-device-files");
        }
        command.arg("--").args(&arguments.program);
        (seat.clone(), command)
    };
    let width = seats.iter().map(String::len).max().unwrap_or(0);
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen for signals", error))?;
    let output = Prefixed { width, alone: Mutex::new(()) };
    let ends = programs::run_on_seats(seats.iter().map(command).collect(), &interruption, &output)?;
    let failed: Vec<_> = ends.iter().filter(|end| end.code != 0).collect();
    for end in &failed {
        reporting::print_to_stderr(&format!("{:width$} : {}", end.seat, end.how));
    }
    Ok(failed.first().map_or(ExitCode::SUCCESS, |end| ExitCode::from(end.code)))
}

/// Prints lines with the name of their seat.
struct Prefixed {
    width: usize,
    /// Locked while a line is printed.
    alone: Mutex<()>,
}

impl SeatOutput for Prefixed {
    fn line(&self, seat: &str, is_error: bool, line: &[u8]) {
        let width = self.width;
        let mut text = format!("{seat:width$} | ").into_bytes();
        text.extend_from_slice(line);
        text.push(b'\n');
        let _alone = self.alone.lock();
        // The reader may have closed the pipe; the programs run on.
        let _ = if is_error { io::stderr().write_all(&text) } else { io::stdout().write_all(&text) };
    }
}

/// `rackloom env`: prints the environment of a program on a seat.
pub(crate) fn environment(arguments: &EnvArguments) -> Result<Exit, Failure> {
    let rack = only_by_option(arguments.rack.as_deref())?;
    let seat = seat(&rack, arguments.seat.as_deref())?;
    let variables = programs::environment(&rack.status()?, &seat, !arguments.device_files.none)?;
    let text = if arguments.json {
        let variables: BTreeMap<_, _> =
            variables.iter().map(|(name, value)| (*name, value.to_string_lossy())).collect();
        serde_json::to_string_pretty(&variables).map_err(cannot_print)?
    } else {
        let lines = variables
            .iter()
            .map(|(name, value)| format!("export {name}={}", quoted(&value.to_string_lossy())));
        lines.collect::<Vec<_>>().join("\n")
    };
    reporting::print_data(&text)?;
    Ok(Exit::Pass)
}

/// Returns the text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_value_is_one_word_of_a_shell() {
        for value in ["plain", "two words", "it's", "$HOME `id`", ""] {
            let script = format!("printf %s {}", quoted(value));
            let output = Command::new("sh").args([OsStr::new("-c"), OsStr::new(&script)]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
        }
    }
}
