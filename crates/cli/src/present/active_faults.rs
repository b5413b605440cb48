//! Faults in effect in a rack that is up. A status names each fault once per member that applies it, and views show each fault once.

use rackloom_control::request::ActiveFault;

/// Fault in effect, with all members that apply it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultInEffect<'a> {
    pub(crate) what: &'a str,
    pub(crate) members: Vec<&'a str>,
    /// Time since it began at its first member, in nanoseconds.
    pub(crate) age_ns: u64,
}

/// Returns the faults in the order in which the status first names them.
pub(crate) fn active_faults(of_members: &[ActiveFault]) -> Vec<FaultInEffect<'_>> {
    let mut faults: Vec<(usize, FaultInEffect<'_>)> = Vec::new();
    for ActiveFault { fault: number, what, member, age_ns } in of_members {
        match faults.iter_mut().find(|(known, fault)| known == number && fault.what == what) {
            Some((_, fault)) => {
                fault.members.push(member);
                fault.age_ns = fault.age_ns.max(*age_ns);
            }
            None => faults.push((*number, FaultInEffect { what, members: vec![member], age_ns: *age_ns })),
        }
    }
    faults.into_iter().map(|(_, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_two_members_is_one_and_equal_faults_are_two() {
        let at = |fault: usize, member: &str, age_ns: u64| ActiveFault {
            fault,
            what: "down n0--n1".to_owned(),
            member: member.to_owned(),
            age_ns,
        };
        let of_members = [at(1, "n0", 5), at(1, "n1", 7), at(2, "n0", 3)];
        let faults = active_faults(&of_members);
        let members: Vec<_> = faults.iter().map(|fault| (fault.members.join(" "), fault.age_ns)).collect();
        assert_eq!(members, [("n0 n1".to_owned(), 7), ("n0".to_owned(), 3)]);
    }
}
