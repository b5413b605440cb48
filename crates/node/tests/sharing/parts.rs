//! The parts of the other process, by name.

use rackloom::sharing::{AccessError, Direct, Importer};
use rackloom_protocol::{
    Command, Event, JobMemory, Key, LocalRange, Memory, NodeId, OperationId, RegionId, RemoteAddress, Signal,
    SignalKind, Width,
};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};

use super::rig::{
    KEY, LENGTH, OTHER_SERVER, OTHER_TENANT, Owner, PARENT_NODE, REGION, SAME_TENANT, child_directory,
    child_seats, held, import, next_line, send_line,
};

/// Number of additions that each process makes in the contest.
pub(crate) const ADDS: u64 = 200_000;
/// Number of rounds of put-with-signal.
pub(crate) const ROUNDS: u64 = 300;
/// Data of a round, offset of its signal, and offset of the owner's answer.
pub(crate) const DATA: LocalRange = LocalRange { region: REGION, offset: 4096, length: 10_007 };
pub(crate) const SIGNAL_AT: u64 = 64;
pub(crate) const ANSWER_AT: u64 = 128;
/// Number of imports opened and closed.
pub(crate) const CYCLES: usize = 10_000;

pub(crate) fn play(part: &str) {
    match part {
        "writer" => write(),
        "adder" => add(),
        "putter" => put(),
        "worker" => work(),
        "sleeper" => sleep(),
        "overwriter" => overwrite(),
        "requester" => request_imports(),
        "unauthorised" => access_without_grant(),
        "cycler" => cycle(),
        "holder" => hold(),
        "owner" => own(),
        "peer" => peer(),
        _ => panic!("no such part: {part}"),
    }
}

fn write() {
    let region = import(SAME_TENANT, REGION, KEY).unwrap();
    assert_eq!((region.owner(), region.length()), (PARENT_NODE, LENGTH));
    let bytes: Vec<u8> = (0..=255).cycle().take(5001).collect();
    region.store(3, &bytes).unwrap();
    region.store(LENGTH - 8, &7_u64.to_le_bytes()).unwrap();
    for (offset, length) in [(LENGTH - 7, 8), (LENGTH, 1), (u64::MAX, 1), (u64::MAX - 7, 8), (0, 1 << 20)] {
        assert_eq!(region.store(offset, &vec![1; length]), Err(AccessError::OutOfBounds));
        assert_eq!(region.load(offset, &mut vec![1; length]), Err(AccessError::OutOfBounds));
    }
    assert_eq!(region.fetch_add(LENGTH, Width::Eight, 1), Err(AccessError::OutOfBounds));
    assert_eq!(region.fetch_add(12, Width::Eight, 1), Err(AccessError::Misaligned));
    assert_eq!(region.swap(LENGTH - 8, Width::Eight, 9).unwrap(), 7);
    assert_eq!(region.compare_swap(LENGTH - 8, Width::Eight, 8, 1).unwrap(), 9);
    assert_eq!(region.compare_swap(LENGTH - 8, Width::Eight, 9, 11).unwrap(), 9);
    let mut word = [0; 8];
    region.load(8192, &mut word).unwrap();
    assert_eq!(word, *b"of owner");
    send_line("written");
    next_line();
}

fn add() {
    let region = import(node_of_part(), REGION, KEY).unwrap();
    send_line("ready");
    next_line();
    for _ in 0..ADDS {
        region.fetch_add(0, Width::Eight, 3).unwrap();
        region.fetch_add(64, Width::Four, 5).unwrap();
        loop {
            let mut word = [0; 8];
            region.load(128, &mut word).unwrap();
            let old = u64::from_le_bytes(word);
            if region.compare_swap(128, Width::Eight, old, old + 1).unwrap() == old {
                break;
            }
        }
    }
    send_line("added");
    next_line();
}

fn node_of_part() -> NodeId {
    NodeId(next_line().parse().unwrap())
}

/// Performs a put with its signal per round, through the commands of the wire, and waits for the owner's answer.
fn put() {
    let mut direct = Direct::default();
    direct.add(import(SAME_TENANT, REGION, KEY).unwrap());
    let mut memory = rackloom::HostMemory::default();
    memory.allocate(REGION, LENGTH).unwrap();
    let at = |offset| RemoteAddress { node: PARENT_NODE, region: REGION, offset, key: KEY };
    let mut completed = Vec::new();
    let mut run = |memory: &mut rackloom::HostMemory, command: Command<'_>| {
        direct.handle_command(memory, &command, &mut |event| completed.push(event)).unwrap();
    };
    for round in 1..=ROUNDS {
        memory.write(REGION, DATA.offset, &vec![round as u8; DATA.length as usize]).unwrap();
        let operation = OperationId(round);
        let signal = Signal { region: REGION, offset: SIGNAL_AT, key: KEY, kind: SignalKind::Add, value: 1 };
        run(
            &mut memory,
            Command::Put { operation, target: at(DATA.offset), source: DATA, signal: Some(signal) },
        );
        let into = LocalRange { region: REGION, offset: 0, length: 8 };
        let mut answer = [0; 8];
        while u64::from_le_bytes(answer) != round {
            run(&mut memory, Command::Load { operation, target: at(ANSWER_AT), into });
            memory.read(REGION, 0, &mut answer).unwrap();
            std::thread::yield_now();
        }
    }
    assert!(completed.iter().all(|event| matches!(event, Event::Completed { result: Ok(0), .. })));
    send_line("put");
    next_line();
}

/// Stores until the region is revoked, and not once after that.
fn work() {
    let region = import(SAME_TENANT, REGION, KEY).unwrap();
    send_line("working");
    let mut stored = 0_u64;
    let error = loop {
        match region.store(0, &(stored + 1).to_le_bytes()) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    send_line(&format!("{error:?}"));
    next_line();
    assert_eq!(region.check(), Err(AccessError::Revoked));
    drop(region);
    send_line("dropped");
    next_line();
}

/// Stays inside an access and sends nothing.
fn sleep() {
    let region = import(SAME_TENANT, REGION, KEY).unwrap();
    let inside = region.enter().unwrap();
    inside.store(0, &1_u64.to_le_bytes()).unwrap();
    send_line("inside");
    next_line();
    send_line(&format!("{:?}", inside.store(0, &666_u64.to_le_bytes()).unwrap_err()));
    next_line();
}

/// Writes into the mapped pages without any check, as every process with the descriptor can.
fn overwrite() {
    let _region = import(SAME_TENANT, REGION, KEY).unwrap();
    let path = next_line();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let pages = unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        mmap(std::ptr::null_mut(), LENGTH as usize, protection, MapFlags::SHARED, &file, 0).unwrap()
    };
    let overwrite = |value: u64| {
        // SAFETY: the first word of the mapping above, shared with others only as an atomic.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(pages.cast()) }
            .store(value, std::sync::atomic::Ordering::SeqCst);
    };
    overwrite(1);
    send_line("scribbled");
    next_line();
    overwrite(2);
    send_line("scribbled again");
    next_line();
}

/// Requests the imports that the parent names, and reports the answers.
fn request_imports() {
    loop {
        let line = next_line();
        let words: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
        let [region, key] = words[..] else { return };
        // This process uses a false seat in its own table, so that the owner has to detect it.
        let answer = import(SAME_TENANT, RegionId(region as u32), rackloom_protocol::Key(key));
        match answer {
            Ok(_) => send_line("granted"),
            Err(error) => send_line(&error.to_string()),
        }
    }
}

/// Sends a request by hand, without a check of the listening process.
fn access_without_grant() {
    let name = SocketAddrUnix::new(child_directory().join("memory-0.sock")).unwrap();
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&socket, &name).unwrap();
    send(&socket, &request_bytes(REGION, KEY), SendFlags::empty()).unwrap();
    let mut answer = [0; 128];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty()).unwrap();
    send_line(&format!("{:?}", &answer[4..length.min(8)]));
    next_line();
}

/// Returns a request, byte by byte.
pub(crate) fn request_bytes(region: RegionId, key: Key) -> Vec<u8> {
    let mut bytes = b"RLMI".to_vec();
    bytes.extend([6, 0, 0, 0]);
    bytes.extend(region.0.to_le_bytes());
    bytes.extend(SAME_TENANT.0.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(key.0.to_le_bytes());
    bytes
}

fn cycle() {
    // One import before counting, so that everything created at first use exists.
    drop(import(SAME_TENANT, REGION, KEY).unwrap());
    let before = held();
    for number in 0..CYCLES as u64 {
        let region = import(SAME_TENANT, REGION, KEY).unwrap();
        region.store(0, &number.to_le_bytes()).unwrap();
    }
    assert_eq!(held(), before);
    send_line("cycled");
    next_line();
}

fn hold() {
    let region = import(SAME_TENANT, REGION, KEY).unwrap();
    send_line("holding");
    next_line();
    drop(region);
    send_line("let go");
    next_line();
}

/// Exports until killed.
fn own() {
    let mut seats = child_seats();
    seats.occupy(SAME_TENANT, std::process::id());
    let mut owner = Owner::exporting(SAME_TENANT, &child_directory(), seats);
    send_line("listening");
    owner.serve_until(|_| false);
}

/// Exports and imports at the same time.
fn peer() {
    let mut seats = child_seats();
    seats.occupy(SAME_TENANT, std::process::id());
    let mut owner = Owner::exporting(SAME_TENANT, &child_directory(), seats.clone());
    let importer = Importer::new(SAME_TENANT, &child_directory(), seats);
    let pending = importer.import(PARENT_NODE, REGION, KEY).unwrap();
    let region = pending.wait(super::rig::TIMEOUT, || owner.serve()).unwrap();
    region.store(0, b"the peer").unwrap();
    send_line("stored");
    owner.serve_until(|owner| owner.word(0) == u64::from_le_bytes(*b"parental"));
    assert_eq!(
        importer.import(OTHER_SERVER, REGION, KEY).unwrap_err().to_string().split(' ').next(),
        Some("m3")
    );
    assert!(importer.import(OTHER_TENANT, REGION, KEY).is_ok(), "a request needs no permission");
}
