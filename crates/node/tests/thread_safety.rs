//! Tests that the documentation of each public type states the thread safety that the compiler has checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rackloom::availability::Shortage;
use rackloom::fabric::{
    Batch, CommandQueue, Completion, CompositeRequest, Driver, Ended, Error, Fabric, Group, GroupOptions,
    GroupRequest, Invalid, JobSeat, KernelAccess, MemoryPool, Next, Node, NodeCounters, NodePool, PeerAccess,
    PeerRegion, Pending, PersistentCollective, PointerAttributes, Queue, Received, Rechoice, Reduction,
    Region, RegionHandle, RegionOptions, Request, SeatBefore, Slice, Store, StreamEvent, Strided,
};
use rackloom::hosts::{HostLink, HostLinkError, MessageSocket, RoutedMessages};
use rackloom::ip::{FrameSocket, Interface, ProgramNetwork};
use rackloom::memory::{
    AllocateError, DeviceChoice, FreeRefused, Granted, HostView, MemoryLimits, MemoryOptions, PagePreference,
    Pages, Placement, PoolUsage, QuotaExceeded, Statistics, TenantLimit, TiersInUse, Usage,
};
use rackloom::namespaces::{Bridge, BridgeCable, Cable, CableEnd, NameError, Names, NamespaceError};
use rackloom::pool::{
    Block, BlockRequest, Leak, LeakReport, Pool, PoolError, PoolMemory, PoolOptions, ReusePolicies,
};
use rackloom::seal::{EndNonce, KeyError, KeyLocation, LinkEnds, RackKey, Tagger};
use rackloom::seat::answer::Answer;
use rackloom::seat::status_page::StatusPage;
use rackloom::seat::wires::{Cabling, WatchPort};
use rackloom::seat::{
    FaultLine, FaultNotices, FaultPlayer, Grant, NewCable, Outlet, SharedMemoryPort, UdpOutlet,
};
use rackloom::sharing::{
    AccessError, CommandPath, Cut, Direct, ExportError, ExportEvent, Exporter, ImportError, ImportedRegion,
    Importer, Inside, PendingImport, Refusal, Revoked, Seat, Seats,
};
use rackloom::wires::exchangeable_port::{ExchangeablePort, Idle, Inserter};
use rackloom::wires::impaired::{Impaired, Timing, Watch};
use rackloom::wires::packet::{PacketDevice, Settings};
use rackloom::wires::sealed::Sealed;
use rackloom::wires::shared_memory::{End, SharedMemoryDevice};
use rackloom::wires::tapped::Tapped;
use rackloom::wires::udp::{Route, UdpDevice};
use rackloom::wires::{
    Device, DeviceCounters, DeviceLease, Doorbell, FaultHand, Offered, Ports, PortsError, WakeSource,
};
use rackloom::{ArrivalWatch, Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_protocol::Endpoint;

const fn send_and_sync<T: Send + Sync + ?Sized>() {}
const fn send<T: Send + ?Sized>() {}

/// Lets the compiler check every type, and keeps the names.
macro_rules! types {
    ($list:ident, $check:ident: $($type:ty),+ $(,)?) => {
        const $list: &[&str] = &[$({ $check::<$type>(); stringify!($type) }),+];
    };
}

types!(BOTH, send_and_sync:
    Clock, WaitPolicy,
    FrameSocket, Interface, ProgramNetwork,
    Batch<'static>, Next<'static>, PeerRegion, PeerAccess<'static>, Pending<u64>, CommandQueue, Completion, CompositeRequest, Strided, Driver, Ended, Error, Fabric, Group, GroupOptions, GroupRequest, PersistentCollective, Rechoice, Reduction<u8>, Invalid, JobSeat, Node, NodeCounters, Queue, Received, SeatBefore,
    MemoryPool, KernelAccess<'static>, StreamEvent<'static>, PointerAttributes, RegionHandle, Region, RegionOptions, Request<'static, u64>, Slice, Store<'static>,
    AllocateError, DeviceChoice, FreeRefused, Granted, HostMemory, HostView<'static>, MemoryLimits, MemoryOptions, PagePreference, Pages, Placement, PoolUsage,
    QuotaExceeded, Statistics, TenantLimit, TiersInUse, Usage,
    Bridge, BridgeCable, Cable, CableEnd, NameError, Names, NamespaceError,
    Block, Leak, LeakReport, PoolError, PoolOptions, ReusePolicies, BlockRequest<'static>,
    Answer, FaultLine<'static>, FaultPlayer, Grant, NewCable, Outlet, SharedMemoryPort, StatusPage, UdpOutlet,
    HostLink, HostLinkError, RoutedMessages, Route, MessageSocket,
    AccessError, Cut, Direct, ExportError, ExportEvent, Exporter, ImportError, ImportedRegion, Importer, Inside<'static>,
    PendingImport, Refusal, Revoked, Seat, Seats, CommandPath,
    DeviceCounters, DeviceLease, Doorbell, End, Idle, Inserter, Offered, PortsError, Settings, SharedMemoryDevice,
    UdpDevice,
    EndNonce, KeyError, KeyLocation, LinkEnds, RackKey, Sealed<SharedMemoryDevice>, Tagger,
    Shortage, Tapped<SharedMemoryDevice, fn(&[u8])>, Timing, WakeSource<'static>,
);
types!(ONE_THREAD_AT_A_TIME, send:
    Cabling, ArrivalWatch, Impaired<SharedMemoryDevice>, ExchangeablePort, PacketDevice, NodePool, Pool, dyn PoolMemory, Ports, Runtime<Endpoint>, Watch, WatchPort, dyn Device, dyn FaultHand, dyn FaultNotices,
);

/// Collects every `pub` type of the crate's sources with its documentation.
fn documented(directory: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path: PathBuf = entry.path();
        if path.is_dir() {
            documented(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            documented_in(&path, found);
        }
    }
}

/// Collects every `pub` type of one file with its documentation.
fn documented_in(file: &Path, found: &mut BTreeMap<String, String>) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut documented_types = String::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["pub", "struct" | "enum" | "type" | "trait", name, ..] = words[..]
            && line.starts_with("pub")
        {
            let name = name.split(|character: char| !character.is_alphanumeric()).next().unwrap();
            found.insert(name.to_owned(), std::mem::take(&mut documented_types));
        } else if line.starts_with("///") {
            documented_types.push_str(line);
            documented_types.push('\n');
        } else if line.is_empty() {
            documented_types.clear();
        }
    }
}

/// Returns the name alone: without path, lifetimes and parameters.
fn bare(name: &str) -> &str {
    name.trim_start_matches("dyn ").split('<').next().unwrap().trim()
}

#[test]
fn every_public_type_documents_its_thread_safety() {
    let mut documented_types = BTreeMap::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    documented(&own.join("src"), &mut documented_types);
    // Types that this crate re-exports.
    for file in ["grant.rs", "key.rs"] {
        documented_in(&own.join("../control/src").join(file), &mut documented_types);
    }
    for (list, expected) in [(BOTH, "`Send` and `Sync`"), (ONE_THREAD_AT_A_TIME, "`Send`, not `Sync`")] {
        for name in list.iter().map(|name| bare(name)) {
            let text =
                documented_types.remove(name).unwrap_or_else(|| panic!("{name} is not in the sources"));
            assert!(text.contains(expected), "{name} does not document: {expected}\n{text}");
        }
    }
    // Traits for numbers and outcomes are sealed. Their implementors are checked where they are declared.
    for name in ["Element", "Number", "Outcome", "Reducer", "Word"] {
        assert!(
            documented_types.remove(name).is_some_and(|text| text.contains("`Send` and `Sync`")),
            "{name}"
        );
    }
    documented_types.retain(|_, text| !text.is_empty());
    assert!(
        documented_types.is_empty(),
        "not checked here; hint: add them above: {:?}",
        documented_types.keys()
    );
}
