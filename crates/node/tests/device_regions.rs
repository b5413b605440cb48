//! Tests of the library's regions on a device: every operation, collectives, registered memory, and refusals.
//!
//! The device is a fake one, whose delays and order depend on a seed, and the first GPU if there is one.

#![cfg(feature = "gpu")]

use std::io::Write;
use std::time::Duration;

use rackloom::fabric::{
    Collective, Condition, DeviceChoice, ElementType, Error, Fabric, Group, GroupOptions, Node, NodeId, Plan,
    Queue, ReduceOperation, Region, RegionId, RegionOptions, Signal,
};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 20;

fn pair() -> Fabric {
    let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
    Fabric::local(&plan).unwrap()
}

fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, KEY)
}

/// Runs `check` on fake devices of several seeds, and on a real one if there is one.
fn on_every_device(test: &str, check: impl Fn(DeviceChoice)) {
    for seed in 0..5 {
        check(DeviceChoice::Fake(seed));
    }
    match rackloom_gpu::Driver::open() {
        Ok(_) => check(DeviceChoice::Cuda(0)),
        Err(error) => {
            let line = format!("SKIPPED (1): {test}: {error}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
    }
}

fn pattern(seed: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31).wrapping_add(seed * 7) >> 3) as u8).collect()
}

fn bytes_of(region: &Region, offset: u64, length: u64) -> Vec<u8> {
    let mut found = vec![0_u8; length as usize];
    region.read(offset, &mut found).unwrap();
    found
}

#[test]
fn every_operation_works_between_regions_on_a_device() {
    on_every_device("every_operation_works_between_regions_on_a_device", |device| {
        let fabric = pair();
        let [initiator, owner] = fabric.nodes() else { unreachable!() };
        let ours = initiator.allocate_on_device(options(1), device, BYTES).unwrap();
        let theirs = owner.allocate_on_device(options(1), device, BYTES).unwrap();
        assert_eq!((ours.len(), theirs.len()), (BYTES, BYTES));
        assert!(ours.device_address().is_some());
        let data = pattern(1, BYTES - 4096);
        ours.write(64, &data).unwrap();
        initiator.put(&ours.slice(64..64 + data.len() as u64), theirs.address(128)).wait().unwrap();
        assert_eq!(bytes_of(&theirs, 128, data.len() as u64), data);
        initiator.store(theirs.address(3), b"odd bytes").wait().unwrap();
        initiator.load(theirs.address(3), &ours.slice(0..9)).wait().unwrap();
        assert_eq!(bytes_of(&ours, 0, 9), b"odd bytes");
        initiator.get(theirs.address(1000), &ours.slice(200_000..300_000)).wait().unwrap();
        assert_eq!(bytes_of(&ours, 200_000, 100_000), bytes_of(&theirs, 1000, 100_000));
        theirs.write(16, &[40_u64]).unwrap();
        assert_eq!(initiator.fetch_add::<u64>(theirs.address(16), 2).wait().unwrap(), 40);
        assert_eq!(initiator.compare_swap::<u64>(theirs.address(16), 42, 7).wait().unwrap(), 42);
        assert_eq!(initiator.swap::<u64>(theirs.address(16), 9).wait().unwrap(), 7);
        assert_eq!(theirs.get::<u64>(16).unwrap(), 9);
        let done = owner.wait_until(&theirs, 8, Condition::AtLeast, 5, initiator.id());
        let signal = Signal::set(theirs.address(8), 5);
        initiator.put_with_signal(&ours.slice(64..5064), theirs.address(5000), signal).wait().unwrap();
        assert_eq!(done.wait().unwrap(), 5);
        assert_eq!(bytes_of(&theirs, 5000, 5000), data[..5000]);
    });
}

#[test]
fn a_region_on_a_device_and_one_of_the_host_reach_each_other() {
    let fabric = pair();
    let [initiator, owner] = fabric.nodes() else { unreachable!() };
    let host = initiator.allocate(options(1), BYTES).unwrap();
    let device = owner.allocate_on_device(options(1), DeviceChoice::Fake(3), BYTES).unwrap();
    let data = pattern(2, BYTES);
    host.write(0, &data).unwrap();
    initiator.put(&host.slice(..), device.address(0)).wait().unwrap();
    assert_eq!(bytes_of(&device, 0, BYTES), data);
    host.write(0, &vec![0_u8; BYTES as usize]).unwrap();
    initiator.get(device.address(0), &host.slice(..)).wait().unwrap();
    assert_eq!(bytes_of(&host, 0, BYTES), data);
    assert_eq!(host.device_address(), None);
}

#[test]
fn memory_of_the_caller_is_registered_and_returned() {
    on_every_device("memory_of_the_caller_is_registered_and_returned", |device| {
        let fabric = pair();
        let [initiator, owner] = fabric.nodes() else { unreachable!() };
        let target = initiator.allocate(options(1), 4096).unwrap();
        // The first region opens the device. Then the caller allocates memory of its own on it.
        let first = owner.allocate_on_device(options(1), device, 64).unwrap();
        let address = owner.with_device(|device| device.allocate(4096).unwrap()).unwrap();
        // SAFETY: the memory is the device's, and is freed after the region is deregistered.
        let own = unsafe { owner.register_on_device(options(2), device, address.0, 4096) }.unwrap();
        assert_eq!(own.device_address(), Some(address.0));
        initiator.store(own.address(100), b"here").wait().unwrap();
        assert_eq!(bytes_of(&own, 100, 4), b"here");
        initiator.get(own.address(96), &target.slice(0..16)).wait().unwrap();
        assert_eq!(bytes_of(&target, 4, 4), b"here");
        assert!(own.deregister::<u8>().unwrap().is_none());
        owner.with_device(|device| device.free(address).unwrap()).unwrap();
        let refused = initiator.store(target.address(0), &[1]).wait();
        assert!(refused.is_err(), "a node reaches its own memory through its regions");
        assert!(matches!(
            initiator
                .store(rackloom::fabric::RemoteAddress { region: RegionId(2), ..first.address(0) }, &[1])
                .wait(),
            Err(Error::Refused { .. })
        ));
    });
}

#[test]
fn collectives_on_slices_of_a_device_match_those_of_the_host() {
    on_every_device("collectives_on_slices_of_a_device_match_those_of_the_host", |device| {
        let plan = Plan::parse("name: four\nshape: {full-mesh: {nodes: 4}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let members: Vec<NodeId> = fabric.nodes().iter().map(Node::id).collect();
        // Longer than the staging buffer, so that it is transferred in pieces.
        let count = 40_000_usize;
        std::thread::scope(|scope| {
            for node in fabric.nodes() {
                let members = &members;
                scope.spawn(move || {
                    let options_of = GroupOptions::new(7, KEY).staging(64 << 10).device(device);
                    let group = Group::join(node, options_of, members).unwrap();
                    let rank = f32::from(node.id().0);
                    let region = node.allocate_on_device(options(1), device, 4 * count as u64).unwrap();
                    let values: Vec<f32> = (0..count).map(|at| at as f32 + rank).collect();
                    region.write(0, &values).unwrap();
                    let queue = Queue::with_capacity(1);
                    let whole = region.slice(..);
                    let sum = ReduceOperation::Sum;
                    let request =
                        group.on_slices(Collective::AllReduce, sum, ElementType::F32, &whole, &whole);
                    request.submit(&queue, 5).unwrap();
                    let ended = node.poll_wait(&queue, Duration::from_secs(60)).expect("it ends");
                    ended.result.unwrap();
                    let mut found = vec![0_f32; count];
                    region.read(0, &mut found).unwrap();
                    for (at, value) in found.iter().enumerate() {
                        assert_eq!(*value, 4.0 * at as f32 + 6.0, "element {at}");
                    }
                    // Arrays of the host through the same staging buffer, and an element type that the device does not support: single bytes.
                    let mut bytes = [node.id().0 as u8 + 1; 100];
                    group.all_reduce(&mut bytes, ReduceOperation::Sum).wait().unwrap();
                    assert_eq!(bytes, [10; 100]);
                });
            }
        });
    });
}

#[test]
fn an_unsupported_request_to_a_device_is_refused_without_a_trace() {
    let fabric = pair();
    let [initiator, _] = fabric.nodes() else { unreachable!() };
    assert!(initiator.with_device(|_| ()).is_none(), "no region, no device");
    let device = DeviceChoice::Fake(1);
    let region = initiator.allocate_on_device(options(1), device, 100).unwrap();
    let exists = initiator.allocate_on_device(options(1), device, 100).unwrap_err();
    assert!(matches!(exists, Error::RegionExists(RegionId(1))), "{exists}");
    let other = initiator.allocate_on_device(options(2), DeviceChoice::Fake(2), 100).unwrap_err();
    assert!(other.to_string().contains("one device per node"), "{other}");
    let huge = initiator.allocate_on_device(options(2), device, 1 << 62).unwrap_err();
    assert!(huge.to_string().contains("hint: "), "{huge}");
    assert!(matches!(region.write(96, &[0_u64]), Err(Error::Invalid(_))));
    assert!(matches!(region.get::<u64>(96), Err(Error::Invalid(_))));
    // The second region number is free again, and so is the first one after its region was dropped.
    let second = initiator.allocate_on_device(options(2), device, 100).unwrap();
    drop((region, second));
    let again = initiator.allocate_on_device(options(1), device, 200).unwrap();
    assert_eq!(bytes_of(&again, 0, 200), vec![0; 200]);
}

#[test]
fn without_a_driver_the_error_has_a_reason_and_a_hint() {
    if rackloom_gpu::Driver::open().is_ok() {
        return;
    }
    let fabric = pair();
    let refused = fabric.nodes()[0].allocate_on_device(options(1), DeviceChoice::Cuda(0), 64).unwrap_err();
    assert!(matches!(refused, Error::System { .. }), "{refused}");
    assert!(
        refused.to_string().contains("no NVIDIA driver") && refused.to_string().contains("hint: "),
        "{refused}"
    );
    assert!(fabric.nodes()[0].allocate(options(1), 64).is_ok(), "the name is free");
}
