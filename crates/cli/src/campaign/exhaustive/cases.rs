//! Cases of an exhaustive campaign: each part that fails alone, and each pair of parts, as fault scripts.
//!
//! The failure begins with the first run of the job, when all ranks have met, and does not end. Runs that warm up absorb its detection, so
//! the measured runs show the rack without the part.

use rackloom_plan::faults::FaultScript;
use rackloom_plan::{Plan, PlanError};
use rackloom_protocol::MemberRole;

use crate::arguments::{Failing, PartKind};
use crate::failure::Failure;

/// Maximum number of cases.
const CASES_MAX: usize = 1_000_000;

/// Part of the rack that may fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    pub(super) name: String,
}

/// Parts that fail together, as indices of the list of parts, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) parts: Vec<usize>,
}

/// Returns all parts of these kinds, by kind and in the order of the plan.
pub(super) fn parts(plan: &Plan, kinds: &[Failing]) -> Vec<Part> {
    let is_meant = |kind: PartKind| kinds.iter().any(|failing| failing.kind == kind);
    PartKind::ALL.into_iter().filter(|kind| is_meant(*kind)).flat_map(|kind| of_kind(plan, kind)).collect()
}

fn of_kind(plan: &Plan, kind: PartKind) -> Vec<Part> {
    let part = |name: &String| Part { kind, name: name.clone() };
    let members = |is_meant: fn(MemberRole) -> bool| {
        let members = plan.members.iter().filter(|member| is_meant(member.role));
        members.map(|member| part(&member.name)).collect()
    };
    match kind {
        PartKind::Links => {
            let cables = plan.links.iter().filter(|link| !plan.is_process_link(&link.edge));
            cables.map(|link| part(&link.name)).collect()
        }
        PartKind::Switches => members(MemberRole::is_switch),
        PartKind::Nodes => members(|role| role == MemberRole::Endpoint),
    }
}

/// Returns the cases, those of one part first.
///
/// # Errors
/// There are none, or too many.
pub(super) fn cases(parts: &[Part], failing: &[Failing]) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for together in [1, 2] {
        for kind in PartKind::ALL {
            if !failing.contains(&Failing { kind, together }) {
                continue;
            }
            let of_kind: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].kind == kind).collect();
            let count = if together == 1 { of_kind.len() } else { of_kind.len() * of_kind.len() / 2 };
            if cases.len() + count > CASES_MAX {
                let message = format!("there are more than {CASES_MAX} cases");
                return Err(Failure::bad_input(message).hint("fail one part at a time, such as links:1"));
            }
            cases.extend(combinations(&of_kind, together));
        }
    }
    if cases.is_empty() {
        let hint = "`rackloom check` prints the members and links of the rack";
        return Err(Failure::bad_input("the rack has no such parts").at("--exhaustive").hint(hint));
    }
    Ok(cases)
}

fn combinations(parts: &[usize], together: usize) -> Vec<Case> {
    if together == 1 {
        return parts.iter().map(|part| Case { parts: vec![*part] }).collect();
    }
    let pairs = parts
        .iter()
        .enumerate()
        .flat_map(|(at, first)| parts[at + 1..].iter().map(|second| Case { parts: vec![*first, *second] }));
    pairs.collect()
}

/// Returns the script of a case, read from its text, so that the text repeats it.
///
/// # Errors
/// The rack's job takes no faults at its first run.
pub(super) fn script(plan: &Plan, parts: &[&Part]) -> Result<FaultScript, PlanError> {
    FaultScript::parse(&text(plan, parts), "exhaustive", plan)
}

/// Returns the text of the script of a case.
pub(super) fn text(plan: &Plan, parts: &[&Part]) -> String {
    let witness = plan.members.iter().find(|member| {
        let is_failing = parts.iter().any(|part| part.kind == PartKind::Nodes && part.name == member.name);
        member.role == MemberRole::Endpoint && !is_failing
    });
    let witness = witness.map_or("n0", |member| member.name.as_str());
    let mut text = "name: failure\nevents:\n".to_owned();
    for Part { kind, name } in parts {
        let what = if *kind == PartKind::Links { "down" } else { "kill" };
        text += &format!("  - {{what: {what}, where: \"{name}\", when: {{node: {witness}, run: 1}}}}\n");
    }
    text + "expect: {ends: right-or-clean-error, happen: any}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &str) -> Plan {
        Plan::parse(&format!("name: r\nshape: {{{shape}}}\njob: latency\n"), "test").unwrap()
    }

    #[test]
    fn every_part_and_every_pair_is_a_case() {
        let plan = plan("ring: {nodes: 4}");
        let both = [1, 2].map(|together| Failing { kind: PartKind::Links, together });
        let parts = parts(&plan, &both);
        assert_eq!(parts.len(), 4);
        let cases = cases(&parts, &both).unwrap();
        assert_eq!(cases.len(), 4 + 6);
        assert_eq!(cases[4].parts, [0, 1]);
        assert_eq!(cases[9].parts, [2, 3]);
    }

    #[test]
    fn a_rack_without_such_parts_is_refused() {
        let switches = [Failing { kind: PartKind::Switches, together: 1 }];
        let parts = parts(&plan("ring: {nodes: 4}"), &switches);
        assert!(cases(&parts, &switches).unwrap_err().to_string().contains("hint:"));
    }

    #[test]
    fn each_kind_has_a_script_that_can_be_read() {
        let plan = plan("star: {nodes: 3, planes: 2}");
        for kind in PartKind::ALL {
            let parts = parts(&plan, &[Failing { kind, together: 2 }]);
            let script = script(&plan, &[&parts[0], &parts[1]]).unwrap();
            assert_eq!(script.events.len(), 2);
        }
        let nodes = parts(&plan, &[Failing { kind: PartKind::Nodes, together: 1 }]);
        assert!(text(&plan, &[&nodes[0]]).contains("when: {node: n1"), "a witness lives on");
    }
}
