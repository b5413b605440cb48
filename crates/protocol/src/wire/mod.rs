//! Wire format: conversion between bytes and values. `docs/wire-format.md` is the specification; sections named here
//! are its sections.
//!
//! [`layout`] names every offset · [`frame`] is the checked view of a received frame and the writer of headers ·
//! [`packed`] is the list of operations inside a routed frame; [`writes`] and [`acks`] are fast readers of its usual
//! forms · [`demand`] is the packets that wait at a sender · [`control`] has Hello, heartbeat, link reports and retry · [`header_prediction`] predicts headers that continue a
//! stream · [`check`] computes both checks · [`address`] the MAC addresses · [`dump`] prints one line per frame.
//!
//! This folder has no link state and no streams: a frame that parses may still be old, foreign or refused.

pub mod acks;
pub mod address;
pub mod check;
pub mod control;
pub mod demand;
pub mod dump;
pub mod frame;
pub mod header_prediction;
pub mod layout;
pub mod packed;
pub mod writes;

pub use check::{end_to_end_check, hop_check, is_sealed_as_a_whole, seal_end_to_end, seal_hop};
pub use frame::{FabricHeader, Frame, FrameKind, LinkHeader};
