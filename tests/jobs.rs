//! Jobs on a rack that is up: submission, order, cancellation, deaths, quotas, tenants and accounts.
//!
//! A job starts this test binary once per node, with the name of the test. The test then finds its seat in the environment and does the work
//! of one rank.

mod support;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rackloom::fabric::{
    Access, Error as FabricError, Group, GroupOptions, JobSeat, Key, Node, NodeId, OperationError,
    ReduceOperation, RegionId, RegionOptions, RemoteAddress, Signal as Notification,
};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use support::session::Session;
use support::wires::wires;
use support::{is_gone, rack_file, scratch, send, within};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Six nodes on one switch: n0 to n3 of tenant 0, n4 and n5 of tenant 1. The death of a process is noticed at once. A living one may be
/// silent for long on a busy machine.
const RACK: &str = "name: jobs\nshape: {star: {nodes: 6, planes: 1}}\ntimers: {heartbeat_interval: 2s}\n\
    nodes: {n4: {tenant: 1}, n5: {tenant: 1}}\n";
const ALL: &str = "n0,n1,n2,n3,n4,n5";

type Rank = Result<(), Box<dyn Error>>;

impl Session {
    /// Starts the rack with these options.
    fn up(more: &[&str]) -> Self {
        let session = Self::begin();
        let file = rack_file(RACK);
        session.passes(&[&["up", file.to_str().expect("a plain path")], more].concat());
        session
    }

    /// Submits a job and returns its status.
    fn submit(&self, options: &[&str], program: &[&str]) -> Value {
        let text = self.passes(&[&["job", "submit", "--json"], options, &["--"], program].concat());
        serde_json::from_str(&text).expect("JSON")
    }

    /// Submits a shell script, and returns the number of the job.
    fn shell(&self, options: &[&str], script: &str) -> u64 {
        self.submit(options, &["sh", "-c", script])["job"].as_u64().expect("a number")
    }

    /// Submits the part of the test with this name, and returns the number of the job.
    fn part(&self, options: &[&str], test: &str) -> u64 {
        let program = std::env::current_exe().expect("the test has a path");
        let program = [program.to_str().expect("a plain path"), test, "--exact", "--nocapture"];
        self.submit(options, &program)["job"].as_u64().expect("a number")
    }

    fn list(&self) -> Value {
        serde_json::from_str(&self.passes(&["job", "list", "--json"])).expect("JSON")
    }

    fn job(&self, job: u64) -> Value {
        let list = self.list();
        let jobs = list["jobs"].as_array().expect("a list");
        jobs.iter().find(|found| found["job"] == job).cloned().expect("the job is listed")
    }

    fn in_state(&self, job: u64, state: &str) -> Value {
        within(TIMEOUT, &format!("job {job} is {state}"), || {
            let found = self.job(job);
            let has_ended = ["passed", "failed", "cancelled"].iter().any(|end| found["state"] == *end);
            assert!(!has_ended || found["state"] == state, "{found:#}\n{}", logs(&found));
            (found["state"] == state).then_some(found)
        })
    }

    /// Returns a refusal of a submission.
    fn refused(&self, options: &[&str]) -> String {
        self.refused_command(&[&["job", "submit"], options, &["--", "true"]].concat())
    }

    fn refused_command(&self, arguments: &[&str]) -> String {
        let ended = self.rackloom(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}\n{}", ended.stderr);
        assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
        ended.stderr
    }
}

/// Returns the output of all processes of a job.
fn logs(job: &Value) -> String {
    let log = |rank: &Value| std::fs::read_to_string(rank["log"].as_str()?).ok();
    job["ranks"].as_array().expect("ranks").iter().filter_map(log).collect()
}

fn pids(job: &Value) -> Vec<Pid> {
    let pid = |rank: &Value| Pid::from_raw(rank["pid"].as_i64().expect("a process") as i32).expect("no zero");
    job["ranks"].as_array().expect("ranks").iter().map(pid).collect()
}

/// Returns the nodes of a job.
fn nodes(job: &Value) -> Vec<&str> {
    let ranks = job["ranks"].as_array().expect("ranks").iter();
    ranks.map(|rank| rank["node"].as_str().expect("a name")).collect()
}

/// Returns the use of each node.
fn uses(list: &Value) -> Vec<&str> {
    let nodes = list["nodes"].as_array().expect("nodes").iter();
    nodes.map(|node| node["state"].as_str().expect("a state")).collect()
}

fn seat() -> Option<JobSeat> {
    JobSeat::from_environment().expect("the variables are those of a job")
}

/// Leaves once all ranks have come here.
fn leave_together(node: &Node, seat: &JobSeat) -> Rank {
    let options = GroupOptions::new(900, 0x5eed).join_timeout(TIMEOUT);
    Group::join(node, options, seat.nodes())?.barrier().wait()?;
    Ok(node.leave_in_order(TIMEOUT)?)
}

#[test]
fn a_program_runs_once_on_each_node_and_its_output_is_kept() {
    let session = Session::up(&["--vacant", ALL]);
    let script = "echo rank $RACKLOOM_RANK of $RACKLOOM_RANKS on $RACKLOOM_SEAT of $RACKLOOM_RACK in job $RACKLOOM_JOB; \
        echo $RACKLOOM_SEATS $RACKLOOM_NODES $RACKLOOM_MEMORY $COLOUR >&2; pwd";
    let options = ["--nodes", "n2,n0", "--memory", "1MiB", "--env", "COLOUR=blue", "--wait"];
    let job = session.submit(&options, &["sh", "-c", script]);
    assert_eq!((&job["state"], &job["job"], nodes(&job)), (&json!("passed"), &json!(1), vec!["n2", "n0"]));
    assert_eq!(job["ranks"][0]["exit_code"], 0);
    let directory = support::root();
    let output = |rank: u64, seat: &str| {
        format!(
            "rank {rank} of 2 on {seat} of jobs in job 1\nn2,n0 2,0 1048576 blue\n{}\n",
            directory.display()
        )
    };
    assert_eq!(logs(&job), output(0, "n2") + &output(1, "n0"));
    let own = scratch("output");
    session.submit(
        &["--count", "1", "--wait", "--output", own.to_str().expect("a plain path")],
        &["echo", "kept"],
    );
    session.passes(&["down"]);
    assert_eq!(std::fs::read_to_string(own.join("n0.log")).expect("the log stays"), "kept\n");
}

#[test]
fn ranks_of_a_job_take_their_seats_and_their_usage_is_accounted() {
    const BYTES: usize = 256 << 10;
    fn rank(seat: &JobSeat) -> Rank {
        let node = seat.join(TIMEOUT)?;
        let options = GroupOptions::new(9, 0x5eed).join_timeout(TIMEOUT);
        let group = Group::join(&node, options, seat.nodes())?;
        let mut values = vec![seat.rank() as i64 + 1; BYTES / 8];
        group.all_reduce(&mut values, ReduceOperation::Sum).wait()?;
        assert!(values.iter().all(|value| *value == 6));
        drop(group);
        leave_together(&node, seat)
    }
    if let Some(seat) = seat() {
        return rank(&seat).expect("the rank does its work");
    }
    let session = Session::up(&["--vacant", ALL]);
    let test = "ranks_of_a_job_take_their_seats_and_their_usage_is_accounted";
    // The seats are taken again by the second job.
    for number in 1..=2 {
        let job = session.part(&["--count", "3"], test);
        let job = session.in_state(job, "passed");
        assert_eq!(nodes(&job), ["n0", "n1", "n2"]);
        for rank in job["ranks"].as_array().expect("ranks") {
            assert!(rank["bytes"].as_u64().is_some_and(|bytes| bytes as usize > BYTES), "{job:#}");
            assert!(rank["memory_high_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{job:#}");
        }
        let account = &session.list()["tenants"][0];
        assert_eq!((&account["tenant"], &account["jobs"]), (&json!(0), &json!(number)));
        assert!(account["bytes"].as_u64() >= Some(number * 3 * BYTES as u64), "{account:#}");
        assert!(account["node_time_ns"].as_u64() > Some(0), "{account:#}");
        assert!(account["memory_high_bytes"].as_u64() > job["ranks"][0]["memory_high_bytes"].as_u64());
    }
    let status: Value = serde_json::from_str(&session.passes(&["status", "--json"])).expect("JSON");
    let rack = &status["racks"][0];
    assert_eq!(rack["submitted"]["jobs"].as_array().map(Vec::len), Some(2));
    assert_eq!(rack["members"][0]["state"], "vacant", "a seat is vacant after its job");
    assert!(session.passes(&["status"]).contains("account of tenant"));
    assert!(session.passes(&["job", "list"]).contains("passed"));
    session.passes(&["down"]);
}

#[test]
fn a_job_that_can_never_run_is_refused_with_a_reason() {
    let session = Session::up(&["--vacant", ALL]);
    for (options, what) in [
        (&["--count", "5"][..], "5 nodes are more than the 4 of tenant 0"),
        (&["--count", "0"], "a job has at least one node"),
        (&["--count", "1", "--tenant", "3"], "more than the 0 of tenant 3"),
        (&["--nodes", "n0,x7"], "no GPU node named x7"),
        (&["--nodes", "s0"], "no GPU node named s0"),
        (&["--nodes", "n0,n4"], "node n4 is of tenant 1, not of tenant 0"),
        (&["--nodes", "n1", "--memory", "17MiB"], "a quota of 17"),
        (&["--nodes", "n1,n1"], "named twice"),
        (&[], "--nodes"),
        (&["--count", "1", "--env", "=x"], "no variable"),
        (&["--count", "1", "--time", "0s"], "the time"),
    ] {
        let refused = session.refused(options);
        assert!(refused.contains(what), "{options:?}: {refused}");
    }
    assert!(session.refused_command(&["job", "cancel", "1"]).contains("there is no job 1"));
    assert!(session.refused_command(&["job", "add-node", "n0"]).contains("n0 is no spare node"));
    assert!(session.refused_command(&["job", "list", "other"]).contains("no rack named other"));
    let file = rack_file(RACK);
    let file = file.to_str().expect("a plain path");
    let refused = session.refused_command(&["up", file, "--name", "second", "--spare", "s0"]);
    assert!(refused.contains("s0 is a switch"), "{refused}");
    session.passes(&["down"]);
}

#[test]
fn a_full_queue_refuses_and_queued_and_running_jobs_are_cancelled() {
    let session = Session::up(&["--vacant", ALL]);
    let first = session.shell(&["--nodes", "n0,n1"], "trap '' TERM; while :; do sleep 0.1; done");
    let running = session.in_state(first, "running");
    // Over one connection: a process for each submission would take long.
    let mut client = Client::of(&session);
    let submission = json!({"program": "true", "directory": "/", "nodes": ["n1"]});
    let submit = json!({"submit-job": submission});
    for job in 2..66 {
        assert_eq!(client.request(&submit), json!({"submitted": {"job": job}}));
    }
    assert_eq!(client.request(&submit)["error"]["what"], "the queue is full: 64 jobs wait");
    assert_eq!(session.job(2)["reason"], "waits for n1 (job 1)");
    assert_eq!(session.job(3)["reason"], "waits for job 2, which was submitted before");
    for job in 3..66 {
        assert_eq!(client.request(&json!({"cancel-job": {"job": job}})), json!({"cancelled": {"job": job}}));
    }
    assert_eq!(session.job(65)["state"], "cancelled");
    // It ignores SIGTERM, so SIGKILL ends it. Then the second job starts.
    session.passes(&["job", "cancel", "1", "--wait"]);
    let cancelled = session.in_state(first, "cancelled");
    assert_eq!(cancelled["ranks"][0]["signal"], 9);
    assert!(pids(&running).into_iter().all(is_gone));
    session.in_state(2, "passed");
    assert!(session.refused_command(&["job", "cancel", "1"]).contains("job 1 has ended already: cancelled"));
    session.passes(&["down"]);
}

#[test]
fn a_job_of_which_one_process_dies_ends_whole_and_says_which_died() {
    fn rank(seat: &JobSeat) -> Rank {
        let node = seat.join(TIMEOUT)?;
        println!("seated");
        // It ends by a signal.
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until {
            std::thread::park_timeout(TIMEOUT);
        }
        Err(format!("{:?} has not been killed", node.id()).into())
    }
    if let Some(seat) = seat() {
        return rank(&seat).expect("it is killed before");
    }
    let session = Session::up(&["--vacant", ALL]);
    let job = session
        .part(&["--nodes", "n1,n3,n2"], "a_job_of_which_one_process_dies_ends_whole_and_says_which_died");
    let running = session.in_state(job, "running");
    within(TIMEOUT, "all ranks are seated", || {
        (logs(&session.job(job)).matches("seated").count() == 3).then_some(())
    });
    send(pids(&running)[1], Signal::KILL);
    let failed = session.in_state(job, "failed");
    assert_eq!(failed["reason"], "n3: killed by signal 9");
    assert_eq!(failed["ranks"][0]["signal"], 15, "the others get SIGTERM: {failed:#}");
    assert!(pids(&running).into_iter().all(is_gone));
    assert_eq!(uses(&session.list()), ["free"; 6]);
    let waited = session.rackloom(&["job", "submit", "--count", "1", "--wait", "--", "sh", "-c", "exit 3"]);
    assert_eq!(waited.code, Some(1), "{}", waited.stderr);
    assert!(waited.stdout.contains("n0: exited with code 3"), "{}", waited.stdout);
    let missing = session.rackloom(&["job", "submit", "--count", "2", "--wait", "--", "/no/such/program"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stdout.contains("n0: cannot start /no/such/program"), "{}", missing.stdout);
    let late = session
        .rackloom(&["job", "submit", "--count", "1", "--wait", "--time", "50ms", "--", "sleep", "1000"]);
    assert!(late.code == Some(1) && late.stdout.contains("exceeded its time"), "{}", late.stdout);
    // Deaths of jobs are no failures of the rack.
    session.passes(&["down"]);
}

#[test]
fn the_end_of_the_rack_cancels_all_jobs() {
    let session = Session::up(&["--vacant", ALL]);
    // The shell says on standard error that `sleep` was terminated.
    let script = "exec 2>&-; trap 'echo cancelled; exit 0' TERM; echo started; while :; do sleep 0.05; done";
    let own = scratch("output");
    let output = ["--output", own.to_str().expect("a plain path")];
    let job = session.shell(&[&["--nodes", "n0,n1"], &output[..]].concat(), script);
    let queued = session.shell(&["--nodes", "n0"], "echo never > never");
    let running = session.in_state(job, "running");
    within(TIMEOUT, "the traps are set", || {
        (logs(&session.job(job)).matches("started").count() == 2).then_some(())
    });
    assert_eq!(session.job(queued)["state"], "queued");
    session.passes(&["down"]);
    assert!(pids(&running).into_iter().all(is_gone));
    for node in ["n0", "n1"] {
        let log = std::fs::read_to_string(own.join(format!("{node}.log"))).expect("a log");
        assert_eq!(log, "started\ncancelled\n");
    }
    assert!(!Path::new("never").exists());
}

#[test]
fn the_death_of_the_supervisor_ends_all_processes_of_jobs() {
    let session = Session::up(&["--vacant", ALL]);
    let job = session.shell(&["--nodes", "n0,n1"], "exec sleep 1000");
    let running = session.in_state(job, "running");
    let status: Value = serde_json::from_str(&session.passes(&["status", "--json"])).expect("JSON");
    let supervisor = status["racks"][0]["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
    send(supervisor.expect("a process"), Signal::KILL);
    for pid in pids(&running) {
        within(TIMEOUT, "the end of a process", || is_gone(pid).then_some(()));
    }
}

#[test]
fn a_node_that_is_added_to_a_running_rack_is_used_by_the_next_job() {
    let session = Session::up(&["--vacant", "n0,n1", "--spare", "n3"]);
    let job = session.shell(&["--count", "3"], "echo $RACKLOOM_SEATS");
    assert_eq!(session.job(job)["reason"], "waits for 3 nodes, and 2 are free");
    assert_eq!(uses(&session.list()), ["free", "free", "held", "spare", "held", "held"]);
    session.passes(&["job", "add-node", "n3"]);
    assert_eq!(logs(&session.in_state(job, "passed")), "n0,n1,n3\n".repeat(3));
    // A member that leaves frees its seat as well.
    let job = session.shell(&["--nodes", "n2"], "echo on $RACKLOOM_SEAT");
    assert_eq!(session.job(job)["reason"], "waits for n2 (held)");
    session.passes(&["down", "jobs", "--seat", "n2"]);
    assert_eq!(logs(&session.in_state(job, "passed")), "on n2\n");
    session.passes(&["down"]);
}

#[test]
fn a_job_cannot_use_more_memory_than_its_quota() {
    fn rank(seat: &JobSeat) -> Rank {
        let node = seat.join(TIMEOUT)?;
        let region = node.allocate(RegionOptions::new(1, 1), 48 << 10)?;
        match node.allocate(RegionOptions::new(2, 1), 17 << 10) {
            Err(FabricError::OverQuota { bytes: 17_408, used_bytes: 49_152, limit_bytes: 65_536 }) => {}
            other => return Err(format!("{other:?}").into()),
        }
        node.register(RegionOptions::new(2, 1), vec![0_u8; 16 << 10])?;
        drop(region);
        node.wait_until_free(RegionId(1), TIMEOUT)?;
        // Freed bytes can be used again.
        node.allocate(RegionOptions::new(1, 1), 48 << 10)?;
        Ok(node.leave_in_order(TIMEOUT)?)
    }
    if let Some(seat) = seat() {
        return rank(&seat).expect("the rank does its work");
    }
    let session = Session::up(&["--vacant", ALL]);
    let job =
        session.part(&["--count", "1", "--memory", "64KiB"], "a_job_cannot_use_more_memory_than_its_quota");
    let job = session.in_state(job, "passed");
    assert_eq!(job["ranks"][0]["memory_high_bytes"], 65_536, "{job:#}\n{}", logs(&job));
    // The quota ends with the job.
    let taken = Node::join(session.path.join("rackloom/jobs").to_str().expect("a plain path"), "n0")
        .expect("it is free");
    taken.allocate(RegionOptions::new(1, 1), 1 << 20).expect("no quota");
    drop(taken);
    session.passes(&["down"]);
}

/// The commands of docs/how-to/run-jobs.md.
#[test]
fn the_example_of_the_documents_passes() {
    let folder = Path::new(env!("CARGO_BIN_EXE_rackloom")).parent().expect("a folder");
    let example = folder.join("examples").join("job_all_reduce");
    let example = example.to_str().expect("a plain path");
    assert!(Path::new(example).exists(), "`cargo build --workspace --examples` makes {example}");
    // A library cannot enter the network namespace of a seat on the packet wire.
    for wire in ["shared-memory", "udp"] {
        let session = Session::up(&["--vacant", ALL, "--wire", wire]);
        let job = session.submit(&["--count", "3", "--wait"], &[example]);
        let expected: String =
            ["n0", "n1", "n2"].map(|seat| format!("{seat} of 3 ranks: the sum is 6\n")).concat();
        assert_eq!((&job["state"], logs(&job)), (&json!("passed"), expected), "{wire}");
        session.passes(&["down"]);
    }
}

/// A job of programs that take no seat, on each wire.
#[test]
fn a_job_runs_on_every_wire() {
    for wire in wires("a_job_runs_on_every_wire") {
        let session = Session::up(&["--vacant", ALL, "--wire", wire]);
        let job = session.shell(&["--count", "2"], "echo $RACKLOOM_SEAT of $RACKLOOM_SEATS");
        let job = session.in_state(job, "passed");
        assert_eq!(logs(&job), "n0 of n0,n1\nn1 of n0,n1\n", "{wire}");
        session.passes(&["down"]);
    }
}

/// Nodes without a process forward nothing: a job gets nodes that reach each other without them.
#[test]
fn a_job_in_a_ring_gets_nodes_that_reach_each_other() {
    fn rank(seat: &JobSeat) -> Rank {
        let node = seat.join(TIMEOUT)?;
        node.wait_until_reached(seat.nodes(), TIMEOUT)?;
        leave_together(&node, seat)
    }
    if let Some(seat) = seat() {
        return rank(&seat).expect("the rank does its work");
    }
    let session = Session::begin();
    let file = rack_file("name: jobs\nshape: {ring: {nodes: 6}}\ntimers: {heartbeat_interval: 2s}\n");
    // Member n3 has a process, and forwards.
    session.passes(&["up", file.to_str().expect("a plain path"), "--vacant", "n0,n1,n2,n4,n5"]);
    let refused = session.refused(&["--nodes", "n0,n2"]);
    assert!(refused.contains("n0 does not reach n2: nodes between them have no process"), "{refused}");
    let test = "a_job_in_a_ring_gets_nodes_that_reach_each_other";
    for (options, expected) in [
        (["--nodes", "n2,n4"], ["n2", "n4"]),
        (["--nodes", "n5,n0"], ["n5", "n0"]),
        (["--count", "2"], ["n0", "n1"]),
    ] {
        let job = session.part(&options, test);
        let job = session.in_state(job, "passed");
        assert_eq!(nodes(&job), expected, "{options:?}");
    }
    session.passes(&["down"]);
}

const KEY: u64 = 0x5eed;
const SECRET: u64 = 0x1122_3344_5566_7788;

/// Two tenants run at once. Each attacks the memory of the other with its right key.
#[test]
fn two_tenants_run_at_once_and_cannot_touch_each_other() {
    fn rank(seat: &JobSeat) -> Rank {
        let node = seat.join(TIMEOUT)?;
        let region = node.allocate(RegionOptions::new(1, KEY).access(Access::ALL), 4096)?;
        region.write(0, &SECRET.to_le_bytes())?;
        println!("ready");
        let tenants = [[NodeId(0), NodeId(1)], [NodeId(4), NodeId(5)]];
        let [own, other] = if seat.nodes() == tenants[0] { tenants } else { [tenants[1], tenants[0]] };
        // The other tenant is ready when its file is there: no memory can say so.
        let ready = |name: &str| PathBuf::from(std::env::var_os("READY").expect("a folder")).join(name);
        std::fs::write(ready(seat.seat()), "")?;
        for name in ["n0", "n1", "n4", "n5"] {
            within(TIMEOUT, "all ranks are ready", || ready(name).exists().then_some(()));
        }
        node.wait_until_reached(&other, TIMEOUT)?;
        let address = |node, offset| RemoteAddress { node, region: RegionId(1), offset, key: Key(KEY) };
        let source = region.slice(..8);
        for peer in other {
            let refusals = [
                node.store(address(peer, 0), &[0; 8]).wait().err(),
                node.put(&source, address(peer, 0)).wait().err(),
                node.get(address(peer, 0), &region.slice(8..16)).wait().err(),
                node.load(address(peer, 0), &region.slice(8..16)).wait().err(),
                node.fetch_add::<u64>(address(peer, 0), 1).wait().err(),
                node.put_with_signal(&source, address(peer, 0), Notification::set(address(peer, 8), 1))
                    .wait()
                    .err(),
            ];
            for (index, refusal) in refusals.into_iter().enumerate() {
                let is_refused = matches!(
                    refusal, Some(FabricError::Refused { peer: by, reason: OperationError::WrongTenant }) if by == peer
                );
                assert!(is_refused, "operation {index} on {peer}: {refusal:?}");
            }
        }
        // The own tenant is reached with the key.
        for peer in own {
            if peer != node.id() {
                node.fetch_add::<u64>(address(peer, 16), 1).wait()?;
            }
        }
        std::fs::write(ready(&format!("{}-done", seat.seat())), "")?;
        for name in ["n0-done", "n1-done", "n4-done", "n5-done"] {
            within(TIMEOUT, "all ranks are done", || ready(name).exists().then_some(()));
        }
        let mut words = [0; 24];
        region.read(0, &mut words)?;
        let [secret, read, count] =
            [0, 8, 16].map(|at| u64::from_le_bytes(words[at..at + 8].try_into().expect("eight")));
        assert_eq!((secret, read, count), (SECRET, 0, 1));
        // A process of a job takes no other seat, free or not.
        for seat_of_others in ["n2", "n4", "n0"] {
            if seat_of_others != seat.seat() {
                let refused =
                    Node::join(seat.rack(), seat_of_others).expect_err("it is not its seat").to_string();
                assert!(refused.contains("has seat") || refused.contains("holds seat"), "{refused}");
            }
        }
        leave_together(&node, seat)
    }
    if let Some(seat) = seat() {
        return rank(&seat).expect("the rank does its work");
    }
    let session = Session::up(&["--vacant", ALL]);
    let folder = scratch("ready");
    std::fs::create_dir(&folder).expect("the folder can be written");
    let ready = format!("READY={}", folder.display());
    let test = "two_tenants_run_at_once_and_cannot_touch_each_other";
    let zero = session.part(&["--nodes", "n0,n1", "--env", &ready], test);
    // Its seats are taken by no other process, before and after its processes have taken them.
    let rack = session.path.join("rackloom/jobs");
    let taken =
        Node::join(rack.to_str().expect("a plain path"), "n1").expect_err("it is granted").to_string();
    assert!(taken.contains("belongs to job 1") || taken.contains("holds seat n1"), "{taken}");
    let one = session.part(&["--count", "2", "--tenant", "1", "--env", &ready], test);
    let [zero, one] = [zero, one].map(|job| session.in_state(job, "passed"));
    assert_eq!((nodes(&zero), nodes(&one)), (vec!["n0", "n1"], vec!["n4", "n5"]));
    assert_eq!((&zero["tenant"], &one["tenant"]), (&json!(0), &json!(1)));
    assert_eq!(session.list()["tenants"].as_array().map(Vec::len), Some(2));
    session.passes(&["down"]);
}

/// One connection to the control socket.
struct Client(std::io::BufReader<std::os::unix::net::UnixStream>);

impl Client {
    fn of(session: &Session) -> Self {
        let path = session.path.join("rackloom/jobs/control");
        let stream = std::os::unix::net::UnixStream::connect(path).expect("the rack listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        Self(std::io::BufReader::new(stream))
    }

    fn request(&mut self, request: &Value) -> Value {
        use std::io::{BufRead, Write};
        self.0.get_mut().write_all(format!("{request}\n").as_bytes()).expect("the rack reads");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }
}
