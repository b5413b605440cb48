//! Regions of this member and who may do what to them.
