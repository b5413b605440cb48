//! `rackloom report`: the JSON report of a run as tables, or as a page.

use rackloom_page::report_page;

use crate::arguments::{Output, ReportArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::Files;
use crate::{report_file, reporting};

/// Prints the tables of a report, or writes its page.
pub(crate) fn run(arguments: &ReportArguments) -> Result<Exit, Failure> {
    Files::default()
        .reads("the report", [&arguments.file])
        .writes("--html", &arguments.html)
        .must_differ()?;
    let html = arguments.html.as_deref();
    let file = html.filter(|path| path.as_os_str() != "-");
    if let Some(path) = file {
        reporting::must_be_writable_at(path)?;
    }
    let report = report_file::read(&arguments.file)?;
    match (html, file) {
        (None, _) => reporting::print(&report, &Output { json: None })?,
        (Some(_), None) => reporting::print_data(report_page(&report).html().trim_end())?,
        (Some(_), Some(path)) => reporting::write_page_at(path, &report_page(&report))?,
    }
    Ok(Exit::Pass)
}
