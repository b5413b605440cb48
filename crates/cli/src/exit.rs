//! Exit codes in help texts.

pub(crate) use rackloom_runtime::outcome::exit::Exit;

/// Returns the list of exit codes for `--help`.
pub(crate) fn help() -> String {
    let lines: Vec<_> =
        Exit::ALL.iter().map(|exit| format!("  {}  {}", exit.code(), exit.meaning())).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}
