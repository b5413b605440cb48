//! Programs in C against `rackloom.h` and the library of `crates/capi`: the examples, misuse of every function, and both under valgrind.
//!
//! `crates/capi/tests/header.rs` compares the header with the source.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::session::Session;
use support::{root, scratch, wires, within};

/// Longest time of one program, on a busy machine under valgrind.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Returns the folder with the shared library, which is built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().expect("a folder").to_owned();
    assert!(folder.join("librackloom_capi.so").exists(), "the library is not in {}", folder.display());
    folder
}

fn cc() -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread"]);
    command.arg("-I").arg(root().join("crates/capi/include"));
    command
}

/// Compiles a program and links it with the shared library.
fn compile(source: &str) -> PathBuf {
    let (program, folder) = (scratch("program"), library());
    let mut command = cc();
    command.arg(root().join("crates/capi").join(source)).arg("-o").arg(&program);
    command.arg("-L").arg(&folder).arg("-lrackloom_capi").arg(format!("-Wl,-rpath,{}", folder.display()));
    let output = command.output().expect("cc starts");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

impl Session {
    /// Runs a program to its end, which is in time and a success.
    fn program_passes(&self, mut command: Command, arguments: &[&str]) -> String {
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.path).stdin(Stdio::null());
        let shown = format!("{command:?}");
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        // The programs print less than a pipe holds.
        within(TIMEOUT, &shown, || child.try_wait().expect("a child"));
        let Output { status, stdout, stderr } = child.wait_with_output().expect("a child");
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{shown}: {status}\n{stdout}\n{stderr}");
        stdout.into_owned()
    }
}

const RACKLOOM: &str = env!("CARGO_BIN_EXE_rackloom");

#[test]
fn ping_pong_prints_latencies() {
    let printed = Session::begin().program_passes(Command::new(compile("examples-c/ping_pong.c")), &["200"]);
    assert!(printed.starts_with("200 round trips of 8 bytes: p50 "), "{printed}");
}

#[test]
fn processes_of_a_standing_rack_add_their_vectors() {
    let ring = Command::new(compile("examples-c/ring_all_reduce.c"));
    let printed = Session::begin().program_passes(ring, &[RACKLOOM, "4"]);
    for rank in 0..4 {
        assert!(printed.contains(&format!("n{rank}: 256 numbers are the sum of all nodes\n")), "{printed}");
    }
    assert!(printed.ends_with("4 nodes, 0 failed\n"), "{printed}");
}

#[test]
fn workers_of_a_parameter_server_find_the_line_while_links_lose_frames() {
    let server = Command::new(compile("examples-c/parameter_server.c"));
    let printed = Session::begin().program_passes(server, &[RACKLOOM, "3", "150"]);
    for line in [
        "1 fault injected; the rack is up",
        "(the points lie on y = 3 x - 2)",
        "0 processes failed; the report names the fault",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn misuse_of_each_function_is_an_error_code() {
    let printed = Session::begin().program_passes(Command::new(compile("tests/misuse.c")), &[RACKLOOM]);
    let checks = printed.split(' ').next().and_then(|count| count.parse().ok());
    assert!(checks >= Some(500), "{printed}");
    assert!(printed.ends_with(" checks, 0 failed\n"), "{printed}");
}

#[test]
fn groups_are_made_from_groups_and_collectives_run_in_the_background() {
    let printed = Session::begin().program_passes(Command::new(compile("tests/groups.c")), &[]);
    assert_eq!(printed, "4 nodes, 0 failed\n");
}

#[test]
fn collectives_of_each_form_have_the_right_results() {
    let printed = Session::begin().program_passes(Command::new(compile("tests/collectives.c")), &[]);
    assert_eq!(printed, "4 nodes, 0 failed\n");
}

/// Returns `true` if a program that counts its checks says that none failed.
fn passed(printed: &str) -> bool {
    let checks = printed.split(' ').next().and_then(|count| count.parse().ok());
    checks >= Some(100) && printed.ends_with(" checks, 0 failed\n")
}

#[test]
fn pools_keep_memory_and_give_it_back() {
    let printed = Session::begin().program_passes(Command::new(compile("tests/pools.c")), &[]);
    assert!(passed(&printed), "{printed}");
}

#[test]
fn blocks_reports_pieces_and_commands_of_kernels_work() {
    let printed = Session::begin().program_passes(Command::new(compile("tests/blocks.c")), &[]);
    assert!(passed(&printed), "{printed}");
}

/// Returns the names of the functions that a header declares.
fn declared(header: &str) -> BTreeSet<String> {
    let words =
        header.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '('));
    words
        .filter_map(|word| word.split_once('('))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("rackloom_"))
        .collect()
}

#[test]
fn the_test_of_misuse_calls_each_function_of_the_header() {
    let read = |path: &str| {
        std::fs::read_to_string(root().join("crates/capi").join(path)).expect("a file of the crate")
    };
    let (header, misuse) = (read("include/rackloom.h"), read("tests/misuse.c"));
    let functions = declared(&header);
    assert!(functions.len() > 60, "functions are missing: {functions:?}");
    let missing: Vec<_> = functions.iter().filter(|name| !misuse.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(
        declared("rackloom_error rackloom_one(void);\n * rackloom_two\n"),
        ["rackloom_one".to_owned()].into()
    );
}

/// The library exports the functions of the header and no other symbol.
#[test]
fn the_shared_library_exports_what_the_header_declares() {
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(library().join("librackloom_capi.so")).output();
    let Ok(output) = output else {
        wires::not_tried("exports of the C library: there is no `nm`");
        return;
    };
    let text = String::from_utf8(output.stdout).expect("names");
    let exported: BTreeSet<_> =
        text.lines().filter_map(|line| line.split(' ').nth(2)).map(str::to_owned).collect();
    let header = std::fs::read_to_string(root().join("crates/capi/include/rackloom.h")).expect("the header");
    assert_eq!(exported, declared(&header));
}

#[test]
fn the_header_is_valid_for_c_plus_plus() {
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"]);
    let Ok(output) = command.arg(root().join("crates/capi/include/rackloom.h")).output() else {
        wires::not_tried("the C header in C++: there is no `c++`");
        return;
    };
    // A header alone may be warned of as a main file; nothing else.
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn valgrind(program: &Path) -> Option<Command> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        wires::not_tried("the C library under valgrind: there is no `valgrind`");
        return None;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite"]);
    command.args(["--errors-for-leak-kinds=definite", "--fair-sched=try", "--num-callers=30"]);
    let suppressed = root().join("crates/capi/tests/valgrind.supp");
    command.arg(format!("--suppressions={}", suppressed.display())).arg(program);
    Some(command)
}

#[test]
fn programs_in_c_have_no_error_under_valgrind() {
    let session = Session::begin();
    if let Some(ping_pong) = valgrind(&compile("examples-c/ping_pong.c")) {
        let printed = session.program_passes(ping_pong, &["20"]);
        assert!(printed.starts_with("20 round trips"), "{printed}");
    }
    if let Some(groups) = valgrind(&compile("tests/groups.c")) {
        assert_eq!(session.program_passes(groups, &[]), "4 nodes, 0 failed\n");
    }
    if let Some(collectives) = valgrind(&compile("tests/collectives.c")) {
        assert_eq!(session.program_passes(collectives, &[]), "4 nodes, 0 failed\n");
    }
    if let Some(pools) = valgrind(&compile("tests/pools.c")) {
        let printed = session.program_passes(pools, &[]);
        assert!(passed(&printed), "{printed}");
    }
    if let Some(blocks) = valgrind(&compile("tests/blocks.c")) {
        let printed = session.program_passes(blocks, &[]);
        assert!(passed(&printed), "{printed}");
    }
    if let Some(misuse) = valgrind(&compile("tests/misuse.c")) {
        let printed = session.program_passes(misuse, &[RACKLOOM]);
        assert!(printed.ends_with(" checks, 0 failed\n"), "{printed}");
    }
}

#[test]
fn processes_in_c_have_no_error_under_valgrind() {
    let session = Session::begin();
    if let Some(ring) = valgrind(&compile("examples-c/ring_all_reduce.c")) {
        let printed = session.program_passes(ring, &[RACKLOOM, "3"]);
        assert!(printed.ends_with("3 nodes, 0 failed\n"), "{printed}");
    }
    if let Some(server) = valgrind(&compile("examples-c/parameter_server.c")) {
        let printed = session.program_passes(server, &[RACKLOOM, "2", "150"]);
        assert!(printed.contains("0 processes failed"), "{printed}");
    }
}

#[test]
fn the_program_of_the_guide_compiles_and_runs() {
    let guide = std::fs::read_to_string(root().join("docs/c-library.md")).expect("the guide");
    let program = guide.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let source = scratch("guide.c");
    std::fs::write(&source, program).expect("the scratch folder can be written");
    let printed =
        Session::begin().program_passes(Command::new(compile(source.to_str().expect("a plain path"))), &[]);
    assert_eq!(printed, "hello 0\n");
}
