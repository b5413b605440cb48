//! Racks in this process, and an executor that is as small as possible.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rackloom::fabric::{Completion, Fabric, Node, Queue};
use rackloom_plan::Plan;

/// A rack from the text of its file. Its nodes believe in each other for five seconds of silence, so that a machine that is busy
/// elsewhere kills none; what dies here leaves, and that is told by the end of its wires. Unless the file says otherwise.
#[allow(dead_code, reason = "as above")]
pub(crate) fn local(text: &str) -> Fabric {
    let timers = if text.contains("timers:") { "" } else { "timers: {heartbeat_interval: 1s}\n" };
    let text = format!("{text}{timers}");
    Fabric::local(&Plan::parse(&text, "test").unwrap()).unwrap()
}

/// Two nodes and a cable.
#[allow(dead_code, reason = "each test file uses its own part of the rig")]
pub(crate) fn pair() -> (Node, Node) {
    let nodes = local("name: two\nshape: {ring: {nodes: 2}}\n").into_nodes();
    <[Node; 2]>::try_from(nodes).unwrap().into()
}

/// The next completion; it is an error of the test if none comes.
#[allow(dead_code, reason = "as above")]
pub(crate) fn ended(node: &Node, queue: &Queue) -> Completion {
    node.poll_wait(queue, Duration::from_secs(30)).expect("a completion comes")
}

/// Run a future on this thread.
#[allow(dead_code, reason = "as above")]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(Duration::from_secs(30)),
        }
    }
}
