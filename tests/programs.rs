//! Programs on seats: `rackloom exec` and `rackloom env`.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use support::session::Session;
use support::wires::{has_packet_wire, wires};
use support::{is_gone, rack_file, scratch, send, within};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Four nodes on one switch. The death of a process is noticed at once. A living one may be silent for long on a busy machine.
const RACK: &str = "name: seats\nshape: {star: {nodes: 4, planes: 1}}\ntimers: {heartbeat_interval: 500ms}\n";

impl Session {
    fn up(wire: &str) -> Self {
        let session = Self::begin();
        let file = rack_file(RACK);
        let file = file.to_str().expect("a plain path");
        session.passes(&["up", file, "--seats", "programs", "--wire", wire]);
        session
    }

    /// Returns a command in this session, with pipes for its output.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a program and waits for its first line.
    fn start(&self, options: &[&str], script: &str) -> Program {
        let arguments = [&["exec"], options, &["--", "sh", "-c", script]].concat();
        let mut child = self.command(&arguments).spawn().expect("the command starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a pipe");
        Program { child, line: line.trim_end().to_owned(), output }
    }

    fn member(&self, name: &str) -> Value {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        let members = status["racks"][0]["members"].as_array().expect("members").iter();
        members.clone().find(|member| member["name"] == name).expect("the member is there").clone()
    }

    fn in_state(&self, name: &str, state: &str) -> Value {
        within(TIMEOUT, &format!("{name} is {state}"), || {
            let member = self.member(name);
            (member["state"] == state).then_some(member)
        })
    }

    /// Takes the rack down. Returns its report.
    fn down(&self) -> Value {
        let path = self.path.join("report.json");
        self.passes(&["down", "--json", path.to_str().expect("a plain path")]);
        serde_json::from_str(&std::fs::read_to_string(path).expect("the report")).expect("JSON")
    }

    /// Returns the refusal of a command that must be refused with this code.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.rackloom(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{arguments:?}\n{}", ended.stderr);
        assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
        ended.stderr
    }
}

/// Program on a seat. It is killed on drop.
struct Program {
    child: Child,
    /// First line of its output.
    line: String,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end. Returns the exit code as a shell reports it, and both outputs.
    fn end(mut self) -> (i32, String, String) {
        let (mut out, mut error) = (String::new(), String::new());
        self.output.read_to_string(&mut out).expect("a pipe");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut error).expect("a pipe");
        let status = self.child.wait().expect("the program ends");
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), out, error)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the kinds of events about a node, at the switch.
fn kinds(report: &Value, node: &str) -> Vec<String> {
    let events = report["events"].as_array().expect("events").iter();
    let of_node = events.filter(|event| event["member"] == "s0" && event["fields"]["node"] == node);
    of_node.map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
}

fn state_of_process(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

#[test]
fn exec_becomes_the_program_on_every_wire() {
    for wire in wires("exec_becomes_the_program_on_every_wire") {
        let session = Session::up(wire);
        let program = session.start(
            &["--seat", "n2"],
            "echo $$ $RACKLOOM_RACK $RACKLOOM_SEAT $RACKLOOM_RANK $RACKLOOM_RANKS; cat /proc/$$/task/$$/children; exit 7",
        );
        assert_eq!(program.line, format!("{} seats n2 2 4", program.child.id()), "{wire}");
        let (code, children, error) = program.end();
        // `cat` itself is the only child: the agent is none.
        assert!(children.split_whitespace().count() <= 1, "{children:?}");
        assert_eq!((code, error.as_str()), (7, ""), "{wire}");
        session.in_state("n2", "lost");
        let mut kinds = kinds(&session.down(), "n2");
        // The neighbour reports the departure for the link and for the node.
        kinds.dedup();
        assert_eq!(kinds, ["node-reached", "node-left", "node-lost"], "{wire}");
    }
}

#[test]
fn a_seat_is_free_again_however_its_program_ends() {
    let session = Session::up("shared-memory");
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("true", 0)]
    {
        let (ended, _, error) = session.start(&["--seat", "n0"], &format!("echo; {script}")).end();
        assert_eq!(ended, code, "{script}: {error}");
    }
    session.in_state("n0", "lost");
    let mut kinds = kinds(&session.down(), "n0");
    kinds.dedup();
    let (left, killed) = (["node-reached", "node-left", "node-lost"], ["node-reached", "node-lost"]);
    let expected: Vec<_> = [&left[..], &left, &killed, &killed, &left].concat();
    assert_eq!(kinds, expected, "a program that a signal ended is a dead node");
}

#[test]
fn a_stopped_program_is_a_silent_node_unless_it_is_held() {
    let session = Session::up("shared-memory");
    let silent = session.start(&["--seat", "n0"], "echo; read line");
    let held = session.start(&["--seat", "n1", "--hold"], "echo; sleep 1000");
    // The standard input is empty.
    session.in_state("n0", "lost");
    drop(silent);
    let silent = session.start(&["--seat", "n0"], "echo; exec sleep 1000");
    for program in [&silent, &held] {
        send(program.pid(), Signal::STOP);
    }
    session.in_state("n0", "silent");
    assert_eq!(session.member("n1")["state"], "up");
    send(silent.pid(), Signal::CONT);
    session.in_state("n0", "up");
    drop((silent, held));
    session.in_state("n1", "lost");
}

/// Launchers bind each program to a processor, which it occupies. An agent there gets too little time to serve its links.
#[test]
fn an_agent_runs_on_the_processors_of_the_rack_and_not_on_those_of_its_program() {
    let session = Session::up("shared-memory");
    let all = sched_getaffinity(None).expect("the processors of this thread");
    let processor = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).expect("there is one");
    let mut one = CpuSet::new();
    one.set(processor);
    sched_setaffinity(None, &one).expect("this thread is bound");
    let program = session.start(&["--seat", "n0"], "echo on; exec sleep 60");
    sched_setaffinity(None, &all).expect("this thread is free again");
    let agent = session.in_state("n0", "up")["pid"].as_i64().expect("a process");
    let agent = Pid::from_raw(agent as i32).expect("a process");
    let of = |pid| sched_getaffinity(Some(pid)).expect("the process runs");
    assert_eq!(of(program.pid()), one);
    assert_eq!(of(agent), all);
    drop(program);
    session.down();
}

#[test]
fn faults_of_a_node_reach_its_program() {
    let session = Session::up("shared-memory");
    let program = session.start(&["--seat", "n3"], "echo; exec sleep 1000");
    session.passes(&["inject", "node", "n3", "--pause", "2s"]);
    within(TIMEOUT, "the program is stopped", || (state_of_process(program.pid()) == 'T').then_some(()));
    within(TIMEOUT, "the program continues", || (state_of_process(program.pid()) == 'S').then_some(()));
    session.in_state("n3", "up");
    session.passes(&["inject", "node", "n3", "--kill"]);
    assert_eq!(program.end().0, 137);
    session.in_state("n3", "lost");
}

#[test]
fn a_fault_of_many_links_spares_vacant_seats_and_one_of_none_is_refused() {
    let session = Session::up("shared-memory");
    let link_faults = |link: &str| session.rackloom(&["inject", "link", link, "--down", "--for", "10s"]);
    let refused = link_faults("n1:s0");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("n1 cannot perform a fault"), "{}", refused.stderr);
    let program = session.start(&["--seat", "n0"], "echo; exec sleep 1000");
    assert_eq!(session.in_state("n0", "up")["links_up"], 1, "the link to the switch");
    assert_eq!(link_faults("plane 0").code, Some(0), "n1, n2 and n3 are vacant");
    within(TIMEOUT, "the link is down", || (session.member("n0")["links_up"] == 0).then_some(()));
    drop(program);
}

#[test]
fn the_end_of_the_rack_does_not_end_the_program() {
    let session = Session::up("shared-memory");
    let mut program = session.start(&["--seat", "n0"], "echo; read line; exec sleep 1000");
    session.down();
    assert!(program.child.try_wait().expect("a child").is_none(), "the program decides for itself");
}

#[test]
fn several_programs_have_a_prefix_and_one_exit_code() {
    let session = Session::up("shared-memory");
    let script = "echo to $RACKLOOM_RANK; echo error >&2; exit $RACKLOOM_RANK";
    let ended = session.rackloom(&["exec", "--seats", "n0,n2..n3", "--", "sh", "-c", script]);
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["n0 | to 0", "n2 | to 2", "n3 | to 3"]);
    assert_eq!(ended.code, Some(2), "the first seat whose program failed");
    let errors: Vec<_> = ended.stderr.lines().filter(|line| line.contains(" : ")).collect();
    assert_eq!(errors, ["n2 : exit code 2", "n3 : exit code 3"]);
    assert_eq!(ended.stderr.matches(" | error").count(), 3);
}

#[test]
fn signals_of_the_command_reach_several_programs() {
    let session = Session::up("shared-memory");
    for (signal, is_killed) in [(Signal::TERM, false), (Signal::KILL, true)] {
        let arguments = ["exec", "--seats", "n0..n1", "--", "sh", "-c", "echo $$; exec sleep 1000"];
        let mut command = session.command(&arguments).spawn().expect("the command starts");
        let output = BufReader::new(command.stdout.take().expect("a pipe"));
        let lines = output.lines().take(2).map(|line| line.expect("a pipe"));
        let pid = |line: String| {
            let (_, number) = line.split_once(" | ").expect("a prefix");
            Pid::from_raw(number.parse().expect("a number")).expect("no zero")
        };
        let pids: Vec<_> = lines.map(pid).collect();
        assert_eq!(pids.len(), 2);
        send(Pid::from_child(&command), signal);
        let status = command.wait().expect("the command ends");
        assert_eq!(status.code(), if is_killed { None } else { Some(143) });
        within(TIMEOUT, "the programs end", || pids.iter().all(|pid| is_gone(*pid)).then_some(()));
        for seat in ["n0", "n1"] {
            session.in_state(seat, "lost");
        }
    }
}

#[test]
fn the_rank_of_a_launcher_chooses_the_seat() {
    let session = Session::up("shared-memory");
    let seat = |variables: &[(&str, &str)]| {
        let mut command = session.command(&["exec", "--", "sh", "-c", "echo $RACKLOOM_SEAT"]);
        let output = command.envs(variables.iter().copied()).output().expect("the command starts");
        (output.status.code(), String::from_utf8(output.stdout).expect("text").trim().to_owned())
    };
    for (rank, name) in ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"].iter().enumerate() {
        assert_eq!(seat(&[(name, &rank.to_string()), ("RANK", "0")]), (Some(0), format!("n{rank}")));
    }
    assert_eq!(seat(&[("JOB_COMPLETION_INDEX", "1")]), (Some(0), "n1".to_owned()));
    assert_eq!(seat(&[("RANK", "4")]).0, Some(2));
    assert_eq!(seat(&[("RANK", "x")]).0, Some(2));
    assert_eq!(seat(&[]).0, Some(2));
}

#[test]
fn the_environment_is_printed_for_a_shell() {
    let session = Session::up("shared-memory");
    let text = session.passes(&["env", "--seat", "n1"]);
    let script = format!("{text}\necho $RACKLOOM_RACK $RACKLOOM_SEAT $RACKLOOM_RANK $RACKLOOM_RANKS");
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert_eq!(String::from_utf8(output.stdout).expect("text"), "seats n1 1 4\n");
    let own = session.command(&["env", "--seat", "n1", "--json"]).env("NCCL_GIN_TYPE", "3").output();
    let json: Value = serde_json::from_slice(&own.expect("the command starts").stdout).expect("JSON");
    assert_eq!(json["NCCL_GIN_TYPE"], Value::Null, "the value of the user stays");
    let json: Value =
        serde_json::from_str(&session.passes(&["env", "--seat", "n1", "--json"])).expect("JSON");
    assert_eq!(json["RACKLOOM_SEAT"], "n1");
    assert_eq!(json["NCCL_GIN_TYPE"], "2");
    assert_eq!(json["RACKLOOM_ADDRESS"].as_str().is_some(), has_packet_wire("the address of a seat"));
    // The loader of a program finds the rack's library first, and then what the caller has set.
    let text =
        session.command(&["env", "--seat", "n1", "--json"]).env("LD_LIBRARY_PATH", "/opt/lib").output();
    let json: Value = serde_json::from_slice(&text.expect("the command starts").stdout).expect("JSON");
    let folders = json["LD_LIBRARY_PATH"].as_str().expect("a path").split_once(':');
    let (folder, others) = folders.expect("two folders");
    assert_eq!(others, "/opt/lib");
    for name in ["libibverbs.so.1", "libibverbs.so", "librdmacm.so.1"] {
        assert!(Path::new(folder).join(name).exists(), "{folder}/{name}");
    }
    session.refused(2, &["env", "--seat", "n9"]);
}

/// Returns a program without a loader, which ends with 7. `None` if the system has no static C library.
fn static_program() -> Option<PathBuf> {
    let [source, program] = [scratch("static.c"), scratch("static")];
    std::fs::write(&source, "int main(void) { return 7; }\n").expect("the folder can be written");
    let cc = Command::new("cc").arg("-static").arg(&source).arg("-o").arg(&program).output();
    cc.is_ok_and(|output| output.status.success()).then_some(program)
}

#[test]
fn what_cannot_be_run_is_refused() {
    let session = Session::up("shared-memory");
    session.refused(127, &["exec", "--seat", "n0", "--", "there-is-no-such-program"]);
    // A file in the place of a folder of PATH is an error of the system that hides that nothing was found.
    let mut command = session.command(&["exec", "--seat", "n0", "--", "there-is-no-such-program"]);
    let ended = command.env("PATH", "/bin:/dev/null/folder").output().expect("the command starts");
    assert_eq!(ended.status.code(), Some(127));
    session.refused(126, &["exec", "--seat", "n0", "--", "/"]);
    if let Some(file) = static_program() {
        let ended = session.rackloom(&["exec", "--seat", "n0", "--", file.to_str().expect("a plain path")]);
        assert_eq!(ended.code, Some(7), "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot use the device rackloom0: it is static"), "{}", ended.stderr);
    }
    assert!(session.refused(2, &["exec", "--seat", "n7", "--", "true"]).contains("n7"));
    assert!(session.refused(2, &["exec", "--seat", "s0", "--", "true"]).contains("no GPU node"));
    for seats in ["n1..n0", "n0,n0", "n0..n9"] {
        session.refused(2, &["exec", "--seats", seats, "--", "true"]);
    }
    let holder = session.start(&["--seat", "n0"], "echo; exec sleep 1000");
    assert!(session.refused(2, &["exec", "--seat", "n0", "--", "true"]).contains("a process holds seat n0"));
    drop(holder);
    session.refused(2, &["exec", "--rack", "nowhere", "--seat", "n0", "--", "true"]);
    session.passes(&["down"]);
    session.refused(2, &["exec", "--seat", "n0", "--", "true"]);
    assert_eq!(session.rackloom(&["exec", "--seat", "n0"]).code, Some(2), "a program is needed");
    assert!(!Path::new(&session.path.join("rackloom/seats")).exists());
}
