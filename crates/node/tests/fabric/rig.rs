//! Racks in this process, and a minimal executor.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rackloom::fabric::{Completion, Fabric, Node, Queue};
use rackloom_plan::Plan;

/// Returns a rack from the text of its file. Unless the file has timers, its nodes tolerate five seconds of silence, so that a busy machine causes no
/// loss. Nodes that end in a test leave, and the end of their wires reports that at once.
#[allow(dead_code, reason = "as above")]
pub(crate) fn local(text: &str) -> Fabric {
    let timers = if text.contains("timers:") { "" } else { "timers: {heartbeat_interval: 1s}\n" };
    let text = format!("{text}{timers}");
    Fabric::local(&Plan::parse(&text, "test").unwrap()).unwrap()
}

/// Returns two nodes joined by a link.
#[allow(dead_code, reason = "each test file uses its own part of the rig")]
pub(crate) fn pair() -> (Node, Node) {
    let nodes = local("name: two\nshape: {ring: {nodes: 2}}\n").into_nodes();
    <[Node; 2]>::try_from(nodes).unwrap().into()
}

/// Returns the next completion. The test fails if none arrives.
#[allow(dead_code, reason = "as above")]
pub(crate) fn ended(node: &Node, queue: &Queue) -> Completion {
    node.poll_wait(queue, Duration::from_secs(30)).expect("a completion comes")
}

/// Runs a future on this thread.
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
