//! Outcomes of a run, each with the exit code of the command that ran it.
//!
//! The codes are an interface. `docs/cli.md` and `--help` list them, and a test compares all three.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Every check of every node passed.
    Pass,
    /// A check failed, or an operation ended in an unexpected error.
    Fail,
    /// The options or the rack file are wrong. Nothing was started.
    BadInput,
    /// A process, a wire or a namespace could not be made.
    CouldNotStart,
    /// A GPU node died, and neither fault script nor rack file allows it.
    NodeLost,
    /// No node made progress for the watchdog time of the plan.
    Stalled,
    /// A signal ended the run. The rack was taken down.
    Interrupted,
    /// Nothing was found wrong, and something could not be judged.
    NoVerdict,
    /// The host had no processor for the members in time, and no other check failed.
    Starved,
}

impl Exit {
    /// All outcomes, ordered by code.
    pub const ALL: [Self; 9] = [
        Self::Pass,
        Self::Fail,
        Self::BadInput,
        Self::CouldNotStart,
        Self::NodeLost,
        Self::Stalled,
        Self::Interrupted,
        Self::NoVerdict,
        Self::Starved,
    ];

    /// Returns the exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::BadInput => 2,
            Self::CouldNotStart => 3,
            Self::NodeLost => 4,
            Self::Stalled => 5,
            Self::Interrupted => 6,
            Self::NoVerdict => 7,
            Self::Starved => 8,
        }
    }

    /// Returns the description for help texts: a name, a colon, and the meaning.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "pass: every check of every node passed",
            Self::Fail => "fail: a check failed, or an operation ended in an unexpected error",
            Self::BadInput => "bad input: the command line or the rack file; nothing was started",
            Self::CouldNotStart => "could not start: a process, a wire or a namespace could not be made",
            Self::NodeLost => {
                "node lost: a GPU node died during the run, and neither fault script nor rack file says that it may"
            }
            Self::Stalled => "stalled: no node made progress for the plan's watchdog time",
            Self::Interrupted => {
                "interrupted: Ctrl-C, SIGTERM or a closed terminal (SIGHUP); the rack was taken down"
            }
            Self::NoVerdict => "could not tell: nothing was found wrong, and something could not be judged",
            Self::Starved => {
                "starved: the host had no processor for the members in time, and nothing else went wrong"
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_the_same_codes_with_the_same_names() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let document = std::fs::read_to_string(path).expect("docs/cli.md is there");
        for exit in Exit::ALL {
            let name = exit.meaning().split(':').next().unwrap_or_default();
            let row = format!("| {} | {name} |", exit.code());
            assert!(document.contains(&row), "docs/cli.md lacks the row {row}");
        }
    }

    #[test]
    fn a_code_is_its_index_in_the_list() {
        for (index, exit) in Exit::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(exit.code()), index);
        }
    }
}
