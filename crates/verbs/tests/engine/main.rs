//! The engine over its loopback transport: state rules, every operation, errors, retries and queues. Time is a number of the test.

mod around;
mod atomics_and_reads;
mod datagrams;
mod environment;
mod errors;
mod faults;
mod queues;
mod retries;
mod sends_and_writes;
mod states;
mod support;
mod transports;
mod window;
