//! Passing of values between the keys of an event and a fault, in both directions by one declaration.
//!
//! A fault declares once which key states which of its values ([`Stated::exchange`]). Reading passes the values from the keys, writing
//! passes them to the keys. This file knows no kind of fault.

use super::kind::FaultKind;
use crate::schema::EventKeys;

/// Direction in which values pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// From the keys of an event to a fault.
    FromKeys,
    /// From a fault to the keys of an event.
    ToKeys,
}

impl Pass {
    /// Passes a value whose key may be absent. A fault keeps its value if the key is absent.
    pub(super) fn value<T: Copy>(self, key: &mut Option<T>, value: &mut T) {
        match self {
            Self::FromKeys => *value = key.unwrap_or(*value),
            Self::ToKeys => *key = Some(*value),
        }
    }

    /// Passes a value whose key has a default.
    pub(super) fn with_default<T: Copy>(self, key: &mut T, value: &mut T) {
        match self {
            Self::FromKeys => *value = *key,
            Self::ToKeys => *key = *value,
        }
    }

    /// Sets a state of a fault that no key states, because it follows from the kind.
    pub(super) const fn state(self, value: &mut bool) {
        if matches!(self, Self::FromKeys) {
            *value = true;
        }
    }
}

/// Values of a fault that the keys of an event state.
pub(super) trait Stated: Clone + Default + PartialEq {
    /// Passes each value of the kind `keys.what` between its key and its field.
    fn exchange(&mut self, keys: &mut EventKeys, pass: Pass);

    /// Returns the values that an event with these keys states.
    fn stated_by(keys: &EventKeys) -> Self {
        let mut values = Self::default();
        values.exchange(&mut keys.clone(), Pass::FromKeys);
        values
    }

    /// Returns the keys of an event of this kind with these values, or `None` if no event of the kind has them.
    fn keys_of(&self, kind: FaultKind) -> Option<EventKeys> {
        let mut keys = EventKeys { what: kind, ..EventKeys::default() };
        self.clone().exchange(&mut keys, Pass::ToKeys);
        (Self::stated_by(&keys) == *self).then_some(keys)
    }
}
