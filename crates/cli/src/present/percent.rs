//! Shares as percent.

/// Formats a share, such as 0.25, as percent with one digit: `25.0 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
