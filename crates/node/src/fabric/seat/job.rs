//! Seat of a process that a standing rack has started for a job (`rackloom job submit`).
//!
//! The rack describes the job in environment variables ([`rackloom_control::submitted`]). Identity and rights do not come from them: the
//! rack gives the seat only to the process group that it has started for it.

use std::time::Duration;

use rackloom_control::submitted::{
    NODES_VARIABLE, RACK_VARIABLE, RANK_VARIABLE, SEAT_VARIABLE, SEATS_VARIABLE,
};
use rackloom_protocol::NodeId;

use crate::fabric::error::Error;
use crate::fabric::node::Node;

/// Seat that a job on a standing rack has given to this process, and the nodes of the job.
///
/// ```no_run
/// # use std::time::Duration;
/// # use rackloom::fabric::{Group, GroupOptions, JobSeat, ReduceOperation};
/// let seat = JobSeat::from_environment()?.ok_or("start this program with `rackloom job submit`")?;
/// let node = seat.join(Duration::from_secs(20))?;
/// let group = Group::join(&node, GroupOptions::new(9, 0x5eed), seat.nodes())?;
/// let mut values = [seat.rank() as i64];
/// group.all_reduce(&mut values, ReduceOperation::Sum).wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSeat {
    rack: String,
    seat: String,
    rank: usize,
    nodes: Vec<NodeId>,
    names: Vec<String>,
}

impl JobSeat {
    /// Reads the environment of this process. Returns `None` if no job has started the process.
    ///
    /// # Errors
    /// [`Error::Join`] if only some of the variables are there, or if they are not those of a rack.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let (Some(rack), Some(seat)) = (variable(RACK_VARIABLE), variable(SEAT_VARIABLE)) else {
            return Ok(None);
        };
        let wrong = |name: &str| Error::Join {
            rack: rack.clone(),
            seat: seat.clone(),
            what: format!(
                "the variable {name} is not that of a job; hint: leave the variables as the rack has set them"
            ),
        };
        let rank = variable(RANK_VARIABLE).and_then(|text| text.parse().ok());
        let rank = rank.ok_or_else(|| wrong(RANK_VARIABLE))?;
        let numbers = variable(NODES_VARIABLE).unwrap_or_default();
        let nodes: Result<Vec<_>, _> = numbers.split(',').map(|number| number.parse().map(NodeId)).collect();
        let nodes = nodes.map_err(|_| wrong(NODES_VARIABLE))?;
        let names: Vec<_> =
            variable(SEATS_VARIABLE).unwrap_or_default().split(',').map(str::to_owned).collect();
        if names.len() != nodes.len() || names.get(rank) != Some(&seat) {
            return Err(wrong(SEATS_VARIABLE));
        }
        Ok(Some(Self { rack, seat, rank, nodes, names }))
    }

    /// Returns the name of the rack.
    #[must_use]
    pub fn rack(&self) -> &str {
        &self.rack
    }

    /// Returns the name of the seat.
    #[must_use]
    pub fn seat(&self) -> &str {
        &self.seat
    }

    /// Returns the rank of this process: its index in [`JobSeat::nodes`].
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the nodes of the job, by rank.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Returns the seats of the job, by rank.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Takes the seat, and waits at most for `timeout` until the node reaches all nodes of the job.
    ///
    /// # Errors
    /// Those of [`Node::join`] and [`Node::wait_until_reached`].
    pub fn join(&self, timeout: Duration) -> Result<Node, Error> {
        let node = Node::join(&self.rack, &self.seat)?;
        node.wait_until_reached(&self.nodes, timeout)?;
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<JobSeat>, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        JobSeat::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    const WHOLE: [(&str, &str); 5] = [
        (RACK_VARIABLE, "star"),
        (SEAT_VARIABLE, "n2"),
        (RANK_VARIABLE, "1"),
        (SEATS_VARIABLE, "n0,n2"),
        (NODES_VARIABLE, "0,2"),
    ];

    #[test]
    fn the_variables_of_a_job_name_its_seat_and_its_nodes() {
        let seat = read(&WHOLE).unwrap().unwrap();
        assert_eq!((seat.rack(), seat.seat(), seat.rank()), ("star", "n2", 1));
        assert_eq!(seat.nodes(), [NodeId(0), NodeId(2)]);
        assert_eq!(seat.names(), ["n0", "n2"]);
        assert_eq!(read(&[]).unwrap(), None);
    }

    #[test]
    fn variables_that_disagree_are_an_error() {
        for (index, value) in
            [(2, "2"), (2, "-1"), (3, "n0"), (3, "n2,n0"), (4, "0,2,3"), (4, ""), (4, "0,70000")]
        {
            let mut variables = WHOLE;
            variables[index].1 = value;
            let error = read(&variables).unwrap_err().to_string();
            assert!(error.contains("hint: "), "{value:?}: {error}");
        }
        assert!(read(&WHOLE[..2]).is_err());
    }
}
