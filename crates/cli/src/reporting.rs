//! Output of a report for both engines: print it, write it, and derive the exit code.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use rackloom_jobs::report::Report;
use rackloom_page::{Page, report_page};
use rackloom_plan::printable_lines;
use rackloom_runtime::outcome::findings;

use crate::arguments::{Output, PageOutput};
use crate::exit::Exit;
pub(crate) use crate::failure::print_to_stderr;
use crate::failure::{self, Failure, cannot_print, cannot_write, cannot_write_file};
use crate::present;
use crate::terminal::{self, Style};

/// Checks, before a run, that its report can be written.
pub(crate) fn must_be_writable(output: &Output) -> Result<(), Failure> {
    match &output.json {
        Some(path) if !output.json_on_stdout() => must_be_writable_at(path),
        _ => Ok(()),
    }
}

/// Checks, before a run, that its page can be written.
pub(crate) fn page_must_be_writable(output: &PageOutput) -> Result<(), Failure> {
    output.html.as_deref().map_or(Ok(()), must_be_writable_at)
}

/// Writes the page, if `--html` is given.
pub(crate) fn write_page(output: &PageOutput, page: impl FnOnce() -> Page) -> Result<(), Failure> {
    output.html.as_deref().map_or(Ok(()), |path| write_page_at(path, &page()))
}

/// Writes a page to a file.
pub(crate) fn write_page_at(path: &Path, page: &Page) -> Result<(), Failure> {
    std::fs::write(path, page.html()).map_err(|error| cannot_write("the page", &error, path))
}

/// Checks, before a run, that this file can be written.
pub(crate) fn must_be_writable_at(path: &Path) -> Result<(), Failure> {
    let existing = |path: &Path| std::fs::OpenOptions::new().append(true).open(path).map(drop);
    let attempt = if path.exists() { existing(path) } else { can_create_beside(path) };
    attempt.map_err(|error| cannot_write_file(&error, path))
}

/// Checks, before a run, that files can be written into this directory. Makes the directory if it does not
/// exist.
pub(crate) fn must_be_writable_in(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).and_then(|()| can_create_beside(&directory.join("probe"))).map_err(
        |error| {
            Failure::bad_input(format!("cannot write into this directory: {error}"))
                .at_path(directory)
                .hint("name a directory that you may write to")
        },
    )
}

/// Checks that a file can be created in the folder of `path`. The file itself is not created, because a
/// waiting program would find it empty. No file remains.
fn can_create_beside(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::IsADirectory.into()) };
    let mut probe = std::ffi::OsString::from(".");
    probe.push(name);
    probe.push(format!(".{}", std::process::id()));
    let probe = path.with_file_name(probe);
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(probe)
}

/// Prints the report, and writes it as JSON and as a page. Returns the exit of the run. A write error replaces the exit of a
/// run that passed, and is only printed for other runs.
pub(crate) fn deliver(
    report: &Report,
    output: &Output,
    page: &PageOutput,
    exit: Exit,
) -> Result<Exit, Failure> {
    settle(write_out(report, output, page), exit)
}

/// Returns the exit of a run whose results were written. A write error replaces the exit of a run that passed, and is only printed for other
/// runs.
pub(crate) fn settle(written: Result<(), Failure>, exit: Exit) -> Result<Exit, Failure> {
    match written {
        Err(failure) if exit == Exit::Pass => Err(failure),
        Err(failure) => {
            failure::print(&failure);
            Ok(exit)
        }
        Ok(()) => Ok(exit),
    }
}

fn write_out(report: &Report, output: &Output, page: &PageOutput) -> Result<(), Failure> {
    print(report, output)?;
    write(report, output)?;
    write_page(page, || report_page(report))
}

/// Prints the report, its verdict in colour on a terminal.
pub(crate) fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    let style = if output.json_on_stdout() {
        Style::for_stream(&io::stderr())
    } else {
        Style::for_stream(&io::stdout())
    };
    print_lines(output, &style.paint_verdict(&for_people(&present::report(report))))
}

/// Writes the report as JSON, if `--json` is given.
pub(crate) fn write(report: &Report, output: &Output) -> Result<(), Failure> {
    write_json(output, report)
}

/// Writes a value as JSON to the file of `--json`, if the option is given.
pub(crate) fn write_json(output: &Output, value: &impl serde::Serialize) -> Result<(), Failure> {
    let Some(path) = &output.json else { return Ok(()) };
    let write = || -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)? + "\n";
        if output.json_on_stdout() {
            io::stdout().write_all(text.as_bytes())
        } else {
            std::fs::write(path, text)
        }
    };
    match write() {
        // `rackloom run ... --json -
        //
        // head` is no error.
        Err(error) if output.json_on_stdout() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) if output.json_on_stdout() => Err(cannot_print(error)),
        written => written.map_err(|error| cannot_write("the JSON report", &error, path)),
    }
}

/// Prints a text for people. It goes to standard error if standard output is used for the JSON report.
pub(crate) fn print_text(output: &Output, text: &str) -> Result<(), Failure> {
    print_lines(output, &for_people(text))
}

/// Returns a text as a terminal may show it: long lines are wrapped on a terminal, and characters that control a terminal are replaced.
pub(crate) fn for_people(text: &str) -> Cow<'_, str> {
    let text = printable_lines(text);
    match terminal::output_columns() {
        Some(columns) => terminal::wrap(&text, columns).into(),
        None => text,
    }
}

/// Prints a text that programs read, such as JSON or a rack file, on standard output. No line of it is changed.
pub(crate) fn print_data(text: &str) -> Result<(), Failure> {
    print_lines(&Output { json: None }, text)
}

fn print_lines(output: &Output, text: &str) -> Result<(), Failure> {
    let line = format!("{text}\n");
    let written = if output.json_on_stdout() {
        io::stderr().write_all(line.as_bytes())
    } else {
        io::stdout().write_all(line.as_bytes())
    };
    match written {
        // `rackloom run ...
        //
        // head` is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(cannot_print(error)),
        _ => Ok(()),
    }
}

/// Adds the notes about captures to the report. If the captures could not be written, prints the failure; a
/// run that passed gets its exit.
pub(crate) fn note_captures(report: &mut Report, captured: Result<Vec<String>, Failure>, exit: Exit) -> Exit {
    let (exit, failure) = findings::note_captures(report, captured, exit);
    if let Some(failure) = failure {
        failure::print(&failure);
    }
    exit
}
