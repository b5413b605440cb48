//! Pictures of racks.
