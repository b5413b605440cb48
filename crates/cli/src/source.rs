//! From a rack file and a command line to a plan, in the supervisor and once more in every seat.
//!
//! Seats get the text and not a path: the file may change while the rack starts.

use std::path::Path;

use rackloom_plan::{JobKind, Plan, WireKind};
use rackloom_protocol::RetransmissionMode;
use serde::{Deserialize, Serialize};

use crate::arguments::{Job, Overrides, Transport, Wire};
use crate::failure::Failure;

/// Everything from which a plan is built.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Source {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// What is in it.
    pub(crate) text: String,
    /// What the command line says instead.
    pub(crate) overrides: Overrides,
    /// What the command line says about the wire.
    pub(crate) wire: Option<Wire>,
    /// The rack's name, if it is another than the file's.
    pub(crate) rack: Option<String>,
}

impl Source {
    pub(crate) fn read(
        file: &Path,
        overrides: &Overrides,
        wire: Option<Wire>,
        rack: Option<String>,
    ) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::bad_input(format!("cannot read the rack file: {error}"))
                .at_path(file)
                .hint("rack files that come with the project are in topologies/")
        })?;
        Ok(Self { name: file.display().to_string(), text, overrides: overrides.clone(), wire, rack })
    }

    /// The plan, with what the command line says, checked.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        let mut plan =
            Plan::parse(&self.text, &self.name).map_err(|error| Failure::bad_input(error.to_string()))?;
        self.overrides.apply(&mut plan);
        if let Some(rack) = &self.rack {
            plan.change(|plan| plan.name.clone_from(rack));
        }
        if let Some(wire) = self.wire {
            plan.set_wire(wire.into());
        }
        plan.check().map_err(|error| Failure::bad_input(error.to_string()).at("the command line"))?;
        Ok(plan)
    }
}

impl Overrides {
    fn apply(&self, plan: &mut Plan) {
        plan.change(|plan| {
            plan.job.kind = self.job.map_or(plan.job.kind, JobKind::from);
            plan.seed = self.seed.unwrap_or(plan.seed);
            plan.transport.mode = self.transport.map_or(plan.transport.mode, RetransmissionMode::from);
        });
        plan.override_links(|profile| {
            profile.loss = self.loss.unwrap_or(profile.loss);
            profile.corrupt = self.corrupt.unwrap_or(profile.corrupt);
            profile.duplicate = self.duplicate.unwrap_or(profile.duplicate);
            profile.reorder = self.reorder.unwrap_or(profile.reorder);
        });
    }
}

impl From<Job> for JobKind {
    fn from(job: Job) -> Self {
        match job {
            Job::Litmus => Self::Litmus,
            Job::None => Self::None,
        }
    }
}

impl From<Wire> for WireKind {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::SharedMemory => Self::SharedMemory,
            Wire::Packet => Self::Packet,
        }
    }
}

impl From<Transport> for RetransmissionMode {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::GoBackN => Self::GoBackN,
            Transport::Selective => Self::Selective,
        }
    }
}
