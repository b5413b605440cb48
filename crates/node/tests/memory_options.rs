//! Tests that every option of a region's pages has an effect that can be read back from the kernel.
//!
//! A test that the machine does not permit counts as skipped, with the reason, and never as passed.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rackloom::HostMemory;
use rackloom::memory::{MemoryOptions, Pages};
use rackloom_protocol::{JobMemory, Memory, RegionId};

const REGION: RegionId = RegionId(1);
const OTHER: RegionId = RegionId(2);
const BYTES: u64 = 4 << 20;
const INSIDE: &str = "RACKLOOM_TEST_LITTLE_LOCKABLE";

fn skipped(test: &str, reason: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED (1): {test}: {reason}\n").as_bytes())
        .unwrap();
}

#[test]
fn pages_are_not_touched_before_their_use_unless_requested() {
    let mut memory = HostMemory::default();
    memory.allocate(REGION, BYTES).unwrap();
    assert_eq!(memory.placement(REGION).unwrap().resident_bytes, 0);
    memory.write(REGION, 100, &[1]).unwrap();
    let placement = memory.placement(REGION).unwrap();
    assert!(
        (placement.page_bytes..BYTES).contains(&placement.resident_bytes),
        "one page, perhaps a huge one"
    );
    let options = MemoryOptions::default().touch(true);
    memory.allocate_with(OTHER, BYTES, options).unwrap();
    assert_eq!(memory.placement(OTHER).unwrap().resident_bytes, BYTES);
    let mut bytes = vec![1; BYTES as usize];
    memory.read(OTHER, 0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0), "touching changes nothing");
}

#[test]
fn huge_pages_are_huge_or_have_a_reason() {
    let mut memory = HostMemory::default();
    let options = MemoryOptions::default().huge_pages(true);
    let granted = memory.allocate_with(REGION, BYTES, options).unwrap().clone();
    memory.write(REGION, BYTES - 1, &[7]).unwrap();
    let placement = memory.placement(REGION).unwrap();
    memory.allocate(OTHER, BYTES).unwrap();
    let ordinary = memory.placement(OTHER).unwrap();
    assert!(!ordinary.huge_advised);
    match granted.pages {
        Pages::Huge => assert!(placement.page_bytes > ordinary.page_bytes && granted.reasons.is_empty()),
        Pages::Advised => {
            assert!(placement.huge_advised);
            skipped("the huge page pool", &granted.reasons.join("; "));
        }
        _ => assert_eq!(granted.reasons.len(), 2, "both methods were refused, each with a reason"),
    }
    assert_eq!(granted.pages != Pages::Huge, !granted.reasons.is_empty());
    assert!(memory.write(REGION, BYTES, &[1]).is_err(), "the bounds are the requested ones");
}

#[test]
fn locked_pages_are_locked_from_their_first_touch() {
    let mut memory = HostMemory::default();
    let options = MemoryOptions::default().lock(true);
    match memory.allocate_with(REGION, 64 << 10, options) {
        Ok(granted) => assert!(granted.locked),
        Err(cause) => return skipped("locking 64 KiB", &cause.to_string()),
    }
    assert_eq!(memory.placement(REGION).unwrap().locked_bytes, 0, "not touched yet");
    memory.write(REGION, 0, &[1; 20_000]).unwrap();
    let placement = memory.placement(REGION).unwrap();
    assert!(placement.locked_bytes >= 20_000 && placement.locked_bytes == placement.resident_bytes);
    memory.allocate(OTHER, 64 << 10).unwrap();
    memory.write(OTHER, 0, &[1]).unwrap();
    assert_eq!(memory.placement(OTHER).unwrap().locked_bytes, 0);
}

/// The limit on locked memory applies only to a process without privileges, so a child gives them up and requests more than the limit.
#[test]
fn a_limit_on_locked_memory_is_an_error_that_names_it() {
    if std::env::var_os(INSIDE).is_some() {
        let mut memory = HostMemory::default();
        let options = MemoryOptions::default().lock(true);
        let error = memory.allocate_with(REGION, 1 << 20, options).unwrap_err().to_string();
        assert!(error.contains("65536 bytes") && error.contains("hint: "), "{error}");
        assert_eq!(memory.length(REGION), None, "a demand that fails leaves nothing behind");
        memory.allocate_with(REGION, 4096, options).unwrap();
        return;
    }
    let mut child = Command::new("/proc/self/exe");
    child.args(["--exact", "a_limit_on_locked_memory_is_an_error_that_names_it", "--nocapture"]);
    child.env(INSIDE, "1");
    // SAFETY: needed because limit and user must change in the child only. Between fork and exec this makes nothing but system calls on numbers and
    // on a value of this frame.
    unsafe { child.pre_exec(little_lockable) };
    assert!(child.status().unwrap().success());
}

fn little_lockable() -> std::io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 65_536, rlim_max: 65_536 };
    // SAFETY: plain system calls without pointers except `limit`, which exists through the calls.
    let results = unsafe {
        let limited = libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit);
        let user = if libc::geteuid() == 0 { libc::setuid(65_534) } else { 0 };
        [limited, user]
    };
    if results == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn bound_pages_are_bound() {
    let mut memory = HostMemory::default();
    memory.allocate(OTHER, BYTES).unwrap();
    assert!(memory.placement(OTHER).unwrap().numa_nodes.is_empty());
    let options = MemoryOptions::default().numa_node(Some(0));
    match memory.allocate_with(REGION, BYTES, options) {
        Ok(granted) => assert_eq!(granted.numa_node, Some(0)),
        Err(cause) => return skipped("binding to NUMA node 0", &cause.to_string()),
    }
    memory.write(REGION, 0, &[1]).unwrap();
    assert_eq!(memory.placement(REGION).unwrap().numa_nodes, [0]);
    for impossible in [1000, 5000] {
        let options = MemoryOptions::default().numa_node(Some(impossible));
        let error = memory.allocate_with(RegionId(3), BYTES, options).unwrap_err();
        assert!(error.to_string().contains(&impossible.to_string()), "{error}");
    }
}

/// Kernels read and write pages of the host in place. The fake device does so with a delay.
#[cfg(feature = "gpu")]
#[test]
fn kernels_use_mapped_pages_in_place() {
    use rackloom::gpu::device::{Address, Element, Reduction};
    use rackloom::memory::{DeviceChoice, open_device};
    let mut devices = vec![DeviceChoice::Fake(3)];
    match open_device(DeviceChoice::Cuda(0)) {
        Ok(_) => devices.push(DeviceChoice::Cuda(0)),
        Err(error) => skipped("kernels_use_mapped_pages_in_place", &error.to_string()),
    }
    for choice in devices {
        let mut memory = HostMemory::default();
        let options = MemoryOptions::default().mapped(Some(choice));
        let address = |memory: &mut HostMemory, region| {
            memory.allocate_with(region, BYTES, options).unwrap().device_address.expect("a demand")
        };
        let (target, source) = (address(&mut memory, REGION), address(&mut memory, OTHER));
        memory.write(REGION, 4, &5_i32.to_le_bytes()).unwrap();
        memory.write(OTHER, 4, &37_i32.to_le_bytes()).unwrap();
        let sum = |memory: &mut HostMemory| {
            memory.with_mapper(|device| {
                let stream = device.stream()?;
                let work = (Reduction::Sum, Element::I32);
                device.reduce(stream, work, Address(target), Address(source), BYTES / 4)?;
                device.synchronize(stream)
            })
        };
        sum(&mut memory).expect("a device").unwrap();
        let mut found = [0; 4];
        memory.read(REGION, 4, &mut found).unwrap();
        assert_eq!(i32::from_le_bytes(found), 42, "{choice}");
        assert_eq!(memory.mapped_by(), Some(choice));
        let other = MemoryOptions::default().mapped(Some(DeviceChoice::Fake(99)));
        let refused = memory.allocate_with(RegionId(3), 64, other).unwrap_err();
        assert!(refused.to_string().contains("one device per node"), "{refused}");
        memory.free(OTHER).unwrap();
        if matches!(choice, DeviceChoice::Fake(_)) {
            assert!(
                sum(&mut memory).expect("a device").is_err(),
                "what was freed is not the device's any more"
            );
        }
    }
    let nowhere = MemoryOptions::default().mapped(Some(DeviceChoice::Cuda(99)));
    let refused = HostMemory::default().allocate_with(REGION, 64, nowhere).unwrap_err();
    assert!(refused.to_string().contains("hint: "), "{refused}");
}
