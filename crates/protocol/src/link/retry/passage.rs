//! Protection of a frame that leaves, as the sending end of a link decides it.

/// Protection of a frame by link-level retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// None: the link has no retry, or the frame is not protected by it.
    #[default]
    Plain,
    /// The member computes the checks of the whole frame, and keeps a copy if the link has retry.
    Kept,
    /// The frame is replayed.
    Repeated,
    /// The frame leaves without protection.
    Unprotected,
    /// The frame is discarded.
    Discarded,
}
