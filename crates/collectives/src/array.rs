//! Element types of the user's arrays: their names and sizes.
//!
//! All elements are little endian in memory and on the wire. Reading and writing array files is not done here.

use core::str::FromStr;

use thiserror::Error;

use crate::named::named;

named! {
    /// Type of every element of an array.
    pub enum ElementType {
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// The upper half of a binary32.
        Bf16 = "bf16",
        /// Signed, two's complement, 32 bits.
        I32 = "i32",
        /// Signed, two's complement, 64 bits.
        I64 = "i64",
        /// Unsigned, 8 bits.
        U8 = "u8",
    }
}

impl ElementType {
    /// Returns the size of one element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }
}

/// Error: no element type has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown element type \"{0}\"; hint: one of f32, f64, f16, bf16, i32, i64, u8")]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::from_name(name).ok_or_else(|| UnknownElementType(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_type() {
        for element in ElementType::ALL {
            assert_eq!(element.name().parse(), Ok(element));
        }
    }

    #[test]
    fn the_width_in_the_name_is_the_width_in_memory() {
        for element in ElementType::ALL {
            let digits = element.name().trim_start_matches(char::is_alphabetic);
            assert_eq!(digits.parse::<usize>().map(|bits| bits / 8), Ok(element.bytes()));
        }
    }

    #[test]
    fn the_error_of_an_unknown_name_lists_the_known_ones() {
        let message = "float32".parse::<ElementType>().unwrap_err().to_string();
        for element in ElementType::ALL {
            assert!(message.contains(element.name()), "{message}");
        }
    }
}
