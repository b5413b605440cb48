//! Values of keys: how the text of a file becomes a value, and how a value is shown and encoded.
//!
//! The type of a field says which values there are. The [`Kind`] of its key says in which unit and range a file states them.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use rackloom_protocol::NodeId;

use crate::setting::complaint::{Complaint, quoted};
use crate::setting::named_value::{NamedValue, read_named, value_named};
use crate::setting::quantity::{
    bytes, flops_per_s, millimetres, nanoseconds, probability, rate, thousandths, whole,
};
use crate::setting::table::Kind;

/// Value that can be shown to a user and encoded.
pub(crate) trait Shown {
    /// Appends the form of the canonical encoding (`docs/decisions/canonical-encoding.md`).
    fn encode(&self, kind: &Kind, text: &mut String);

    /// Returns the value as a rack file states it.
    fn shown(&self, kind: &Kind) -> String;

    /// Returns the number that is compared with the range of the key, in the base unit, or `None` if the value is no number.
    fn number(&self) -> Option<u64> {
        None
    }
}

/// Value that a file states as one scalar.
pub(crate) trait Value: Shown + Clone + PartialEq {
    /// Reads the text of a scalar. The range is not checked.
    fn read(text: &str, kind: &Kind) -> Result<Self, Complaint>;
}

/// Reads a size that must fit a smaller type.
pub(crate) fn bytes_as<T: TryFrom<u64>>(text: &str) -> Result<T, Complaint> {
    narrow(bytes(text)?, "bytes")
}

/// Converts a number of base units to the type of a field.
fn narrow<T: TryFrom<u64>>(value: u64, unit: &str) -> Result<T, Complaint> {
    T::try_from(value).map_err(|_| {
        let hint = "its range stands in docs/topology-file.md and in `rackloom schema`";
        Complaint::about(format!("{value} {unit} is too large")).hint(hint).beyond_type()
    })
}

/// Implements [`Value`] for whole numbers.
macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Shown for $type {
            fn encode(&self, _: &Kind, text: &mut String) {
                // Writing to a String does not fail.
                let _ = write!(text, "{self}");
            }

            fn shown(&self, kind: &Kind) -> String {
                kind.number_shown(u64::from(*self))
            }

            fn number(&self) -> Option<u64> {
                Some(u64::from(*self))
            }
        }

        impl Value for $type {
            fn read(text: &str, kind: &Kind) -> Result<Self, Complaint> {
                match kind.scalar() {
                    Kind::Size(..) => bytes_as(text),
                    Kind::Time(..) => narrow(nanoseconds(text)?, "ns"),
                    Kind::Length(..) => narrow(millimetres(text)?, "mm"),
                    Kind::Factor(..) => thousandths(text),
                    Kind::Rate(..) => narrow(rate(text)?.unwrap_or(u64::MAX), "bit/s"),
                    Kind::ComputeRate(..) => narrow(flops_per_s(text)?, "FLOP/s"),
                    _ => whole(text),
                }
            }
        }
    )+};
}

whole_numbers!(u8, u16, u32, u64);

/// A flag, or the first of two names for `false` and the second for `true`.
impl Shown for bool {
    fn encode(&self, kind: &Kind, text: &mut String) {
        text.push_str(&self.shown(kind));
    }

    fn shown(&self, kind: &Kind) -> String {
        match kind.scalar() {
            Kind::Choice(names) => names[usize::from(*self)].to_owned(),
            _ => self.to_string(),
        }
    }
}

impl Value for bool {
    fn read(text: &str, kind: &Kind) -> Result<Self, Complaint> {
        match kind.scalar() {
            Kind::Choice(names) => value_named(text, &[(names[0], false), (names[1], true)]),
            _ => value_named(text, &[("true", true), ("false", false)]),
        }
    }
}

/// Probability. It is encoded as the bits of IEEE 754, so that nothing is rounded.
impl Shown for f64 {
    fn encode(&self, _: &Kind, text: &mut String) {
        let _ = write!(text, "{:016x}", self.to_bits());
    }

    fn shown(&self, _: &Kind) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    fn read(text: &str, _: &Kind) -> Result<Self, Complaint> {
        probability(text)
    }
}

impl<T: NamedValue> Shown for T {
    fn encode(&self, _: &Kind, text: &mut String) {
        text.push_str(self.name());
    }

    fn shown(&self, _: &Kind) -> String {
        self.name().to_owned()
    }
}

impl<T: NamedValue> Value for T {
    fn read(text: &str, _: &Kind) -> Result<Self, Complaint> {
        read_named(text)
    }
}

/// A value that can be absent. An absent rate is unlimited.
impl<T: Shown> Shown for Option<T> {
    fn encode(&self, kind: &Kind, text: &mut String) {
        match self {
            Some(value) => value.encode(kind, text),
            None => text.push_str(kind.absent()),
        }
    }

    fn shown(&self, kind: &Kind) -> String {
        self.as_ref().map_or_else(|| kind.absent().to_owned(), |value| value.shown(kind))
    }

    fn number(&self) -> Option<u64> {
        self.as_ref().and_then(Shown::number)
    }
}

impl<T: Value> Value for Option<T> {
    fn read(text: &str, kind: &Kind) -> Result<Self, Complaint> {
        match kind {
            Kind::Rate(..) if text == kind.absent() => Ok(None),
            _ => T::read(text, kind).map(Some),
        }
    }
}

/// Number of a member.
impl Shown for NodeId {
    fn encode(&self, _: &Kind, text: &mut String) {
        let _ = write!(text, "{}", self.0);
    }

    fn shown(&self, _: &Kind) -> String {
        self.0.to_string()
    }
}

/// Name of the thing that the kind says.
impl Shown for String {
    fn encode(&self, _: &Kind, text: &mut String) {
        text.push_str(self);
    }

    fn shown(&self, _: &Kind) -> String {
        self.clone()
    }
}

/// One of several names, as an item of a list.
impl Shown for &'static str {
    fn encode(&self, _: &Kind, text: &mut String) {
        text.push_str(self);
    }

    fn shown(&self, _: &Kind) -> String {
        (*self).to_owned()
    }
}

impl Value for String {
    fn read(text: &str, kind: &Kind) -> Result<Self, Complaint> {
        match kind.scalar() {
            Kind::Name(named) => named.read(text),
            kind => unreachable!("{kind:?} is no name"),
        }
    }
}

/// Address that datagrams can be sent to.
impl Shown for Ipv4Addr {
    fn encode(&self, kind: &Kind, text: &mut String) {
        text.push_str(&self.shown(kind));
    }

    fn shown(&self, _: &Kind) -> String {
        self.to_string()
    }
}

impl Value for Ipv4Addr {
    fn read(text: &str, _: &Kind) -> Result<Self, Complaint> {
        let is_of_one =
            |address: &Self| !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast();
        text.parse().ok().filter(is_of_one).ok_or_else(|| {
            let message = format!("{} is not an IPv4 address of a machine", quoted(text));
            Complaint::about(message).hint("write four numbers: 10.0.0.1")
        })
    }
}

impl Shown for PathBuf {
    fn encode(&self, kind: &Kind, text: &mut String) {
        text.push_str(&self.shown(kind));
    }

    fn shown(&self, _: &Kind) -> String {
        self.display().to_string()
    }
}

impl Value for PathBuf {
    fn read(text: &str, _: &Kind) -> Result<Self, Complaint> {
        if text.is_empty() || text.contains('\0') {
            return Err(Complaint::about("this is no path").hint("write the path of a file, as `rack.key`"));
        }
        Ok(Self::from(text))
    }
}
