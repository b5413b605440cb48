//! Arguments of `rackloom experiment`.

use std::path::PathBuf;

use clap::Args;

use super::output::{NAME_A_FILE, PageOutput, file_beside};

#[derive(Debug, Args)]
pub(crate) struct ExperimentArguments {
    /// Name of the experiment; "all" runs every experiment, "list" lists them
    pub(crate) name: String,
    /// Values of one input instead of the default ones, such as bytes=64,4096; may be repeated
    #[arg(long, value_name = "KEY=A,B,...", value_parser = variation)]
    pub(crate) vary: Vec<(String, Vec<String>)>,
    /// Draw the figure to this file, or into this directory with "all"
    #[arg(long, value_name = "PATH", value_parser = file_beside(NAME_A_FILE))]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageOutput,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run fewer points and shorter runs
    #[arg(long)]
    pub(crate) reduced: bool,
    /// Change one input of the runs by a fifth, but not of the formula: the verdict must be "FAIL"
    #[arg(long)]
    pub(crate) perturb: bool,
}

/// Parses `key=a,b,c`.
fn variation(text: &str) -> Result<(String, Vec<String>), String> {
    let Some((key, values)) = text.split_once('=') else {
        return Err("no values; hint: write KEY=A,B,... such as bytes=64,4096".to_owned());
    };
    let values = values.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
    Ok((key.trim().to_owned(), values.collect()))
}

#[cfg(test)]
mod tests {
    use super::variation;

    #[test]
    fn a_variation_is_a_key_and_its_values() {
        let (key, values) = variation("link.loss=0.01, 0.1").expect("it is one");
        assert_eq!((key.as_str(), values), ("link.loss", vec!["0.01".to_owned(), "0.1".to_owned()]));
        assert!(variation("bytes").is_err_and(|complaint| complaint.contains("hint: ")));
    }
}
