//! Error of namespaces: the step that the system refuses.

use std::io;

use thiserror::Error;

/// Error of namespaces and cables.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The kernel or its administrator forbids a step.
    #[error("it needs {step}, which this system forbids: {cause}")]
    Forbidden {
        /// The missing right or resource.
        step: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A bridge could not be created.
    #[error("cannot make bridge {bridge}: {cause}")]
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

impl NamespaceError {
    /// Returns a remedy, if the system has one.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Forbidden { .. } => Some(
                "run as root, or allow unprivileged user namespaces (user.max_user_namespaces, \
                 kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
            ),
            Self::NoBridge { .. } => Some(
                "the kernel needs its bridge module; without it, leave `switch: bridge` out of the rack file",
            ),
            Self::Cable { .. } => None,
        }
    }
}

/// Returns a function that makes the error of a step from its cause.
pub(crate) fn forbidden<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> NamespaceError {
    move |cause| NamespaceError::Forbidden { step, cause: cause.into() }
}
