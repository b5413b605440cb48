//! Condition under which a count is left out of files.

/// Returns whether a count is zero. Such counts are left out of files.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
