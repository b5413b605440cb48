//! Reports and statuses of racks in the formats of other tools.
//!
//! - [`openmetrics`]: the status of a standing rack for Prometheus and Grafana.
//! - [`junit`]: results as test cases, for continuous integration.
//! - [`perfetto`]: phases, faults, events, operations and time series of a run as trace events.
//! - [`series_csv`]: time series of a run as CSV.
//!
//! The crate makes text. It opens no file and no socket, and reads no clock.
#![forbid(unsafe_code)]

mod exposition;
pub mod junit;
mod lanes;
pub mod openmetrics;
pub mod perfetto;
pub mod series_csv;
