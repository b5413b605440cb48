//! Shares as percent.

/// Formats a share, such as 0.25, as percent with one digit: `25.0 %`. Pages have the same form.
pub(super) fn percent(share: f64) -> String {
    rackloom_page::text::share(share)
}
