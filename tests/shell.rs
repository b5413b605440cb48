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
    let schema: Value = serde_json::from_str(&passes(&["schema"])).expect("JSON");
    let shapes = schema["$defs"]["shape"]["properties"].as_object().expect("shapes");
    assert!(shapes.len() > 5, "{shapes:?}");
    for name in shapes.keys().map(String::as_str).chain(["faults"]) {
        assert!(names.iter().any(|one| one == name), "no {name} in {names:?}");
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

/// Shell with the completions of the command.
struct Shell<'s> {
    name: &'static str,
    session: &'s Session,
    home: PathBuf,
}

/// Interactive zsh in a terminal: types its second argument and TAB, inserts all candidates, and prints the line.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell "PS1=; setopt nobeep; LISTMAX=10000; stty cols 200 rows 200
autoload -Uz compinit; compinit -u -D; source <('$1' completions zsh)
zstyle ':completion:all:*' old-matches only; zstyle ':completion:all::::' completer _all_matches
zle -C all complete-word _generic; bindkey '^Xa' all
show() { print -r -- \"<<\$BUFFER>>\" }; zle -N show; bindkey '^Xs' show; echo 're''ady'"
zpty -r shell output '*ready*'
zpty -w -n shell "$2"$'\t\CXa\CXs'
zpty -r shell output '*<<*>>*'
print -r -- "${${output##*<<}%%>>*}"
"#;

impl<'s> Shell<'s> {
    /// Returns the shell with this name if it is there.
    fn find(name: &'static str, session: &'s Session) -> Option<Self> {
        if !is_there(name) {
            not_tried(&format!("there is no {name}; its completions were not tried"));
            return None;
        }
        let home = scratch("home");
        let folder = home.join(".config/fish/completions");
        std::fs::create_dir_all(&folder).expect("the folder can be written");
        let script = format!("'{}' completions fish | source\n", env!("CARGO_BIN_EXE_rackloom"));
        std::fs::write(folder.join("rackloom.fish"), script).expect("it can be written");
        Some(Self { name, session, home })
    }

    /// Runs the shell. Returns its standard output, and the time that it took.
    fn run(&self, arguments: &[&str]) -> (String, Duration) {
        let program = Path::new(env!("CARGO_BIN_EXE_rackloom"));
        let path = std::env::var("PATH").unwrap_or_default();
        let begin = Instant::now();
        let output = Command::new("timeout")
            .args(["60", self.name])
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &self.session.path)
            .env("HOME", &self.home)
            .env("PATH", format!("{}:{path}", text(program.parent().expect("a folder"))))
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .output()
            .expect("timeout starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
        (String::from_utf8(output.stdout).expect("text"), begin.elapsed())
    }

    /// Returns the candidates for the last word, and the time that the shell waited.
    fn complete(&self, line: &str) -> (Vec<String>, Duration) {
        let program = env!("CARGO_BIN_EXE_rackloom");
        let words: Vec<_> = line.split(' ').collect();
        let (shown, took) = match self.name {
            "bash" => {
                let script = format!(
                    "source <('{program}' completions bash) || exit 1\n\
                     COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); COMP_TYPE=9\n\
                     _clap_complete_rackloom rackloom \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
                     printf '%s\\n' \"${{COMPREPLY[@]}}\""
                );
                self.run(&[&["--norc", "-c", &script, "bash"], &words[..]].concat())
            }
            // Fish reads the file of this command in its folder of completions.
            "fish" => self.run(&["-c", "complete --do-complete $argv[1]", line]),
            _ => self.run(&["-f", "-c", ZSH, "zsh", program, line]),
        };
        let found = match self.name {
            // The line ends with the candidates.
            "zsh" => shown.split_whitespace().skip(words.len() - 1).map(str::to_owned).collect(),
            // A description follows after a tab.
            _ => shown.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect(),
        };
        (found, took)
    }

    /// Returns the candidates that are no options, in alphabetical order.
    fn names(&self, line: &str) -> Vec<String> {
        let (mut names, _) = self.complete(line);
        names.retain(|name| !name.is_empty() && !name.starts_with('-'));
        names.sort();
        names
    }
}

fn small_ring(name: &str) -> PathBuf {
    rack_file(&format!("name: {name}\nshape: {{ring: {{nodes: 3}}}}\njob: none\n"))
}

fn completes_names_of_racks_that_are_up(name: &'static str) {
    let session = Session::begin();
    let Some(shell) = Shell::find(name, &session) else { return };
    assert_eq!(shell.names("rackloom stat"), ["status"]);
    assert_eq!(shell.names("rackloom experiment loss-s"), ["loss-sweep"]);
    assert_eq!(shell.names("rackloom init leaf"), ["leaf-spine"]);
    assert_eq!(shell.names("rackloom status "), [""; 0], "no rack is up");
    let star = rack_file("name: star\nshape: {star: {nodes: 2, planes: 1}}\njob: none\n");
    session.passes(&["up", text(&small_ring("ring"))]);
    session.passes(&["up", text(&star), "--vacant", "n1"]);
    assert_eq!(shell.names("rackloom status "), ["ring", "star"]);
    assert_eq!(shell.names("rackloom down st"), ["star"]);
    assert_eq!(shell.names("rackloom inject --rack "), ["ring", "star"]);
    assert_eq!(shell.names("rackloom job submit --rack r"), ["ring"]);
    assert_eq!(shell.names("rackloom inject --rack star node "), ["n0", "n1", "s0"]);
    assert_eq!(shell.names("rackloom inject node "), ["n0", "n1", "n2", "s0"], "of both racks, once");
    let links = ["all", "n0", "n0--n1", "n1", "n1--n2", "n2", "n2--n0"];
    assert_eq!(shell.names("rackloom inject --rack ring link "), links);
    assert_eq!(shell.names("rackloom inject --rack=ring link n1-"), ["n1--n2"]);
    // The word `link` may be left out before a link.
    assert_eq!(shell.names("rackloom inject --rack ring n0"), ["n0--n1"]);
    assert_eq!(shell.names("rackloom inject --rack ring al"), ["all"]);
    let (options, _) = shell.complete("rackloom inject --rack ring n0--n1 --dow");
    assert_eq!(options, ["--down"]);
    assert_eq!(shell.names("rackloom down star --seat "), ["n0", "s0"]);
    assert_eq!(shell.names("rackloom exec --rack star --seat "), ["n1"]);
    assert_eq!(shell.names("rackloom exec --rack star --seats n0,"), ["n0,n1"]);
    assert_eq!(shell.names("rackloom seat --join "), ["star/n1"]);
}

#[test]
fn bash_completes_commands_and_the_names_of_racks_that_are_up() {
    completes_names_of_racks_that_are_up("bash");
}

#[test]
fn zsh_completes_commands_and_the_names_of_racks_that_are_up() {
    completes_names_of_racks_that_are_up("zsh");
}

#[test]
fn fish_completes_commands_and_the_names_of_racks_that_are_up() {
    completes_names_of_racks_that_are_up("fish");
}

/// A supervisor that is stopped accepts connections and never answers.
#[test]
fn a_rack_that_does_not_answer_is_left_out() {
    let session = Session::begin();
    let Some(bash) = Shell::find("bash", &session) else { return };
    let star = rack_file("name: star\nshape: {star: {nodes: 2, planes: 1}}\njob: none\n");
    session.passes(&["up", text(&small_ring("ring"))]);
    session.passes(&["up", text(&star)]);
    let status: Value = serde_json::from_str(&session.passes(&["status", "star", "--json"])).expect("JSON");
    let pid = status["racks"][0]["pid"].as_i64().expect("a process") as i32;
    let supervisor = Pid::from_raw(pid).expect("no zero");
    send(supervisor, Signal::STOP);
    let (found, took) = bash.complete("rackloom inject node ");
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
    session.passes(&["inject", "link", "n0--n1", "--loss", "1%"]);
    let [ring, missing] = [&ring, missing].map(text);
    let captures = scratch("captures");
    passes(&["sim", text(&small_ring("captured")), "--capture", text(&captures)]);
    let capture =
        std::fs::read_dir(&captures).expect("captures").next().expect("a link").expect("a file").path();
    let capture = text(&capture);
    let commands = ["check", "sim", "campaign"].map(|command| format!("{command} {ring}"));
    let [check, sim, campaign] = commands;
    for (line, part) in [
        ("status", "member: n0"),
        ("events", "loss n0--n1"),
        (&format!("decode {capture}"), "hello"),
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
    // In a pipe nothing is changed, and a frame is a line.
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().expect("a line");
    assert!(widest(&passes(&["check", ring])) > COLUMNS);
    let frames = passes(&["decode", capture]);
    assert!(widest(&frames) > COLUMNS && frames.lines().all(|line| line.contains("-p")), "{frames}");
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
