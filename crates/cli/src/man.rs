//! `rackloom man`: manual pages of all commands, made from the arguments.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::arguments::{Arguments, ManArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting;

/// Prints the page of `rackloom`, or writes the pages of all commands.
pub(crate) fn run(arguments: &ManArguments) -> Result<Exit, Failure> {
    let command = Arguments::command().disable_help_subcommand(true);
    match &arguments.directory {
        Some(directory) => {
            reporting::must_be_writable_in(directory)?;
            write(command, directory).map_err(|error| {
                Failure::could_not_start("cannot write the pages", error).at_path(directory)
            })?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command)
                .render(&mut page)
                .map_err(|error| Failure::could_not_start("cannot make the page", error))?;
            reporting::print_data(String::from_utf8_lossy(&page).trim_end())?;
        }
    }
    Ok(Exit::Pass)
}

/// Writes a page for the command and for each command below it that is not hidden.
fn write(command: Command, directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(command, directory)
}
