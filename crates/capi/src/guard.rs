//! The boundary of every call: panics stop here, and failures become codes and a text of the calling thread.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codes::{ErrorCode, Failure};

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
    /// This thread is in a function of the program that the library has called.
    static IS_IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of the program. Meanwhile calls of this thread fail: the library may hold locks that they need.
pub(crate) fn in_callback(function: impl FnOnce()) {
    /// Sets the value back, also when the function panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_IN_CALLBACK.set(self.0);
        }
    }
    let _restore = Restore(IS_IN_CALLBACK.replace(true));
    function();
}

fn check_caller() -> Result<(), Failure> {
    if IS_IN_CALLBACK.get() {
        let text = "a function that the library has called may not call the library";
        return Err(Failure::new(ErrorCode::InCallback, text));
    }
    Ok(())
}

/// Runs the body of a call. A failure is kept for the calling thread. A success leaves the last failure as it is.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failure>) -> ErrorCode {
    // A body that panics leaves its objects behind locks, which report it to later calls.
    let result =
        catch_unwind(AssertUnwindSafe(|| check_caller().and_then(|()| body()))).unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(Failure::new(ErrorCode::Internal, format!("a bug in the library: {text}")))
        });
    match result {
        Ok(()) => ErrorCode::Ok,
        Err(failure) => {
            let code = failure.code;
            // The value is gone in destructors of an ending thread.
            let _ = LAST.try_with(|last| last.replace(Some(failure)));
            code
        }
    }
}

/// Returns the last failure of the calling thread.
pub(crate) fn last() -> Option<Failure> {
    LAST.try_with(|last| last.borrow().clone()).ok().flatten()
}

/// Body of a call that has pointers among its arguments.
macro_rules! with_pointers {
    ($body:block) => {
        $crate::guard::call(|| {
            // SAFETY: needed because pointers come from C. Each function is unsafe itself: its caller promises for every pointer what
            // the function's description and the documentation of this crate say.
            unsafe { $body }
        })
    };
}
pub(crate) use with_pointers;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_a_callback_is_refused() {
        let mut found = ErrorCode::Ok;
        in_callback(|| found = call(|| unreachable!("the body does not run")));
        assert_eq!(found, ErrorCode::InCallback);
        assert_eq!(call(|| Ok(())), ErrorCode::Ok, "after the callback");
    }

    #[test]
    fn a_panic_in_a_callback_ends_at_the_call_around_it() {
        let panics = || {
            in_callback(|| panic!("in a callback"));
            Ok(())
        };
        assert_eq!(call(panics), ErrorCode::Internal);
        assert_eq!(call(|| Ok(())), ErrorCode::Ok, "the thread is not in a callback any more");
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_text() {
        assert_eq!(call(|| panic!("number {}", 7)), ErrorCode::Internal);
        assert_eq!(last().expect("a failure").text, "a bug in the library: number 7");
        assert_eq!(call(|| panic!("plain")), ErrorCode::Internal);
        assert!(last().expect("a failure").text.ends_with("plain"));
        assert_eq!(call(|| Ok(())), ErrorCode::Ok);
        assert!(last().is_some(), "a success keeps the last failure");
        std::thread::spawn(|| assert!(last().is_none(), "failures belong to threads"))
            .join()
            .expect("no panic");
    }
}
