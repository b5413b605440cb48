//! A collective in progress, which ends with its handle.

use std::time::Duration;

use rackloom::fabric::{Error, GroupRequest, Pending};

use crate::codes::{ErrorCode, Failure};

/// Collective that has begun. Dropping it ends the collective, so that the arrays of the program are not used any more.
pub(crate) struct InProgress(Pending<()>);

impl InProgress {
    pub(crate) fn begin(request: GroupRequest<'static>) -> Result<Self, Error> {
        request.start().map(Self)
    }

    pub(crate) fn test(&mut self) -> bool {
        self.0.test()
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<(), Failure> {
        let late = || {
            let text = "the collective continues";
            Err(Failure { maybe_done: true, ..Failure::new(ErrorCode::TimedOut, text) })
        };
        self.0.wait_for(timeout).map_or_else(late, |ended| ended.map_err(Failure::from))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        // A collective can be cancelled, and one that has ended stays ended.
        let _ = self.0.cancel();
    }
}
