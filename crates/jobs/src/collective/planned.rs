//! From what the plan says of a collective to its settings.

use rackloom_collectives::choose::TopologyKind;
use rackloom_collectives::{Algorithm, Collective};
use rackloom_plan::{CollectivePlan, Plan};
use rackloom_protocol::MemberRole;

use super::settings::CollectiveSettings;

/// The plan's words and the schedules' are the same; one that is not known is told.
fn known<T>(what: &str, name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("no schedule knows the {what} `{name}`"))
}

/// The settings of the plan's collective.
pub(crate) fn settings(plan: &Plan, asked: &CollectivePlan, seed: u64) -> Result<CollectiveSettings, String> {
    let name = asked.collective.name();
    let collective = Collective::from_name(name, asked.root.index());
    let element = asked.element.name();
    let element = known("element type", element, element.parse().ok())?;
    let operator = asked.op.name();
    let (topology, planes) = topology(plan);
    let endpoints = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let default = CollectiveSettings::default();
    Ok(CollectiveSettings {
        collective: known("collective", name, collective)?,
        algorithm: algorithm(asked)?,
        operation: known("operation", operator, operator.parse().ok())?,
        element,
        sizes: asked.sweep.sizes.iter().map(|bytes| bytes as usize / element.bytes()).collect(),
        repetitions: asked.sweep.repetitions,
        warm_up: asked.sweep.warm_up,
        seed,
        servers: plan.server_of_each_rank(),
        topology,
        planes,
        memory_bytes: endpoints.map(|member| member.memory_bytes).min().unwrap_or(0),
        start_timeout_ns: (plan.watchdog_ns / 2).min(default.start_timeout_ns),
        drain_timeout_ns: (plan.watchdog_ns / 2).min(default.drain_timeout_ns),
        ..default
    })
}

fn algorithm(asked: &CollectivePlan) -> Result<Option<Algorithm>, String> {
    let name = asked.algorithm.name();
    match name {
        "auto" => Ok(None),
        "ring-pipeline" => {
            let text = format!("{name}:{}", asked.segments);
            known("algorithm", &text, text.parse().ok()).map(Some)
        }
        _ => known("algorithm", name, name.parse().ok()).map(Some),
    }
}

/// What the links look like, whatever the file called them; and the planes of a star.
fn topology(plan: &Plan) -> (TopologyKind, u32) {
    let ranks = plan.endpoint_count();
    let switches = plan.members.len() - ranks;
    let edges = || plan.links.iter().map(|link| link.edge);
    let mut degrees = vec![0; plan.members.len()];
    edges().flat_map(|edge| [edge.a, edge.b]).for_each(|end| degrees[end.index()] += 1);
    let of_ranks = &degrees[..ranks];
    if switches > 0 {
        let hubs = edges().all(|edge| (edge.a.index() < ranks) != (edge.b.index() < ranks));
        let even = of_ranks.iter().all(|degree| *degree == switches) && plan.links.len() == ranks * switches;
        return if hubs && even { (TopologyKind::Star, switches as u32) } else { (TopologyKind::Custom, 1) };
    }
    // Three in a ring are three in a mesh; the mesh's estimates hold for both.
    if plan.links.len() == ranks * ranks.saturating_sub(1) / 2 {
        (TopologyKind::Mesh, 1)
    } else if plan.links.len() == ranks && of_ranks.iter().all(|degree| *degree == 2) {
        (TopologyKind::Ring, 1)
    } else {
        (TopologyKind::Custom, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shape: &str) -> (TopologyKind, u32) {
        topology(&Plan::parse(&format!("name: t\nshape: {shape}\n"), "test").expect("a rack"))
    }

    #[test]
    fn racks_are_told_apart_by_their_links() {
        assert_eq!(of("{ring: {nodes: 8}}"), (TopologyKind::Ring, 1));
        assert_eq!(of("{star: {nodes: 8, planes: 2}}"), (TopologyKind::Star, 2));
        assert_eq!(of("{full-mesh: {nodes: 5}}"), (TopologyKind::Mesh, 1));
    }

    #[test]
    fn every_word_of_the_plan_is_known_to_the_schedules() {
        let plan = Plan::parse("name: t\nshape: {ring: {nodes: 4}}\njob: {collective: {}}\n", "test")
            .expect("a rack");
        let rackloom_plan::JobKind::Collective(asked) = plan.job.kind else {
            panic!("a collective was asked for")
        };
        for algorithm in rackloom_plan::AlgorithmName::ALL.iter().copied() {
            for element in rackloom_plan::ElementName::ALL.iter().copied() {
                for op in rackloom_plan::OperatorName::ALL.iter().copied() {
                    settings(&plan, &CollectivePlan { algorithm, element, op, ..asked }, 1).expect("known");
                }
            }
        }
    }
}
