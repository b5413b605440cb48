//! Failure of a system without the packet wire.

use rackloom::namespaces::NamespaceError;

use crate::outcome::failure::Failure;

/// Returns the failure of a rack or a seat without the packet wire.
pub(crate) fn no_packet_wire(error: &NamespaceError) -> Failure {
    let failure = Failure::could_not_start("the packet wire is not available", error);
    match (error, error.hint()) {
        (NamespaceError::Forbidden { .. }, Some(hint)) => {
            failure.hint(format!("use `--wire shared-memory` or `--wire udp`; or {hint}"))
        }
        (_, Some(hint)) => failure.hint(hint),
        (_, None) => failure,
    }
}
