//! Arguments of `rackloom exec` and `rackloom env`: programs on seats.

use clap::{ArgGroup, Args, ValueEnum};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").args(["seat", "seats"])))]
pub(crate) struct ExecArguments {
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
    /// Seat of the program; by the rank in the environment if absent (PMI_RANK, PMIX_RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, RANK,
    /// JOB_COMPLETION_INDEX)
    #[arg(long, value_name = "NODE")]
    pub(crate) seat: Option<String>,
    /// Seats of several processes of the program, such as n0,n1 or n0..n3; their output has the seat's name before each line
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub(crate) seats: Vec<String>,
    /// Network of the program: that of this host, or `rack`: the seat's own, with the interface rack0, over which IP goes through the fabric
    #[arg(long, value_enum, default_value_t, value_name = "NETWORK")]
    pub(crate) net: Net,
    /// Keep the node alive while the program is stopped, as by Ctrl-Z or in a debugger
    #[arg(long)]
    pub(crate) hold: bool,
    #[command(flatten)]
    pub(crate) device_files: DeviceFiles,
    /// Program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<std::ffi::OsString>,
}

/// Files of the RDMA device.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DeviceFiles {
    /// Preload no library: the program finds no /dev/infiniband and /sys/class/infiniband, which UCX needs; programs with AddressSanitizer
    /// refuse preloaded libraries
    #[arg(long = "no-device-files")]
    pub(crate) none: bool,
}

/// Network of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Net {
    /// That of this host.
    #[default]
    Host,
    /// That of the seat.
    Rack,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArguments {
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
    /// Seat of the program; by the rank in the environment if absent, as for `exec`
    #[arg(long, value_name = "NODE")]
    pub(crate) seat: Option<String>,
    #[command(flatten)]
    pub(crate) device_files: DeviceFiles,
    /// Print JSON instead of shell commands, with the same content
    #[arg(long)]
    pub(crate) json: bool,
}
