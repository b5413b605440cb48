//! Measurements of a rank's operations: counts, errors, bytes and latency, per kind.
//!
//! Latency runs from the first attempt to issue an operation (so back-pressure counts) until its completion level is
//! reached: *accepted* for posted stores and fences, *visible* for everything else. Times come from the caller's `now`,
//! so they are virtual in the simulator and wall time in processes. One set of measurements never mixes the two.
//!
//! An operation on mapped memory of the same server ("direct") is complete when its call returns. Its latency is the
//! time that the engine measured around the call, plus the time before its acceptance. Direct operations of one rank
//! never overlap, so their busy time is the sum of their durations. They are counted apart from operations in frames.
//!
//! Measurements travel from a node's process to its supervisor as JSON and are merged there, so histograms are written
//! as their non-empty buckets only.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use rackloom_protocol::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Kind of a measured operation. The order is the order of rows in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// A store that completes when the core has accepted it.
    StorePosted,
    /// A store that completes when it is visible.
    StoreAcknowledged,
    /// A load.
    Load,
    /// Fetch-add on 4 bytes.
    #[serde(rename = "fetch-add-4")]
    FetchAddFour,
    /// Fetch-add on 8 bytes.
    #[serde(rename = "fetch-add-8")]
    FetchAddEight,
    /// Compare-swap on 4 bytes.
    #[serde(rename = "compare-swap-4")]
    CompareSwapFour,
    /// Compare-swap on 8 bytes.
    #[serde(rename = "compare-swap-8")]
    CompareSwapEight,
    /// Swap on 4 bytes.
    #[serde(rename = "swap-4")]
    SwapFour,
    /// Swap on 8 bytes.
    #[serde(rename = "swap-8")]
    SwapEight,
    /// A put.
    Put,
    /// A get.
    Get,
    /// A put with a signal after its data.
    PutWithSignal,
    /// A tagged message, until the target holds it or its receiver has it.
    Send,
    /// A receive, from its posting until the message has arrived.
    Receive,
    /// A wait on a word of the rank's own memory.
    WaitUntil,
    /// A fence.
    Fence,
    /// A flush.
    Flush,
    /// A barrier of all ranks, made of signals.
    Barrier,
    /// An access that the owner must refuse. Its refusal is its success.
    ForbiddenAccess,
}

impl OperationKind {
    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();
    /// All kinds, in report order.
    pub const ALL: [Self; 19] = [
        Self::StorePosted,
        Self::StoreAcknowledged,
        Self::Load,
        Self::FetchAddFour,
        Self::FetchAddEight,
        Self::CompareSwapFour,
        Self::CompareSwapEight,
        Self::SwapFour,
        Self::SwapEight,
        Self::Put,
        Self::Get,
        Self::PutWithSignal,
        Self::Send,
        Self::Receive,
        Self::WaitUntil,
        Self::Fence,
        Self::Flush,
        Self::Barrier,
        Self::ForbiddenAccess,
    ];

    /// Returns whether operations of this kind reach another node, so that they have a path.
    #[must_use]
    pub const fn reaches_another(self) -> bool {
        !matches!(self, Self::Receive | Self::WaitUntil | Self::Fence | Self::Flush | Self::Barrier)
    }

    /// Returns a lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StorePosted => "store-posted",
            Self::StoreAcknowledged => "store-acknowledged",
            Self::Load => "load",
            Self::FetchAddFour => "fetch-add-4",
            Self::FetchAddEight => "fetch-add-8",
            Self::CompareSwapFour => "compare-swap-4",
            Self::CompareSwapEight => "compare-swap-8",
            Self::SwapFour => "swap-4",
            Self::SwapEight => "swap-8",
            Self::Put => "put",
            Self::Get => "get",
            Self::PutWithSignal => "put-with-signal",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::WaitUntil => "wait-until",
            Self::Fence => "fence",
            Self::Flush => "flush",
            Self::Barrier => "barrier",
            Self::ForbiddenAccess => "forbidden-access",
        }
    }
}

/// Path that carried an operation on another node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationPath {
    /// Frames over links.
    Frames,
    /// Mapped memory of the same server.
    Direct,
}

impl OperationPath {
    /// Returns a lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Direct => "direct",
        }
    }
}

/// Latencies in nanoseconds, in buckets with a relative error of at most one percent. The maximum is exact.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    max_ns: u64,
    /// Latest latency, and how often it was counted in a row. The histogram does not contain it. In virtual time most operations take as long as
    /// the one before, and the histograms of many ranks are in no cache.
    latest_ns: u64,
    repeated: u64,
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Self) -> bool {
        self.max_ns == other.max_ns && *self.whole() == *other.whole()
    }
}

impl Default for Latencies {
    fn default() -> Self {
        let mut histogram =
            Histogram::new(2).expect("two significant digits are within the histogram's range");
        histogram.auto(true);
        Self { histogram, max_ns: 0, latest_ns: 0, repeated: 0 }
    }
}

impl Latencies {
    /// Longest time in nanoseconds that a bucket stands for: a day. Longer ones count in the last bucket.
    const BUCKET_NS_MAX: u64 = 86_400_000_000_000;

    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        if latency_ns != self.latest_ns {
            let (before_ns, count) = (self.latest_ns, std::mem::take(&mut self.repeated));
            self.record_many(before_ns, count);
            self.latest_ns = latency_ns;
            self.max_ns = self.max_ns.max(latency_ns);
        }
        self.repeated += 1;
    }

    /// Returns the histogram of all latencies.
    fn whole(&self) -> Cow<'_, Histogram<u64>> {
        if self.repeated == 0 {
            return Cow::Borrowed(&self.histogram);
        }
        let mut whole = Self { repeated: 0, ..self.clone() };
        whole.record_many(self.latest_ns, self.repeated);
        Cow::Owned(whole.histogram)
    }

    fn record_many(&mut self, latency_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.histogram
            .record_n(latency_ns.min(Self::BUCKET_NS_MAX), count)
            .expect("the histogram grows to hold every value up to its bound");
    }

    /// Returns the number of latencies counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len() + self.repeated
    }

    /// Returns the latency that this share of all does not exceed; 0 if there are none. The result never exceeds
    /// [`Self::max_ns`].
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.whole().value_at_quantile(share).min(self.max_ns) }
    }

    /// Returns the longest latency.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Adds another rank's latencies.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.whole().iter_recorded() {
            self.record_many(bucket.value_iterated_to(), bucket.count_at_value());
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Form in which [`Latencies`] are sent between processes.
#[derive(Serialize, Deserialize)]
struct LatencyBuckets {
    max_ns: u64,
    buckets: Vec<(u64, u64)>,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = self
            .whole()
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        LatencyBuckets { max_ns: self.max_ns, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = LatencyBuckets::deserialize(deserializer)?;
        let total = read.buckets.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        if total.is_none() {
            return Err(de::Error::custom("more latencies than can be counted"));
        }
        let mut latencies = Self { max_ns: read.max_ns, ..Self::default() };
        for (value_ns, count) in read.buckets {
            latencies.record_many(value_ns, count);
        }
        Ok(latencies)
    }
}

/// Measurements of one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindMeasurement {
    /// Number of completed operations, successful or not.
    pub count: u64,
    /// Number of failed operations, by the error's name.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of the successful operations.
    pub bytes: u64,
    /// Time in nanoseconds during which at least one operation of this kind was outstanding.
    pub busy_ns: u64,
    /// Latency of the successful operations.
    pub latency: Latencies,
    #[serde(skip)]
    in_flight: u64,
    #[serde(skip)]
    busy_since: Instant,
}

impl KindMeasurement {
    fn count(&mut self, latency_ns: u64, outcome: Result<u64, &str>) {
        self.count += 1;
        match outcome {
            Ok(bytes) => {
                self.bytes += bytes;
                self.latency.record(latency_ns);
            }
            Err(name) => *self.errors.entry(name.to_owned()).or_default() += 1,
        }
    }

    /// Returns the number of failed operations.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds another rank's measurements. Ranks work in parallel, so the busy time is the longest one, not the sum.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.busy_ns = self.busy_ns.max(other.busy_ns);
        for (name, count) in &other.errors {
            *self.errors.entry(name.clone()).or_default() += count;
        }
        self.latency.merge(&other.latency);
    }

    /// Returns the bytes that arrived per second of busy time; 0 if no time passed.
    #[must_use]
    pub fn goodput_bytes_per_s(&self) -> u64 {
        let bytes_per_s = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.busy_ns.max(1));
        if self.busy_ns == 0 { 0 } else { u64::try_from(bytes_per_s).unwrap_or(u64::MAX) }
    }
}

/// Measurements of one rank, or of all ranks after merging.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// Operations in frames, and those that concern only their own node.
    kinds: BTreeMap<OperationKind, KindMeasurement>,
    /// Operations on mapped memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    direct: BTreeMap<OperationKind, KindMeasurement>,
}

/// Measurements of a kind of operation on one path.
#[derive(Clone, Copy, Debug)]
pub struct KindOnPath<'m> {
    /// Kind of the operations.
    pub kind: OperationKind,
    /// Path of operations that reach another node's memory.
    pub path: Option<OperationPath>,
    /// Measurements.
    pub measured: &'m KindMeasurement,
}

impl Measurements {
    fn of(&mut self, kind: OperationKind, path: OperationPath) -> &mut KindMeasurement {
        let kinds = match path {
            OperationPath::Frames => &mut self.kinds,
            OperationPath::Direct => &mut self.direct,
        };
        kinds.entry(kind).or_default()
    }

    /// Marks an operation in frames, or one that concerns only its own node, as outstanding from now on.
    pub fn begin(&mut self, kind: OperationKind, now: Instant) {
        self.begin_on(OperationPath::Frames, kind, now);
    }

    /// Marks an operation on this path as outstanding from now on.
    pub fn begin_on(&mut self, path: OperationPath, kind: OperationKind, now: Instant) {
        let measurement = self.of(kind, path);
        if measurement.in_flight == 0 {
            measurement.busy_since = now;
        }
        measurement.in_flight += 1;
    }

    /// Marks an operation as no longer outstanding. Its outcome is counted by [`Self::count`], which may be called
    /// earlier: a posted store reaches its completion level long before its bytes have arrived.
    pub fn end(&mut self, kind: OperationKind, now: Instant) {
        self.end_on(OperationPath::Frames, kind, now);
    }

    /// Marks an operation on this path as no longer outstanding; see [`Self::end`].
    pub fn end_on(&mut self, path: OperationPath, kind: OperationKind, now: Instant) {
        let measurement = self.of(kind, path);
        measurement.in_flight = measurement.in_flight.saturating_sub(1);
        if measurement.in_flight == 0 {
            measurement.busy_ns += now.since(measurement.busy_since);
        }
    }

    /// Counts the outcome of a direct operation that was complete when its call returned. The call took `took_ns` of
    /// the latency; see [`Self::count`].
    pub fn count_direct(
        &mut self,
        kind: OperationKind,
        latency_ns: u64,
        took_ns: u64,
        outcome: Result<u64, &str>,
    ) {
        let measurement = self.direct.entry(kind).or_default();
        measurement.busy_ns += took_ns;
        measurement.count(latency_ns, outcome);
    }

    /// Counts an outcome: the latency and bytes of a success, or the name of an error.
    pub fn count(&mut self, kind: OperationKind, latency_ns: u64, outcome: Result<u64, &str>) {
        self.count_on(OperationPath::Frames, kind, latency_ns, outcome);
    }

    /// Counts an outcome on this path; see [`Self::count`].
    pub fn count_on(
        &mut self,
        path: OperationPath,
        kind: OperationKind,
        latency_ns: u64,
        outcome: Result<u64, &str>,
    ) {
        self.of(kind, path).count(latency_ns, outcome);
    }

    /// Returns the measurements of a kind on mapped memory, if it occurred.
    #[must_use]
    pub fn get_direct(&self, kind: OperationKind) -> Option<&KindMeasurement> {
        self.direct.get(&kind)
    }

    /// Returns the measurements of a kind in frames or on its own node, if it occurred.
    #[must_use]
    pub fn get(&self, kind: OperationKind) -> Option<&KindMeasurement> {
        self.kinds.get(&kind)
    }

    /// Returns all kinds that occurred, in report order, with the path of those that reach another node's memory.
    pub fn iter(&self) -> impl Iterator<Item = KindOnPath<'_>> {
        OperationKind::ALL.into_iter().flat_map(|kind| {
            let frames = kind.reaches_another().then_some(OperationPath::Frames);
            let on = |path| move |measured| KindOnPath { kind, path, measured };
            let framed = self.kinds.get(&kind).map(on(frames));
            let direct = self.direct.get(&kind).map(on(Some(OperationPath::Direct)));
            framed.into_iter().chain(direct)
        })
    }

    /// Adds another rank's measurements.
    pub fn merge(&mut self, other: &Self) {
        for (kind, measurement) in &other.kinds {
            self.kinds.entry(*kind).or_default().merge(measurement);
        }
        for (kind, measurement) in &other.direct {
            self.direct.entry(*kind).or_default().merge(measurement);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_merge_over_the_wire_counts_like_one_histogram(
            left in proptest::collection::vec(0_u64..10_000_000_000, 0..50),
            right in proptest::collection::vec(0_u64..10_000_000_000, 1..50),
        ) {
            let recorded = |values: &[u64]| {
                let mut latencies = Latencies::default();
                values.iter().for_each(|value| latencies.record(*value));
                latencies
            };
            let sent = serde_json::to_string(&recorded(&right)).unwrap();
            let mut merged = recorded(&left);
            merged.merge(&serde_json::from_str(&sent).unwrap());

            let mut all = [left, right].concat();
            all.sort_unstable();
            prop_assert_eq!(merged.count(), all.len() as u64);
            prop_assert_eq!(merged.max_ns(), *all.last().unwrap());
            for share in [0.5, 0.99] {
                let exact = all[((all.len() as f64 * share).ceil() as usize).max(1) - 1];
                let error = merged.quantile_ns(share).abs_diff(exact) as f64;
                // One percent from the buckets, and one more because a merge re-buckets.
                prop_assert!(error <= exact as f64 * 0.02 + 1.0, "{} of {all:?}", merged.quantile_ns(share));
            }
        }
    }

    #[test]
    fn a_repeated_latency_counts_each_time() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.count(), latencies.quantile_ns(0.5), latencies.max_ns()), (0, 0, 0));
        let values = [0, 0, 70, 70, 70, 20, 20, 70, 90, 90];
        values.iter().for_each(|value| latencies.record(*value));
        assert_eq!((latencies.count(), latencies.max_ns()), (10, 90));
        assert_eq!([0.2, 0.4, 0.8, 0.9].map(|share| latencies.quantile_ns(share)), [0, 20, 70, 90]);
        let mut apart = Latencies::default();
        values.iter().for_each(|value| apart.record_many(*value, 1));
        apart.max_ns = 90;
        assert_eq!(apart, latencies);
        let mut merged = latencies.clone();
        merged.merge(&latencies);
        assert_eq!((merged.count(), merged.quantile_ns(0.4)), (20, 20));
        assert_ne!(merged, latencies);
    }

    #[test]
    fn busy_time_is_the_union_and_goodput_counts_successes_only() {
        let mut measurements = Measurements::default();
        let kind = OperationKind::Put;
        measurements.begin(kind, Instant(100));
        measurements.begin(kind, Instant(200));
        measurements.end(kind, Instant(300));
        measurements.count(kind, 200, Ok(1000));
        measurements.end(kind, Instant(600));
        measurements.count(kind, 400, Err("bad-key"));
        measurements.begin(kind, Instant(10_000));
        measurements.end(kind, Instant(10_500));
        measurements.count(kind, 500, Ok(1000));
        let put = measurements.get(kind).unwrap();
        assert_eq!((put.count, put.bytes, put.busy_ns, put.error_count()), (3, 2000, 1000, 1));
        assert_eq!(put.goodput_bytes_per_s(), 2_000_000_000);
        assert_eq!(put.latency.max_ns(), 500);
    }

    #[test]
    fn direct_operations_are_busy_for_the_sum_of_their_times_and_kept_apart() {
        let mut measurements = Measurements::default();
        let kind = OperationKind::Put;
        measurements.count_direct(kind, 100, 100, Ok(1000));
        measurements.count_direct(kind, 350, 300, Ok(1000));
        measurements.count_direct(kind, 100, 100, Err("revoked"));
        measurements.count(kind, 9_000, Ok(1000));
        let sent = serde_json::to_string(&measurements).unwrap();
        let mut merged = Measurements::default();
        merged.merge(&serde_json::from_str(&sent).unwrap());
        let direct = merged.get_direct(kind).unwrap();
        assert_eq!((direct.count, direct.bytes, direct.busy_ns, direct.error_count()), (3, 2000, 500, 1));
        assert_eq!(direct.goodput_bytes_per_s(), 4_000_000_000);
        assert_eq!((direct.latency.max_ns(), merged.get(kind).unwrap().latency.max_ns()), (350, 9_000));
        let paths: Vec<_> = merged.iter().map(|one| one.path).collect();
        assert_eq!(paths, [Some(OperationPath::Frames), Some(OperationPath::Direct)]);
    }

    #[test]
    fn names_in_files_are_the_names_in_reports() {
        for kind in OperationKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn absurd_buckets_are_refused_not_counted() {
        let absurd = format!(r#"{{"max_ns":1,"buckets":[[1,{0}],[2,{0}]]}}"#, u64::MAX);
        assert!(serde_json::from_str::<Latencies>(&absurd).is_err());
    }
}
