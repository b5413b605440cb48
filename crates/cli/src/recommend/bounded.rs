//! Work that the search may abandon: it runs in a thread of its own, which ends with the process.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Interval in which the end of the search is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs `work`, and returns its result; `None` if `is_over` returned true before.
///
/// # Errors
/// There is no thread for the work, or it panicked.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    is_over: impl Fn() -> bool,
) -> Result<Option<T>, String> {
    let (sender, receiver) = sync_channel(1);
    let send = move || {
        // The search may have ended.
        let _ = sender.send(work());
    };
    let spawned = thread::Builder::new().name("candidate".to_owned()).spawn(send);
    spawned.map_err(|error| format!("there is no thread for it: {error}"))?;
    loop {
        match receiver.recv_timeout(CHECK_INTERVAL) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Timeout) if is_over() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("it ended with a panic".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_a_result_or_is_abandoned_or_panics() {
        assert_eq!(run(|| 7, || true), Ok(Some(7)));
        let (release, held) = sync_channel::<()>(1);
        assert_eq!(run(move || held.recv().is_ok(), || true), Ok(None));
        drop(release);
        assert!(run(|| -> u8 { panic!("on purpose") }, || false).is_err());
    }
}
