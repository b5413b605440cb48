//! Injected faults of queue pairs that programs which start later get as well.
//!
//! A fault of a link belongs to the link. A fault of a queue pair concerns a process, and a test injects it before it starts the program. So faults
//! without an end are kept. A fault with a `for` concerns the processes that run when it is injected.

use rackloom_control::order::Order;
use rackloom_plan::Plan;
use rackloom_plan::faults::{Fault, FaultScript};
use rackloom_protocol::NodeId;

/// Largest number of faults that are kept.
const KEPT_MAX: usize = 1000;

/// Faults for processes that start later.
#[derive(Debug, Default)]
pub(super) struct KeptFaults {
    kept: Vec<KeptFault>,
}

#[derive(Debug)]
struct KeptFault {
    /// Number of the event.
    number: usize,
    /// GPU nodes with its queue pairs.
    nodes: Vec<NodeId>,
    /// Script with this event alone.
    text: String,
}

impl KeptFaults {
    /// Keeps the faults of queue pairs of a script whose events are numbered from `first` on.
    ///
    /// # Errors
    /// The number of kept faults is at its limit; none of the script is kept then.
    pub(super) fn keep(&mut self, first: usize, script: &FaultScript, plan: &Plan) -> Result<(), String> {
        let is_kept = |fault: &Fault| matches!(fault, Fault::QueuePairs { .. });
        let events = (first..).zip(&script.events);
        let kept = events.filter(|(_, event)| is_kept(&event.fault) && event.timing.for_ns.is_none());
        let kept: Vec<_> = kept
            .map(|(number, event)| {
                let alone = FaultScript {
                    name: script.name.clone(),
                    events: vec![event.clone()],
                    ..FaultScript::default()
                };
                KeptFault { number, nodes: event.fault.members().to_vec(), text: alone.to_text(plan) }
            })
            .collect();
        if self.kept.len() + kept.len() > KEPT_MAX {
            return Err(format!("the rack has {KEPT_MAX} faults of queue pairs already"));
        }
        self.kept.extend(kept);
        Ok(())
    }

    /// Forgets all faults. Processes that start later do not get them.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Returns the orders for a member whose process has just started: a GPU node, or a process of one.
    pub(super) fn orders_for(&self, plan: &Plan, member: NodeId) -> impl Iterator<Item = Order> {
        let node = plan.node_of_process(member).unwrap_or(member);
        let of_node = self.kept.iter().filter(move |kept| kept.nodes.contains(&node));
        of_node.map(|kept| Order::Inject { first: kept.number, text: kept.text.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_queue_pairs_without_an_end_are_kept_for_the_processes_of_their_nodes() {
        let mut plan = Plan::parse("{name: r, shape: {ring: {nodes: 3}}}", "r").expect("a rack");
        plan.add_processes(2);
        let text = "{name: s, events: [{what: down, where: n0--n1}, {what: fail-queue-pair, where: n1/3, packets: 7}, \
                    {what: delay-queue-pair, where: n1, by: 1ms, for: 1s}]}";
        let script = FaultScript::parse(text, "s", &plan).expect("a script");
        let mut kept = KeptFaults::default();
        kept.keep(5, &script, &plan).expect("there is space");
        let numbers = |name: &str| {
            let member = plan.node_named(name).expect("a member");
            let orders = kept.orders_for(&plan, member);
            let numbers = orders.map(|order| match order {
                Order::Inject { first, text } => {
                    let script = FaultScript::parse(&text, "kept", &plan).expect("its own text");
                    assert_eq!(script.events.len(), 1);
                    assert!(text.contains("n1/3") && text.contains("packets: 7"), "{text}");
                    first
                }
                other => panic!("{other:?}"),
            });
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(numbers("n1"), [6]);
        assert_eq!(numbers("n1.p1"), [6]);
        assert_eq!((numbers("n0"), numbers("n0.p0")), (vec![], vec![]));
        for _ in 1..KEPT_MAX {
            kept.keep(9, &script, &plan).expect("there is space");
        }
        assert!(kept.keep(9, &script, &plan).is_err());
    }
}
