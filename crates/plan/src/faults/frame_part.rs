//! Parts of a frame in which a fault flips a bit.

use rackloom_protocol::wire::layout::{LINK, OPERATIONS};

use crate::setting::named_value::named_values;

named_values! {
    /// Part of a frame in which a bit is flipped.
    pub enum FramePart {
        /// Any part, Ethernet header included.
        #[default]
        Any = "any",
        /// Between Ethernet header and operations: the part that the checks of each hop and of both ends cover.
        Header = "header",
        /// Operations and their data. Frames without operations are not affected.
        Payload = "payload",
    }
}

impl FramePart {
    /// Returns the range of bytes of this part in a frame of this length.
    #[must_use]
    pub(crate) fn bytes(self, frame_bytes: usize) -> std::ops::Range<usize> {
        match self {
            Self::Any => 0..frame_bytes,
            Self::Header => LINK.min(frame_bytes)..OPERATIONS.min(frame_bytes),
            Self::Payload => OPERATIONS.min(frame_bytes)..frame_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_frame_are_adjacent_and_short_frames_have_no_payload() {
        assert_eq!(FramePart::Header.bytes(1500), 14..86);
        assert_eq!(FramePart::Payload.bytes(1500), 86..1500);
        assert_eq!(FramePart::Header.bytes(60), 14..60);
        assert!(FramePart::Payload.bytes(60).is_empty());
        assert_eq!(FramePart::Any.bytes(60), 0..60);
    }
}
