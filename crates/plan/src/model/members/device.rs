//! Model of a GPU: what limits a node's own part of communication, beside its links, and how long it computes.
//!
//! A GPU reaches remote memory on two paths. Its processors load and store from registers: many units, each with a few operations
//! in flight. Copy engines move large blocks: few engines, each with a few transfers in flight, and a longer time from request to
//! begin. Reductions and copies of a collective take time in the node's own memory.
//!
//! A computation that a workload states by its work is launched, and then takes the longer one of its operations and its bytes. Source:
//! Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", Communications of the ACM 52(4), 2009.
//!
//! This file holds the numbers. Limits of communication are applied by the simulator; real processes have a machine of their own.
//! Durations of computations hold in both.

use crate::model::bounds::{MILLISECOND_NS, RATE_MAX};
use crate::model::times::transfer::transfer_ns;
use crate::setting::section::section;
use crate::setting::table::Kind;

/// Largest number of units, engines and operations in flight.
const NUMBER_MAX: u64 = 100_000;
/// Slowest and fastest processor, in floating-point operations per second.
const COMPUTE_RATES: (u64, u64) = (1_000_000, 1_000_000_000_000_000_000);

section! {
    /// Limits of every GPU node.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DeviceModel: DEVICE = "device" {
        /// Units that load, store and perform atomics. 0: nothing limits them.
        load_store_units: u32 {
            form = Kind::Count(0, NUMBER_MAX);
            default = 0;
        }
        /// Operations that one of these units has in flight.
        load_store_in_flight: u32 {
            form = Kind::Count(1, NUMBER_MAX);
            default = 64;
            ours = true;
        }
        /// Time from the request of a load, store or atomic to its begin.
        load_store_latency_ns: u64 {
            key = "load_store_latency";
            form = Kind::Time(0, MILLISECOND_NS);
            default = 0;
        }
        /// Engines that perform puts, gets and messages. 0: nothing limits them.
        bulk_engines: u32 {
            form = Kind::Count(0, NUMBER_MAX);
            default = 0;
        }
        /// Transfers that one engine has in flight.
        bulk_in_flight: u32 {
            form = Kind::Count(1, NUMBER_MAX);
            default = 4;
            ours = true;
        }
        /// Time from the request of a put, get or message to its begin.
        bulk_latency_ns: u64 {
            key = "bulk_latency";
            form = Kind::Time(0, MILLISECOND_NS);
            default = 0;
        }
        /// Bits per second that a node's reductions and copies within its own memory read and write together. Bytes of a computation move at this
        /// rate too.
        memory_rate_bits_per_s: Option<u64> {
            key = "memory_rate";
            form = Kind::Rate(1_000_000, RATE_MAX);
            default = None;
        }
        /// Bits per second of the results of a node's reductions.
        reduction_rate_bits_per_s: Option<u64> {
            key = "reduction_rate";
            form = Kind::Rate(1_000_000, RATE_MAX);
            default = None;
        }
        /// Floating-point operations per second of the computations that a workload states by their work. Without it such a workload is refused.
        compute_rate_flops_per_s: Option<u64> {
            key = "compute_rate";
            form = Kind::ComputeRate(COMPUTE_RATES.0, COMPUTE_RATES.1);
            default = None;
        }
        /// Time from the launch of a computation that a workload states by its work to its begin. Reductions of collectives have none.
        launch_latency_ns: u64 {
            key = "launch_latency";
            form = Kind::Time(0, MILLISECOND_NS);
            default = 0;
        }
    }
}

impl DeviceModel {
    /// Returns true if the model limits the operations of a node or delays them.
    #[must_use]
    pub const fn limits_operations(&self) -> bool {
        self.load_store_units > 0
            || self.bulk_engines > 0
            || self.load_store_latency_ns > 0
            || self.bulk_latency_ns > 0
            || self.limits_work()
    }

    /// Returns true if work in a node's own memory takes time.
    #[must_use]
    pub const fn limits_work(&self) -> bool {
        self.memory_rate_bits_per_s.is_some() || self.reduction_rate_bits_per_s.is_some()
    }

    /// Returns the most loads, stores and atomics in flight; `None` if there is no limit.
    #[must_use]
    pub const fn load_store_max(&self) -> Option<usize> {
        product(self.load_store_units, self.load_store_in_flight)
    }

    /// Returns the most puts, gets and messages in flight; `None` if there is no limit.
    #[must_use]
    pub const fn bulk_max(&self) -> Option<usize> {
        product(self.bulk_engines, self.bulk_in_flight)
    }

    /// Returns the time of work in own memory, in nanoseconds: the longer one of moving `moved_bytes` (reads and writes) and of
    /// computing `reduced_bytes` of results.
    #[must_use]
    pub fn work_ns(&self, moved_bytes: u64, reduced_bytes: u64) -> u64 {
        transfer_ns(moved_bytes, self.memory_rate_bits_per_s)
            .max(transfer_ns(reduced_bytes, self.reduction_rate_bits_per_s))
    }

    /// Returns the time of a computation in nanoseconds: its launch, and the longer one of performing `flops` operations and of moving
    /// `bytes`, rounded up. `None` without a compute rate. A time beyond 64 bits is [`u64::MAX`].
    #[must_use]
    pub fn compute_ns(&self, flops: u64, bytes: u64) -> Option<u64> {
        let rate = u128::from(self.compute_rate_flops_per_s?.max(1));
        let operations_ns = (u128::from(flops) * 1_000_000_000).div_ceil(rate);
        let operations_ns = u64::try_from(operations_ns).unwrap_or(u64::MAX);
        let work_ns = operations_ns.max(transfer_ns(bytes, self.memory_rate_bits_per_s));
        Some(work_ns.saturating_add(self.launch_latency_ns))
    }
}

const fn product(count: u32, in_flight: u32) -> Option<usize> {
    if count == 0 { None } else { Some(count as usize * in_flight as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_limits_nothing() {
        let device = DeviceModel::default();
        assert!(!device.limits_operations() && !device.limits_work());
        assert_eq!(
            (device.load_store_max(), device.bulk_max(), device.work_ns(1 << 40, 1 << 40)),
            (None, None, 0)
        );
    }

    #[test]
    fn limits_multiply_and_the_slower_rate_counts() {
        let plan = crate::Plan::parse(
            "{name: r, shape: {ring: {nodes: 3}}, device: {load_store_units: 132, bulk_engines: 3, bulk_in_flight: 2, \
             memory_rate: 80Gbit/s, reduction_rate: 8Gbit/s}}",
            "rack",
        );
        let device = plan.unwrap_or_else(|error| panic!("{error}")).device;
        assert_eq!((device.load_store_max(), device.bulk_max()), (Some(132 * 64), Some(6)));
        // 10 GB/s and 1 GB/s.
        assert_eq!(device.work_ns(30_000, 0), 3_000);
        assert_eq!(device.work_ns(30_000, 10_000), 10_000);
        assert_eq!(device.work_ns(300_000, 10_000), 30_000);
        assert!(device.limits_operations() && device.limits_work());
    }

    #[test]
    fn a_computation_is_launched_and_takes_the_longer_one_of_its_operations_and_bytes() {
        let plan = crate::Plan::parse(
            "{name: r, shape: {ring: {nodes: 3}}, device: {compute_rate: 2TFLOP/s, launch_latency: 3us, memory_rate: 80Gbit/s}}",
            "rack",
        );
        let device = plan.unwrap_or_else(|error| panic!("{error}")).device;
        // 2000 operations and 10 bytes per nanosecond.
        assert_eq!(device.compute_ns(40_000, 0), Some(3_020));
        assert_eq!(device.compute_ns(40_001, 200), Some(3_021));
        assert_eq!(device.compute_ns(40_000, 201), Some(3_021));
        assert_eq!(device.compute_ns(40_000, 500), Some(3_050));
        assert_eq!(device.compute_ns(0, 0), Some(3_000));
        let slow = DeviceModel { compute_rate_flops_per_s: Some(1), ..device };
        assert_eq!(slow.compute_ns(u64::MAX, 0), Some(u64::MAX));
        let unlimited = DeviceModel { memory_rate_bits_per_s: None, ..device };
        assert_eq!(unlimited.compute_ns(2_000, u64::MAX), Some(3_001));
        assert_eq!(DeviceModel { compute_rate_flops_per_s: None, ..device }.compute_ns(1, 1), None);
        assert!(
            !DeviceModel { memory_rate_bits_per_s: None, ..device }.limits_operations(),
            "computing limits no path"
        );
    }

    #[test]
    fn nodes_inherit_single_keys_from_their_group_and_the_rack() {
        let read = |more: &str| {
            let text = format!(
                "{{name: r, shape: {{star: {{nodes: 3}}}}, device: {{load_store_units: 132, bulk_engines: 3}}{more}}}"
            );
            crate::Plan::parse(&text, "rack").unwrap_or_else(|error| panic!("{error}"))
        };
        let own = read(
            ", groups: {old: {nodes: [n1, n2], device: {bulk_engines: 1}}}, nodes: {n2: {device: {load_store_units: 0}}}",
        );
        let numbers = |member: usize| {
            let device = own.members[member].device;
            (device.load_store_units, device.bulk_engines)
        };
        assert_eq!([0, 1, 2].map(numbers), [(132, 3), (132, 1), (0, 1)]);
        assert!(!own.members[3].device.limits_operations(), "a switch has no GPU");
        let default = read(", nodes: {n0: {device: {load_store_units: 0, bulk_engines: 0}}}");
        let same = read(", nodes: {n0: {device: {load_store_units: 132}}}");
        assert_ne!(default.canonical_encoding(), read("").canonical_encoding());
        assert_eq!(same.canonical_encoding(), read("").canonical_encoding());
    }
}
