//! Memory, events and pools between two processes on one GPU.
//!
//! The other process is this program again, in the role that its environment names. The two processes exchange lines over a socket,
//! which is the standard input of the other process.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use rackloom_gpu::cuda::{EventHandle, MemoryHandle, PointerHandle};
use rackloom_gpu::device::{Address, Device, Shared};
use rackloom_gpu::{Cuda, Driver, GpuError, probe};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::rig::{gpu, print_line};

const ROLE: &str = "RACKLOOM_GPU_TEST_ROLE";
const BYTES: u64 = 64 << 20;
const CYCLES: u32 = 10_000;

/// Other process. [`Self::end`] waits for it.
pub(crate) struct Other {
    child: Child,
    pub(crate) socket: UnixStream,
}

impl Other {
    pub(crate) fn start(role: &str) -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::other", "--nocapture"])
            .env(ROLE, role)
            .stdin(OwnedFd::from(theirs))
            .spawn()
            .unwrap();
        Self { child, socket }
    }

    fn receive_line(&mut self) -> String {
        receive_line(&mut self.socket)
    }

    fn end(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

/// Receives a line, without its end.
fn receive_line(socket: &mut UnixStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while socket.read_exact(&mut byte).is_ok() && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

fn handle(socket: &mut UnixStream) -> [u8; 64] {
    let mut bytes = [0; 64];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

/// Fills memory with a byte, from pinned memory.
fn fill(cuda: &mut Cuda, target: Address, byte: u8) {
    let stream = cuda.stream().unwrap();
    let mut pinned = cuda.pin(BYTES as usize).unwrap();
    pinned.write(0, &vec![byte; BYTES as usize]).unwrap();
    cuda.copy(stream, target, pinned.address(0), BYTES).unwrap();
    cuda.synchronize(stream).unwrap();
}

fn byte_at(cuda: &mut Cuda, source: Address) -> u8 {
    let stream = cuda.stream().unwrap();
    let pinned = cuda.pin(64).unwrap();
    cuda.copy(stream, pinned.address(0), source, 1).unwrap();
    cuda.synchronize(stream).unwrap();
    let mut byte = [0];
    pinned.read(0, &mut byte).unwrap();
    byte[0]
}

#[test]
fn memory_and_events_of_one_process_work_in_another() {
    let Some((mut cuda, _lock)) = gpu("memory_and_events_of_one_process_work_in_another") else { return };
    let mut other = Other::start("importer");
    // Two small allocations besides: the driver may put them into the block of the first.
    let (before, memory) = (cuda.allocate(256).unwrap(), cuda.allocate(BYTES).unwrap());
    fill(&mut cuda, memory, 0x11);
    let (event, event_handle) = cuda.shared_event().unwrap();
    other.socket.write_all(&cuda.export_memory(memory).unwrap().0).unwrap();
    other.socket.write_all(&event_handle.0).unwrap();
    // The other process has enqueued a copy, recorded the event behind it, and reports that before the copy is done.
    assert_eq!(other.receive_line(), "recorded");
    let stream = cuda.stream().unwrap();
    let pinned = cuda.pin(64).unwrap();
    cuda.wait(stream, event).unwrap();
    cuda.copy(stream, pinned.address(0), memory.plus(BYTES - 1), 1).unwrap();
    cuda.synchronize(stream).unwrap();
    let mut byte = [0];
    pinned.read(0, &mut byte).unwrap();
    assert_eq!(byte[0], 0x22, "the event of the other process orders its copy before ours");
    other.socket.write_all(b"go on\n").unwrap();
    print_line(&other.receive_line());
    assert_eq!(other.receive_line(), "closed");
    other.end();
    cuda.free(memory).unwrap();
    cuda.free(before).unwrap();
}

#[test]
fn memory_of_a_process_on_another_gpu_is_as_fast_as_a_peer_s() {
    let Some((mut cuda, _lock)) = gpu("memory_of_a_process_on_another_gpu_is_as_fast_as_a_peer_s") else {
        return;
    };
    let driver = Driver::open().unwrap();
    let count = driver.device_count();
    let reaches =
        probe(&driver).unwrap().peers.iter().any(|peer| (peer.source, peer.target) == (1, 0) && peer.access);
    if count < 2 || !reaches {
        let reason = format!("this machine has {count} GPUs, and the second must reach the first");
        return print_line(&format!(
            "SKIPPED (1): memory_of_a_process_on_another_gpu_is_as_fast_as_a_peer_s: {reason}"
        ));
    }
    let mut other = Other::start("peer");
    let memory = cuda.allocate(BYTES).unwrap();
    fill(&mut cuda, memory, 0x66);
    other.socket.write_all(&cuda.export_memory(memory).unwrap().0).unwrap();
    print_line(&other.receive_line());
    assert_eq!(other.receive_line(), "closed");
    assert_eq!(byte_at(&mut cuda, memory.plus(BYTES - 1)), 0x77);
    other.end();
    cuda.free(memory).unwrap();
}

#[test]
fn a_pool_of_one_process_is_used_in_another() {
    let Some((mut cuda, _lock)) = gpu("a_pool_of_one_process_is_used_in_another") else { return };
    let mut other = Other::start("pool");
    let stream = cuda.stream().unwrap();
    let pool = cuda.pool().unwrap();
    let memory = pool.allocate(&cuda, stream, BYTES).unwrap();
    cuda.synchronize(stream).unwrap();
    fill(&mut cuda, memory, 0x33);
    send_descriptor(&other.socket, &pool.export().unwrap());
    other.socket.write_all(&pool.export_pointer(memory).unwrap().0).unwrap();
    assert_eq!(other.receive_line(), "written");
    assert_eq!(byte_at(&mut cuda, memory.plus(BYTES - 1)), 0x44);
    // The importer has freed first, as the documentation requires.
    assert_eq!(other.receive_line(), "freed");
    pool.free(&cuda, stream, memory).unwrap();
    cuda.synchronize(stream).unwrap();
    other.end();
}

#[test]
fn parts_of_a_pool_are_opened_each_by_itself() {
    let Some((mut cuda, _lock)) = gpu("parts_of_a_pool_are_opened_each_by_itself") else { return };
    let mut other = Other::start("parts");
    let parts = [0x51, 0x52].map(|byte| {
        let memory = cuda.allocate_from_pool(BYTES).unwrap();
        fill(&mut cuda, memory, byte);
        let Shared { handle, file } = cuda.share(memory).unwrap();
        let refused = cuda.open(&handle, file.as_ref().map(AsFd::as_fd));
        assert_eq!(refused, Err(GpuError::OwnHandle));
        send_descriptor(&other.socket, &file.unwrap());
        other.socket.write_all(&handle).unwrap();
        memory
    });
    print_line(&other.receive_line());
    print_line(&other.receive_line());
    assert_eq!(other.receive_line(), "closed");
    assert_eq!(byte_at(&mut cuda, parts[1].plus(BYTES - 1)), 0x61);
    other.end();
    for memory in parts {
        cuda.free(memory).unwrap();
    }
    let counted = cuda.pool_statistics().unwrap().unwrap();
    assert_eq!((counted.used_current, counted.used_high), (0, 2 * BYTES));
}

#[test]
fn memory_of_a_process_that_died_is_still_mapped_and_can_be_closed() {
    let Some((mut cuda, _lock)) = gpu("memory_of_a_process_that_died_is_still_mapped_and_can_be_closed")
    else {
        return;
    };
    let mut other = Other::start("exporter");
    let memory = cuda.open_memory(&MemoryHandle(handle(&mut other.socket))).unwrap();
    assert_eq!(byte_at(&mut cuda, memory), 0x55);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let mut end = [0];
    assert_eq!(other.socket.read(&mut end).unwrap(), 0, "its death is seen on the socket");
    let stream = cuda.stream().unwrap();
    let pinned = cuda.pin(64).unwrap();
    let copied = cuda.copy(stream, pinned.address(0), memory, 1).and_then(|()| cuda.synchronize(stream));
    let closed = cuda.close_memory(memory);
    print_line(&format!(
        "after the exporter was killed: a copy from its memory: {copied:?}, closing it: {closed:?}"
    ));
    let again = cuda.allocate(1 << 20).unwrap();
    cuda.free(again).unwrap();
}

/// Body of the other process for the tests above. It is no test.
#[test]
fn other() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let driver = Driver::open().unwrap();
    let mut cuda = Cuda::open(&driver, 0).unwrap();
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    match role.as_str() {
        "importer" => import(&mut cuda, &mut socket),
        "peer" => import_from_peer(&mut socket),
        "pool" => import_pool(&mut cuda, &mut socket),
        "looker" => crate::speed::look(&mut cuda, &mut socket),
        "parts" => import_parts(&mut cuda, &mut socket),
        "exporter" => {
            let memory = cuda.allocate(BYTES).unwrap();
            fill(&mut cuda, memory, 0x55);
            socket.write_all(&cuda.export_memory(memory).unwrap().0).unwrap();
            // The test kills this process.
            receive_line(&mut socket);
        }
        other => panic!("no role {other}"),
    }
}

fn import(cuda: &mut Cuda, socket: &mut UnixStream) {
    let memory_handle = MemoryHandle(handle(socket));
    let memory = cuda.open_memory(&memory_handle).unwrap();
    let event = cuda.open_event(&EventHandle(handle(socket))).unwrap();
    assert_eq!(byte_at(cuda, memory), 0x11);
    let own = cuda.allocate(BYTES).unwrap();
    fill(cuda, own, 0x22);
    let stream = cuda.stream().unwrap();
    for _ in 0..200 {
        cuda.copy(stream, memory, own, BYTES).unwrap();
    }
    cuda.record(event, stream).unwrap();
    socket.write_all(b"recorded\n").unwrap();
    assert_eq!(receive_line(socket), "go on");
    let second = cuda.allocate(BYTES).unwrap();
    let (ipc, local) = (rate(cuda, memory, own), rate(cuda, second, own));
    let line = format!(
        "copy of 64 MiB: {ipc:.0} GB/s into memory of another process, {local:.0} GB/s into one's own\n"
    );
    socket.write_all(line.as_bytes()).unwrap();
    cuda.close_memory(memory).unwrap();
    let line = cycles(cuda, |cuda| {
        let memory = cuda.open_memory(&memory_handle).unwrap();
        cuda.close_memory(memory).unwrap();
    });
    print_line(&line);
    socket.write_all(b"closed\n").unwrap();
}

/// Returns 10^9 bytes copied per second, the median of 15.
fn rate(cuda: &mut Cuda, target: Address, source: Address) -> f64 {
    let stream = cuda.stream().unwrap();
    let (from, to) = (cuda.timer().unwrap(), cuda.timer().unwrap());
    let mut rates = Vec::new();
    for _ in 0..15 {
        cuda.record(from, stream).unwrap();
        for _ in 0..20 {
            cuda.copy(stream, target, source, BYTES).unwrap();
        }
        cuda.record(to, stream).unwrap();
        cuda.synchronize(stream).unwrap();
        rates.push(20.0 * BYTES as f64 / f64::from(cuda.elapsed_ms(from, to).unwrap()) / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    rates[7]
}

/// Runs on the second GPU, with memory of a process on the first.
fn import_from_peer(socket: &mut UnixStream) {
    let driver = Driver::open().unwrap();
    let (mut first, mut second) = (Cuda::open(&driver, 0).unwrap(), Cuda::open(&driver, 1).unwrap());
    second.enable_peer(&first).unwrap();
    let memory = second.open_memory(&MemoryHandle(handle(socket))).unwrap();
    assert_eq!(byte_at(&mut second, memory), 0x66);
    let (own, peer) = (second.allocate(BYTES).unwrap(), first.allocate(BYTES).unwrap());
    fill(&mut second, own, 0x77);
    let (ipc, raw) = (rate(&mut second, memory, own), rate(&mut second, peer, own));
    let line = format!(
        "copy of 64 MiB across GPUs: {ipc:.0} GB/s into another process, {raw:.0} GB/s as a peer copy\n"
    );
    socket.write_all(line.as_bytes()).unwrap();
    second.close_memory(memory).unwrap();
    socket.write_all(b"closed\n").unwrap();
}

fn import_parts(cuda: &mut Cuda, socket: &mut UnixStream) {
    let [first, second] = [(); 2].map(|()| (receive_descriptor(socket), handle(socket)));
    let open = |cuda: &mut Cuda, (file, handle): &(OwnedFd, [u8; 64])| {
        cuda.open(handle, Some(file.as_fd())).unwrap()
    };
    let there = [&first, &second].map(|part| open(cuda, part));
    assert_eq!(there.map(|memory| byte_at(cuda, memory)), [0x51, 0x52]);
    cuda.close(there[0]).unwrap();
    fill(cuda, there[1], 0x61);
    let own = cuda.allocate(BYTES).unwrap();
    fill(cuda, own, 0x61);
    let second_own = cuda.allocate(BYTES).unwrap();
    let (ipc, local) = (rate(cuda, there[1], own), rate(cuda, second_own, own));
    let line = format!(
        "copy of 64 MiB: {ipc:.0} GB/s into a pool of another process, {local:.0} GB/s into one's own\n"
    );
    socket.write_all(line.as_bytes()).unwrap();
    let line = cycles(cuda, |cuda| {
        let memory = open(cuda, &first);
        cuda.close(memory).unwrap();
    });
    socket.write_all(format!("of a pool: {line}\n").as_bytes()).unwrap();
    cuda.close(there[1]).unwrap();
    socket.write_all(b"closed\n").unwrap();
}

/// Opens and closes many times.
fn cycles(cuda: &mut Cuda, cycle: impl Fn(&mut Cuda)) -> String {
    cycle(cuda);
    let before = cuda.free_bytes().unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let open = descriptors();
    let begun = std::time::Instant::now();
    for _ in 0..CYCLES {
        cycle(cuda);
    }
    let each = begun.elapsed() / CYCLES;
    let after = cuda.free_bytes().unwrap();
    assert!(after + (4 << 20) >= before, "device memory leaks: {before} before, {after} after");
    assert_eq!(descriptors(), open, "descriptors leak");
    format!("{CYCLES} cycles of open and close: {each:?} each; free bytes before {before}, after {after}")
}

fn import_pool(cuda: &mut Cuda, socket: &mut UnixStream) {
    let descriptor = receive_descriptor(socket);
    let pool = cuda.import_pool(descriptor.as_fd()).unwrap();
    let pointer = PointerHandle(handle(socket));
    pool.set_access(cuda, true).unwrap();
    let memory = pool.import_pointer(&pointer).unwrap();
    assert_eq!(byte_at(cuda, memory.plus(BYTES - 1)), 0x33);
    fill(cuda, memory, 0x44);
    socket.write_all(b"written\n").unwrap();
    let stream = cuda.stream().unwrap();
    for refused in [
        pool.allocate(cuda, stream, 1).map(|_| ()),
        pool.trim(0),
        pool.set_release_threshold(1),
        pool.export().map(|_| ()),
    ] {
        assert!(matches!(refused, Err(GpuError::Imported { .. })), "{refused:?}");
    }
    pool.free(cuda, stream, memory).unwrap();
    cuda.synchronize(stream).unwrap();
    socket.write_all(b"freed\n").unwrap();
}

fn send_descriptor(socket: &UnixStream, descriptor: &OwnedFd) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty()).unwrap();
}

fn receive_descriptor(socket: &UnixStream) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty()).unwrap();
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.unwrap()
}
