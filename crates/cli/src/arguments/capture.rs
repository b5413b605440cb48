//! Arguments of `rackloom capture` and `rackloom extcap`: frames of racks that are up.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Options of `rackloom capture`.
#[derive(Debug, Args)]
pub(crate) struct CaptureArguments {
    /// Name of the rack, which was started with `up --capture DIR`
    pub(crate) rack: String,
    /// The link: n0--n1, n0--n1#1 for the second of parallel links, or n0-p0--n1-p1
    pub(crate) link: String,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) write: PathBuf,
}

/// Options of `rackloom extcap` that print something.
#[derive(Debug, Args)]
pub(crate) struct ExtcapListing {
    /// List the links of all racks that record frames
    #[arg(long = "extcap-interfaces", group = "action")]
    pub(crate) interfaces: bool,
    /// Print the kind of frames of an interface
    #[arg(long = "extcap-dlts", group = "action", requires = "interface")]
    pub(crate) kinds: bool,
    /// Print the options of an interface: there are none
    #[arg(long = "extcap-config", group = "action", requires = "interface")]
    pub(crate) options: bool,
}

/// Options of `rackloom extcap`, as Wireshark gives them.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("action").required(true)))]
pub(crate) struct ExtcapArguments {
    #[command(flatten)]
    pub(crate) listing: ExtcapListing,
    /// Write the frames of an interface
    #[arg(long, group = "action", requires = "interface", requires = "fifo")]
    pub(crate) capture: bool,
    /// Interface, as listed
    #[arg(long = "extcap-interface", value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Pipe to write to
    #[arg(long, value_name = "PATH")]
    pub(crate) fifo: Option<PathBuf>,
    /// Version of Wireshark, which has no effect
    #[arg(long = "extcap-version", value_name = "VERSION", hide = true)]
    pub(crate) version: Option<String>,
}
