//! Text that the command prints. These modules make text; `main` and the commands print it.

mod balance;
mod faults;
mod ip;
mod links;
mod oracles;
mod plan;
mod report;
mod status;
mod submitted;
mod sweep;
pub(crate) mod table;
mod traffic;
mod workload;

use std::io::IsTerminal;

pub(crate) use ip::missing as missing_ip;
pub(crate) use plan::{members, plan};
pub(crate) use rackloom_runtime::units;
pub(crate) use report::report;
pub(crate) use status::{members_status, rack_status};
pub(crate) use submitted::{job_line, job_list};
pub(crate) use sweep::schedules;
pub(crate) use workload::workload;

/// Style of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Colour,
}

impl Style {
    /// Returns colour for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !refused { Self::Colour } else { Self::Plain }
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint(text, "32")
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint(text, "31")
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\x1b[1;{code}m{text}\x1b[0m"),
        }
    }
}
