//! Targets of faults: names in the file as directions of links and as members of a plan.
//!
//! `n0--n1` is both directions. `n0:n1`, `n0--n1/forward` and `n0->n1` are one direction. A member's name is all links of it,
//! `plane 0` all links of a plane, and `all` every link. Links of a GPU node to its own processes are no cables: only their own names, and those of
//! the processes, mean them. Messages about unknown names propose a similar one.
use rackloom_protocol::{MemberRole, NodeId};

use super::LinkDirection;
use crate::impair::Direction;
use crate::model::links::link::LinkPlan;
use crate::model::plan::Plan;
use crate::read::listed;
use crate::read::mistake::{Complaint, nearest, quoted};

/// Returns the directions that a text names.
pub(super) fn directions(plan: &Plan, text: &str) -> Result<Vec<LinkDirection>, Complaint> {
    let links_where = |is_meant: &dyn Fn(&LinkPlan) -> bool| -> Vec<LinkDirection> {
        let links = (0..).zip(&plan.links).filter(|(_, link)| is_meant(link));
        links.flat_map(|(edge, _)| both(edge)).collect()
    };
    let is_cable = |link: &LinkPlan| !plan.is_process_link(&link.edge);
    if text == "all" {
        return Ok(links_where(&is_cable));
    }
    if let Some(plane) = text.strip_prefix("plane ") {
        let of_plane = links_where(&|link| is_cable(link) && link.edge.plane.0.to_string() == plane.trim());
        return if of_plane.is_empty() { Err(no_such_plane(plan, plane)) } else { Ok(of_plane) };
    }
    if names_a_direction(text) {
        return direction_of(plan, text).map(|direction| vec![direction]);
    }
    if text.contains("--") {
        return link(plan, text).map(|(edge, _)| both(edge).to_vec());
    }
    if let Some(start) = text.strip_suffix('-').filter(|start| plan.node_named(start).is_some()) {
        let complaint = Complaint::about(format!("{} ends in the middle of a link's name", quoted(text)));
        return Err(complaint.hint(format!(
            "a shell takes `>` and what follows it for a file: write `{start}:n1` in place of `{start}->n1`"
        )));
    }
    let member = member(plan, text)?;
    let is_process = plan.members[member.index()].role.is_process();
    Ok(links_where(&|link| {
        (link.edge.a == member || link.edge.b == member) && (is_process || is_cable(link))
    }))
}

/// Returns the one direction that a text names.
pub(super) fn direction_of(plan: &Plan, text: &str) -> Result<LinkDirection, Complaint> {
    if let Some((name, direction)) = text.split_once('/') {
        let (edge, is_as_named) = link(plan, name)?;
        let is_forward = match direction {
            "forward" => is_as_named,
            "backward" => !is_as_named,
            _ => {
                let complaint = Complaint::about(format!("{} is no direction of a link", quoted(direction)));
                return Err(complaint.hint("write `n0--n1/forward` or `n0--n1/backward`"));
            }
        };
        return Ok(LinkDirection {
            edge,
            direction: if is_forward { Direction::Forward } else { Direction::Backward },
        });
    }
    if !names_a_direction(text) {
        let complaint = Complaint::about(format!("{} is no direction of a link", quoted(text)));
        return Err(complaint.hint("write who sends to whom, like `n0:n1`"));
    }
    let (edge, is_as_named) = link(plan, &text.replace("->", "--").replacen(':', "--", 1))?;
    Ok(LinkDirection { edge, direction: if is_as_named { Direction::Forward } else { Direction::Backward } })
}

/// Returns true if a text has the form of one direction: `n0:n1`, `n0--n1/forward` or `n0->n1`.
fn names_a_direction(text: &str) -> bool {
    text.contains("->") || text.contains(':') || text.contains('/')
}

/// Returns the links between these members and all others, in both directions. Processes are on the side of their GPU node.
pub(super) fn boundary(plan: &Plan, members: &[NodeId]) -> Vec<LinkDirection> {
    let crosses = |link: &LinkPlan| {
        members.contains(&link.edge.a) != members.contains(&link.edge.b) && !plan.is_process_link(&link.edge)
    };
    let links = (0..).zip(&plan.links).filter(|(_, link)| crosses(link));
    links.flat_map(|(edge, _)| both(edge)).collect()
}

/// Returns the member with this name.
pub(super) fn member(plan: &Plan, text: &str) -> Result<NodeId, Complaint> {
    let names = || plan.members.iter().map(|member| member.name.as_str());
    plan.node_named(text).ok_or_else(|| {
        let complaint = Complaint::about(format!("there is no member {}", quoted(text)));
        match nearest(text, names()) {
            Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
            None => complaint.hint(format!("members are {}", listed(names()))),
        }
    })
}

/// Returns the GPU node with this name. Only GPU nodes take part in the job.
pub(super) fn endpoint(plan: &Plan, text: &str) -> Result<NodeId, Complaint> {
    no_switch(plan, text, "has no part in the job")
}

/// Returns the GPU node with this name. Only GPU nodes have memory.
pub(super) fn owner(plan: &Plan, text: &str) -> Result<NodeId, Complaint> {
    no_switch(plan, text, "has no memory")
}

/// Returns the GPU node and the queue pair that a text names: `n0/3`, or `n0` for all of them.
pub(super) fn queue_pairs(plan: &Plan, text: &str) -> Result<(NodeId, Option<u32>), Complaint> {
    let (name, number) = text.split_once('/').map_or((text, None), |(name, number)| (name, Some(number)));
    let node = member(plan, name)?;
    if plan.members[node.index()].role != MemberRole::Endpoint {
        let complaint = Complaint::about(format!("{} is no GPU node", quoted(name)));
        return Err(complaint.hint("queue pairs are those of the programs on a GPU node"));
    }
    let number = number.map(|number| match number.parse::<u32>() {
        Ok(number) if number > 0 => Ok(number),
        _ => {
            let complaint = Complaint::about(format!("{} is no number of a queue pair", quoted(number)));
            Err(complaint.hint("count from 1, in the order in which a process makes them: `n0/1`"))
        }
    });
    Ok((node, number.transpose()?))
}

fn no_switch(plan: &Plan, text: &str, lack: &str) -> Result<NodeId, Complaint> {
    let node = member(plan, text)?;
    match plan.members[node.index()].role {
        MemberRole::Endpoint | MemberRole::Process | MemberRole::PinnedProcess => Ok(node),
        MemberRole::Switch | MemberRole::ReducingSwitch => {
            Err(Complaint::about(format!("{} is a switch and {lack}", quoted(text))).hint("name a GPU node"))
        }
    }
}

const fn both(edge: u16) -> [LinkDirection; 2] {
    [
        LinkDirection { edge, direction: Direction::Forward },
        LinkDirection { edge, direction: Direction::Backward },
    ]
}

/// Returns the link with this name, and true if the name has its ends in the plan's order.
fn link(plan: &Plan, name: &str) -> Result<(u16, bool), Complaint> {
    let turned = |name: &str| -> Option<String> {
        let (ends, number) = name.split_once('#').map_or((name, None), |(ends, number)| (ends, Some(number)));
        let (a, b) = ends.split_once("--")?;
        Some(number.map_or_else(|| format!("{b}--{a}"), |number| format!("{b}--{a}#{number}")))
    };
    let find = |name: &str| (0..).zip(&plan.links).find(|(_, link)| link.name == name).map(|(edge, _)| edge);
    if let Some(edge) = find(name) {
        return Ok((edge, true));
    }
    if let Some(edge) = turned(name).and_then(|name| find(&name)) {
        return Ok((edge, false));
    }
    let names = || plan.links.iter().map(|link| link.name.as_str());
    let complaint = Complaint::about(format!("there is no link {}", quoted(name)));
    Err(match nearest(name, names()) {
        Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
        None => complaint.hint(format!("links are {}", listed(names()))),
    })
}

fn no_such_plane(plan: &Plan, plane: &str) -> Complaint {
    let last = plan.links.iter().map(|link| link.edge.plane.0).max().unwrap_or(0);
    let complaint = Complaint::about(format!("there is no plane {}", quoted(plane.trim())));
    complaint.hint(format!("planes are 0 to {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_processes_are_meant_by_their_own_names_alone() {
        let text = "name: rack\nshape: {star: {nodes: 2, planes: 2}}\n";
        let mut plan = Plan::parse(text, "rack").unwrap();
        plan.add_processes(2);
        let names = |text: &str| -> Vec<&str> {
            let found = directions(&plan, text).unwrap();
            found.iter().map(|direction| plan.links[usize::from(direction.edge)].name.as_str()).collect()
        };
        let (all, plane, node) = (names("all"), names("plane 0"), names("n0"));
        assert_eq!((all.len(), plane.len(), node.len()), (2 * 4, 2 * 2, 2 * 2));
        assert!(all.iter().chain(&plane).chain(&node).all(|name| !name.contains(".p")), "{all:?}");
        assert_eq!((names("n0--n0.p1").len(), names("n1.p0").len()), (2, 2));
        let n0 = member(&plan, "n0").unwrap();
        assert_eq!(boundary(&plan, &[n0]).len(), 2 * 2);
    }
}
