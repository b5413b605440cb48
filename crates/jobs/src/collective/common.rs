//! Handle of state that the ranks of one job in one process share. Settings carry it; its content is `prepared.rs`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Handle of what the ranks of one job in one process share. All must have the same settings.
///
/// `Send` and `Sync`: contents behind locks.
#[derive(Clone, Default)]
pub struct Common {
    content: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

impl Common {
    /// Returns the content, which is made at the first call. All calls name the same type.
    pub(super) fn content<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let content = self.content.get_or_init(|| Arc::new(T::default()));
        Arc::clone(content).downcast().unwrap_or_else(|_| unreachable!("the content has one type"))
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Common").finish_non_exhaustive()
    }
}
