//! Error of namespaces: the step that the system refuses.

use std::io;

use thiserror::Error;

/// Error of namespaces and cables: the packet wire is not available.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The kernel or its administrator forbids a step.
    #[error(
        "the packet wire needs {step}, which this system forbids: {cause}\n\
         hint: use `--wire shared-memory` or `--wire udp`, run as root, or allow unprivileged user namespaces \
         (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Forbidden {
        /// The missing right or resource.
        step: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A bridge could not be created.
    #[error(
        "cannot make bridge {bridge}: {cause}\n\
         hint: the kernel needs its bridge module; without it, leave `switch: bridge` out of the rack file"
    )]
    NoBridge {
        /// Name of the bridge.
        bridge: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A cable could not be created.
    #[error("cannot lay cable {cable}: {cause}")]
    Cable {
        /// The two interface names of the cable.
        cable: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Returns a function that makes the error of a step from its cause.
pub(crate) fn forbidden<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> NamespaceError {
    move |cause| NamespaceError::Forbidden { step, cause: cause.into() }
}
