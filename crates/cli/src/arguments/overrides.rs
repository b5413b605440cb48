//! Options that replace values of the rack file.

use clap::{Args, ValueEnum};

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
    /// Retransmission of lost packets, end to end
    #[arg(long, value_enum, help_heading = LINKS)]
    pub(crate) transport: Option<Transport>,
    /// Link-level retry on every link: lost frames are replayed on the link
    #[arg(long, value_enum, help_heading = LINKS, value_name = "on|off", hide_possible_values = true)]
    pub(crate) llr: Option<OnOff>,
    /// Share of frames lost on every link, such as 0.01 or 1%
    #[arg(long, help_heading = FAULTS, value_name = "P", value_parser = share)]
    pub(crate) loss: Option<f64>,
    /// Share of frames in which a bit is flipped
    #[arg(long, help_heading = FAULTS, value_name = "P", value_parser = share)]
    pub(crate) corrupt: Option<f64>,
    /// Share of frames that arrive twice
    #[arg(long, help_heading = FAULTS, value_name = "P", value_parser = share)]
    pub(crate) duplicate: Option<f64>,
    /// Share of frames that arrive after a later frame
    #[arg(long, help_heading = FAULTS, value_name = "P", value_parser = share)]
    pub(crate) reorder: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// The receiver accepts packets in order only; a gap retransmits every packet after it
    GoBackN,
    /// Only missing packets are retransmitted
    Selective,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

/// Parses a share between 0 and 1, as a fraction or in per cent.
fn share(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value = number
        .parse::<f64>()
        .map_err(|_| "not a number; hint: write a share such as 0.01 or 1%".to_owned())?
        / divisor;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err("not between 0 and 1; hint: write a share such as 0.01 or 1%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_fraction_or_per_cent() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["", "%", "1.5", "-1%", "nan", "inf", "one"] {
            assert!(share(bad).is_err(), "{bad:?} was taken");
        }
    }
}
