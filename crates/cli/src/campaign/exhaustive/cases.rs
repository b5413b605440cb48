//! Cases of an exhaustive campaign: each part that fails alone, and each pair of parts, of one kind or of two, as fault scripts.
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
    let is_meant = |kind: PartKind| kinds.iter().any(|failing| failing.kinds().contains(&kind));
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
    let of_kind = |kind: PartKind| -> Vec<usize> {
        (0..parts.len()).filter(|index| parts[*index].kind == kind).collect()
    };
    let mut failing = failing.to_vec();
    failing.sort_unstable();
    failing.dedup();
    for failing in failing {
        let [first, second] = match failing {
            Failing::One(kind) => [of_kind(kind), Vec::new()],
            Failing::Two(kinds) => kinds.map(of_kind),
        };
        let count = cases.len() + count(failing, first.len(), second.len());
        if count > CASES_MAX {
            let message = format!("there are {count} cases, and {CASES_MAX} at most can run");
            return Err(Failure::bad_input(message).hint("fail one part at a time, such as links:1"));
        }
        match failing {
            Failing::One(_) => cases.extend(first.into_iter().map(|part| Case { parts: vec![part] })),
            Failing::Two(_) => cases.extend(pairs(&first, &second)),
        }
    }
    if cases.is_empty() {
        let hint = "`rackloom check` prints the members and links of the rack";
        return Err(Failure::bad_input("the rack has no such parts").at("--exhaustive").hint(hint));
    }
    Ok(cases)
}

/// Returns the number of cases, of parts of one kind or of two kinds.
fn count(failing: Failing, first: usize, second: usize) -> usize {
    match failing {
        Failing::One(_) => first,
        Failing::Two([one, other]) if one == other => first * first.saturating_sub(1) / 2,
        Failing::Two(_) => first * second,
    }
}

/// Returns each pair of a part of either list once. Parts of a kind have larger numbers than those of kinds before it.
fn pairs<'a>(first: &'a [usize], second: &'a [usize]) -> impl Iterator<Item = Case> + 'a {
    first.iter().flat_map(move |first| {
        let behind = second.iter().filter(move |second| *second > first);
        behind.map(move |second| Case { parts: vec![*first, *second] })
    })
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
        let both = [Failing::Two([PartKind::Links; 2]), Failing::One(PartKind::Links)];
        let parts = parts(&plan, &both);
        assert_eq!(parts.len(), 4);
        let cases = cases(&parts, &both).unwrap();
        assert_eq!(cases.len(), 4 + 6);
        assert_eq!(cases[4].parts, [0, 1]);
        assert_eq!(cases[9].parts, [2, 3]);
    }

    #[test]
    fn pairs_across_kinds_have_a_part_of_each() {
        let plan = plan("star: {nodes: 3, planes: 2}");
        let across = [Failing::Two([PartKind::Links, PartKind::Switches])];
        let parts = parts(&plan, &across);
        let cases = cases(&parts, &across).unwrap();
        // Six cables and two switches.
        assert_eq!(cases.len(), 6 * 2);
        let kinds = |case: &Case| case.parts.iter().map(|part| parts[*part].kind).collect::<Vec<_>>();
        assert!(cases.iter().all(|case| kinds(case) == [PartKind::Links, PartKind::Switches]));
        let text = text(&plan, &cases[0].parts.iter().map(|part| &parts[*part]).collect::<Vec<_>>());
        assert!(text.contains("what: down") && text.contains("what: kill"), "{text}");
    }

    #[test]
    fn pairs_are_counted_once() {
        let both = [PartKind::Links; 2];
        let parts: Vec<_> =
            (0..1_024).map(|number| Part { kind: PartKind::Links, name: format!("l{number}") }).collect();
        assert_eq!(cases(&parts, &[Failing::Two(both)]).unwrap().len(), 1_024 * 1_023 / 2);
        let parts: Vec<_> =
            (0..1_500).map(|number| Part { kind: PartKind::Links, name: format!("l{number}") }).collect();
        let refused = cases(&parts, &[Failing::Two(both)]).unwrap_err().to_string();
        assert!(refused.starts_with("there are 1124250 cases, and 1000000 at most can run"), "{refused}");
    }

    #[test]
    fn a_rack_without_such_parts_is_refused() {
        let switches = [Failing::One(PartKind::Switches)];
        let parts = parts(&plan("ring: {nodes: 4}"), &switches);
        assert!(cases(&parts, &switches).unwrap_err().to_string().contains("hint:"));
    }

    #[test]
    fn each_kind_has_a_script_that_can_be_read() {
        let plan = plan("star: {nodes: 3, planes: 2}");
        for kind in PartKind::ALL {
            let parts = parts(&plan, &[Failing::Two([kind; 2])]);
            let script = script(&plan, &[&parts[0], &parts[1]]).unwrap();
            assert_eq!(script.events.len(), 2);
        }
        let nodes = parts(&plan, &[Failing::One(PartKind::Nodes)]);
        assert!(text(&plan, &[&nodes[0]]).contains("when: {node: n1"), "a witness lives on");
    }
}
