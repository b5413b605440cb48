//! What `rackloom inject` may be asked: one fault in words of the command line, or a whole script.
//!
//! Words become a fault script, so that the rack reads them as it reads files, and says what is wrong with them.

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
    /// Faults of links: n0--n1, n0->n1 for one direction, a member for all of its links, "plane 0", or all
    Link(LinkFaults),
    /// A fault of a member: a GPU node or a switch
    Node(NodeFault),
    /// All faults of a script; times count from now, and its expectations are nobody's
    Script {
        /// The fault script
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LinkFaults {
    /// Where
    #[arg(value_name = "WHERE")]
    place: String,
    /// Share of frames that are lost
    #[arg(long, value_name = "P")]
    loss: Option<String>,
    /// Share of frames with a flipped bit
    #[arg(long, value_name = "P")]
    corrupt: Option<String>,
    /// Share of frames that arrive twice
    #[arg(long, value_name = "P")]
    duplicate: Option<String>,
    /// Share of frames that arrive after a later one
    #[arg(long, value_name = "P")]
    reorder: Option<String>,
    /// Time that frames take longer
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Share of the link's rate that is left
    #[arg(long, value_name = "P")]
    share: Option<String>,
    /// Nothing comes through; the devices do not notice
    #[arg(long)]
    down: bool,
    /// Nothing comes through, and the carrier is gone
    #[arg(long)]
    unplug: bool,
    /// How long; until the rack goes if absent
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<String>,
    /// Again so long after each beginning
    #[arg(long, value_name = "TIME", requires = "duration")]
    every: Option<String>,
    /// How often, where it begins again
    #[arg(long, value_name = "N", requires = "every")]
    times: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeFault {
    /// Which
    #[arg(value_name = "NODE")]
    node: String,
    /// Stand still for so long, as by SIGSTOP
    #[arg(long, value_name = "TIME", required_unless_present = "kill", conflicts_with = "kill")]
    pause: Option<String>,
    /// Die, as by SIGKILL
    #[arg(long)]
    kill: bool,
    /// After --kill: how long until somebody sits in its place; nobody does if absent
    #[arg(long = "for", value_name = "TIME", requires = "kill")]
    duration: Option<String>,
}

impl LinkFaults {
    /// The same as a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let rates = [
            ("loss", &self.loss),
            ("corrupt", &self.corrupt),
            ("duplicate", &self.duplicate),
            ("reorder", &self.reorder),
        ];
        let mut kinds: Vec<String> = rates
            .iter()
            .filter_map(|(what, rate)| Some(format!("what: {what}, rate: {}", rate.as_ref()?)))
            .collect();
        kinds.extend(self.delay.as_ref().map(|by| format!("what: delay, by: {by}")));
        kinds.extend(self.share.as_ref().map(|share| format!("what: slow, share: {share}")));
        kinds.extend(self.down.then(|| "what: down".to_owned()));
        kinds.extend(self.unplug.then(|| "what: unplug".to_owned()));
        if kinds.is_empty() {
            let hint = "say --loss, --corrupt, --duplicate, --reorder, --delay, --share, --down or --unplug";
            return Err(Failure::bad_input("no fault is named").hint(hint));
        }
        let timing = [("for", &self.duration), ("every", &self.every), ("times", &self.times)];
        let timing: String =
            timing.iter().filter_map(|(key, value)| Some(format!(", {key}: {}", value.as_ref()?))).collect();
        let events = kinds.iter().map(|kind| format!("{kind}, where: {}{timing}", self.place));
        script(events)
    }
}

impl NodeFault {
    /// The same as a fault script.
    pub(crate) fn script(&self) -> Result<String, Failure> {
        let kind = self
            .pause
            .as_ref()
            .map_or_else(|| "what: kill".to_owned(), |time| format!("what: pause, for: {time}"));
        let timing = self.duration.as_ref().map_or_else(String::new, |time| format!(", for: {time}"));
        script(std::iter::once(format!("{kind}, where: {}{timing}", self.node)))
    }
}

/// Events as a file. Words that could end a value in it are none that any value has.
fn script(events: impl Iterator<Item = String>) -> Result<String, Failure> {
    let mut text = "name: injected\nevents:\n".to_owned();
    for event in events {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || " ,:.%->#_".contains(character);
        if let Some(odd) = event.chars().find(|character| !is_plain(*character)) {
            let what = format!("{odd:?} is in no name, rate or time");
            return Err(Failure::bad_input(what).hint("write like `n0--n1`, `1e-3` or `20ms`"));
        }
        text += &format!("  - {{{event}}}\n");
    }
    Ok(text)
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
            Injected::Script { .. } => panic!("{line}"),
        }
    }

    #[test]
    fn words_become_a_script() {
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

    #[test]
    fn no_fault_and_odd_words_are_refused() {
        assert!(script_of("rackloom inject link n0--n1").is_err());
        assert!(script_of("rackloom inject link n0--n1} --down").is_err());
        assert!(Arguments::try_parse_from(["rackloom", "inject", "node", "n3"]).is_err());
    }
}
