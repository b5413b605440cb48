//! Element types of the user's arrays: their names and sizes.
//!
//! All elements are little endian in memory and on the wire. Reading and writing array files is not done here.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// The type of every element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// Signed, two's complement, 32 bits.
    I32,
    /// Signed, two's complement, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
}

impl ElementType {
    /// All types, in the order in which help texts list them.
    pub const ALL: [Self; 7] = [Self::F32, Self::F64, Self::F16, Self::Bf16, Self::I32, Self::I64, Self::U8];

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

    /// Returns the name that files, options and reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Error: no element type has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown element type \"{0}\"; hint: one of f32, f64, f16, bf16, i32, i64, u8")]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|element| element.name() == name)
            .ok_or_else(|| UnknownElementType(name.to_owned()))
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
