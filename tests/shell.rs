//! The command in a shell: version, templates, completions, manual pages, colours, and terminals of few columns.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use support::session::Session;
use support::wires::not_tried;
use support::{Ended, rack_file, rackloom, scratch, send, topology};

/// Width of the terminal of these tests.
const COLUMNS: usize = 40;
/// Longest time in which a completion is answered on a busy machine. A rack has half a second, and requests of the supervisor have ten.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(5);

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn passes(arguments: &[&str]) -> String {
    let ended = rackloom(arguments).finish();
    assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn refused(arguments: &[&str]) -> String {
    let Ended { code, stdout, stderr, .. } = rackloom(arguments).finish();
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    stderr
}

/// Returns true if a program can be started.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The version has the commit of the reports, and the number in the frames.
#[test]
fn the_version_names_commit_and_wire_format() {
    let ended = rackloom(&["sim", text(&topology("ring-4.yaml")), "--json", "-"]).finish();
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    let (meta, versions) = (&report["meta"], &report["meta"]["versions"]);
    let name = |value: &Value| value.as_str().expect("a name").to_owned();
    let expected = format!(
        "rackloom {} (commit {}, wire format {})\n",
        name(&versions["rackloom"]),
        name(&meta["commit"]),
        versions["wire"]
    );
    assert_eq!(passes(&["--version"]), expected);
    assert_eq!(passes(&["-V"]), expected);
}

/// Returns the names of the templates, from the list that the command prints.
fn templates() -> Vec<String> {
    let list = passes(&["init"]);
    let rows = list.lines().skip(1).take_while(|line| !line.is_empty());
    rows.map(|row| row.split(' ').next().expect("a name").to_owned()).collect()
}

#[test]
fn every_template_is_a_rack_that_runs_or_a_script_that_plays() {
    let names = templates();
    for name in ["star", "ring", "full-mesh", "leaf-spine", "torus", "faults"] {
        assert!(names.iter().any(|one| one == name), "{names:?}");
    }
    let folder = scratch("templates");
    std::fs::create_dir(&folder).expect("the folder can be written");
    let file = |name: &str| folder.join(format!("{name}.yaml"));
    for name in &names {
        let path = file(name);
        passes(&["init", name, "-o", text(&path)]);
        let written = std::fs::read_to_string(&path).expect("it was written");
        assert_eq!(written, passes(&["init", name]));
        assert!(written.starts_with("# ") && written.lines().all(|line| line.chars().count() <= 140));
    }
    for name in names.iter().filter(|name| *name != "faults") {
        passes(&["check", text(&file(name))]);
        let begin = Instant::now();
        let output = passes(&["sim", text(&file(name))]);
        assert!(output.contains("verdict: pass"), "{name}: {output}");
        // Without load and optimisation the longest takes half a second.
        assert!(begin.elapsed() < Duration::from_secs(30), "{name} took {:?}", begin.elapsed());
    }
    let script = file("faults");
    let more = ["--repetitions", "20", "--sizes", "256KiB", "--faults", text(&script), "--json", "-"];
    let report: Value = serde_json::from_str(&passes(&[&["sim", text(&file("ring"))], &more[..]].concat()))
        .expect("a report");
    let events = report["faults"].as_array().expect("a list of events");
    assert!(!events.is_empty() && events.iter().all(|event| event["times"].as_u64() > Some(0)), "{events:?}");
}

#[test]
fn a_file_is_replaced_only_if_that_is_requested() {
    let path = rack_file("mine");
    let error = refused(&["init", "ring", "-o", text(&path)]);
    assert!(error.contains("this file exists") && error.contains("hint:  ") && error.contains("--force"));
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "mine");
    passes(&["init", "ring", "-o", text(&path), "--force"]);
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), passes(&["init", "ring"]));
    assert!(refused(&["init", "rong"]).contains("did you mean ring?"));
    assert!(refused(&["init", "ring", "-o", "/no/such/folder/a.yaml"]).contains("cannot write this file"));
}

#[test]
fn every_command_has_a_manual_page_with_its_options() {
    let folder = scratch("pages");
    passes(&["man", text(&folder)]);
    let page = |name: &str| {
        let path = folder.join(format!("{name}.1"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    assert_eq!(passes(&["man"]).trim_end(), page("rackloom").trim_end());
    let mut left: Vec<Vec<String>> = vec![Vec::new()];
    let mut pages = 0;
    while let Some(command) = left.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let help = passes(&[&words[..], &["--help"]].concat());
        let page = page(&[&["rackloom"], &words[..]].concat().join("-")).replace("\\-", "-");
        pages += 1;
        for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
            let options = line.split(", ").map(|part| part.split([' ', '[', '.']).next().expect("an option"));
            for option in options.filter(|option| option.starts_with('-')) {
                assert!(page.contains(option), "the page of {words:?} lacks {option}");
            }
        }
        let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
        let rows = commands.lines().take_while(|line| !line.is_empty());
        let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
        for name in names.filter_map(|row| row.split_whitespace().next()).filter(|name| *name != "help") {
            left.push([&command[..], &[name.to_owned()]].concat());
        }
    }
    let files = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(files, pages, "there is a page of a command that help does not list");
    if !is_there("man") {
        not_tried("there is no `man` that formats pages");
        return;
    }
    let shown = Command::new("man")
        .args(["-l", "--warnings", text(&folder.join("rackloom-sim.1"))])
        .env("MANPAGER", "cat")
        .output()
        .expect("man starts");
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert!(shown.status.success() && errors.is_empty(), "{errors}");
    let shown = String::from_utf8_lossy(&shown.stdout).replace('\u{8}', "");
    assert!(shown.contains("--threads"), "{shown}");
}

/// Bash with the completions of the command.
struct Bash<'s> {
    session: &'s Session,
}

impl Bash<'_> {
    /// Returns the candidates for the last word, and the time that the shell waited.
    fn complete(&self, words: &[&str]) -> (Vec<String>, Duration) {
        let script = format!(
            "source <('{program}' completions bash) || exit 1\n\
             COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); COMP_TYPE=9\n\
             _clap_complete_rackloom rackloom \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            program = env!("CARGO_BIN_EXE_rackloom")
        );
        let begin = Instant::now();
        let output = Command::new("bash")
            .args(["--norc", "-c", &script, "bash"])
            .args(words)
            .env("XDG_RUNTIME_DIR", &self.session.path)
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{words:?}: {errors}");
        let found = String::from_utf8(output.stdout).expect("text");
        (found.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(), begin.elapsed())
    }

    /// Returns the candidates that are no options.
    fn names(&self, line: &str) -> Vec<String> {
        let (mut names, _) = self.complete(&line.split(' ').collect::<Vec<_>>());
        names.retain(|name| !name.starts_with('-'));
        names
    }
}

fn small_ring(name: &str) -> PathBuf {
    rack_file(&format!("name: {name}\nshape: {{ring: {{nodes: 3}}}}\njob: none\n"))
}

#[test]
fn bash_completes_commands_and_the_names_of_racks_that_are_up() {
    if !is_there("bash") {
        not_tried("there is no bash");
        return;
    }
    let session = Session::begin();
    let bash = Bash { session: &session };
    assert_eq!(bash.names("rackloom stat"), ["status"]);
    assert_eq!(bash.names("rackloom experiment loss-s"), ["loss-sweep"]);
    assert_eq!(bash.names("rackloom init leaf"), ["leaf-spine"]);
    assert_eq!(bash.names("rackloom status "), [""; 0], "no rack is up");
    let star = rack_file("name: star\nshape: {star: {nodes: 2, planes: 1}}\njob: none\n");
    session.passes(&["up", text(&small_ring("ring"))]);
    session.passes(&["up", text(&star), "--vacant", "n1"]);
    assert_eq!(bash.names("rackloom status "), ["ring", "star"]);
    assert_eq!(bash.names("rackloom down st"), ["star"]);
    assert_eq!(bash.names("rackloom inject --rack "), ["ring", "star"]);
    assert_eq!(bash.names("rackloom job submit --rack r"), ["ring"]);
    assert_eq!(bash.names("rackloom inject --rack star node "), ["n0", "n1", "s0"]);
    assert_eq!(bash.names("rackloom inject node "), ["n0", "n1", "n2", "s0"], "of both racks, once");
    let links = ["n0--n1", "n1--n2", "n2--n0", "all", "n0", "n1", "n2"];
    assert_eq!(bash.names("rackloom inject --rack ring link "), links);
    assert_eq!(bash.names("rackloom inject --rack=ring link n1-"), ["n1--n2"]);
    assert_eq!(bash.names("rackloom down star --seat "), ["n0", "s0"]);
    assert_eq!(bash.names("rackloom exec --rack star --seat "), ["n1"]);
    assert_eq!(bash.names("rackloom exec --rack star --seats n0,"), ["n0,n1"]);
    assert_eq!(bash.names("rackloom seat --join "), ["star/n1"]);
}

/// A supervisor that is stopped accepts connections and never answers.
#[test]
fn a_rack_that_does_not_answer_is_left_out() {
    if !is_there("bash") {
        not_tried("there is no bash");
        return;
    }
    let session = Session::begin();
    let bash = Bash { session: &session };
    let star = rack_file("name: star\nshape: {star: {nodes: 2, planes: 1}}\njob: none\n");
    session.passes(&["up", text(&small_ring("ring"))]);
    session.passes(&["up", text(&star)]);
    let status: Value = serde_json::from_str(&session.passes(&["status", "star", "--json"])).expect("JSON");
    let pid = status["racks"][0]["pid"].as_i64().expect("a process") as i32;
    let supervisor = Pid::from_raw(pid).expect("no zero");
    send(supervisor, Signal::STOP);
    let (found, took) = bash.complete(&["rackloom", "inject", "node", ""]);
    send(supervisor, Signal::CONT);
    let names: Vec<_> = found.iter().filter(|name| !name.starts_with('-')).collect();
    assert_eq!(names, ["n0", "n1", "n2"], "the members of the rack that answers");
    assert!(took < COMPLETION_TIMEOUT, "the shell waited {took:?}");
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = passes(&["completions", shell]);
        assert!(script.contains("RACKLOOM_COMPLETE") && script.contains("rackloom"), "{shell}: {script}");
    }
    assert!(refused(&["completions", "korn"]).contains("bash, elvish, fish, powershell, zsh"));
    for shell in ["zsh", "fish"].into_iter().filter(|shell| is_there(shell)) {
        let path = scratch("script");
        std::fs::write(&path, passes(&["completions", shell])).expect("it can be written");
        let checked = Command::new(shell).arg("-n").arg(&path).status().expect("it starts");
        assert!(checked.success(), "{shell} cannot read its script");
    }
}

/// Runs a command line on a terminal of [`COLUMNS`]. Returns everything that it shows.
fn on_narrow_terminal(line: &str, session: &Session) -> String {
    let line = format!("stty cols {COLUMNS} rows 24; exec {} {line}", env!("CARGO_BIN_EXE_rackloom"));
    let output = Command::new("script")
        .args(["-qfec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("XDG_RUNTIME_DIR", &session.path)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("script starts");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the lines without the codes of terminals.
fn plain_lines(shown: &str) -> Vec<String> {
    let plain = |line: &str| {
        let mut parts = line.split("\u{1b}[");
        let mut plain = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            plain += part.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
        }
        plain
    };
    shown.split(['\r', '\n']).map(plain).filter(|line| !line.is_empty()).collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    if !is_there("script") {
        not_tried("there is no `script`, which makes terminals");
        return;
    }
    let session = Session::begin();
    let (ring, missing) = (topology("ring-4.yaml"), Path::new("no-such-rack.yaml"));
    session.passes(&["up", text(&small_ring("up"))]);
    let [ring, missing] = [&ring, missing].map(text);
    let commands = ["check", "sim", "campaign"].map(|command| format!("{command} {ring}"));
    let [check, sim, campaign] = commands;
    for (line, part) in [
        ("status", "node: n0"),
        (&check, "link: n0--n1"),
        (&sim, "verdict: pass"),
        (&format!("{sim} --json -"), "\"verdict\": \"pass\""),
        (&format!("{campaign} --runs 3"), "3 fault scripts"),
        (&format!("sim {missing}"), "hint:"),
        ("--help", "Usage"),
        ("run --help", "--collective"),
        ("inject link --help", "--loss"),
        ("init", "template: ring"),
    ] {
        let shown = plain_lines(&on_narrow_terminal(line, &session));
        assert!(shown.iter().any(|line| line.contains(part)), "{line}: no {part} in {shown:#?}");
        let is_json = line.ends_with('-');
        let wide = shown.iter().filter(|line| line.chars().count() > COLUMNS).collect::<Vec<_>>();
        // Programs read JSON, and its lines stay whole.
        assert_eq!(wide.is_empty(), !is_json, "{line}: {wide:#?}");
    }
    // In a pipe nothing is changed.
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().expect("a line");
    assert!(widest(&passes(&["check", ring])) > COLUMNS);
    session.passes(&["down"]);
}

#[test]
fn errors_on_a_terminal_have_colours_unless_they_are_refused() {
    if !is_there("script") {
        not_tried("there is no `script`, which makes terminals");
        return;
    }
    let session = Session::begin();
    let shown = on_narrow_terminal("sim no-such-rack.yaml", &session);
    assert!(shown.contains("\u{1b}[1;31merror:\u{1b}[0m ") && shown.contains("\u{1b}[1;36mhint:\u{1b}[0m "));
    let line = format!("NO_COLOR=1 {} sim no-such-rack.yaml", env!("CARGO_BIN_EXE_rackloom"));
    let output = Command::new("script").args(["-qfec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    let shown = String::from_utf8(output.expect("script starts").stdout).expect("text");
    assert!(shown.contains("error: ") && !shown.contains('\u{1b}'), "{shown}");
    assert!(!refused(&["sim", "no-such-rack.yaml"]).contains('\u{1b}'), "a pipe is no terminal");
}
