//! Starts a rack whose GPU nodes are processes of this program, one each.
//!
//! `rackloom up` holds the rack, with all seats vacant. The program then starts itself once per node, with `--rack` and `--seat` added to its own
//! arguments, and each of these processes takes its seat with `Node::join`. A process prints lines for the launcher on its standard output. It
//! stays, and so serves its peers, until the launcher closes its standard input.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::{Node, NodeId};

/// Limit of every wait for another process.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two checks of a condition that has no event.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Arguments of the form `--name value`.
pub(crate) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// If a name is not one of `known`, or has no value.
    pub(crate) fn read(known: &[&str]) -> Result<Self> {
        let mut values = BTreeMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            if !known.contains(&name.as_str()) && !["--rack", "--seat"].contains(&name.as_str()) {
                return Err(format!("there is no option {name}; options: {}", known.join(" ")).into());
            }
            let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
            values.insert(name, value);
        }
        Ok(Self(values))
    }

    /// Returns the value of an option.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the value of an option as a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>> {
        let number = self.text(name).map(|text| text.parse().map_err(|_| format!("{name} is a number")));
        Ok(number.transpose()?)
    }

    /// Returns a number that must be in `range`, or `default` without the option.
    pub(crate) fn number_in(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize> {
        let number = self.number(name)?.unwrap_or(default);
        if range.contains(&number) {
            return Ok(number);
        }
        Err(format!("{name} is {} to {}", range.start(), range.end()).into())
    }

    /// Takes the seat that the launcher has given to this process, and waits until all nodes reach each other. `None` in the launcher.
    ///
    /// # Errors
    /// Those of [`Node::join`] and [`Node::wait_until_reached`].
    pub(crate) fn take_seat(&self, nodes: usize) -> Result<Option<Node>> {
        let (Some(rack), Some(seat)) = (self.text("--rack"), self.text("--seat")) else { return Ok(None) };
        let deadline = Instant::now() + TIMEOUT;
        let node = loop {
            match Node::join(rack, seat) {
                // The seat of a process that has just ended is free a moment later.
                Err(_) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
                joined => break joined?,
            }
        };
        let all: Vec<_> = (0..nodes as u16).map(NodeId).collect();
        node.wait_until_reached(&all, TIMEOUT)?;
        Ok(Some(node))
    }
}

/// Waits until the launcher closes the standard input of this process.
pub(crate) fn wait_for_launcher() {
    let closed = std::io::stdin().lines().find(std::result::Result::is_err);
    drop(closed);
}

/// Ends the process: 0 if `passed` is true, 1 otherwise, with the error on standard error.
pub(crate) fn exit_code(passed: Result<bool>) -> ExitCode {
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A standing rack of one server, with a link between every two nodes. It is taken down when this value is dropped.
pub(crate) struct Rack {
    name: String,
    nodes: usize,
    folder: PathBuf,
}

impl Rack {
    /// Starts a rack with a unique name.
    ///
    /// # Errors
    /// If the command `rackloom` is missing or fails.
    #[allow(dead_code, reason = "each example uses a part of this module")]
    pub(crate) fn up(program: &str, nodes: usize) -> Result<Self> {
        Self::up_with(program, nodes, "")
    }

    /// Starts a rack with further lines of its rack file.
    ///
    /// # Errors
    /// Those of [`Rack::up`].
    pub(crate) fn up_with(program: &str, nodes: usize, more: &str) -> Result<Self> {
        let name = format!("{program}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder)?;
        let rack = Self { name, nodes, folder };
        let seats: Vec<_> = (0..nodes).map(|node| format!("n{node}")).collect();
        let seats = seats.join(",");
        // The death of a process is noticed at once. A living one may be silent for long on a busy machine.
        let text = format!(
            "name: {program}\nshape: {{full-mesh: {{nodes: {nodes}}}}}\nservers: {{host: [{seats}]}}\ntimers: {{heartbeat_interval: 2s}}\n{more}"
        );
        let file = rack.folder.join("rack.yaml");
        std::fs::write(&file, text)?;
        let mut up = command();
        let up = up.arg("up").arg(file).args(["--vacant", &seats, "--name", &rack.name]);
        let ended = up.output().map_err(|error| {
            format!(
                "cannot start `rackloom`: {error}; hint: `cargo build` makes it, or set RACKLOOM to its path"
            )
        })?;
        if !ended.status.success() {
            return Err(format!("`rackloom up`: {}", String::from_utf8_lossy(&ended.stderr)).into());
        }
        Ok(rack)
    }

    /// Returns a folder for files of this run.
    #[allow(dead_code, reason = "each example uses a part of this module")]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts one process per node, with the arguments of this process and `more`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn start(&self, more: &[&str]) -> Result<Processes> {
        let (sender, events) = mpsc::channel();
        let mut processes = Processes { running: Vec::new(), living: self.nodes, events };
        for index in 0..self.nodes {
            let mut child = Command::new(std::env::current_exe()?)
                .args(std::env::args().skip(1))
                .args(["--rack", &self.name, "--seat", &format!("n{index}")])
                .args(more)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let lines = child.stdout.take().map(BufReader::new).ok_or("no standard output")?;
            let sender = sender.clone();
            thread::spawn(move || {
                // The receiver may be gone already. Then no process is of interest any more.
                for line in lines.lines().map_while(std::result::Result::ok) {
                    _ = sender.send(Printed { index, line: Some(line) });
                }
                _ = sender.send(Printed { index, line: None });
            });
            processes.running.push(child);
        }
        Ok(processes)
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        // A rack that is gone already is no error here.
        _ = command().args(["down", &self.name]).output();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the command `rackloom`: from the variable RACKLOOM, from the folder of Cargo that has this program too, or from PATH.
fn command() -> Command {
    let built =
        std::env::current_exe().ok().and_then(|example| Some(example.parent()?.parent()?.join("rackloom")));
    let path = std::env::var_os("RACKLOOM").map(PathBuf::from).or(built.filter(|path| path.exists()));
    Command::new(path.unwrap_or_else(|| "rackloom".into()))
}

struct Printed {
    index: usize,
    /// `None` at the end of the output.
    line: Option<String>,
}

/// Event of the processes of a rack. `index` is the number of the node.
pub(crate) enum Event {
    Line { index: usize, line: String },
    Ended { index: usize, status: ExitStatus },
}

/// Processes of all nodes. They are killed when this value is dropped.
pub(crate) struct Processes {
    running: Vec<Child>,
    living: usize,
    events: Receiver<Printed>,
}

impl Processes {
    /// Returns the next event, or `None` when all processes have ended.
    ///
    /// # Errors
    /// If nothing happens for [`TIMEOUT`].
    pub(crate) fn next(&mut self) -> Result<Option<Event>> {
        if self.living == 0 {
            return Ok(None);
        }
        let silent = |_| format!("the nodes have printed nothing for {} s", TIMEOUT.as_secs());
        let Printed { index, line } = self.events.recv_timeout(TIMEOUT).map_err(silent)?;
        let Some(line) = line else {
            self.living -= 1;
            return Ok(Some(Event::Ended { index, status: self.running[index].wait()? }));
        };
        Ok(Some(Event::Line { index, line }))
    }

    /// Kills a process with SIGKILL.
    ///
    /// # Errors
    /// Those of the operating system.
    #[allow(dead_code, reason = "each example uses a part of this module")]
    pub(crate) fn kill(&mut self, index: usize) -> Result<()> {
        Ok(self.running[index].kill()?)
    }

    /// Lets all processes end.
    pub(crate) fn release(&mut self) {
        self.running.iter_mut().for_each(|child| drop(child.stdin.take()));
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.running {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
