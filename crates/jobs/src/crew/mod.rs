//! What the ranks of every job do alike: issue what they want of their endpoint, meet, derive bytes that both sides know.

pub(crate) mod barrier;
pub(crate) mod issuer;
pub(crate) mod pattern;
pub(crate) mod request;

use rackloom_protocol::Tenant;

/// An endpoint as a job knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its name in the plan.
    pub name: String,
    /// Its partition. Ranks of other partitions must not get at its memory.
    pub tenant: Tenant,
}
