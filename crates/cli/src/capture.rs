//! `rackloom capture`: the frames of a link of a rack that is up, while they are recorded; and `rackloom extcap`, the form of it that
//! Wireshark calls.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};

use rackloom_runtime::machine::interruption::Interruption;
use rackloom_runtime::standing::{Captured, LiveCapture, StandingRack, captured_links, follow};

use crate::arguments::{CaptureArguments, ExtcapArguments};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write_file, print_to_stderr};
use crate::reporting;
use crate::standing::end_of;

/// Prefix of the interfaces that Wireshark shows.
const INTERFACE: &str = "rackloom";

/// `rackloom capture`: writes frames until Ctrl-C or the end of the rack.
pub(crate) fn run(arguments: &CaptureArguments) -> Result<Exit, Failure> {
    let CaptureArguments { rack, link, write } = arguments;
    let is_stdout = write.as_os_str() == "-";
    if is_stdout && io::stdout().is_terminal() {
        return Err(Failure::bad_input("a capture is no text for a terminal")
            .hint("name a file with --write, or add `| rackloom decode -`"));
    }
    let status = StandingRack::named(rack)?.status()?;
    let mut capture = follow(&status, link)?;
    let captured = if is_stdout {
        copy(&mut capture, &mut io::stdout().lock())?
    } else {
        // A refused command leaves an earlier file as it is, so the file is opened only now.
        let mut file = File::create(write).map_err(|error| cannot_write_file(&error, write))?;
        copy(&mut capture, &mut file)?
    };
    if let Some(Captured { frames, .. }) = captured {
        print_to_stderr(&format!("{frames} frames of {link}"));
    }
    exit_of(captured, status.name)
}

/// Returns the exit of a capture: an error if the rack ended without being taken down.
fn exit_of(captured: Option<Captured>, rack: String) -> Result<Exit, Failure> {
    if captured.is_some_and(|captured| captured.is_rack_over) { end_of(&[rack]) } else { Ok(Exit::Pass) }
}

/// Copies the frames of a link to `out`. Returns `None` if the reader of a pipe has closed it.
fn copy(capture: &mut LiveCapture, out: &mut dyn Write) -> Result<Option<Captured>, Failure> {
    let interruption =
        Interruption::listen().map_err(|error| Failure::could_not_start("cannot wait for signals", error))?;
    match capture.write_to(out, &interruption) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        copied => copied.map(Some).map_err(|error| Failure::could_not_start("cannot copy frames", error)),
    }
}

/// `rackloom extcap`: answers Wireshark.
pub(crate) fn extcap(arguments: &ExtcapArguments) -> Result<Exit, Failure> {
    if arguments.listing.interfaces {
        reporting::print_data(&interfaces()?)?;
    } else if arguments.listing.kinds {
        reporting::print_data("dlt {number=1}{name=EN10MB}{display=Ethernet}")?;
    } else if arguments.capture
        && let (Some(interface), Some(fifo)) = (&arguments.interface, &arguments.fifo)
    {
        let (rack, link) = named(interface)?;
        let status = StandingRack::named(rack)?.status()?;
        let mut fifo =
            OpenOptions::new().write(true).open(fifo).map_err(|error| cannot_write_file(&error, fifo))?;
        let captured = copy(&mut follow(&status, link)?, &mut fifo)?;
        return exit_of(captured, status.name);
    }
    Ok(Exit::Pass)
}

/// Returns the list of interfaces: each recorded link of each rack. A rack that does not answer is left out.
fn interfaces() -> Result<String, Failure> {
    let mut lines = vec![format!("extcap {{version={}}}{{help=}}", env!("CARGO_PKG_VERSION"))];
    for rack in StandingRack::all()? {
        let Ok(status) = rack.status() else { continue };
        for link in captured_links(&status).unwrap_or_default() {
            let rack = &status.name;
            lines.push(format!(
                "interface {{value={INTERFACE}:{rack}:{link}}}{{display=Rackloom {rack}, link {link}}}"
            ));
        }
    }
    Ok(lines.join("\n"))
}

/// Returns rack and link of an interface.
fn named(interface: &str) -> Result<(&str, &str), Failure> {
    let name = interface.strip_prefix(INTERFACE).and_then(|rest| rest.strip_prefix(':'));
    name.and_then(|name| name.split_once(':')).ok_or_else(|| {
        Failure::bad_input(format!("{interface} is no interface of rackloom"))
            .hint("`rackloom extcap --extcap-interfaces` lists them")
    })
}
