//! Arguments of `rackloom inject`: one fault as options, or a fault script.
//!
//! Options become the text of a fault script. The rack reads that text like a file and reports mistakes like those of a file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct InjectArguments {
    #[command(subcommand)]
    pub(crate) what: Injected,
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) rack: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Injected {
    /// Inject faults into links: n0--n1, n0:n1 or n0--n1/forward for one direction, a member for all of its links, "plane 0", or all
    Link(Box<LinkFaults>),
    /// Inject faults into a GPU node, a switch, or the memory of a GPU node
    Node(NodeFaults),
    /// Drop every frame between these members and all other members, in both directions
    Partition(Partition),
    /// Inject all faults of a script; times count from now, and its expectations are ignored
    Script {
        /// The fault script
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LinkFaults {
    /// The links
    #[arg(value_name = "WHERE")]
    place: String,
    /// Share of frames that are lost
    #[arg(long, value_name = "P")]
    loss: Option<String>,
    /// With --loss: only frames of these kinds, such as ack (an acknowledgement black hole) or credit (leaking credits)
    #[arg(long, value_name = "KIND,...", requires = "loss")]
    kinds: Option<String>,
    /// With --loss: only data frames with one of these operations, such as put or atomic
    #[arg(long, value_name = "OPERATION,...", requires = "loss", conflicts_with = "kinds")]
    operations: Option<String>,
    /// With --loss: only data frames with packet numbers from FIRST to LAST
    #[arg(long, value_name = "FIRST,LAST", requires = "loss", conflicts_with = "kinds")]
    sequence: Option<String>,
    /// Share of frames in which a bit is flipped
    #[arg(long, value_name = "P")]
    corrupt: Option<String>,
    /// With --corrupt: part of the frame; header, payload or any
    #[arg(long, value_name = "PART", requires = "corrupt")]
    part: Option<String>,
    /// Share of frames that arrive twice
    #[arg(long, value_name = "P")]
    duplicate: Option<String>,
    /// Share of frames that arrive after a later frame
    #[arg(long, value_name = "P")]
    reorder: Option<String>,
    /// Numbers of data frames that are lost, counted from 1 and from now
    #[arg(long, value_name = "N,...")]
    drop: Option<String>,
    /// Additional delay of each frame
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Share of the link's rate that remains
    #[arg(long, value_name = "P")]
    share: Option<String>,
    /// Lose every frame; the carrier stays
    #[arg(long)]
    down: bool,
    /// Lose every frame, and remove the carrier
    #[arg(long)]
    unplug: bool,
    #[command(flatten)]
    timing: Timing,
}

#[derive(Debug, Args)]
pub(crate) struct NodeFaults {
    /// The member
    #[arg(value_name = "NODE")]
    node: String,
    /// Stop the member for this time, as by SIGSTOP
    #[arg(long, value_name = "TIME", conflicts_with_all = ["kill", "duration", "ramp"])]
    pause: Option<String>,
    /// Kill the member, as by SIGKILL; with --for, a new process takes the seat after that time
    #[arg(long)]
    kill: bool,
    /// Additional latency of the memory
    #[arg(long, value_name = "TIME")]
    slow_memory: Option<String>,
    /// Share of memory accesses that fail
    #[arg(long, value_name = "P")]
    fail_memory: Option<String>,
    /// Revoke the keys of the job's regions
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    timing: Timing,
}

#[derive(Debug, Args)]
pub(crate) struct Partition {
    /// The members of one side
    #[arg(value_name = "MEMBER", required = true)]
    members: Vec<String>,
    #[command(flatten)]
    timing: Timing,
}

/// Times and repetitions of a fault.
#[derive(Debug, Args)]
pub(crate) struct Timing {
    /// Time from now to the start of the fault; zero if absent
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Duration of the fault; if absent, until the rack goes down
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<String>,
    /// Time in which the fault grows to its full strength
    #[arg(long, value_name = "TIME")]
    ramp: Option<String>,
    /// Time between the starts of repetitions
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// Number of repetitions
    #[arg(long, value_name = "N", requires = "every")]
    times: Option<String>,
}

impl LinkFaults {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let mut events = Vec::new();
        let mut add =
            |what: &str, value: &Option<String>, key: &str, more: &[(&str, &Option<String>, bool)]| {
                let Some(value) = value else { return Ok(()) };
                let more = more.iter().map(|(key, value, is_list)| said(key, value, *is_list));
                let more = more.collect::<Result<String, _>>()?;
                events.push(format!("what: {what}, {key}: {}{more}", plain(value)?));
                Ok::<_, Failure>(())
            };
        let picks = [
            ("kinds", &self.kinds, true),
            ("operations", &self.operations, true),
            ("sequence", &self.sequence, true),
        ];
        add("loss", &self.loss, "rate", &picks)?;
        add("corrupt", &self.corrupt, "rate", &[("part", &self.part, false)])?;
        add("duplicate", &self.duplicate, "rate", &[])?;
        add("reorder", &self.reorder, "rate", &[])?;
        add("delay", &self.delay, "by", &[])?;
        add("slow", &self.share, "share", &[])?;
        if self.drop.is_some() {
            events.push(format!("what: drop{}", said("frames", &self.drop, true)?));
        }
        events.extend(self.down.then(|| "what: down".to_owned()));
        events.extend(self.unplug.then(|| "what: unplug".to_owned()));
        let hint =
            "use --loss, --corrupt, --duplicate, --reorder, --drop, --delay, --share, --down or --unplug";
        script(&events, plain(&self.place)?, &self.timing, hint)
    }
}

impl NodeFaults {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let mut events = Vec::new();
        for (what, key, value) in [
            ("pause", "for", &self.pause),
            ("slow-memory", "by", &self.slow_memory),
            ("fail-memory", "rate", &self.fail_memory),
        ] {
            if value.is_some() {
                events.push(format!("what: {what}{}", said(key, value, false)?));
            }
        }
        events.extend(self.revoke.then(|| "what: revoke".to_owned()));
        events.extend(self.kill.then(|| "what: kill".to_owned()));
        let hint = "use --pause, --kill, --slow-memory, --fail-memory or --revoke";
        script(&events, plain(&self.node)?, &self.timing, hint)
    }
}

impl Partition {
    /// Returns the options as the text of a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let members = self.members.iter().flat_map(|names| names.split(','));
        let members = members.map(plain).collect::<Result<Vec<_>, _>>()?.join(", ");
        script(&["what: partition".to_owned()], &format!("[{members}]"), &self.timing, "")
    }
}

impl Timing {
    fn said(&self) -> Result<String, Failure> {
        let keys = [
            ("at", &self.at),
            ("for", &self.duration),
            ("ramp", &self.ramp),
            ("every", &self.every),
            ("times", &self.times),
        ];
        keys.iter().map(|(key, value)| said(key, value, false)).collect()
    }
}

/// Returns a key with its value, or nothing if there is no value.
fn said(key: &str, value: &Option<String>, is_list: bool) -> Result<String, Failure> {
    let Some(value) = value else { return Ok(String::new()) };
    let value = plain(value)?;
    Ok(if is_list { format!(", {key}: [{value}]") } else { format!(", {key}: {value}") })
}

/// Returns the value, or an error if it holds a character that could end a value in a file.
fn plain(value: &str) -> Result<&str, Failure> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || " ,:.%->#_/".contains(character);
    match value.chars().find(|character| !is_plain(*character)) {
        None => Ok(value),
        Some(odd) => Err(Failure::bad_input(format!("{odd:?} is in no name, rate or time"))
            .hint("write like `n0--n1`, `1e-3` or `20ms`")),
    }
}

/// Returns the events as the text of a fault script, all at one place and time. `hint` is the hint of the error for an empty list.
fn script(events: &[String], place: &str, timing: &Timing, hint: &str) -> Result<String, Failure> {
    if events.is_empty() {
        return Err(Failure::bad_input("no fault is named").hint(hint));
    }
    let timing = timing.said()?;
    let lines = events.iter().map(|event| format!("  - {{{event}, where: {place}{timing}}}\n"));
    Ok("name: injected\nevents:\n".to_owned() + &lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Arguments, Command};
    use super::*;

    fn script_of(line: &str) -> Result<String, Failure> {
        let arguments = Arguments::try_parse_from(line.split(' ')).expect(line);
        let Command::Inject(InjectArguments { what, .. }) = arguments.command else { panic!("{line}") };
        match what {
            Injected::Link(faults) => faults.script(),
            Injected::Node(fault) => fault.script(),
            Injected::Partition(partition) => partition.script(),
            Injected::Script { .. } => panic!("{line}"),
        }
    }

    #[test]
    fn options_become_a_script() {
        let text = script_of("rackloom inject link n0--n1 --loss 1e-3 --down --for 20ms").expect("a script");
        assert_eq!(
            text,
            "name: injected\nevents:\n  - {what: loss, rate: 1e-3, where: n0--n1, for: 20ms}\n  \
             - {what: down, where: n0--n1, for: 20ms}\n"
        );
        assert!(
            script_of("rackloom inject node n3 --pause 5ms")
                .expect("one")
                .contains("what: pause, for: 5ms, where: n3")
        );
        assert!(script_of("rackloom inject node n3 --kill").expect("one").contains("what: kill, where: n3}"));
        let brief = script_of("rackloom inject node n3 --kill --for 5ms").expect("one");
        assert!(brief.contains("what: kill, where: n3, for: 5ms"));
    }

    /// Every kind of fault and every key of one has an option.
    #[test]
    fn every_fault_of_a_script_has_options() {
        for (line, event) in [
            (
                "link n0--n1 --loss 1% --kinds ack,credit",
                "what: loss, rate: 1%, kinds: [ack,credit], where: n0--n1",
            ),
            (
                "link n0:n1 --loss 1 --operations put,atomic --sequence 3,9 --ramp 1ms --for 2ms",
                "what: loss, rate: 1, operations: [put,atomic], sequence: [3,9], where: n0:n1, for: 2ms, ramp: 1ms",
            ),
            ("link all --corrupt 1% --part header", "what: corrupt, rate: 1%, part: header, where: all"),
            (
                "link n0--n1/forward --drop 1,5 --at 3ms",
                "what: drop, frames: [1,5], where: n0--n1/forward, at: 3ms",
            ),
            ("node n1 --slow-memory 1ms --for 2ms", "what: slow-memory, by: 1ms, where: n1, for: 2ms"),
            ("node n1 --fail-memory 50%", "what: fail-memory, rate: 50%, where: n1"),
            ("node n1 --revoke", "what: revoke, where: n1"),
            (
                "partition n0,n1 n2 --for 1s --every 3s --times 2",
                "what: partition, where: [n0, n1, n2], for: 1s, every: 3s, times: 2",
            ),
        ] {
            let text =
                script_of(&format!("rackloom inject {line}")).unwrap_or_else(|why| panic!("{line}: {why}"));
            assert_eq!(text, format!("name: injected\nevents:\n  - {{{event}}}\n"), "{line}");
        }
    }

    #[test]
    fn an_empty_command_and_odd_characters_are_refused() {
        assert!(script_of("rackloom inject link n0--n1").is_err());
        assert!(script_of("rackloom inject link n0--n1} --down").is_err());
        assert!(script_of("rackloom inject node n3").is_err());
        assert!(script_of("rackloom inject partition n0] --for 1s").is_err());
        assert!(Arguments::try_parse_from("rackloom inject node n3 --kill --pause 1s".split(' ')).is_err());
        assert!(Arguments::try_parse_from("rackloom inject link all --kinds ack".split(' ')).is_err());
    }
}
