//! Options that replace values of the rack file.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rackloom_protocol::RetransmissionMode;

use super::declared::{meaning, named, on_every_link, summary, value};
use super::headings::{DATA, FAULTS, LINKS, WHAT};
use super::job::JobOptions;

/// Options that replace values of the rack file. Members receive them with the text of the file, so that all build the same plan.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Overrides {
    #[command(flatten)]
    pub(crate) job: JobOptions,
    /// Replace the value of any key of the rack file, such as link.loss=1% or timers.heartbeat_interval=5ms; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = WHAT)]
    pub(crate) set: Vec<String>,
    /// Seed of the job's data and of every random fault
    #[arg(long, value_name = "N", help_heading = DATA)]
    pub(crate) seed: Option<u64>,
    #[arg(
        long, help_heading = LINKS, value_name = "MODE", value_parser = named::<RetransmissionMode>(),
        help = summary("transport.mode"), long_help = meaning("transport.mode")
    )]
    pub(crate) transport: Option<RetransmissionMode>,
    /// Link-level retry on every link: lost frames are replayed on the link
    #[arg(long, value_parser = on_or_off(), help_heading = LINKS, value_name = "on|off", hide_possible_values = true)]
    pub(crate) llr: Option<bool>,
    #[arg(
        long, help_heading = FAULTS, value_name = "P", value_parser = value::<f64>("link.loss"),
        help = on_every_link("link.loss")
    )]
    pub(crate) loss: Option<f64>,
    #[arg(
        long, help_heading = FAULTS, value_name = "P", value_parser = value::<f64>("link.corrupt"),
        help = on_every_link("link.corrupt")
    )]
    pub(crate) corrupt: Option<f64>,
    #[arg(
        long, help_heading = FAULTS, value_name = "P", value_parser = value::<f64>("link.duplicate"),
        help = on_every_link("link.duplicate")
    )]
    pub(crate) duplicate: Option<f64>,
    #[arg(
        long, help_heading = FAULTS, value_name = "P", value_parser = value::<f64>("link.reorder"),
        help = on_every_link("link.reorder")
    )]
    pub(crate) reorder: Option<f64>,
}

/// Returns a parser for the two values of a feature that is switched on or off.
fn on_or_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|value| value == "on")
}
