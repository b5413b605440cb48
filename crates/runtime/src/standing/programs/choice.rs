//! Choice of the seats for programs.

use rackloom_control::request::RackStatus;

use super::super::state::GPU_NODE;
use crate::outcome::failure::Failure;

/// Environment variables in which launchers give a process its rank, in the order in which they are read: MPICH, PMIx, Open MPI, Slurm, torch,
/// and indexed jobs of Kubernetes.
pub const RANK_VARIABLES: [&str; 6] =
    ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK", "JOB_COMPLETION_INDEX"];

/// Returns the names of the rack's GPU nodes, by rank.
pub(super) fn nodes(status: &RackStatus) -> Vec<&str> {
    let nodes = status.members.iter().filter(|member| member.role == GPU_NODE);
    nodes.map(|member| member.name.as_str()).collect()
}

/// Returns the seats that these entries name: names of GPU nodes, and ranges `FIRST..LAST` in the order of the rack, both ends included.
///
/// # Errors
/// An entry names no GPU node of the rack, a range has no node, or a seat is named twice.
pub fn chosen_seats(status: &RackStatus, entries: &[String]) -> Result<Vec<String>, Failure> {
    let nodes = nodes(status);
    let mut seats: Vec<String> = Vec::new();
    for entry in entries {
        let range = match entry.split_once("..") {
            Some((first, last)) => position(status, &nodes, first)?..=position(status, &nodes, last)?,
            None => {
                let at = position(status, &nodes, entry)?;
                at..=at
            }
        };
        if range.is_empty() {
            return Err(Failure::bad_input(format!("{entry:?} names no seat"))
                .hint("a range begins with the node that comes first in the rack"));
        }
        for name in &nodes[range] {
            if seats.iter().any(|seat| seat == name) {
                return Err(
                    Failure::bad_input(format!("seat {name} is named twice")).hint("name each seat once")
                );
            }
            seats.push((*name).to_owned());
        }
    }
    Ok(seats)
}

fn position(status: &RackStatus, nodes: &[&str], name: &str) -> Result<usize, Failure> {
    nodes.iter().position(|node| *node == name).ok_or_else(|| {
        Failure::bad_input(format!("rack {} has no GPU node named {name:?}", status.name))
            .hint(format!("it has {}", nodes.join(", ")))
    })
}

/// Returns the seat of the rank that a launcher put into the environment. `variable` reads a variable.
///
/// # Errors
/// No variable of [`RANK_VARIABLES`] is set, the first that is set has no number, or the rack has fewer GPU nodes.
pub fn seat_of_rank(
    status: &RackStatus,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Failure> {
    let found = RANK_VARIABLES.iter().find_map(|name| Some((*name, variable(name)?)));
    let (name, text) = found.ok_or_else(|| {
        Failure::bad_input("no seat is named, and the environment has no rank")
            .hint(format!("--seat names one; ranks are read from {}", RANK_VARIABLES.join(", ")))
    })?;
    let rank: usize =
        text.parse().map_err(|_| Failure::bad_input(format!("{name} is {text:?}, which is no rank")))?;
    let nodes = nodes(status);
    let seat = nodes.get(rank).ok_or_else(|| {
        let what = format!("{name} is {rank}, and rack {} has {} GPU nodes", status.name, nodes.len());
        Failure::bad_input(what).hint("start as many processes as the rack has GPU nodes, or fewer")
    })?;
    Ok((*seat).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> RackStatus {
        let member = |name: &str, role: &str| {
            json!({"name": name, "role": role, "pid": null, "server": "s", "tenant": 0, "state": "vacant",
                "memory_used_bytes": 0, "memory_bytes": 1, "links_up": 0, "links_down": [], "links_total": 2, "uptime_ns": 1})
        };
        let members =
            [member("n0", GPU_NODE), member("n1", GPU_NODE), member("n2", GPU_NODE), member("s0", "switch")];
        let status = json!({"protocol": 1, "name": "star", "pid": 1, "state": "up", "wire": "udp", "job": "none",
            "epoch": 1, "config_hash": "", "uptime_ns": 1, "links_up": 0, "links_total": 3, "members": members});
        serde_json::from_value(status).expect("a status")
    }

    fn chosen(entries: &[&str]) -> Result<Vec<String>, String> {
        let entries: Vec<_> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        chosen_seats(&status(), &entries).map_err(|failure| failure.to_string())
    }

    #[test]
    fn names_and_ranges_are_seats() {
        assert_eq!(chosen(&["n2", "n0..n1"]).unwrap(), ["n2", "n0", "n1"]);
        assert_eq!(chosen(&["n1..n1"]).unwrap(), ["n1"]);
        for bad in [&["n3"][..], &["s0"], &["n1..n0"], &["n0..n1", "n1"], &["n0.."], &[""]] {
            assert!(chosen(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_first_variable_with_a_rank_decides() {
        let seat = |set: &'static [(&str, &str)]| {
            let read = move |name: &str| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            };
            seat_of_rank(&status(), read).map_err(|failure| failure.to_string())
        };
        assert_eq!(seat(&[("RANK", "2")]).unwrap(), "n2");
        assert_eq!(seat(&[("RANK", "2"), ("PMI_RANK", "1")]).unwrap(), "n1");
        assert!(seat(&[]).unwrap_err().contains("--seat"));
        assert!(seat(&[("RANK", "3")]).unwrap_err().contains("3 GPU nodes"));
        assert!(seat(&[("RANK", "-1")]).unwrap_err().contains("no rank"));
    }
}
